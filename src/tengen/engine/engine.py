"""An engine: one network that searches one game, what it reports, and defaults that suit the device."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen import jax_setup, schema, search
from tengen.config.settings.match import EngineSettings
from tengen.config.settings.search import SearchSettings
from tengen.cores import cores
from tengen.engine import programs
from tengen.engine.position import GamePosition
from tengen.engine.programs import Roots
from tengen.games.core import Game
from tengen.match import players
from tengen.nets import evaluators
from tengen.nets.models import PythonModel
from tengen.nets.specs import Dtype
from tengen.run.networks import FoundNetwork
from tengen.search.result import bounded

_TREE_BYTES = 2**29
_MOST_SLOTS = 2**17
_FEWEST_WALKS = 8  # that a search should be made of: leaves of one batch do not know of one another
BLOCK_SECONDS = 0.05
"""The duration of a compiled block of simulations, after which a search can be stopped."""
_LARGEST_BLOCK = 8192


@dataclass(frozen=True)
class Candidate:
    action: int
    visits: int
    value: float  # in [-1, 1], for the player who makes it
    prior: float  # what the network thought of it before the search
    line: tuple[int, ...]  # how the search expects the game to go on, this move first


@dataclass(frozen=True)
class SearchReport:
    """The result of a search. Values are in [-1, 1], for the player to move."""

    player: int  # who moves
    visits: int  # of the whole tree, with what was known before
    value: float
    seconds: float  # that this thinking took
    evaluations: int  # positions that the network looked at in it
    candidates: Sequence[Candidate]  # the best first; empty where the game is over
    nodes: int  # positions in the tree

    @property
    def action(self) -> int | None:
        """The move to play; None where the game is over."""
        return self.candidates[0].action if self.candidates else None


@dataclass(frozen=True)
class NetworkView:
    """The raw output of a network for a position, from the side of the player to move."""

    player: int  # who moves
    policy: np.ndarray  # Float32[A]: probabilities of the legal moves, 0 for others
    win: float
    draw: float
    loss: float
    ownership: np.ndarray | None  # Float32[H, W]: from 1, the mover's at the end, to -1, the opponent's
    score: float | None  # the final score in points, komi included
    score_spread: float | None  # its standard deviation
    opponent_policy: np.ndarray | None  # Float32[A]: probabilities of the opponent's reply; illegal ones not left out
    moves_left: float | None  # until the game ends
    targets: dict[str, np.ndarray] = field(default_factory=dict)
    """Other targets of the game that the network has a head for: Float32[H, W], Float32[A] or Float32[]."""

    @property
    def value(self) -> float:
        """In [-1, 1]."""
        return self.win - self.loss


def candidates(roots: Roots, lower_bound: float) -> list[Candidate]:
    """The moves of a root: the one with the best lower bound of its value, then by visits and by prior.

    Before any search, all legal moves by prior.
    """
    visits, prior = np.asarray(roots.child_visits), np.asarray(roots.prior)
    values, lines = np.asarray(roots.child_value), np.asarray(roots.lines)
    known = np.flatnonzero(visits > 0)
    if len(known) == 0:
        known = np.flatnonzero(prior > 0)
    order = known[np.lexsort((-prior[known], -visits[known]))]
    if lower_bound > 0 and visits.any():
        first = order[np.argmax(bounded(visits[order], values[order], lower_bound, np))]
        order = np.concatenate([[first], order[order != first]])
    return [
        Candidate(
            action=int(action),
            visits=int(visits[action]),
            value=float(np.clip(values[action] if visits[action] else roots.value, -1, 1)),
            prior=float(prior[action]),
            line=tuple(int(move) for move in lines[action] if move >= 0) or (int(action),),
        )
        for action in order
    ]


def precision(settings: EngineSettings) -> Dtype:
    """CPUs have no fast bfloat16; accelerators do."""
    if settings.precision != "auto":
        return settings.precision
    return "float32" if jax.default_backend() == "cpu" else "bfloat16"


def beside() -> Any:
    """The CPU (a `jax.Device`), for the tree of a network on an accelerator; None where both are on one device.

    A walk through one tree is a long chain of small steps. An accelerator takes some ten microseconds for each of
    them, a CPU less than one.
    """
    return None if jax.default_backend() == "cpu" else jax_setup.cpu()


def leaves(settings: EngineSettings) -> int:
    """How many positions of one tree to evaluate at once.

    Two per core fill the threads of a CPU (b6c96 on 9x9 and two cores: 0.98 of the best batch's speed at 4), and more
    only make the search blinder. An accelerator has a batch of 32 almost in the time of one position. A search of few
    visits takes fewer, so that it still sees what it finds out.
    """
    if settings.leaves is not None:
        return settings.leaves
    most = min(max(2 * len(cores()), 4), 16) if jax.default_backend() == "cpu" else 32
    return max(1, min(most, settings.visits // _FEWEST_WALKS))


def slots(game: Game, told: SearchSettings, settings: EngineSettings) -> int:
    enough = 4 * told.leaves
    if settings.slots is not None:
        return max(settings.slots, enough)
    per_thousand = search.bytes_needed(game, told, 1, 100_000) // 100
    return max(min(1000 * _TREE_BYTES // per_thousand, _MOST_SLOTS), enough)


class Engine(GamePosition):
    """A game and its search tree, which is kept from move to move.

    The search is PUCT without noise, several leaves at once. A full tree drops its least visited positions
    and goes on, so `think` may take any time. TengenError if the network cannot play `game`.
    """

    def __init__(self, found: FoundNetwork, game: Game | None = None, settings: EngineSettings | None = None) -> None:
        self.found = found
        self.settings = EngineSettings() if settings is None else settings
        schema.from_options(EngineSettings, asdict(self.settings), "engine")
        super().__init__((found.saved.make_game() if game is None else game).exact)
        self.leaves = leaves(self.settings)
        self.evaluate, params = evaluators.saved(found.path, self.game, precision(self.settings))
        self.params = jax.device_put(params)  # once, not with every call
        wanted = SearchSettings(
            algorithm="puct",
            leaves=self.leaves,
            c_init=self.settings.c_init,
            virtual_loss=self.settings.virtual_loss,
            kernels="plain",  # pruning and several leaves know nothing of the others
        )
        told = players.strongest(wanted)
        self._device, self._beside = jax.devices()[0], beside()
        room = slots(self.game, told, self.settings)
        with jax.default_device(self._beside):
            tree = programs.plant(self.game, told, self.state, room)
        self._tree = tree if self._beside is None else jax.device_put(tree, self._beside)
        self._block = self.leaves

    @property
    def tree(self) -> search.Tree:
        """The search's tree, for `search.dump`; good until the engine thinks or plays again."""
        return self._tree

    def play(self, action: int) -> None:
        """Make a move; what the tree knows about it is kept. IllegalMove if the rules forbid it."""
        super().play(action)
        self._tree = programs.advance(self._tree, jnp.int32(action))

    def _changed(self) -> None:
        self._tree = programs.restart(self._tree, self.state)

    def warm_up(self) -> None:
        """Compile what the first moves will need, before any clock runs."""
        self.look()
        if not self.over:
            action = self.think(visits=1).action
            assert action is not None
            self.play(action)
            self._tree = programs.prune(self._tree)
            self.undo()

    def look(self, state: Any = None) -> NetworkView:
        """The raw output of the network for this position, or for `state`, from the side of the player to move."""
        state = self.state if state is None else state
        legal, outputs = jax.device_get(programs.look(self.game, self.evaluate, self.params, state))

        def first(head: np.ndarray | None) -> np.ndarray | None:
            return None if head is None else np.asarray(head[0], np.float32)

        policy, value = _softmax(np.where(legal, outputs.policy[0], -np.inf)), _softmax(outputs.value[0])
        ownership, reply = first(outputs.ownership), first(outputs.opponent_policy)
        score, left = first(outputs.score), first(outputs.moves_left)
        return NetworkView(
            player=int(self.game.to_play(state)),
            policy=policy,
            win=float(value[0]),
            draw=float(value[1]),
            loss=float(value[2]),
            ownership=None if ownership is None else np.tanh(ownership),
            score=None if score is None else float(score[0]),
            score_spread=None if score is None else float(score[1]),
            opponent_policy=None if reply is None else _softmax(reply),
            moves_left=None if left is None else float(left),
            targets={name: self._target(name, head[0]) for name, head in (outputs.extra or {}).items()},
        )

    def _target(self, name: str, outputs: np.ndarray) -> np.ndarray:
        """The target that the outputs of a head stand for, by the meaning of its loss."""
        target = self.game.target(name)
        loss = target.loss if target is not None else None
        outputs = np.asarray(outputs, np.float32)
        if loss == "binary":
            return 0.5 + 0.5 * np.tanh(0.5 * outputs)
        if loss == "ownership":
            return np.tanh(outputs)
        if loss == "cross_entropy":
            return _softmax(outputs.reshape(-1)).reshape(outputs.shape)
        return outputs[0] if loss == "score" else outputs

    def think(
        self,
        visits: int | None = None,
        seconds: float | None = None,
        stop: threading.Event | None = None,
        each: Callable[[SearchReport], None] | None = None,
        every: float = 0.5,
    ) -> SearchReport:
        """Search on until the root has `visits`, or `seconds` have passed, or `stop` is set, whatever comes first.

        Visits of earlier searches count, as in other programs. Without both limits, the visits of the settings apply.
        `each` is called with a report every `every` seconds. The root is always evaluated.
        """
        start = time.perf_counter()
        if visits is None and seconds is None:
            visits = self.settings.visits
        told, evaluations, known = start, 0, self._roots()
        while not self.over:
            left = None if visits is None else max(visits, 1) - int(known.visits)
            if int(known.visits) > 0:
                if (left is not None and left <= 0) or (stop is not None and stop.is_set()):
                    break
                if seconds is not None and time.perf_counter() - start >= seconds:
                    break
            known, evaluated = self._one_block(known, left, None if seconds is None else start + seconds)
            evaluations += evaluated
            now = time.perf_counter()
            if each is not None and now - told >= every:
                told = now
                each(self._report(known, now - start, evaluations))
        return self._report(known, time.perf_counter() - start, evaluations)

    def _one_block(self, known: programs.Roots, left: int | None, deadline: float | None) -> tuple[programs.Roots, int]:
        """Search for about BLOCK_SECONDS: the new root, and the number of evaluated positions."""
        used, slots = int(known.used), self._tree.visits.shape[1]
        if used + self.leaves > slots:
            self._tree = programs.prune(self._tree)
            used = int(self._tree.used[0])
        begin = time.perf_counter()
        # Whole batches of leaves from an evaluated root on, and no batch in a tree that is full: then a search of so
        # many visits comes out the same however long its blocks are.
        size = max(min(self._block, slots - used - self.leaves) // self.leaves, 1) * self.leaves
        if deadline is not None:
            share = max(deadline - begin, 0) / BLOCK_SECONDS
            size = max(min(size, int(size * share)) // self.leaves, 1) * self.leaves
        size = 1 if int(known.visits) == 0 else size if left is None else min(size, left)
        if self._beside is None and not isinstance(self.evaluate, PythonModel):
            self._tree = programs.search_on(self.evaluate, self.params, self._tree, jnp.int32(size))
        else:
            beside = self._beside or self._device
            self._tree = programs.search_by_step(self.evaluate, self.params, self._tree, size, self._device, beside)
        after = self._roots()
        took = time.perf_counter() - begin
        if size >= self._block and took < BLOCK_SECONDS / 2:
            self._block = min(2 * self._block, _LARGEST_BLOCK)
        elif took > 2 * BLOCK_SECONDS:
            self._block = max(self._block // 2, self.leaves)
        return after, int(after.used) - used + (int(known.visits) == 0)

    def _roots(self) -> programs.Roots:
        return jax.device_get(programs.roots(self._tree))

    def _report(self, known: programs.Roots, seconds: float, evaluations: int) -> SearchReport:
        over = self.over
        return SearchReport(
            player=self.player,
            visits=int(known.visits),
            value=float(self.game.returns(self.state)[self.player] if over else np.clip(known.value, -1, 1)),
            seconds=seconds,
            evaluations=evaluations,
            candidates=[] if over else candidates(known, self.settings.lower_bound),
            nodes=int(known.used),
        )


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Float32[A]; zeros if nothing is legal."""
    highest = logits.max()
    if not np.isfinite(highest):
        return np.zeros(len(logits), np.float32)
    weights = np.exp(logits - highest, dtype=np.float32)
    return weights / weights.sum()
