"""What the documentation shows works as it is written: every block is run or checked (see tests/helpers/pages.py)."""

import contextlib
import importlib
import io
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

from tengen import config, data, games
from tengen.commands import make_parser, selfplay
from tests.helpers import pages, paths
from tests.helpers import rows as made

LANGUAGES = {"python", "sh", "yaml", "toml", "json", "javascript", "text"}
WITH_PYTHON = [page for page in pages.PAGES if pages.blocks(page, "python")]
LONG = {
    *("README.md", "context.md", "gtp.md", "gym.md", "match-api.md"),
    *("nets.md", "search.md", "selfplay.md", "trainers.md"),
}
NEEDS = {"match.md": "gnugo"}  # programs without which a page cannot be run
LIBRARIES = {"gym.md": "gymnasium", "onnx.md": "onnxruntime"}  # optional ones
# Every block that is not run, by its reason. A new one is added here on purpose or not at all.
NOT_RUN: list[tuple[str, str]] = []
# Programs in shell blocks that are not Tengen's, and which of their arguments are files of this repository.
OTHERS = {
    **dict.fromkeys(("pip", "cd", "echo", "nc", ".", "mkdir", "ln", "katago", "tail"), 0),
    **dict.fromkeys(("scancel", "ray", "docker", "kubectl"), 0),
    **dict.fromkeys(("python", "python3", "sh", "sbatch"), 1),
}
_NAME = re.compile(r"[a-z]\w*")


def test_every_block_names_its_language_and_none_is_skipped_silently() -> None:
    every = [block for page in pages.PAGES for block in pages.blocks(page)]
    assert len(every) > 90
    assert [f"{block}: {block.language or 'no language'}" for block in every if block.language not in LANGUAGES] == []
    not_run = [(block.page.name, block.about.strip()) for block in every if block.note == "not run"]
    assert not_run == NOT_RUN
    assert all(reason for _, reason in not_run)
    code = re.compile(r"^(import \w|from \w+ import|(\.venv/bin/)?tengen [a-z]+ [\w-]*[a-z])", re.MULTILINE)
    assert [str(block) for block in every if block.language == "text" and code.search(block.text)] == []


def test_no_code_is_indented_instead_of_fenced() -> None:
    for page in pages.PAGES:
        text = re.sub(r"^( *)```.*?^\1```$|<!--.*?-->", "", page.read_text("utf-8"), flags=re.M | re.S)
        assert not re.search(r"\n\n {4}(?! *[-*\d])\S.*", text), page


def test_lines_keep_their_numbers() -> None:
    for page in WITH_PYTHON:
        written = page.read_text("utf-8").split("\n")
        for number, line in enumerate(pages.python(page).split("\n")):
            assert line in ("", written[number]), page


def _long(page: Path) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if page.name in LONG else []


