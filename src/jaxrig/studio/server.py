"""The server of the studio: who may talk to it, pages, calls of rooms, uploads, and
streams of frames.
"""

import asyncio
import functools
import json
import logging
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import parse_qs

from jaxrig.machine import missing_extra

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.requests import Request
    from starlette.responses import (
        FileResponse,
        JSONResponse,
        PlainTextResponse,
        RedirectResponse,
        Response,
    )
    from starlette.routing import Mount, Route, WebSocketRoute
    from starlette.staticfiles import StaticFiles
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from starlette.websockets import WebSocket, WebSocketDisconnect
except ImportError as error:
    raise missing_extra(f"{__name__} needs starlette and uvicorn", "studio") from error

from jaxrig.studio.jobs import FAILURES, Hub, Jobs
from jaxrig.studio.rooms import Desk, Download, Room, Workspace

NAMES = ("127.0.0.1", "localhost", "[::1]")
SAFE = ("GET", "HEAD")
FORBIDDEN = 403
# No inline script or style, nothing from elsewhere, not in a frame of another page.
POLICY = "; ".join(
    (
        "default-src 'none'",
        *("script-src 'self'", "style-src 'self'", "connect-src 'self'"),
        *("img-src 'self' data: blob:", "base-uri 'none'", "form-action 'none'"),
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
STATIC = Path(__file__).parent / "static"
PORT, PORTS_TRIED = 8765, 20
REQUEST_BYTES = 2 * 2**20
PATIENCE = 5.0  # seconds for jobs to end after Ctrl-C
REFUSED, TOO_LARGE, UNKNOWN = 422, 413, 404
USER_ERRORS = (*FAILURES, KeyError)  # a request may lack a name
Open = Callable[[], Room]


class Guard:
    """Refuse what does not come from our own page, and set the safe headers.

    A page from elsewhere can make a browser send requests to a local port. Checking
    `Host` stops names that were rebound to 127.0.0.1, checking `Origin` stops other
    pages (pages on another local port included, which share the site and thus the
    cookie), and the token stops other users of the machine.
    """

    def __init__(self, app: ASGIApp, token: str, port: int):
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in NAMES}
        # Cookies are shared by all ports of a host, so that the name tells them apart.
        self.cookie = f"jaxrig_studio_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, answer it with a refusal, or take the token."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        answer = self._answer(scope)
        if answer is None:
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, _with_headers(send))

    def _answer(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self.hosts:
            return _refuse("this name does not belong to the studio; use 127.0.0.1")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if scope["type"] == "http" and scope["path"] == "/" and given:
            return self._admit(given[0])
        if not self._same(_cookie(headers, self.cookie)):
            return _refuse("open the studio with the address in its terminal")
        if scope["type"] == "http" and scope["method"] in SAFE:
            return None
        if headers.get("origin") not in {f"http://{host}" for host in self.hosts}:
            return _refuse("this request does not come from a page of the studio")
        return None

    def _admit(self, given: str) -> Response:
        if not self._same(given):
            return _refuse("this token is not of this start of the studio")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
        return answer

    def _same(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())


def _refuse(reason: str) -> Response:
    return PlainTextResponse(f"refused: {reason}\n", FORBIDDEN)


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            held: Any = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                held[name] = value
        await send(message)

    return sent


class TooLarge(ValueError):
    """A request with more bytes than allowed."""


class Studio:
    """The rooms of a studio and what they share; `app` is the whole behind its guard.

    `rooms` maps the name of a room to its title and to a function that imports it, so
    that one room does not load the others.
    """

    def __init__(
        self,
        rooms: Mapping[str, tuple[str, Open]],
        folder: Workspace,
        token: str,
        port: int,
        ready: Callable[[], None] = lambda: None,
    ):
        self.titles = {name: title for name, (title, _) in rooms.items()}
        self.folder, self.hub = folder, Hub()
        self.jobs = Jobs(self.hub)
        self._open = {
            name: functools.cache(opens) for name, (_, opens) in rooms.items()
        }
        self._desks = {name: Desk(name, folder, self.jobs) for name in rooms}
        self._opening, self._naming = threading.Lock(), threading.Lock()
        self._ready = ready
        routes = [
            Route("/", self.page),
            Route("/api/studio", self.about),
            Route("/api/file", self.file),
            Route("/api/stop/{job}", self.stop, methods=["POST"]),
            Route("/api/upload/{room}", self.upload, methods=["POST"]),
            Route("/api/call/{room}/{call}", self.call, methods=["POST"]),
            WebSocketRoute("/api/events", self.events),
            WebSocketRoute("/api/frames/{job}", self.frames),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        inner = Starlette(routes=routes, lifespan=self._lifespan)
        self.app: ASGIApp = Guard(inner, token, port)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None, None]:
        self._ready()
        yield
        await run_in_threadpool(self.jobs.stop, PATIENCE)

    async def page(self, request: Request) -> Response:
        """Return the one page; its scripts do the rest."""
        return FileResponse(STATIC / "index.html")

    async def about(self, request: Request) -> Response:
        """Say which rooms there are, where files are kept, and what runs."""
        return JSONResponse(
            {
                "rooms": self.titles,
                "folder": self.folder.shown(),
                "read_only": self.folder.read_only,
                "upload_bytes": self.folder.upload_bytes,
                "jobs": [job.facts() for job in self.jobs.all()],
            }
        )

    async def call(self, request: Request) -> Response:
        """Call a function of a room with the JSON of the request."""
        name, call = request.path_params["room"], request.path_params["call"]

        def work() -> Any:
            function = self._room(name).calls.get(call)
            if function is None:
                raise FileNotFoundError(f"the room {name} has no call {call!r}")
            return function(self._desks[name], given)

        try:
            given = _object(await _body(request, REQUEST_BYTES))
            found = await run_in_threadpool(work)
        except USER_ERRORS as error:
            return _failure(error)
        if isinstance(found, Download):
            return _attached(found)
        if isinstance(found, bytes):
            return Response(found, media_type="application/octet-stream")
        return JSONResponse(found)

    def _room(self, name: str) -> Room:
        if name not in self._open:
            known = ", ".join(self._open)
            raise FileNotFoundError(f"no room {name!r}: there are {known}")
        # One after the other: packages that are imported from two threads at once can
        # see each other half made.
        with self._opening:
            return self._open[name]()

    async def file(self, request: Request) -> Response:
        """Return a file of the folder."""
        try:
            path = self.folder.file(request.query_params.get("name", ""))
        except USER_ERRORS as error:
            return _failure(error)
        return FileResponse(path, filename=path.name)

    async def upload(self, request: Request) -> Response:
        """Write the body of a request to the folder, if its room can read it."""
        name = request.path_params["room"]
        try:
            room = await run_in_threadpool(self._room, name)
            content = await _body(request, self.folder.upload_bytes)
            called = request.query_params.get("name", "")
            path = await run_in_threadpool(self._keep, name, room, called, content)
        except USER_ERRORS as error:
            return _failure(error)
        return JSONResponse({"name": self.folder.name(path), "bytes": len(content)})

    def _keep(self, name: str, room: Room, called: str, content: bytes) -> Path:
        with self._naming:  # two tabs may upload files of one name
            path = self.folder.upload_path(called, room.suffixes)
            self.folder.write(self.folder.name(path), content)
        readable = False
        try:
            room.check(self._desks[name], path)
            readable = True
        finally:
            if not readable:
                path.unlink(missing_ok=True)
        return path

    async def stop(self, request: Request) -> Response:
        """Ask a job to end."""
        try:
            job = self.jobs.get(request.path_params["job"])
        except FileNotFoundError as error:
            return _failure(error)
        job.stop()
        return JSONResponse(job.facts())

    async def events(self, socket: WebSocket) -> None:
        """Send every event to a tab until it goes."""
        await socket.accept()
        queue = self.hub.open()
        try:
            async with _hanging_up(socket) as gone:
                while (event := await _next(queue, gone)) is not None:
                    await socket.send_json(event)
        finally:
            self.hub.close(queue)

    async def frames(self, socket: WebSocket) -> None:
        """Send the frames of a job as they come, then how it ended."""
        try:
            job = self.jobs.get(socket.path_params["job"])
        except FileNotFoundError:
            await socket.close()
            return
        await socket.accept()
        queue, sent = self.hub.open(), 0
        try:
            async with _hanging_up(socket) as gone:
                while not gone.done():
                    while sent < len(job.frames) and not gone.done():
                        await socket.send_bytes(job.frames[sent])
                        sent += 1
                    if job.state != "running" and sent == len(job.frames):
                        await socket.send_json(job.facts())
                        return
                    await _next(queue, gone)
        finally:
            self.hub.close(queue)


@asynccontextmanager
async def _hanging_up(socket: WebSocket) -> AsyncGenerator[asyncio.Task[None], None]:
    """Give a task that ends when the tab does; a tab that went is no error."""

    async def listen() -> None:
        with suppress(WebSocketDisconnect):
            while True:
                await socket.receive_text()

    task = asyncio.create_task(listen())
    try:
        with suppress(WebSocketDisconnect):
            yield task
    finally:
        task.cancel()


async def _next(
    queue: asyncio.Queue[dict[str, Any]], gone: asyncio.Task[None]
) -> dict[str, Any] | None:
    """Return the next event, or None when the tab is gone."""
    waiting = asyncio.create_task(queue.get())
    await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
    if waiting.done():
        return waiting.result()
    waiting.cancel()
    return None


async def _body(request: Request, most: int) -> bytes:
    """Return the body; TooLarge as soon as there is more of it than allowed."""
    words = f"more than {most / 2**20:.3g} MiB: put the file in the studio's folder"
    if int(request.headers.get("content-length") or 0) > most:
        raise TooLarge(words)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise TooLarge(words)
        parts.append(part)
    return b"".join(parts)


def _object(body: bytes) -> dict[str, Any]:
    """Return the object that a request gives as JSON; none is an empty one."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not a number: JSON has none like it")

    try:
        given = json.loads(body or b"{}", parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("a request is nested too deeply") from error
    if not isinstance(given, dict):
        raise ValueError("a request is an object with names and values")
    return given


def _failure(error: Exception) -> Response:
    words = str(error) or type(error).__name__
    if isinstance(error, KeyError):
        words = f"the request lacks {words}"
    status = TOO_LARGE if isinstance(error, TooLarge) else REFUSED
    status = UNKNOWN if isinstance(error, FileNotFoundError) else status
    return JSONResponse({"error": words}, status)


def _attached(found: Download) -> Response:
    plain = found.name.replace('"', "_").encode("ascii", "replace").decode()
    headers = {"content-disposition": f'attachment; filename="{plain}"'}
    return Response(found.content, 200, headers, "application/octet-stream")


def bind(port: int | None) -> socket.socket:
    """Return a socket on a port of this machine alone, by default the first free."""
    for tried in [port] if port is not None else range(PORT, PORT + PORTS_TRIED):
        # Named by its protocol, or asyncio leaves Nagle's algorithm on, which holds
        # every second answer back for 40 ms.
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind(("127.0.0.1", tried))
            held.listen()  # so that a browser opened early waits and is not refused
        except OSError:
            held.close()
        else:
            return held
    words = f"port {port} is" if port is not None else f"ports from {PORT} on are"
    raise OSError(f"{words} in use: give another with --port, or 0 for any")


class _Server(uvicorn.Server):
    """A server that says nothing of the requests that Ctrl-C cuts short."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End soon; the second Ctrl-C at once."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        super().handle_exit(sig, frame)


def serve(
    rooms: Mapping[str, tuple[str, Open]],
    folder: Workspace,
    port: int | None,
    open_browser: bool,
    tell: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C; say where to look and what was kept."""
    held, token = bind(port), secrets.token_urlsafe(24)
    number = held.getsockname()[1]
    url = f"http://127.0.0.1:{number}/?token={token}"

    def ready() -> None:
        tell(f"folder: {folder.root}" + (" (read-only)" if folder.read_only else ""))
        tell(f"open {url}")
        tell("Ctrl-C stops the studio; what was saved stays in the folder")
        if open_browser:  # some browsers return only when they are closed
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    studio = Studio(rooms, folder, token, number, ready)
    # Two seconds for open sockets of tabs, which would never end by themselves.
    config = uvicorn.Config(
        studio.app, log_level="warning", timeout_graceful_shutdown=2, ws_max_size=2**20
    )
    with suppress(KeyboardInterrupt):
        _Server(config).run(sockets=[held])
    running = sum(job.state == "stopped" for job in studio.jobs.all())
    words = f"; {running} runs were stopped" if running else ""
    tell(f"stopped{words}; everything saved is in {folder.root}")
