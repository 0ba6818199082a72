"""The live page: the same as a report, from a server that watches the runs."""

import asyncio
import contextlib
import json
import socket
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from tengen.errors import TengenError
from tengen.redact import hide
from tengen.web import document, games, ladder, page
from tengen.web.access import Access
from tengen.web.document import RunReader
from tengen.web.folders import FoundRuns
from tengen.web.http import Guard, PromptHttp, encoded, in_json
from tengen.web.machine import MachineLoad

if TYPE_CHECKING:
    from tengen.web.play import PlayRoom, PlaySession

T = TypeVar("T")
_LOOK = 2.0  # seconds between two looks at the runs, while somebody watches
_FIND = 10.0  # the same for new runs
_ALIVE = 15.0  # seconds after which a silent stream says that it is there
_LARGEST = 400_000  # bytes of a request
_MOST_MOVES = 20_000
_MOST_CONNECTIONS = 200
_MOST_WAITING = 32  # requests for the one thread that thinks


class NotFound(TengenError):
    """Something that was asked for and is not there."""


class ServerEnds(TengenError):
    """The server was stopped while somebody waited for an answer."""


class TooBusy(TengenError):
    """More was asked for at once than the server does."""


_Readers = dict[str, tuple[RunReader, threading.Lock]]  # by run


