"""How a context begins, hands out and takes back, and ends; whatever the callbacks do."""

import subprocess
import sys
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.context import ContextStopped, GameContext
from tengen.context.group import Group
from tengen.errors import OptionError, TengenError
from tests.helpers.contexts import OPENINGS, SEARCH, TIC_TAC_TOE, idle, played, waiting
from tests.helpers.patience import LONG
from tests.helpers.python_models import Exported


def alive() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "tengen-games"]


class Background:
    """A function in a thread, and what became of it."""

    def __init__(self, function: Any) -> None:
        self.error: BaseException | None = None
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._function()
        except BaseException as error:
            self.error = error

    def join(self) -> BaseException | None:
        self._thread.join(LONG)
        assert not self._thread.is_alive()
        return self.error


# Beginning


def test_a_missing_callback_is_an_error_at_the_start() -> None:
    context = GameContext(TIC_TAC_TOE, 4, 2)
    with pytest.raises(TengenError, match="nobody answers actor_black and actor_white"):
        context.start()
    context.on("actor_black", idle)
    with pytest.raises(TengenError, match=r'nobody answers actor_white: call on\("actor_white", ...\) first; the same'):
        context.start()
    assert not alive()


def test_who_listens_must_be_clear() -> None:
    context = waiting()
    with pytest.raises(OptionError, match="actor_red: unknown label"):
        context.on("actor_red", idle)
    with pytest.raises(OptionError, match="train: expected a function, got 7"):
        context.on("train", 7)
    with pytest.raises(TengenError, match="actor_black has a function already"):
        context.on("actor_black", idle)
    with context, pytest.raises(TengenError, match="before start"):
        context.on("train", idle)


