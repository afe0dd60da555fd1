"""A studio that runs in this process, and plain HTTP requests to it."""

import http.client
import json
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from jaxrig.studio.rooms import Workspace
from jaxrig.studio.server import Studio, bind
from jaxrig.systems import load_system

TOKEN = "token-of-the-tests"
PATIENCE = 60.0


class Client:
    """Requests as the page makes them; headers can be changed or left out (None)."""

    def __init__(self, port: int):
        self.port = port
        self.url = f"http://127.0.0.1:{port}/?token={TOKEN}"
        self.headers = {
            "Host": f"127.0.0.1:{port}",
            "Origin": f"http://127.0.0.1:{port}",
            "Cookie": f"jaxrig_studio_{port}={TOKEN}",
        }

    def send(
        self,
        path: str,
        body: bytes | None = None,
        method: str | None = None,
        **changes: str | None,
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        """Return status, body and headers of an answer."""
        wanted: Mapping[str, str | None] = self.headers | changes
        headers = {k: v for k, v in wanted.items() if v is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            method = method or ("GET" if body is None else "POST")
            connection.putrequest(method, path, skip_host=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def call(self, room: str, name: str, /, **request: Any) -> tuple[int, Any]:
        """Call a function of a room; returns the status and the answer."""
        body = json.dumps(request).encode()
        status, found, _ = self.send(f"/api/call/{room}/{name}", body)
        return status, json.loads(found)

    def wait(self, job: str) -> dict[str, Any]:
        """Wait for the end of a job and return its facts."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            jobs = json.loads(self.send("/api/studio")[1])["jobs"]
            (found,) = (one for one in jobs if one["id"] == job)
            if found["state"] != "running":
                return found
            time.sleep(0.05)
        raise TimeoutError(f"job {job} did not end")


def real_rooms(*names: str) -> dict[str, Any]:
    """Return the rooms of installed systems."""
    systems = [load_system(name) for name in names]
    return {system.name: (system.title, system.studio) for system in systems}


@contextmanager
def running_studio(
    folder: Path, rooms: Mapping[str, Any], **settings: Any
) -> Generator[Client, None, None]:
    """Serve a studio from a thread until the block ends."""
    held = bind(0)
    port, ready = held.getsockname()[1], threading.Event()
    space = Workspace(folder, **settings)
    studio = Studio(rooms, space, TOKEN, port, ready.set)
    config = uvicorn.Config(
        studio.app, log_level="critical", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [held]})
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield Client(port)
    finally:
        server.should_exit = True
        thread.join()
        held.close()
