"""The page in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import pytest

from tengen.config import load
from tengen.config.rendering import render
from tengen.data.records.records import Record, save_records
from tengen.match import results
from tengen.match.results import MatchResult
from tengen.run.part import Progress
from tengen.run.part_status import NODES, StatusWriter
from tengen.web import report
from tests.helpers.browser import Browser, browsing, needs_browser
from tests.helpers.networks import untrained
from tests.helpers.web_runs import HOSTILE, NETWORKS, add_lines, make_run, progress
from tests.helpers.web_server import serving

pytestmark = needs_browser

ARROW_RIGHT, ARROW_LEFT, HOME, END, ESCAPE = (
    "\ue014",
    "\ue012",
    "\ue011",
    "\ue010",
    "\ue00c",
)  # as WebDriver names these keys
# Pixels of a chart that are not those of its background.
DRAWN = """[...document.querySelectorAll('.chart canvas')].map((canvas) => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let at = 3; at < pixels.length; at += 4) count += pixels[at] > 0;
  return count;
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shown") / "runs"
    base = make_run(folder / "one")
    (base / "games" / NETWORKS[0]).mkdir()
    commented = f"(;SZ[3];B[bb]C[{HOSTILE}](;W[aa];B[cc])(;W[ca];B[ac];W[cc]))"
    (base / "games" / NETWORKS[0] / "00000001.sgf").write_text(commented)
    make_run(folder / "two", "train.batch=32", lines=30)
    report.write(folder.parent / "both.html", [folder])
    report.write(folder.parent / "one.html", [folder / "one"])
    return folder


def test_every_chart_of_a_report_has_its_data(browser: Browser, runs: Path) -> None:
    browser.open((runs.parent / "one.html").as_uri())
    charts = browser.get("[...document.querySelectorAll('[data-chart]')].map((card) => card.dataset.chart)")
    assert {"ratings", "losses", "accuracy", "entropy", "calibration", "results", "length", "window"} <= set(charts)
    browser.until(f"{DRAWN}.every((count) => count > 300)")
    labels = browser.get("[...document.querySelectorAll('.chart canvas')].map((one) => one.getAttribute('aria-label'))")
    assert "Losses: total from 1.5 to 0.143; policy from 1.2 to 1.2; value from 0.4 to 0.4" in labels
    assert browser.get("document.querySelectorAll('.reliability circle').length") == 20
    # The keyboard reads a chart and zooms.
    tip, reset = (
        "document.querySelector('[data-chart=losses] .tip')",
        "document.querySelector('.toolbar button').hidden",
    )
    browser.press("[data-chart=losses] .plot", ARROW_RIGHT, ARROW_RIGHT)
    assert browser.get(f"{tip}.textContent").startswith("00:10 total 1 policy 1.2")
    browser.press("[data-chart=losses] .plot", "+")
    assert not browser.get(reset)
    browser.press("[data-chart=losses] .plot", ESCAPE)
    assert browser.get(reset)
    # A line is switched off, the scale becomes linear, and x the number of games.
    browser.click("[data-chart=losses] .legend button")
    assert browser.get("document.querySelector('[data-chart=losses] .legend button').ariaPressed") == "false"
    browser.click("[data-chart=losses] .tools button")
    browser.get("(axis.value = 'games', axis.dispatchEvent(new Event('change')))")
    browser.click("[data-chart=losses] .tools button:nth-child(2)")
    assert browser.text("[data-chart=losses] .numbers th") == "games"
    browser.until(f"{DRAWN}.every((count) => count > 300)")
    assert not browser.errors()


