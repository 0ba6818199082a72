"""The command that measures the share of perfect moves in connect four, and the solved positions that ship with it."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from benchmarks.connect_four_solver import Solver
from tengen import nets
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.match import players
from tengen.nets import saving
from tengen.nets.outputs import Evaluation
from tests.helpers import paths
from tests.helpers.game_recording import make
from tests.oracles.connect_four import ConnectFour

SCRIPT = paths.BENCHMARKS / "connect_four_perfect.py"


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(paths.BENCHMARKS)
        yield loaded()


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("connect_four_perfect", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def played(columns: str) -> ConnectFour:
    """By slow rules, which refuse what is not legal."""
    game = ConnectFour()
    for column in columns:
        game.play(int(column) - 1)
    return game


@pytest.mark.slow
def test_shipped_positions_are_positions(script: Any) -> None:
    positions = script.read(script.SHIPPED)
    assert len(positions) == 1000
    assert len({frozenset(played(p.columns).board.items()) for p in positions}) > 990
    for position in positions:
        game = played(position.columns)
        assert not game.over
        assert len(position.columns) >= 8
        assert [worth is not None for worth in position.worths] == game.legal_actions()
        assert set(position.worths) <= {1, 0, -1, None}


def test_shipped_solutions_of_late_positions(script: Any) -> None:
    solver = Solver(entries=1 << 18)
    late = [p for p in script.read(script.SHIPPED) if len(p.columns) >= 22]
    assert len(late) > 100
    for position in late:
        worths = solver.worths(*script.stones(int(c) - 1 for c in position.columns))
        assert position.worths == tuple(worths.get(column) for column in range(7))


@pytest.mark.slow
def test_shipped_solutions(script: Any) -> None:
    pytest.importorskip("numba")  # without it this takes hours
    solver = Solver()
    for position in script.read(script.SHIPPED)[::5]:
        worths = solver.worths(*script.stones(int(c) - 1 for c in position.columns))
        assert position.worths == tuple(worths.get(column) for column in range(7))


@pytest.mark.slow
def test_perfect_moves_are_counted(script: Any) -> None:
    positions = script.read(script.SHIPPED)[:20]

    def always(column: int) -> dict[str, Any]:
        def evaluate(params: Any, seen: Any) -> Evaluation:
            count = len(seen.planes)
            return Evaluation(jnp.broadcast_to(50.0 * (jnp.arange(7) == column), (count, 7)), jnp.zeros(count))

        return script.measure(make("connect_four"), evaluate, (), positions, players.strongest(SearchSettings(), 2))

    found = always(3)
    for position, perfect in zip(positions, found["raw policy"], strict=True):
        if position.worths[3] is not None:
            assert perfect == (position.worths[3] == max(w for w in position.worths if w is not None))
    assert set(found) == {"raw policy", "2 simulations"}


def test_sampled_positions_are_different_and_running(script: Any) -> None:
    game = make("connect_four")
    found = script.sample(game, players.random(game), 30, seed=1)
    boards = {frozenset(played(columns).board.items()) for columns in found}
    assert len(found) == len(boards) == 30
    assert all(len(columns) >= 8 and not played(columns).over for columns in found)
    assert len({len(columns) for columns in found}) > 5


def test_what_is_solved_is_kept(script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "solved.json"
    late = [p for p in script.read(script.SHIPPED) if len(p.columns) >= 24][:3]
    script.solve(path, [(p.columns, p.source) for p in late[:2]])
    script.solve(path, [(p.columns, p.source) for p in late])
    assert sorted(script.read(path)) == sorted(late)
    assert "solved 1 of 1" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{", "[]", '{"positions": [{}]}', '{"positions": 3}'])
def test_files_that_are_no_positions(script: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(TengenError, match="no file of solved positions"):
        script.read(tmp_path / "x.json")


@pytest.mark.slow
def test_the_command(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    game = make("connect_four")
    saving.save(nets.build(nets.spec("b1c8"), game, nnx.Rngs(0)), tmp_path / "net", game)
    script.write(tmp_path / "few.json", script.read(script.SHIPPED)[:12])
    arguments = ["x", "measure", str(tmp_path / "net"), "--simulations", "2", "--positions", str(tmp_path / "few.json")]
    monkeypatch.setattr(sys, "argv", arguments)
    assert script.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["all", "positions", "12"]
    monkeypatch.setattr(sys, "argv", [*arguments[:2], str(tmp_path / "absent")])
    assert script.main() == 2
    assert "there is no such file" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*arguments[:3], "--positions", str(tmp_path / "none.json")])
    assert script.main() == 2
    assert np.char.find(capsys.readouterr().err, "no solved positions") > 0