def test_as_a_decorator() -> None:
    context = GameContext(TIC_TAC_TOE, 4, 2, **OPENINGS)

    @context.on("actor_black")
    @context.on("actor_white")
    def both(batch: Any) -> Any:
        return idle(batch)

    with context:
        assert context.run() == "actor_black"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_games": 0}, "num_games: expected a whole number .*, got 0"),
        ({"batch_size": "many"}, 'batch_size: expected a whole number .*, got "many"'),
        ({"tempreature": 1.0}, "tempreature: unknown option, did you mean temperature?"),
        ({"targets": ("ownershp",)}, "ownershp: unknown target, did you mean ownership"),
        ({"targets": ("ownership",)}, "tic_tac_toe has no ownership"),
        ({"search": 32}, "search: expected SearchSettings or None, got 32"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        GameContext(TIC_TAC_TOE, **({"num_games": 4, "batch_size": 2} | options))


def test_a_game_is_wanted_and_not_its_name() -> None:
    with pytest.raises(OptionError, match='expected a game, as games.make gives it, got "go"'):
        GameContext("go", 4, 2)


def test_the_room_is_light() -> None:
    said = "import sys, tengen.context; print('jax' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True, timeout=LONG)
    assert done.stdout.split() == ["False", "False"]


# Handing out


def test_batches_share_memory_and_are_padded() -> None:
    with waiting(num_games=3, batch_size=4, total_games=3) as context:
        first = context.wait(LONG)
        assert first is not None
        assert first.label == "actor_black"  # one function answers for both
        assert first.count == 3
        assert first["mask"].tolist() == [True] * 3 + [False]
        assert sorted(first["game"].tolist()) == [-1, 0, 1, 2]
        assert (first["legal"][3] == first["legal"][2]).all()
        assert first["legal"].sum(1)[:3].tolist() == (9 - first["ply"][:3]).tolist()
        assert (first["player"] == first["colour"]).all()
        assert (first["player"][:3] == first["ply"][:3] % 2).all()
        places = {name: values.__array_interface__["data"] for name, values in first.items()}
        first.reply["policy"][:] = 0
        first.reply["value"][:] = 0
        context.step("done")
        second = context.wait(LONG)
        assert second is not None
        assert {name: values.__array_interface__["data"] for name, values in second.items()} == places


def test_the_planes_are_what_the_mover_sees() -> None:
    """By the book: a board of the moves made so far, from the record of the game."""
    seen: dict[tuple[int, int], np.ndarray] = {}

    def look(batch: Any) -> Any:
        for row in range(batch.count):
            seen[int(batch["game"][row]), int(batch["ply"][row])] = batch["planes"][row].copy()
        return idle(batch)

    run = played(TIC_TAC_TOE, None, look, look, games=6, temperature=1.0, **OPENINGS)
    ends = {end["game"]: end["moves"].tolist() for end in run.ends}
    assert len(seen) == sum(end["length"] - end["opening"] for end in run.ends)
    for (game, ply), planes in seen.items():
        own, other = np.zeros(9, bool), np.zeros(9, bool)
        own[ends[game][:ply][ply % 2 :: 2]] = True
        other[ends[game][:ply][1 - ply % 2 :: 2]] = True
        boards = [planes[..., channel].reshape(-1).tolist() for channel in range(planes.shape[-1])]
        assert own.tolist() in boards
        assert other.tolist() in boards


def test_arrays_that_stay_on_the_device_give_the_same_games() -> None:
    """The policy depends on the planes, so a row in the wrong place would change the games."""

    def by_planes(batch: Any) -> Any:
        flat = np.asarray(batch["planes"]).reshape(len(batch["mask"]), -1).astype(np.float32)
        return {"policy": 3 * flat[:, :9] - flat[:, 9:18], "value": 0.1 * flat[:, :3].sum(1)}

    def by_dlpack(batch: Any) -> Any:
        assert isinstance(batch["planes"], jax.Array)
        assert isinstance(batch["legal"], np.ndarray)
        return {name: Exported(jnp.asarray(values)) for name, values in by_planes(batch).items()}

    moves = []
    for arrays, net in (("numpy", by_planes), ("jax", by_dlpack)):
        run = played(TIC_TAC_TOE, None, net, net, games=6, arrays=arrays, **OPENINGS)
        moves.append({end["game"]: end["moves"].tolist() for end in run.ends})
    assert moves[0] == moves[1]
    assert len(moves[0]) == 6


@pytest.mark.parametrize("fields", [["player"], ["scalars"]])
def test_batches_on_the_device_need_no_planes(fields: list[str]) -> None:
    context = GameContext(TIC_TAC_TOE, num_games=3, batch_size=4, total_games=3, arrays="jax", **OPENINGS)
    context.on("actor", idle, fields=fields)
    with context:
        while context.run() is not None:
            pass
    assert context.stats().games_finished == 3


def test_a_wrong_reply_on_the_device_names_its_row() -> None:
    def wrong(batch: Any) -> Any:
        policy = jnp.zeros(batch["legal"].shape).at[0, 0].set(jnp.nan)
        return {"policy": policy, "value": jnp.zeros(len(policy))}

    with waiting(num_games=3, batch_size=4, total_games=3, arrays="jax") as context:
        batch = context.wait(LONG)
        with pytest.raises(TengenError, match="policy: expected logits, got NaN or infinity in row 0"):
            context.step("done", wrong(batch))
        with pytest.raises(TengenError, match="policy: expected the shape"):
            context.step("done", {"policy": jnp.zeros((4, 2)), "value": jnp.zeros(4)})
        context.step("done", {"policy": jnp.zeros((3, 9)), "value": jnp.zeros(3)})  # the real rows alone


@pytest.mark.parametrize(("games", "size", "total"), [(5, 2, 11), (7, 2, 7), (3, 8, 2), (1, 1, 3)])
def test_so_many_games_and_no_more(games: int, size: int, total: int) -> None:
    run = played(TIC_TAC_TOE, None, idle, idle, games=total, num_games=games, batch_size=size, temperature=1.0)
    assert sorted(end["game"] for end in run.ends) == list(range(total))
    stats = run.context.stats()
    assert (stats.games_started, stats.games_finished) == (total, total)


def test_results_and_lengths_are_counted() -> None:
    run = played(TIC_TAC_TOE, None, idle, idle, games=20, temperature=1.0, **OPENINGS)
    stats = run.context.stats()
    results, lengths = zip(*((end["result"], end["length"]) for end in run.ends), strict=True)
    assert stats.win_rate == np.mean([(result + 1) / 2 for result in results])
    assert stats.mean_length == np.mean(lengths)
    assert (stats.black_wins, stats.draws, stats.white_wins) == tuple(results.count(sign) for sign in (1, 0, -1))
    assert np.mean(lengths) > stats.moves / 20, "with the moves of openings"


def test_when_all_games_are_over_nothing_more_comes() -> None:
    with waiting(num_games=2, total_games=2) as context:
        while context.run() is not None:
            pass
        assert context.wait() is None
        assert context.stats().waiting == "nothing: all 2 games are over"


def test_waiting_ends_in_time_and_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    hold, turn = threading.Event(), Group.turn
    monkeypatch.setattr(Group, "turn", lambda group: hold.wait(LONG) and turn(group))
    with waiting(num_games=2) as context:
        assert context.stats().win_rate is context.stats().mean_length is None
        assert context.run(LONG) == "actor_black"
        assert context.run(0.02) is None
        assert context.stats().waiting == "the games: 1 of 1 groups are searching for what to evaluate next"
        hold.set()
        assert context.wait(LONG) is not None
        assert context.stats().waiting.startswith("the reply to actor_black, which has been out for")


def test_a_batch_that_failed_comes_again() -> None:
    with waiting() as context:
        first = context.wait(LONG)
        assert first is not None
        games = first["game"].copy()
        first.reply["policy"][:] = 0
        context.step("failed")
        second = context.wait(LONG)
        assert second is not None
        assert second is first
        assert (second["game"] == games).all()
        assert np.isnan(second.reply["policy"]).all()
        context.step("done", idle(second))
        assert context.stats().batches == 1


def test_one_batch_at_a_time() -> None:
    context = waiting()
    with pytest.raises(TengenError, match="call start"):
        context.wait()
    with context:
        with pytest.raises(TengenError, match="there is no batch to give back"):
            context.step()
        context.wait(LONG)
        with pytest.raises(TengenError, match="give it back with step"):
            context.wait(LONG)
        with pytest.raises(OptionError, match='expected "done" or "failed", got "perhaps"'):
            context.step("perhaps")  # pyright: ignore[reportArgumentType]


# Ending


def test_an_exception_of_a_callback_comes_out_and_stops_everything() -> None:
    for label in ("actor_black", "game_start", "game_end", "train", "train_control"):
        mistake = KeyError(label)

        def fail(batch: Any, mistake: BaseException = mistake) -> Any:
            raise mistake

        context = GameContext(TIC_TAC_TOE, 4, 2, steps_per_version=1, **OPENINGS)
        for each in ("actor_black", "actor_white"):
            context.on(each, fail if each == label else idle)
        if label != "actor_black":
            context.on(label, fail)
        if label == "train_control":
            context.on("train", lambda batch: None)
        context.start()
        with pytest.raises(KeyError) as raised:  # noqa: PT012
            for _ in range(200):
                context.run(LONG)
        assert raised.value is mistake
        assert not alive()
        with pytest.raises(ContextStopped, match="has been stopped; make a new one"):
            context.run()


def test_a_mistake_in_a_reply_comes_out_and_stops_everything() -> None:
    context = GameContext(TIC_TAC_TOE, 4, 2, **OPENINGS)
    for label in ("actor_black", "actor_white"):
        context.on(label, lambda batch: {"policy": idle(batch)["policy"]})
    with context, pytest.raises(TengenError, match="actor_black: value is missing in the reply"):
        context.run(LONG)
    assert not alive()


def test_a_failure_inside_comes_out_of_the_next_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(group: Group) -> Any:
        raise MemoryError("no more")

    monkeypatch.setattr(Group, "turn", broken)
    with waiting(num_games=2) as context:
        context.run(LONG)
        with pytest.raises(MemoryError, match="no more"):
            context.wait(LONG)
        assert "the games have failed: no more" in context.stats().waiting
    assert not alive()


def test_stop_at_any_time() -> None:
    context = waiting()
    context.stop()
    context.stop()
    assert context.stats().waiting == "nothing: the context has been stopped"
    with pytest.raises(TengenError, match="has been stopped before"):
        context.start()
    context = waiting()
    context.start()
    with pytest.raises(TengenError, match="has been started before"):
        context.start()
    context.wait(LONG)
    context.stop()  # with a batch out
    context.step("done", None)  # nobody needs it any more
    context.stop()
    assert not alive()
    with pytest.raises(ContextStopped):
        context.wait()


def test_stop_does_not_wait_for_a_callback_that_hangs() -> None:
    inside, leave = threading.Event(), threading.Event()

    def hang(batch: Any) -> Any:
        inside.set()
        leave.wait(LONG)
        return idle(batch)

    context = GameContext(TIC_TAC_TOE, 4, 2, search=SEARCH, **OPENINGS)
    context.on("actor_black", hang)
    context.on("actor_white", hang)
    context.start()
    answering = Background(context.run)
    assert inside.wait(LONG)
    context.stop()  # returns though the callback does not
    assert not leave.is_set()
    assert not alive()
    leave.set()
    assert answering.join() is None  # its reply is dropped
    with pytest.raises(ContextStopped):
        context.run()


def test_stop_wakes_whoever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, leave, turn = threading.Event(), threading.Event(), Group.turn

    def slow(group: Group) -> Any:
        inside.set()
        leave.wait(LONG)
        return turn(group)

    monkeypatch.setattr(Group, "turn", slow)
    context = waiting(num_games=2)
    context.start()
    context.run(LONG)
    assert inside.wait(LONG)
    asking = Background(context.run)
    stopping = [Background(context.stop) for _ in range(3)]
    assert isinstance(asking.join(), ContextStopped)
    leave.set()
    assert [each.join() for each in stopping] == [None] * 3
    assert not alive()


def test_stop_in_a_callback() -> None:
    context = GameContext(TIC_TAC_TOE, 4, 2, **OPENINGS)

    def enough(batch: Any) -> Any:
        context.stop()
        return idle(batch)

    context.on("actor_black", enough)
    context.on("actor_white", enough)
    context.start()
    assert context.run(LONG) == "actor_black"
    with pytest.raises(ContextStopped):
        context.run()


@pytest.mark.slow
def test_a_program_that_forgets_to_stop_ends() -> None:
    said = (
        "import numpy as np\nfrom tengen import games\nfrom tengen.context import GameContext\n"
        "c = GameContext(games.make('tic_tac_toe'), 2, 2)\n"
        "f = lambda b: {'policy': np.zeros((b.count, 9)), 'value': np.zeros(b.count)}\n"
        "c.on('actor_black', f); c.on('actor_white', f)\nc.start()\nc.run()\nprint('out')"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "out", "")


@pytest.mark.slow
def test_stop_returns_whenever_it_comes() -> None:
    """Many short lives: stopped by others at random moments, with callbacks that hang for a while and that raise."""
    rng = np.random.default_rng(0)
    for life in range(40):
        pause, last = float(rng.uniform(0, 0.01)), int(rng.integers(1, 40))
        calls = 0

        def answer(batch: Any, pause: float = pause, last: int = last) -> Any:
            nonlocal calls
            calls += 1
            threading.Event().wait(pause)
            if calls == last:
                raise ValueError("enough")
            return idle(batch)

        context = GameContext(TIC_TAC_TOE, 4, 2, search=SEARCH if life % 2 else None, **OPENINGS)
        for label in ("actor_black", "actor_white", "game_start", "train"):
            context.on(label, answer if label.startswith("actor") else lambda batch: None)
        context.start()

        def loop(context: GameContext = context) -> None:
            while True:
                context.run()

        running = Background(loop)
        threading.Event().wait(float(rng.uniform(0, 0.1)))
        stopping = [Background(context.stop) for _ in range(2)]
        assert [each.join() for each in stopping] == [None, None]
        assert isinstance(running.join(), (ContextStopped, ValueError))
        assert not alive()
