"""The live page over HTTP."""

import argparse
import json
import os
import shutil
import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen.commands import web
from tests.helpers.patience import LONG, eventually
from tests.helpers.web_runs import HOSTILE, NETWORKS, add_lines, make_run, progress
from tests.helpers.web_server import Serving, serving

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tengen.web import http
from tengen.web import server as server_module
from tengen.web.document import RunReader
from tengen.web.server import LivePage, PageServer, Watched


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("served") / "runs" / "one")


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[Serving]:
    with serving(base.parent) as found:
        yield found


def test_the_page_and_its_data(server: Serving) -> None:
    status, page, headers = server.ask("/")
    assert status == 200
    assert page.startswith("<!DOCTYPE html>")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")
    _, runs, _ = server.ask("/api/runs")
    assert [run["id"] for run in runs["runs"]] == ["one"]
    _, run, _ = server.ask("/api/runs/one")
    assert run["charts"][0]["id"] == "ratings"
    _, games, _ = server.ask(f"/api/runs/one/games?network={NETWORKS[1]}")
    _, game, _ = server.ask(f"/api/runs/one/game?network={NETWORKS[1]}&key={games[0]['key']}")
    assert (game["players"][1], game["network"], len(game["moves"])) == (HOSTILE, NETWORKS[1], 5)
    assert server.ask("/api/machine")[1]["cores"] >= 1
    _, disk, _ = server.ask("/api/runs/one/disk")
    assert disk["used"] == sum(disk["folders"].values()) > disk["folders"]["games"] > 0


def test_a_page_that_is_opened_has_the_runs_that_have_begun_since(tmp_path: Path) -> None:
    make_run(tmp_path / "one")
    with serving(tmp_path) as server:
        assert '"id":"two"' not in server.ask("/")[1]
        make_run(tmp_path / "two")
        assert '"id":"two"' in server.ask("/")[1]


def test_a_run_that_another_thread_finds_gone_does_not_disturb_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "one")
    make_run(tmp_path / "two")
    watched, summary = Watched([tmp_path]), RunReader.summary

    def remove_the_other(reader: RunReader) -> dict[str, Any]:
        if reader.base.name == "one":
            shutil.rmtree(tmp_path / "two")
            watched.find()
        return summary(reader)

    monkeypatch.setattr(RunReader, "summary", remove_the_other)
    assert watched.summaries()[0]["id"] == "one"
    assert [run["id"] for run in watched.summaries()] == ["one"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/two",
        "/api/runs/..%2f..%2fetc",
        "/api/runs/..%2f..%2fetc/disk",
        "/api/runs/one/games?network=..",
        "/api/runs/one/game?network=..%2f..&key=metrics.jsonl:0",
        "/static/app.js",
        "/../../etc/passwd",
    ],
)
def test_what_is_not_shown_is_not_there(server: Serving, path: str) -> None:
    assert server.ask(path)[0] == 404


def test_other_sites_and_missing_tokens_are_refused(server: Serving) -> None:
    assert server.ask("/", headers={"Host": "evil.example"})[0] == 403
    assert server.ask("/api/runs", headers={"Origin": "http://evil.example"})[0] == 403
    status, answer, headers = server.ask("/api/runs/one/play", {"visits": 1}, token=False)
    assert (status, "token" in answer["error"]) == (401, True)
    assert "Content-Security-Policy" in headers
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/api/runs/one/play", b"{", "not valid JSON"),
        ("/api/runs/one/play", [1], "not a JSON object"),
        ("/api/runs/one/play", {"visits": "many"}, "visits: expected a whole number"),
        ("/api/runs/one/play", {"visits": 1, "seat": 7}, "seat: expected 0, 1 or null"),
        ("/api/runs/one/play", b" " * 500_000, "more than 400,000 bytes"),
    ],
)
def test_requests_that_make_no_sense_are_answered_in_words(
    server: Serving, path: str, body: object, message: str
) -> None:
    status, answer, _ = server.ask(path, body)
    assert status == 400
    assert message in answer["error"]


def test_an_address_that_others_can_reach_needs_the_token(base: Path) -> None:
    with serving(base.parent, host="0.0.0.0") as server:
        assert server.ask("/")[0] == 401
        assert server.ask(f"/?token={urllib.parse.quote(server.access.token)}")[0] == 200
        assert server.ask("/api/runs", headers={"X-Tengen-Token": server.access.token})[0] == 200


