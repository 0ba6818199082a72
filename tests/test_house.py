"""The rules of the house: imports point one way, names are unique, files are short, tests follow the modules."""

import ast
import itertools
import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxtyping
import pytest

from tengen import games
from tengen.search import selection
from tests.helpers.paths import ROOT

PACKAGE = ROOT / "src" / "tengen"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 400  # lines
WITHOUT_MODULES = {"docs", "helpers", "oracles", "scripts"}  # folders of tests that mirror nothing in the package
WHOLE = {
    "test_house.py",
    "test_oracles.py",
    "test_packaging.py",
    "cluster/test_kills.py",
    "games/test_conformance.py",
    "games/test_gnugo.py",
    "loop/parts/test_auditing.py",
    "loop/parts/test_full_disk.py",
    "loop/parts/test_kills.py",
    "loop/parts/test_spoiled.py",
    "loop/parts/test_waiting.py",
    "search/test_golden.py",
    "search/test_invariants.py",
    "search/test_mctx.py",
    "search/test_oracle.py",
    "search/test_solved.py",
    "testing/test_breakthrough.py",
    "web/test_browser.py",
}
"""Tests of what several modules do together."""


def room_of(path: Path) -> str:
    """The top-level package or module: `games` for games/go.py, `lazy` for lazy.py."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path: Path) -> set[str]:
    """The rooms that a module imports, inside functions too."""
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        rooms |= {name.split(".")[1] for name in names if name.startswith("tengen.")}
    return {room for room in rooms if (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").exists()}


def test_imports_between_rooms_point_one_way() -> None:
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        graph.setdefault(room_of(path), set()).update(imported(path) - {room_of(path)})
    assert {"games", "lazy", "commands"} <= set(graph)
    assert "nets" in graph["search"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
        edges = [
            f"{path.relative_to(PACKAGE)} imports {needed}"
            for needed, room in itertools.pairwise(cycle)
            for path in MODULES
            if room_of(path) == room and needed in imported(path)
        ]
        raise AssertionError("\n".join([f"a cycle: {' <- '.join(cycle)}", *edges])) from None


def test_no_public_class_name_is_used_twice() -> None:
    places = [
        (node.name, path.relative_to(PACKAGE))
        for path in MODULES
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    count = Counter(name for name, _ in places)
    assert not [(name, str(path)) for name, path in places if count[name] > 1]


def test_no_file_is_too_long() -> None:
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert not {path: lines for path, lines in lengths.items() if lines > LONGEST}


def test_every_folder_of_tests_has_a_counterpart() -> None:
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("*.py")} - {Path()}
    mirrored = {folder for folder in folders if folder.parts[0] not in WITHOUT_MODULES}
    assert not [str(folder) for folder in mirrored if not (PACKAGE / folder).is_dir()]


def test_every_file_of_tests_is_named_after_a_module() -> None:
    """`test_MODULE.py`, or `test_MODULE_ASPECT.py` where one file would be too long; a room is its `__init__.py`."""
    tests = ROOT / "tests"
    strays = []
    for path in sorted(tests.rglob("test_*.py")):
        place = path.relative_to(tests)
        if place.parts[0] in WITHOUT_MODULES or str(place) in WHOLE:
            continue
        folder = PACKAGE / place.parent
        modules = {folder.name} | {module.stem for module in folder.iterdir()}
        words = place.stem.split("_")[1:]
        if not any("_".join(words[:count]) in modules for count in range(1, len(words) + 1)):
            strays.append(str(place))
    assert not strays
    assert not [place for place in WHOLE if not (tests / place).exists()]


def test_the_map_names_every_room_and_only_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|cu))`", text))
    assert len(named) > 50
    assert not [name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()]
    places = [path.name + "/" * path.is_dir() for path in PACKAGE.iterdir() if path.name[0] not in "_."]
    assert not [place for place in places if f"`{place}`" not in text and not place.startswith("py.")]


def test_the_walk_of_a_position_opens_at_most_thirty_files() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## The walk of a position")[2]
    walk = re.findall(r"^\| \d+ \| `(\S+)` \|", text, re.MULTILINE)
    assert 25 < len(walk) <= 30
    assert len(set(walk)) == len(walk)
    entered: list[str] = []  # rooms that have been entered and not left
    left: set[str] = set()
    for room in (file.partition("/")[0] for file in walk):
        while room in entered and entered[-1] != room:  # a return to a caller
            left.add(entered.pop())
        assert room not in left
        entered += [] if room in entered else [room]


def test_declared_shapes_are_checked_in_tests_alone() -> None:
    game = games.make("tic_tac_toe")
    state = game.init(jax.random.key(0))
    with pytest.raises(jaxtyping.TypeCheckError, match="action"):
        game.step(state, jnp.zeros(2, jnp.int32))
    with pytest.raises(jaxtyping.TypeCheckError, match="state"):
        game.to_play(state._replace(stones=jnp.zeros(3, jnp.uint16)))
    with pytest.raises(jaxtyping.TypeCheckError, match="logits"):
        selection.softmax(jnp.zeros(3, jnp.int32))
    assert not [str(path) for path in MODULES if "beartype" in path.read_text("utf-8")]
