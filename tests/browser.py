"""A headless Chromium that tests and the documentation drive over its DevTools pipe."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
PATIENCE = 60.0  # seconds for an answer; a busy machine takes a while to start
LONGEST = 300.0  # seconds for what a page waits for; a busy machine compiles slowly
LOOK = 5.0  # seconds that a page looks before it answers, well below PATIENCE
LOWEST = 10  # so that no end of a pipe is in the way of descriptors 3 and 4
OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # the page is our own, and the sandbox refuses to run as root
    "--disable-gpu",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--no-first-run",
)
# Chromium speaks on descriptors 3 and 4, which subprocess cannot assign.
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)
KEYS = {  # name: the key's code and the number Windows once gave it
    " ": ("Space", 32),
    "Tab": ("Tab", 9),
    "ArrowLeft": ("ArrowLeft", 37),
    "ArrowRight": ("ArrowRight", 39),
    "Home": ("Home", 36),
    "End": ("End", 35),
    "ArrowUp": ("ArrowUp", 38),
    "ArrowDown": ("ArrowDown", 40),
    "Enter": ("Enter", 13),
}
UNTIL = """new Promise((done) => {{
  const end = performance.now() + {wait};
  const look = () => {{
    if ({condition}) done(true);
    else if (performance.now() > end) done(false);
    else setTimeout(look, 10);
  }};
  look();
}})"""


class Connection:
    """Messages to and from a browser: JSON, each ended by a zero byte."""

    def __init__(self, reading: int, writing: int):
        self._reading, self._writing = reading, writing
        self._rest = b""
        self._calls = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """Send a command and wait for its result; events met on the way are kept."""
        self._calls += 1
        message: dict[str, Any] = {"id": self._calls, "method": method}
        message |= {"params": params} | ({"sessionId": session} if session else {})
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._writing, data) :]
        while (answer := self._next()).get("id") != self._calls:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait_for(self, method: str, **params: Any) -> None:
        """Wait for an event with these parameters, unless it is among those kept."""
        wanted = params.items()
        while not any(
            event["method"] == method and wanted <= event.get("params", {}).items()
            for event in self.events
        ):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            left = max(0.0, end - time.monotonic())
            if not select.select([self._reading], [], [], left)[0]:
                raise TimeoutError(f"chromium said nothing for {PATIENCE:.0f} s")
            data = os.read(self._reading, 1 << 16)
            if not data:
                raise ConnectionError("chromium ended before it answered")
            self._rest += data
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)


class Page:
    """One open page: look at it, press its keys and buttons, take its picture."""

    def __init__(self, connection: Connection, target: str, session: str):
        self._connection, self._target, self._session = connection, target, session
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self._call("Page.setLifecycleEventsEnabled", enabled=True)

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._connection.call(method, self._session, **params)

    def show(self, width: int, height: int = 844, **features: str) -> None:
        """Set the size of the window and media features, as `prefers_color_scheme`."""
        size = {"width": width, "height": height}
        self._call(
            "Emulation.setDeviceMetricsOverride",
            deviceScaleFactor=1,
            mobile=width < 600,
            **size,
        )
        named = [
            {"name": name.replace("_", "-"), "value": value}
            for name, value in features.items()
        ]
        self._call("Emulation.setEmulatedMedia", features=named)

    def load(self, place: Path | str) -> None:
        """Open a file or an address and wait until everything in it has loaded."""
        self._connection.events.clear()
        url = place if isinstance(place, str) else place.resolve().as_uri()
        begun = self._call("Page.navigate", url=url)
        # Not any load: that of the blank page before may be told late.
        self._connection.wait_for(
            "Page.lifecycleEvent", name="load", loaderId=begun["loaderId"]
        )

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        found = self._call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in found:
            raise AssertionError(f"{expression}: {_reason(found['exceptionDetails'])}")
        return found["result"].get("value")

    def until(self, condition: str, seconds: float = LONGEST) -> None:
        """Wait for a JavaScript condition, and fail if it does not come true."""
        wait = 1000 * min(LOOK, seconds)
        end = time.monotonic() + seconds
        while not self.evaluate(UNTIL.format(condition=condition, wait=wait)):
            if time.monotonic() > end:
                raise AssertionError(f"never came true in {seconds:g} s: {condition}")

    def press(self, key: str) -> None:
        """Press and release a key."""
        code, number = KEYS.get(key, (f"Key{key.upper()}", ord(key[0].upper())))
        facts: dict[str, Any] = {"key": key, "code": code}
        facts["windowsVirtualKeyCode"] = number
        text = {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", **facts, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", **facts)

    def click(self, selector: str, across: float = 0.5) -> None:
        """Click on an element, at a share of its width."""
        x, y = self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            "const box = e.getBoundingClientRect();"
            f"return [box.left + {across} * box.width, box.top + box.height / 2]; }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        self.drag((x, y))

    def drag(self, *path: tuple[float, float]) -> None:
        """Press the mouse at a point of the window and release it at the last one."""
        held: dict[str, Any] = {"button": "left", "clickCount": 1}
        moves = [("mouseMoved", point) for point in path[1:]]
        moves = [("mousePressed", path[0]), *moves, ("mouseReleased", path[-1])]
        for kind, (x, y) in moves:
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **held)

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """Write the page as a PNG: the whole of it, or what the window shows."""
        height = "document.body.scrollHeight" if whole else "innerHeight"
        width, height = self.evaluate(f"[innerWidth, {height}]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self._call(
            "Page.captureScreenshot", clip=clip, captureBeyondViewport=True
        )
        path.write_bytes(base64.b64decode(taken["data"]))

    def complaints(self) -> list[str]:
        """Exceptions, console errors and warnings since the page was loaded."""
        self.evaluate("1")  # what was said before this answer has arrived with it
        said = []
        for event in self._connection.events:
            given = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                said.append(_reason(given["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded":
                said.append(given["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                said.append(f"console.{given['type']}: {given['args']}")
        return said

    def close(self) -> None:
        """Close the page."""
        self._connection.call("Target.closeTarget", targetId=self._target)


class Browser:
    """A running browser."""

    def __init__(self, connection: Connection):
        self._connection = connection

    def open(self) -> Page:
        """A blank page in a window of its own."""
        made = self._connection.call("Target.createTarget", url="about:blank")
        target = made["targetId"]
        attached = self._connection.call(
            "Target.attachToTarget", targetId=target, flatten=True
        )
        return Page(self._connection, target, attached["sessionId"])


@contextmanager
def start_browser(folder: Path) -> Iterator[Browser]:
    """Chromium with its profile in a folder; it is killed at the end in any case."""
    ends = [_move(end) for _ in range(2) for end in os.pipe()]
    their_reading, our_writing, our_reading, their_writing = ends
    given = [str(their_reading), str(their_writing), str(CHROMIUM), *OPTIONS]
    process = subprocess.Popen(
        [sys.executable, "-ISc", LAUNCH, *given, f"--user-data-dir={folder}"],
        pass_fds=(their_reading, their_writing),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        os.close(their_reading)
        os.close(their_writing)
        yield Browser(Connection(our_reading, our_writing))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(our_reading)
        os.close(our_writing)


def _move(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    os.close(descriptor)
    return moved


def _reason(details: dict[str, Any]) -> str:
    return details.get("exception", {}).get("description") or details["text"]
