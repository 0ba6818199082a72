"""Between the page and the network: connections and requests that are refused, and answers in JSON."""

import asyncio
import json
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tengen.web.access import Access

_PATIENCE = 10.0  # seconds for the first request of a connection


class PromptHttp(H11Protocol):
    """Ends connections without a request after some seconds, or as many as may be open would keep others out."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._patience = self.loop.call_later(_PATIENCE, self._end_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.cancel()
        super().connection_lost(exc)

    def _end_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()


class Guard:
    """Refuses requests that `access` does not allow, and adds its headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = scope.get("query_string", b"").decode("latin-1")
        more = [(name.lower().encode(), value.encode()) for name, value in self._access.headers().items()]

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        refusal = self._access.refusal(scope["method"], headers, query)
        if refusal is not None:
            await in_json({"error": refusal[1]}, refusal[0])(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)


def encoded(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def in_json(content: Any, status: int = 200) -> Response:
    return Response(encoded(content), status, media_type="application/json")