@pytest.mark.parametrize("page", [pytest.param(page, marks=_long(page), id=page.stem) for page in WITH_PYTHON])
def test_python(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name in NEEDS and not shutil.which(NEEDS[page.name]):
        pytest.skip(f"{page.name} needs {NEEDS[page.name]}")
    if page.name in LIBRARIES:
        pytest.importorskip(LIBRARIES[page.name])
    _PREPARE.get(page.name, lambda folder: None)(tmp_path)
    names = pages.run(page, tmp_path, monkeypatch)
    _CHECK.get(page.name, lambda names: None)(names)


def _chunks(folder: Path) -> None:
    """Three chunks of made-up rows, where the pages about data expect a run."""
    game = games.make("tic_tac_toe")
    form = data.RowFormat.of(game)
    rows = folder / "runs" / "noughts" / "selfplay" / "random"
    rows.mkdir(parents=True)
    for seed in range(3):
        path = rows / f"{seed:010}-a.npz"
        data.write_chunk(path, form, made.rows(100, seed, form), data.GameIdentity.of(game), network="n")


def _loaded(names: dict) -> None:
    assert names["loader"].get_stats().counts["train"].rows >= 300
    assert names["rows"]["policy"].shape == (256, 9)
    assert np.isfinite(names["rows"]["policy"]).all()


def _written_game(names: dict) -> None:
    assert names["Nim"].name == "nim"
    assert names["BreakthroughOptions"]().size == 6


def _context(names: dict) -> None:
    assert names["result"].games == 20
    assert names["ctx"].stats().train_batches == names["ctx"].stats().rows * 8 // 64
    assert len(names["results"]) >= 100


_PREPARE = {"loader.md": _chunks, "shuffle.md": _chunks}
_CHECK = {"loader.md": _loaded, "context.md": _context, "write-a-game.md": _written_game}


def _commands(block: pages.Block) -> list[list[str]]:
    """The commands of a shell block, each as its words: pipes, lists and redirections are taken apart."""
    found: list[list[str]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        reader = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        reader.whitespace_split = True
        words: list[str] = []
        redirected = False
        for word in [*reader, ";"]:
            if set(word) <= set("|&;"):
                found += [words] if words else []
                words = []
            elif set(word) <= set("<>"):
                redirected = True
                continue
            elif not redirected:
                words.append(word)
            redirected = False
    return found


@pytest.mark.parametrize("page", [page for page in pages.PAGES if pages.blocks(page, "sh")], ids=lambda page: page.stem)
def test_command_lines(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are accepted; configurations that ship exist, and accept the settings."""
    if page.name == "plugins.md":
        monkeypatch.syspath_prepend(paths.EXAMPLES / "plugin")
        monkeypatch.setitem(games._registered, "nim", importlib.import_module("nim_plugin.game").Nim)
    targets = set(re.findall(r"^([\w-]+):", (paths.ROOT / "Makefile").read_text(), re.M))
    for block in pages.blocks(page, "sh"):
        for program, *arguments in _commands(block):
            where = f"{block}: {program} {' '.join(arguments)}"
            if Path(program).name == "tengen":
                _parse(arguments, where)
            elif program == "make":
                assert {each for each in arguments if "=" not in each} <= targets, where
            else:
                files = arguments[: OTHERS[program]] if program in OTHERS else [where]
                assert all(each.startswith("-") or (paths.ROOT / each).exists() for each in files), where
                for each in (each for each in arguments if each.startswith("tengen ")):  # to be run elsewhere
                    _parse(shlex.split(each)[1:], where)


def _parse(arguments: list[str], where: str) -> None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = make_parser().parse_args(arguments)
    except SystemExit:
        pytest.fail(f"{where}\n{said.getvalue()}")
    name, settings = getattr(parsed, "config", None), list(getattr(parsed, "overrides", []))
    if arguments[0] == "selfplay":
        settings = selfplay.overrides(parsed)
    if not isinstance(name, str) or name.startswith("runs/"):
        return
    if _NAME.fullmatch(name):
        assert name in config.shipped(), where
        if not any("my_net:" in each for each in settings):  # which the reader writes
            config.load_any(name, settings)


@pytest.mark.parametrize("language", ["yaml", "toml", "json"])
def test_data(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(paths.EXAMPLES)
    monkeypatch.chdir(paths.ROOT)
    for block in [block for page in pages.PAGES for block in pages.blocks(page, language)]:
        match language:
            case "json":
                assert all(json.loads(line) for line in block.text.splitlines()), str(block)
            case "toml":
                assert tomllib.loads(block.text), str(block)
            case _:
                part = yaml.safe_load(block.text)
                assert block.note == "over", f"{block}: say `<!-- over: CONFIG -->` before it"
                whole = config.to_dict(config.load_any(block.about.strip()))
                assert set(part) <= set(whole), str(block)
                config.from_dict(whole | part)


def test_javascript(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    for block in [block for page in pages.PAGES for block in pages.blocks(page, "javascript")]:
        (tmp_path / "block.mjs").write_text(block.text)
        subprocess.run([node, "--check", tmp_path / "block.mjs"], check=True)