def test_nobody_waits_for_a_search_when_the_server_ends(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thinks, compiled = threading.Event(), threading.Event()

    class Room:
        def begin(self, *about: object) -> None:
            thinks.set()
            assert compiled.wait(LONG)

        def stop(self) -> None:
            """Nothing stops a compilation."""

    monkeypatch.setattr(LivePage, "_opened", lambda page: setattr(page, "_room", Room()) or page._room)
    try:
        with serving(base.parent) as server, ThreadPoolExecutor(1) as pool:
            answer = pool.submit(server.ask, "/api/runs/one/play", {"visits": 1})
            assert thinks.wait(LONG)
            server.end()
            status, content, _ = answer.result(LONG)
            assert not compiled.is_set()
        assert (status, content["error"]) == (503, "tengen web was stopped")
    finally:
        compiled.set()


def test_a_flood_of_requests_is_refused_and_not_remembered(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_MOST_WAITING", 2)
    thinks, go_on = threading.Semaphore(0), threading.Event()

    class Room:
        def get(self, id: str) -> "Room":
            return self

        def state(self) -> dict[str, str]:
            thinks.release()
            assert go_on.wait(LONG)
            return {}

        def stop(self) -> None:
            """There is no search."""

    monkeypatch.setattr(LivePage, "_opened", lambda page: setattr(page, "_room", Room()) or page._room)
    with serving(base.parent) as server, ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(server.ask, "/api/play/x/state", {}) for _ in range(2)]
        assert thinks.acquire(timeout=LONG)
        eventually(lambda: server.page._waiting == 2)
        status, content, _ = server.ask("/api/play/x/state", {})
        assert (status, "too much" in content["error"]) == (503, True)
        assert server.ask("/api/play/x/analysis", {"visits": 1})[0] == 503
        assert server.ask("/api/runs")[0] == 200, "looking needs no thought"
        go_on.set()
        assert [answer.result(LONG)[0] for answer in asked] == [200, 200]
        assert server.ask("/api/play/x/state", {})[0] == 200


def test_connections_are_counted_and_those_of_closed_tabs_end(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_MOST_CONNECTIONS", 4)
    with serving(base.parent) as server:
        streams = [urllib.request.urlopen(f"{server.address}/api/events", timeout=LONG) for _ in range(3)]
        for stream in streams:
            assert stream.readline() == b"retry: 3000\n"
        state = server.server.server_state
        assert len(state.connections) >= 3
        assert server.ask("/api/runs")[0] == 503
        for stream in streams:
            stream.close()
        eventually(lambda: not state.connections and not state.tasks)
        assert server.ask("/api/runs")[0] == 200


@pytest.mark.parametrize("has_played", [True, False])
def test_ctrl_c_ends_the_process_also_while_a_network_is_compiled(
    base: Path, has_played: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []

    def interrupted(server: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PageServer, "run", interrupted)
    monkeypatch.setattr(LivePage, "has_played", has_played)
    monkeypatch.setattr(os, "_exit", left.append)
    monkeypatch.setattr(os, "nice", lambda by: 0)
    with pytest.raises(KeyboardInterrupt):
        web.run(argparse.Namespace(runs=[base], host="127.0.0.1", port=0, open=False))
    assert left == ([130] if has_played else [])


def test_events_tell_which_run_has_changed(server: Serving, base: Path) -> None:
    with urllib.request.urlopen(f"{server.address}/api/events", timeout=LONG) as stream:

        def news() -> dict:
            return next(json.loads(raw[6:]) for raw in stream if raw.startswith(b"data: "))

        assert [run["id"] for run in news()["runs"]] == ["one"]
        add_lines(base, [progress(50)])
        found = news()
        assert found["changed"] == ["one"]
        assert found["runs"][0]["steps"] == 200


def test_connections_that_ask_for_nothing_end(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(base.parent) as server:
        stream = urllib.request.urlopen(f"{server.address}/api/events", timeout=LONG)
        assert stream.readline() == b"retry: 3000\n"
        monkeypatch.setattr(http, "_PATIENCE", 0.2)
        place = urllib.parse.urlsplit(server.address)
        for half in (b"", b"GET / HT"):
            with socket.create_connection((place.hostname, place.port), LONG) as silent:
                silent.sendall(half)
                assert silent.recv(1) == b"", "the server ended the connection"
        state = server.server.server_state
        assert len(state.connections) == 1, "the one that was answered stays"
        stream.close()


@pytest.mark.parametrize("early", [True, False])
def test_an_analysis_that_fails_says_so_and_ends(base: Path, early: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[BaseException] = []
    monkeypatch.setattr(server_module, "traceback", SimpleNamespace(print_exception=printed.append))

    class Room:
        stop = threading.Event()

        def get(self, id: str) -> "Room":
            return self

        def think(self, visits: int, tell: Any) -> None:
            tell({"visits": 1})
            raise RuntimeError("out of memory")

    def opened(page: LivePage) -> Any:
        if early:
            raise RuntimeError("out of memory")
        return Room()

    monkeypatch.setattr(LivePage, "_opened", opened)
    with serving(base.parent) as server:
        request = urllib.request.Request(f"{server.address}/api/play/x/analysis", b'{"visits": 9}')
        for name, value in {"X-Tengen-Token": server.access.token, "Content-Type": "application/json"}.items():
            request.add_header(name, value)
        lines = [json.loads(line) for line in urllib.request.urlopen(request, timeout=LONG)]
    assert lines == [*([] if early else [{"visits": 1}]), {"error": "out of memory", "done": True}]
    assert [type(error) for error in printed] == [RuntimeError]