class Watched:
    """The runs in the folders that were named. Readers of different runs may work at the same time."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._readers: _Readers = {}
        self._known: dict[tuple[str, str], tuple[str, Any]] = {}  # by run and what: with the stamp of the run
        self.matches: list[dict[str, Any]] = []
        self.find()

    def find(self) -> None:
        """Look for new runs and matches. TengenError if a named folder is gone."""
        found = FoundRuns.of(self._folders)
        self.matches = ladder.match_summaries(found.matches)
        known = dict(self._readers)
        for id, base in found.runs.items():
            if id not in known or known[id][0].base != base:
                with contextlib.suppress(TengenError):
                    known[id] = (RunReader(base, id), threading.Lock())
        self._readers = {id: known[id] for id in found.runs if id in known}

    def base(self, id: str) -> Path:
        """Where a run is. NotFound if it is none of those that are shown."""
        if id not in self._readers:
            raise NotFound(f"there is no run {id[:200]!r}")
        return self._readers[id][0].base

    def stamps(self) -> dict[str, str]:
        """{run: something that changes when it does}."""
        return {id: reader.stamp() for id, (reader, _) in self._readers.items()}

    def summaries(self) -> list[dict[str, Any]]:
        readers = self._readers  # another thread may find that one of the runs is gone
        for id in readers:
            with contextlib.suppress(TengenError, OSError):
                self._latest(readers, id, "summary", RunReader.summary)
        return [self._known[id, "summary"][1] for id in readers if (id, "summary") in self._known]

    def document(self, id: str) -> bytes:
        self.base(id)
        return self._latest(self._readers, id, "document", lambda reader: encoded(reader.document()))

    def _latest(self, readers: _Readers, id: str, what: str, make: Callable[[RunReader], Any]) -> Any:
        """What `make` gives, again only if the run has changed."""
        reader, lock = readers[id]
        with lock:
            stamp = reader.stamp()
            if (id, what) not in self._known or self._known[id, what][0] != stamp:
                self._known[id, what] = (stamp, make(reader))
        return self._known[id, what][1]

    def disk(self, id: str) -> dict[str, Any] | None:
        self.base(id)
        return self._readers[id][0].disk()


class LivePage:
    """The application. `access` says who may use it."""

    def __init__(self, watched: Watched, access: Access) -> None:
        self._watched, self._access = watched, access
        self._machine = MachineLoad()
        self._ending = asyncio.Event()
        self._room: PlayRoom | None = None
        # One thread for all searches: a run on the same machine is more important.
        self._thinking = ThreadPoolExecutor(1, thread_name_prefix="thinking")
        self._waiting = 0
        routes = [
            Route("/", self._page),
            Route("/api/runs", self._runs),
            Route("/api/runs/{id:path}/games", self._games),
            Route("/api/runs/{id:path}/game", self._game),
            Route("/api/runs/{id:path}/disk", self._disk),
            Route("/api/runs/{id:path}/look", self._look, methods=["POST"]),
            Route("/api/runs/{id:path}/play", self._begin, methods=["POST"]),
            Route("/api/runs/{id:path}", self._run),
            Route("/api/machine", self._machine_load),
            Route("/api/events", self._events),
            Route("/api/play/{id}/analysis", self._analysis, methods=["POST"]),
            Route("/api/play/{id}/{what}", self._play, methods=["POST"]),
        ]
        handlers: dict[Any, Any] = {TengenError: _refused, OSError: _refused, ValueError: _refused}
        self.app: ASGIApp = Guard(Starlette(routes=routes, exception_handlers=handlers), access)

    async def _page(self, request: Request) -> Response:
        await self._find()
        runs = await run_in_threadpool(self._watched.summaries)
        content = document.page(runs, self._watched.matches, live=True) | {"token": self._access.token}
        return HTMLResponse(page.html(content))

    async def _runs(self, request: Request) -> Response:
        return in_json({"runs": await run_in_threadpool(self._watched.summaries), "matches": self._watched.matches})

    async def _run(self, request: Request) -> Response:
        found = await run_in_threadpool(self._watched.document, request.path_params["id"])
        return Response(found, media_type="application/json")

    async def _games(self, request: Request) -> Response:
        base = self._watched.base(request.path_params["id"])
        return in_json(await run_in_threadpool(games.listed, base, request.query_params.get("network", "")))

    async def _game(self, request: Request) -> Response:
        base = self._watched.base(request.path_params["id"])
        network, key = (request.query_params.get(name, "") for name in ("network", "key"))
        return in_json({**await run_in_threadpool(games.shown, base, network, key), "network": network})

    async def _disk(self, request: Request) -> Response:
        return in_json(await run_in_threadpool(self._watched.disk, request.path_params["id"]))

    async def _machine_load(self, request: Request) -> Response:
        return in_json(await run_in_threadpool(self._machine.look))

    async def _look(self, request: Request) -> Response:
        base, asked = self._watched.base(request.path_params["id"]), await _body(request)
        network, key, ply = str(asked.get("network", "")), str(asked.get("key", "")), _whole(asked, "ply")
        return in_json(await self._think(lambda room: room.look(base, network, key, ply)))

    async def _begin(self, request: Request) -> Response:
        base, asked = self._watched.base(request.path_params["id"]), await _body(request)
        seat = asked.get("seat")
        if seat not in (0, 1, None):
            raise TengenError(f"seat: expected 0, 1 or null, got {str(seat)[:40]!r}")
        network, text, visits = str(asked.get("network") or ""), str(asked.get("text") or ""), _whole(asked, "visits")
        return in_json(await self._think(lambda room: room.begin(base, network, seat, visits, text)))

    async def _play(self, request: Request) -> Response:
        id, what, asked = request.path_params["id"], request.path_params["what"], await _body(request)
        if what == "stop":  # while the search goes on
            if self._room is not None:
                self._room.get(id).stop.set()
            return in_json({})
        acts: dict[str, Callable[[PlaySession], Any]] = {
            "move": lambda session: session.move(_whole(asked, "action")),
            "goto": lambda session: session.goto(_actions(asked)),
            **{name: methodcaller(name) for name in ("answer", "undo", "state", "export")},
        }
        if what not in acts:
            raise NotFound(f"there is no {what[:40]!r} of a game")
        return in_json(await self._think(lambda room: acts[what](room.get(id))))

    async def _analysis(self, request: Request) -> Response:
        """A stream of lines of JSON, as the search goes on."""
        id, visits = request.path_params["id"], _whole(await _body(request), "visits")
        self._check_load()
        loop, found = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None]()

        def tell(line: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(found.put_nowait, line)

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None and not isinstance(error, ServerEnds):
                if not isinstance(error, TengenError):
                    traceback.print_exception(error)
                found.put_nowait({"error": hide(str(error)) or type(error).__name__, "done": True})
            found.put_nowait(None)

        task = asyncio.ensure_future(self._think(lambda room: room.get(id).think(visits, tell)))
        task.add_done_callback(ended)

        async def lines() -> AsyncIterator[bytes]:
            try:
                while (line := await self._unless_ending(found.get())) is not None:
                    yield encoded(line) + b"\n"
            except ServerEnds:
                pass
            finally:
                if self._room is not None:  # whoever asked is gone
                    with contextlib.suppress(TengenError):
                        self._room.get(id).stop.set()
                with contextlib.suppress(Exception):
                    await task

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def _think(self, act: Callable[["PlayRoom"], Any]) -> Any:
        self._check_load()
        self._waiting += 1
        try:
            work = asyncio.get_running_loop().run_in_executor(self._thinking, lambda: act(self._opened()))
            return await self._unless_ending(work)
        finally:
            self._waiting -= 1

    def _check_load(self) -> None:
        if self._waiting >= _MOST_WAITING:
            raise TooBusy("the server has too much to think about; try again later")

    async def _unless_ending(self, result: Awaitable[T]) -> T:
        """The result; ServerEnds as soon as it does, since nobody waits for a compilation then."""
        wanted, ending = asyncio.ensure_future(result), asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait({wanted, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not wanted.done():
                raise ServerEnds("tengen web was stopped")
            return wanted.result()
        finally:
            wanted.cancel()
            ending.cancel()

    def _opened(self) -> "PlayRoom":
        if self._room is None:
            from tengen.jax_setup import keep_compiled
            from tengen.web.play import PlayRoom

            keep_compiled()
            self._room = PlayRoom()
        return self._room

    async def _find(self) -> None:
        with contextlib.suppress(TengenError):
            await run_in_threadpool(self._watched.find)

    async def _events(self, request: Request) -> Response:
        return StreamingResponse(self._news(request), media_type="text/event-stream")

    async def _news(self, request: Request) -> AsyncIterator[str]:
        """Server-sent events: which runs have changed, and how all of them stand then."""
        before: dict[str, str] = {}
        silent = searched = 0.0
        yield "retry: 3000\n\n"
        while not (self._ending.is_set() or await request.is_disconnected()):
            if searched >= _FIND:
                searched = 0.0
                await self._find()
            now = await run_in_threadpool(self._watched.stamps)
            changed = [id for id, stamp in now.items() if before and before.get(id) != stamp]
            if changed or now.keys() != before.keys():
                runs = await run_in_threadpool(self._watched.summaries)
                yield f"event: runs\ndata: {json.dumps({'runs': runs, 'changed': changed})}\n\n"
                silent = 0.0
            elif silent >= _ALIVE:
                yield ": still here\n\n"
                silent = 0.0
            before = now
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _LOOK)
            silent, searched = silent + _LOOK, searched + _LOOK

    def end(self) -> None:
        self._ending.set()
        if self._room is not None:
            self._room.stop()
        self._thinking.shutdown(wait=False, cancel_futures=True)

    @property
    def has_played(self) -> bool:
        """Whether JAX was used, for a game or an analysis."""
        return self._room is not None


class PageServer(uvicorn.Server):
    """Serves a live page on a socket that listens already."""

    def __init__(self, page: LivePage) -> None:
        self._page = page
        quiet = {"log_level": "error", "access_log": False, "lifespan": "off", "timeout_graceful_shutdown": 1}
        super().__init__(
            uvicorn.Config(page.app, http=PromptHttp, ws="none", limit_concurrency=_MOST_CONNECTIONS, **quiet)
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._page.end()
        await super().shutdown(sockets)


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object in a request. TengenError if it is too long or no object."""
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > _LARGEST:
            raise TengenError(f"the request has more than {_LARGEST:,} bytes")
    try:
        found = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise TengenError("the request is not valid JSON") from None
    if not isinstance(found, dict):
        raise TengenError("the request is not a JSON object")
    return found


def _whole(asked: dict[str, Any], name: str) -> int:
    value = asked.get(name)
    if type(value) is not int:
        raise TengenError(f"{name}: expected a whole number, got {str(value)[:40]!r}")
    return value


def _actions(asked: dict[str, Any]) -> list[int]:
    value = asked.get("actions")
    if not isinstance(value, list) or len(value) > _MOST_MOVES or not all(type(each) is int for each in value):
        raise TengenError("actions: expected a list of whole numbers")
    return value


async def _refused(request: Request, error: Exception) -> Response:
    status = 503 if isinstance(error, ServerEnds | TooBusy) else 400
    if isinstance(error, NotFound | games.NoSuchGame | FileNotFoundError):
        status = 404
    return in_json({"error": hide(str(error))}, status)