def test_a_game_is_clicked_through_to_its_end_and_hostile_names_do_nothing(browser: Browser, runs: Path) -> None:
    browser.open((runs.parent / "one.html").as_uri() + "#games")
    browser.until("document.querySelector('.viewer-host').dataset.length === '5'")
    for ply in range(1, 6):
        browser.click(".controls button[title='one move on']")
        assert browser.get("document.querySelector('.viewer-host').dataset.ply") == str(ply)
    assert "x wins" in browser.text(".now-words")
    assert browser.get("document.querySelectorAll('.board .cross').length") == 3
    assert browser.get("document.querySelectorAll('.board .ring').length") == 2
    browser.press(".viewer-host", HOME)
    browser.press(".viewer-host", ARROW_RIGHT, ARROW_RIGHT, ARROW_LEFT)
    assert browser.get("document.querySelector('.viewer-host').dataset.ply") == "1"
    assert HOSTILE in browser.text(".viewer-side h3")
    assert HOSTILE in browser.text(".viewer-side")
    assert browser.get("document.querySelectorAll('img, main script').length") == 0
    assert browser.get("document.title") == "tic_tac_toe · Tengen"
    # A game of Go with a variation: into it, to its end, and back.
    network = "document.querySelector('.game-picker select')"
    browser.get(f"({network}.value = arguments[0], {network}.dispatchEvent(new Event('change')))", NETWORKS[0])
    browser.until("document.querySelector('.viewer-host').dataset.kind === 'points'")
    assert browser.text(".variation") == "2: C3 A1 C1"
    browser.click(".variation")
    browser.press(".viewer-host", END)
    shown = "document.querySelector('.viewer-host').dataset"
    assert (browser.get(f"{shown}.branch"), browser.get(f"{shown}.ply")) == ("0", "4")
    assert "of a variation: White C1" in browser.text(".now-words")
    assert browser.get("document.querySelectorAll('.board .stone').length") == 4
    browser.click(".variations button")
    assert (browser.get(f"{shown}.branch"), browser.get(f"{shown}.ply")) == ("", "1")
    assert browser.text(".comment") == HOSTILE
    assert browser.get("document.querySelectorAll('img, main script').length") == 0
    assert not browser.errors()


def test_all_views_of_two_runs_over_each_other(browser: Browser, runs: Path) -> None:
    browser.open((runs.parent / "both.html").as_uri() + "#settings")
    browser.until("document.querySelector('[data-differences]')")
    assert browser.get("document.querySelector('[data-differences]').dataset.differences") == "1"
    assert browser.get("[...document.querySelectorAll('td.changed')].map((cell) => cell.textContent)") == ["32"]
    for tab, holds in (
        ("runs", "document.querySelectorAll('#panel-runs tbody tr').length === 2"),
        ("ladder", "document.querySelectorAll('table.cross td.score').length === 8"),
        ("data", "document.querySelectorAll('.stage').length === 4"),
        ("curves", "document.querySelectorAll('[data-chart=losses] .legend button').length === 6"),
    ):
        browser.get("location.hash = arguments[0]", tab)
        browser.until(holds)
    browser.click(".chip")  # the first run is switched off
    browser.until("document.querySelectorAll('[data-chart=losses] .legend button').length === 3")
    assert not browser.errors()


def test_on_a_phone_no_view_is_wider_than_the_screen(browser: Browser, runs: Path) -> None:
    browser.resize(390, 844)
    try:
        for view in ("curves", "ladder", "games", "data", "settings"):
            browser.open(f"{(runs.parent / 'one.html').as_uri()}#{view}")
            assert browser.get("document.documentElement.scrollWidth <= innerWidth"), view
            assert not browser.errors()
            if view == "ladder":
                widths = "[...document.querySelectorAll('table.ladder td:nth-child(2)')].map((one) => one.offsetWidth)"
                assert min(browser.get(widths)) > 100, "the names of players can be read"
    finally:
        browser.resize(1200, 900)


