"""Who may ask the studio: the browser that was given the address, and no page from elsewhere.

The secret is in the path, not in a cookie: browsers send a cookie of 127.0.0.1 to every port of it, so other
programs on this machine would be given it.
"""

from __future__ import annotations

from hmac import compare_digest

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 4 * 2**20
"""Bytes; a saved interview holds its problem."""

LONGEST_PATH = 200
"""Characters; no page has an address as long."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers hide the origin that is checked here
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every response that does not bring its own."""


class Guard:
    """Lets through what comes from the studio's own pages, and takes the secret off the path.

    Parameters
    ----------
    hosts
        ``host:port`` under which the studio may be called. Another name that leads here is an attack by a
        name server.
    """

    def __init__(self, app: ASGIApp, secret: str, hosts: frozenset[str]) -> None:
        self.app, self.secret, self.hosts = app, secret, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        size = 0

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                more = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *(one for one in more if one[0] not in present)]
            await send(message)

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > LARGEST_BODY:
                raise HTTPException(413, f"at most {LARGEST_BODY} bytes")
            return message

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, guarded)
            return
        path = scope["path"][len(self.secret) + 1 :]
        inner = {**scope, "path": path, "raw_path": path.encode(), "root_path": ""}
        await self.app(inner, counted, guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        names = [name for name, _ in scope["headers"]]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self.hosts or names.count(b"host") != 1:
            return _said("another host", 421)
        given = scope["path"][1:].split("/")[0].encode("utf-8", "replace")
        if len(scope["path"]) > LONGEST_PATH or not compare_digest(given, self.secret.encode()):
            return _said("not found", 404)
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return _said("from another page", 403)
        if origin is not None and origin != f"http://{host}":
            return _said("from another origin", 403)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _said("allowed: GET, HEAD, POST", 405)
        if scope["method"] == "POST":
            if headers.get("content-type", "").split(";")[0].strip() != "application/json":
                return _said("allowed: application/json", 415)
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length[:20]) > LARGEST_BODY:
                return _said(f"at most {LARGEST_BODY} bytes", 413)
        return None


def _said(text: str, status: int) -> PlainTextResponse:
    return PlainTextResponse(text, status)
