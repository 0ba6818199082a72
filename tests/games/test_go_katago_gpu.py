"""The GPU programs for KataGo's observation against the oracle and the plain version: equal to the last bit."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.games import go_gpu, go_katago, go_ladders
from tengen.games.go_chains import chains_of
from tengen.games.go_ladders import LadderLimits
from tengen.gpu import program
from tests.games.test_go_ladders import dense_boards, positions_of_games
from tests.helpers.game_recording import make, start
from tests.helpers.nvrtc import is_available as nvrtc_is_available
from tests.oracles.go import Go
from tests.oracles.go_katago import Position, Reader, areas, ladders


def boards_of(size: int, positions: list[Position]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chains, ko points and players to move."""
    points = [(row, column) for row in range(size) for column in range(size)]
    chains = np.stack([chains_of([p.board.get(point, -1) for point in points], size) for p in positions])
    ko = np.array([-1 if p.ko is None else points.index(p.ko) for p in positions], np.int16)
    return chains, ko, (np.arange(len(positions)) % 2).astype(np.int32)


def points_of(mask: np.ndarray, size: int) -> set[tuple[int, int]]:
    return {divmod(int(point), size) for point in np.flatnonzero(mask)}


def compare(size: int, limits: LadderLimits, positions: list[Position]) -> None:
    """With the oracle."""
    chains, ko, turn = boards_of(size, positions)
    found = jax.device_get(go_ladders.read_on_gpu(chains, ko, turn, size, limits))
    owned = np.asarray(go_gpu.areas(chains, size, suicide=False))
    reader, rules = Reader(size), Go(size)
    for number, position in enumerate(positions):
        captured, attacks = ladders(reader, position, int(turn[number]))
        assert points_of(found.captured[number], size) == captured
        assert points_of(found.attacks[number], size) == attacks
        assert tuple(points_of(owned[number, colour], size) for colour in (0, 1)) == areas(rules, position.board, False)


@pytest.mark.usefixtures("emulated_gpu")
def test_dense_boards() -> None:
    compare(5, go_ladders.limits(5), dense_boards(5, 50, seed=3))


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.slow
@pytest.mark.parametrize(("size", "games", "every"), [(3, 40, 1), (9, 4, 3), (13, 1, 10), (19, 1, 40)])
def test_positions_of_random_games(size: int, games: int, every: int) -> None:
    compare(size, go_ladders.limits(size), [position for position, _ in positions_of_games(size, games, every, 7)])


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.slow
@pytest.mark.parametrize("limits", [LadderLimits(10, 40), LadderLimits(256, 5), LadderLimits(256, 8)])
def test_the_limits_are_those_of_the_plain_version(limits: LadderLimits) -> None:
    given = boards_of(9, [position for position, _ in positions_of_games(9, 3, 2, 5)])
    plain = jax.vmap(lambda chains, ko, turn: go_ladders.read(chains, ko, turn, 9, limits))(*given)
    for one, other in zip(plain, go_ladders.read_on_gpu(*given, 9, limits), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not nvrtc_is_available(), reason="NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
@pytest.mark.parametrize("size", [9, pytest.param(19, marks=pytest.mark.slow)])
def test_the_programs_compile(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(kernel: program.Program, inputs: Any, outputs: Any, *, blocks: int) -> list[Any]:
        del inputs, blocks
        assert kernel.entry in program.ptx(kernel, program.OLDEST)
        return [jnp.zeros(out.shape, out.dtype) for out in outputs]

    monkeypatch.setattr(go_gpu.gpu, "call", compiled)
    chains = jnp.zeros((4, size * size), jnp.uint8 if size < 12 else jnp.uint16)
    go_ladders.read_on_gpu(chains, jnp.zeros(4, jnp.int16), jnp.zeros(4, jnp.int32), size, go_ladders.limits(size))
    go_gpu.areas(chains, size, suicide=True)


@pytest.mark.gpu
@pytest.mark.parametrize(("size", "batch"), [(5, 64), (9, 1000), (19, 130)])
def test_on_a_gpu(size: int, batch: int) -> None:
    """Random games; the plain version runs on the same GPU, where it takes long, so not after every move."""
    game, limits = make("go", size=size), go_ladders.limits(size)

    def move(step: Any, carry: Any) -> Any:
        states, legal = carry
        key = jax.random.fold_in(jax.random.key(3), step)
        actions = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf)).astype(jnp.int32)
        states, look = game.step_and_look(states, actions)
        return states, look.legal

    def play(round_: Any, carry: Any) -> Any:
        states, legal = jax.lax.fori_loop(round_ * 2 * size, (round_ + 1) * 2 * size, move, carry[:2])
        chains, ko, turn = states.chains, states.ko, states.turn.astype(jnp.int32)
        pairs = [
            *zip(
                go_ladders._read_all(chains, ko, turn, size, limits),
                go_ladders.read_on_gpu(chains, ko, turn, size, limits),
                strict=True,
            ),
            (
                jax.vmap(lambda board: go_katago._areas(board, size, False))(chains),
                go_gpu.areas(chains, size, False),
            ),
        ]
        return states, legal, carry[2] + jnp.stack([(one != other).sum() for one, other in pairs])

    states = jax.tree.map(jnp.asarray, start(game, batch))
    legal = jax.jit(jax.vmap(game.legal_actions))(states)
    begin = (states, legal, jnp.zeros(3, jnp.int32))
    wrong = jax.jit(lambda carry: jax.lax.fori_loop(0, size // 2, play, carry))(begin)[2]
    assert wrong.tolist() == [0, 0, 0]
