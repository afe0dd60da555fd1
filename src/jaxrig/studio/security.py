"""Who may talk to the studio: this machine, this page, with the token of this start.

A page from elsewhere can make a browser send requests to a local port. Checking `Host`
stops names that were rebound to 127.0.0.1, checking `Origin` stops other pages (pages
on another local port included, which share the site and thus the cookie), and the token
stops other users of the machine.
"""

import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from jaxrig.machine import missing_extra

try:
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.responses import PlainTextResponse, RedirectResponse, Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise missing_extra(f"{__name__} needs starlette", "studio") from error

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


class Guard:
    """Refuse what does not come from our own page, and set the safe headers."""

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