def test_the_live_page_changes_without_a_reload(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    base = make_run(tmp_path / "runs" / "one")
    with serving(base.parent) as server:
        browser.open(server.address)
        browser.get("window.same = true")
        browser.until("document.querySelector('.live').dataset.state === 'open'")
        steps = "document.querySelectorAll('.tile-value')[3].textContent"
        assert browser.get(steps) == "80"
        browser.until("document.querySelector('.live').dataset.state === 'open'")
        add_lines(base, [progress(40)])
        browser.until(f"{steps} === '160'")
        make_run(tmp_path / "runs" / "two")
        browser.until("document.querySelectorAll('.tabs a').length === 7")  # with the list of runs
        browser.get("location.hash = 'runs'")
        browser.until("document.querySelectorAll('#panel-runs tbody tr').length === 2")
        # What a person did stays while the page changes: here, a part is folded in, and has the focus.
        browser.get("location.hash = 'ladder'")
        browser.until("document.querySelector('details.cross')")
        browser.get("(document.querySelector('details.cross').open = false, document.querySelector('summary').focus())")
        state, hidden = "document.querySelector('.live').dataset.state", "Object.defineProperty(document, 'hidden', "
        browser.get(hidden + "{ value: true, configurable: true }).dispatchEvent(new Event('visibilitychange'))")
        assert browser.get(state) == "asleep", "a tab that nobody sees needs no connection"
        add_lines(base, [progress(50)])
        results.append(base / results.OF_RUN, MatchResult(NETWORKS[1], "random", 3, 1, 0))
        browser.get(hidden + "{ value: false, configurable: true }).dispatchEvent(new Event('visibilitychange'))")
        browser.until(f"{state} === 'open' && {steps} === '200'")
        browser.until("document.querySelectorAll('details.cross td.score').length === 6")
        assert browser.get("[document.querySelector('details.cross').open, document.activeElement.tagName]") == [
            False,
            "SUMMARY",
        ]
        assert browser.get("window.same") is True
        assert not browser.errors()


def test_when_hironakas_game_is_over_nobody_chooses(browser: Browser, tmp_path: Path) -> None:
    config = load("hironaka", ["game.dimension=2", "game.max_points=2", "game.max_value=4"])
    game, base = config.game.make(), tmp_path / "run"
    state = start = game.from_text("points:\n  1 2\n  2 1\nchosen: none\nmoves: 0")
    actions: list[int] = []
    while not game.is_over(state):
        actions.append(int(game.legal_actions(state).argmax()))
        state = game.step(state, jnp.int32(actions[-1]))
    record = Record.of(game, actions, network=NETWORKS[0], start=game.render(start))
    save_records(base / "games" / NETWORKS[0] / "00000001.txt", [record])
    (base / "config.yaml").write_text(render(config))
    report.write(tmp_path / "one.html", [base])
    browser.open((tmp_path / "one.html").as_uri() + "#games")
    browser.until("document.querySelector('.hironaka caption').textContent === 'The host chooses coordinates'")
    browser.press(".viewer-host", END)
    browser.until("document.querySelector('.hironaka caption').textContent === 'One point is left'")
    assert not browser.errors()


def test_the_nodes_of_a_cluster_and_a_board_without_a_game(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    base = make_run(tmp_path / "run")
    figures = {"actors": 2, "evaluations_per_second": 1500.5, "games": 10, "rows": 70, "network_age": 65, "waiting": 1}
    node = {"words": "playing (2 actors), 1,500", "waiting": False, "seconds": 1.0, "figures": figures, "restarts": 3}
    with StatusWriter(base, "cluster", "main") as writer, serving(base) as server:
        writer.show(Progress("learning", figures={"appetite_rows_per_second": 900.0, NODES: {"box": node}}))
        browser.open(server.address + "/#data")
        browser.until("document.querySelector('.parts')")
        cells = "[...document.querySelectorAll('.parts {}')].map((cell) => cell.textContent)"
        about = dict(zip(browser.get(cells.format("th")), browser.get(cells.format("td")), strict=True))
        assert float(about.pop("for")[-2:]) >= 0
        expected = {"node": "box", "doing": "playing (2 actors)", "evaluations/s": "1,501", "games": "10", "rows": "70"}
        assert about == expected | {"age of network": "01:05", "actors waiting": "1", "restarts": "3"}
        ring = browser.get("document.querySelector('svg.ring').getAttribute('aria-label')")
        assert ring == "self-play: playing (2 actors); training: learning"
        flows = "[...document.querySelectorAll('.flow-text')].map((one) => one.textContent)"
        assert browser.get(flows) == ["4 rows/s", "1 steps/s"]
        browser.get("location.hash = 'play'")
        browser.click("#always")
        assert not browser.errors()


@pytest.mark.slow
def test_a_whole_game_of_connect_four_is_played_by_clicking(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    base = tmp_path / "run"
    base.mkdir()
    (base / "config.yaml").write_text(render(load("connect_four")))
    name = NETWORKS[1].replace("tic_tac_toe", "connect_four")
    untrained(base / "models" / name, "connect_four")
    save_records(base / "games" / name / "00000001.txt", [Record("connect_four", {}, (3, 3, 2))])
    with serving(base) as server:
        browser.open(server.address + "/#play")
        browser.get("document.querySelector('#play-visits').value = '16'")
        browser.click("#begin")
        board = "document.querySelector('#play-board').dataset"
        browser.until(f"{board}.ply === '0'")
        browser.click("#hint")
        browser.until("document.querySelectorAll('[data-done=true] .candidates tbody tr').length > 3")
        browser.until("document.querySelectorAll('#play-board .heat').length > 0")
        # The first move by the keyboard: one column to the left of the middle.
        cell = "Number(document.activeElement.dataset.cell)"
        middle = browser.get(f"(document.querySelector('#play-board [tabindex=\"0\"]').focus(), {cell})")
        browser.press("#play-board [tabindex='0']", ARROW_LEFT)
        assert browser.get(cell) == middle - 1
        browser.press("#play-board [tabindex='0']", "\ue007")
        browser.until(f"{board}.ply === '2'")
        assert browser.get(cell) == middle - 1, "the focus stays where it was"
        for _ in range(21):
            ply = int(browser.get(f"{board}.ply"))
            browser.click("#play-board .target")
            thinking = "document.querySelector('.status-line').textContent.includes('thinking')"
            browser.until(f"Number({board}.ply) > {ply} && !{thinking}")
            if browser.get(f"{board}.over") == "true":
                break
        assert browser.get(f"{board}.over") == "true"
        assert "win" in browser.text(".status-line") or "draw" in browser.text(".status-line")
        ended = int(browser.get(f"{board}.ply"))
        browser.click("#undo")
        browser.until(f"Number({board}.ply) < {ended} && {board}.over === 'false'")
        browser.get("document.querySelector('#panel-play details').open = true")
        browser.press("#pasted", "4 4 4")
        browser.click("#analyse")
        browser.until(f"{board}.ply === '3' && document.querySelectorAll('.candidates tbody tr').length > 0")
        browser.click("#play-board .target")
        browser.until(f"{board}.ply === '4'")
        browser.driver.switch_to.active_element.send_keys(ARROW_LEFT)
        browser.until(f"{board}.ply === '3'")
        browser.get("(document.querySelector('#pasted').value = 'nonsense', 1)")
        browser.click("#analyse")
        browser.until("document.querySelector('.status-line').textContent.includes('expected SGF')")
        browser.get("location.hash = 'games'")
        browser.until("document.querySelector('.viewer-host').dataset.length === '3'")
        browser.click(".viewer-side .row button:nth-child(3)")  # ask the network about every move
        browser.until("document.querySelector('.chance-line.asked')?.points.length === 3")
        assert browser.get("document.querySelectorAll('.viewer-host .heat').length") == 7
        assert [error for error in browser.errors() if "400 (Bad Request)" not in error] == []
