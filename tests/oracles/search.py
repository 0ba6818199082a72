"""Tree search over one game, slow and obvious, written from the papers and without a look at `tengen.search`.

PUCT: Silver et al. 2018 (AlphaZero), Wu 2019 (KataGo: first-play urgency, forced playouts, policy target pruning).
Gumbel: Danihelka et al. 2022 (Policy improvement by planning with Gumbel), with the constants of mctx.
Points: Wu 2019 (dynamic score utility), with a formula in place of KataGo's table for the spread of the score.

A path is the tuple of actions that leads from the root to a node. Arrays have one entry per action.
"""

import math
from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tengen.config.settings.search import SearchSettings

Path = tuple[int, ...]
ZERO = np.float32(0)


class Position(Protocol):
    """What the search asks of a game; `copy.copy` gives an independent one."""

    @property
    def to_play(self) -> int: ...
    @property
    def over(self) -> bool: ...
    def legal_actions(self) -> list[bool]: ...
    def play(self, action: int) -> None: ...
    def returns(self) -> tuple[float, float]: ...
    def points(self) -> float: ...


Evaluate = Callable[[Position], tuple[np.ndarray, float, tuple[float, float]]]
"""Logits, the value for the player to move, and the mean and standard deviation of his score."""


@dataclass
class Node:
    """A position that was evaluated, or in which the game is over."""

    position: Position
    legal: np.ndarray
    log_prior: np.ndarray  # log-softmax over the legal moves, rounded to half precision; -inf elsewhere
    own_value: np.float32  # its evaluation or its result with its points, from the side of player 0
    own_apart: np.ndarray  # value and score apart from each other
    visits: int = 0
    total: np.float32 = ZERO  # the sum of the values backed up, from the side of player 0
    apart: np.ndarray = field(default_factory=lambda: np.zeros(2))
    children: dict[int, "Node"] = field(default_factory=dict)

    @property
    def side(self) -> int:
        """What turns values of player 0 into values of the player to move, and back."""
        return 1 if self.position.to_play == 0 else -1


def sequence_of_considered_visits(considered: int, budget: int) -> list[int]:
    """Sequential halving: simulation t goes to a move that has exactly this many visits.

    Each round gives every considered move the same number of visits, then keeps the better half, but at least two.
    """
    if considered <= 1:
        return list(range(budget))
    rounds = math.ceil(math.log2(considered))
    sequence: list[int] = []
    reached = 0
    while len(sequence) < budget:
        for _ in range(max(1, budget // (rounds * considered))):
            sequence += [reached] * considered
            reached += 1
        considered = max(2, considered // 2)
    return sequence[:budget]


class Search:
    """The search of one game. Nothing happens if the game is over."""

    def __init__(
        self,
        position: Position,
        evaluate: Evaluate,
        settings: SearchSettings,
        noise: np.ndarray,
        budget: int,
        side: int | None = None,
    ):
        """`side` is the length of the board's sides, in games with points."""
        self.evaluate = evaluate
        self.settings = settings
        self.scale = side / 2 if side and settings.score_weight else None
        self.root = self.new_root(position)
        self.begin(noise, budget)

    def begin(self, noise: np.ndarray, budget: int) -> None:
        """A new search from the same root, which keeps what is known about it."""
        self.noise = noise.astype(np.float32)  # Dirichlet for PUCT, scaled Gumbel for Gumbel
        self.budget = budget
        self.done = 0
        self.pending: Counter[Path] = Counter()  # walks of this batch, by the paths they went along
        self.base = self.move_visits(self.root, ())
        if self.root.visits == 0 and not self.root.position.over:
            self.back_up(())

    def advance(self, action: int) -> None:
        """Make the move: its subtree becomes the tree."""
        after = copy(self.root.position)
        after.play(action)
        child = self.root.children.get(action)
        if child and self.scale and abs(self.centre_for(child.apart[1] / child.visits) - self.centre) > self.scale:
            child = None
        self.root = child or self.new_root(after)

    # One batch of simulations

    @property
    def running(self) -> bool:
        return self.done < self.budget and not self.root.position.over

    def simulate(self) -> list[Path]:
        """As many walks as there are leaves to a batch, their evaluations, their backups. Returns the walks."""
        walks: list[Path] = []
        self.pending.clear()
        while self.running and len(walks) < min(self.settings.leaves, self.budget - self.done):
            walk = self.walk(self.done + len(walks))
            walks.append(walk)
            self.pending.update(walk[:length] for length in range(len(walk) + 1))
        self.pending.clear()
        for walk in walks:
            parent = self.at(walk[:-1])
            if walk[-1] not in parent.children:
                position = copy(parent.position)
                position.play(walk[-1])
                parent.children[walk[-1]] = self.node(position)
        for walk in walks:
            self.back_up(walk)
        self.done += len(walks)
        return walks

    def walk(self, simulation: int) -> Path:
        """From the root to a move without a node, or to a node where the game is over."""
        node, path = self.root, ()
        while not node.position.over:
            action = self.choose(node, path, simulation)
            path = (*path, action)
            if action not in node.children:
                break
            node = node.children[action]
        return path

    def new_root(self, position: Position) -> Node:
        """A root without visits; from now on, points count most near the score that is expected there."""
        side = 1 if position.to_play == 0 else -1
        self.centre = 0.0 if position.over else self.centre_for(side * self.evaluate(position)[2][0])
        return self.node(position)

    def node(self, position: Position) -> Node:
        """A node without visits."""
        legal = np.array(position.legal_actions())
        if position.over:
            value, score, spread = position.returns()[0], position.points(), 0.0
            log_prior = np.where(legal, 0, -np.inf)
        else:
            logits, value, (score, spread) = self.evaluate(position)
            log_prior = log_softmax(np.where(legal, logits, -np.inf).astype(np.float32)).astype(np.float16)
            log_prior = log_prior.astype(np.float32)
            side = 1 if position.to_play == 0 else -1
            value, score = side * value, side * score
        worth = np.float32(value + self.settings.score_weight * self.worth_of_points(score, spread))
        return Node(position, legal, log_prior, worth, np.array([value, score if self.scale else 0]))

    # Points

    def centre_for(self, expected: float) -> float:
        """A quarter closer to zero than the expected score, but at most `scale` points."""
        return float(expected - np.sign(expected) * min(abs(expected) / 4, self.scale or 0))

    def worth_of_points(self, score: float, spread: float) -> float:
        if not self.scale:
            return 0.0
        width = self.scale / 2 + math.sqrt(self.scale**2 / 4 + 2 * spread**2 / math.pi)
        return 2 / math.pi * math.atan((score - self.centre) / width)

    def back_up(self, path: Path) -> None:
        """Add the value of the node at the end to every node on the way."""
        value, apart = self.at(path).own_value, self.at(path).own_apart
        for length in range(len(path) + 1):
            node = self.at(path[:length])
            node.visits += 1
            node.total = np.float32(node.total + value)
            node.apart = node.apart + apart

    def at(self, path: Path) -> Node:
        node = self.root
        for action in path:
            node = node.children[action]
        return node

    # What is known about the moves of a node, walks that are still waiting for their evaluation included

    def move_visits(self, node: Node, path: Path) -> np.ndarray:
        counts = [self.pending[(*path, action)] for action in range(len(node.legal))]
        for action, child in node.children.items():
            counts[action] += child.visits
        return np.array(counts, np.int64)

    def move_values(self, node: Node, path: Path) -> np.ndarray:
        """The mean value of each move for the player who makes it; 0 where there are no visits."""
        visits, values = self.move_visits(node, path), np.zeros(len(node.legal), np.float32)
        for action in np.flatnonzero(visits):
            child = node.children.get(int(action))
            total = np.float32(child.total * node.side) if child else np.float32(0)
            lost = np.float32(self.settings.virtual_loss * self.pending[(*path, int(action))])
            values[action] = (total - lost) / np.float32(visits[action])
        return values

    def node_visits(self, node: Node, path: Path) -> int:
        return node.visits + self.pending[path]

    def node_value(self, node: Node) -> np.float32:
        """The mean over all visits that have a value, for the player to move there."""
        return np.float32(node.total * node.side / node.visits)

    # The choice of a move during the walk

    def choose(self, node: Node, path: Path, simulation: int) -> int:
        if self.settings.algorithm == "puct":
            scores = self.puct_scores(node, path)
            forced = self.forced(node) if path == () and self.settings.forced_playouts > 0 else np.zeros(1, bool)
            return int(forced.argmax() if forced.any() else scores.argmax())
        visits = self.move_visits(node, path)
        if path == ():
            enough = max(math.ceil(self.budget / self.settings.considered_visits), 2)
            considered = min(self.settings.considered, enough, int(node.legal.sum()))
            wanted = sequence_of_considered_visits(considered, self.budget)[simulation]
            return int(np.where(visits - self.base == wanted, self.gumbel_scores(), -np.inf).argmax())
        balance = self.improved_policy(node, path) - visits.astype(np.float32) / np.float32(1 + visits.sum())
        return int(np.where(node.legal, balance, -np.inf).argmax())

    # PUCT

    def puct_prior(self, node: Node, path: Path) -> np.ndarray:
        if path:
            return np.exp(node.log_prior)
        flattened = np.exp(node.log_prior)
        if self.settings.root_temperature != 1:
            flattened = np.exp(log_softmax(node.log_prior / np.float32(self.settings.root_temperature)))
        share = np.float32(self.settings.noise_share)
        return np.where(node.legal, (1 - share) * flattened + share * self.noise, 0)

    def exploration(self, node: Node, path: Path) -> np.ndarray:
        """What a move without visits gains from its prior."""
        visits = np.float32(self.node_visits(node, path))
        base = np.float32(self.settings.c_base)
        weight = np.float32(self.settings.c_init) + np.log((visits + base + 1) / base)
        return weight * np.sqrt(visits) * self.puct_prior(node, path)

    def puct_scores(self, node: Node, path: Path) -> np.ndarray:
        visits = self.move_visits(node, path)
        reduction = self.settings.fpu_reduction if path else self.settings.root_fpu_reduction
        seen = self.puct_prior(node, path)[visits > 0].sum()
        unvisited = self.node_value(node) - np.float32(reduction) * np.sqrt(seen)
        values = np.where(visits > 0, self.move_values(node, path), unvisited)
        scores = values + self.exploration(node, path) / (1 + visits).astype(np.float32)
        return np.where(node.legal, scores, -np.inf)

    def forced(self, root: Node) -> np.ndarray:
        """The moves of the root that have fewer visits than their prior earns them."""
        visits = self.move_visits(root, ())
        earned = np.sqrt(self.settings.forced_playouts * self.puct_prior(root, ()) * visits.sum())
        return (visits > 0) & (visits < earned)

    def pruned_visits(self) -> np.ndarray:
        """The visits of the root's moves, less those that only the forced playouts can explain."""
        visits, values = self.move_visits(self.root, ()), self.move_values(self.root, ())
        best = int(visits.argmax())
        score = self.puct_scores(self.root, ())[best]
        gains = self.exploration(self.root, ())
        kept = visits.astype(np.float64)
        for action in np.flatnonzero(visits):
            gap = score - values[action]
            if action != best and gap > 0:
                kept[action] = min(max(math.ceil(gains[action] / gap - 1), 0), visits[action])
            if action != best and kept[action] <= 1:
                kept[action] = 0
        return kept

    # Gumbel

    def improved_policy(self, node: Node, path: Path) -> np.ndarray:
        return np.exp(log_softmax(node.log_prior + self.sigma(node, path)))

    def gumbel_scores(self) -> np.ndarray:
        scores = self.noise + self.root.log_prior + self.sigma(self.root, ())
        return np.where(self.root.legal, scores, -np.inf)

    def sigma(self, node: Node, path: Path) -> np.ndarray:
        """The completed values, rescaled to [0, 1] and weighed; the more visits the best known move has, the more."""
        visits, values = self.move_visits(node, path), self.move_values(node, path)
        own, prior = node.own_value * node.side, np.exp(node.log_prior)
        mixed = own
        if visits.any():
            known = visits > 0
            average = (prior * values)[known].sum() / prior[known].sum()
            mixed = np.float32((own + visits.sum() * average) / (visits.sum() + 1))
        completed = np.where(visits > 0, values, mixed)
        low, high = completed[node.legal].min(), completed[node.legal].max()
        rescaled = (completed - low) / np.float32(max(high - low, self.settings.value_range, 1e-8))
        weight = np.float32(self.settings.visit_offset + visits.max()) * np.float32(self.settings.value_scale)
        return np.where(node.legal, weight * rescaled, 0)

    # Results

    @property
    def visits(self) -> np.ndarray:
        """How often each move of the root was visited, earlier searches included."""
        return self.move_visits(self.root, ())

    @property
    def values(self) -> np.ndarray:
        return self.move_values(self.root, ())

    @property
    def root_value(self) -> np.float32:
        """What the root is worth for the player to move, without points; or the result."""
        return np.float32(self.worth[0] * self.root.side)

    @property
    def root_score(self) -> np.float32:
        """The expected score, for the player to move."""
        return np.float32(self.worth[1] * self.root.side)

    @property
    def worth(self) -> np.ndarray:
        """Value and score for player 0: of all visits, or, with Gumbel, of the visited moves as the policy has them."""
        if self.root.position.over:
            return self.root.own_apart
        policy = self.policy
        means = {move: child.apart / child.visits for move, child in self.root.children.items() if child.visits}
        if self.settings.algorithm == "puct" or not means:
            return self.root.apart / self.root.visits
        share = sum(policy[move] for move in means)
        return np.sum([policy[move] * mean for move, mean in means.items()], axis=0) / share

    @property
    def policy(self) -> np.ndarray:
        """The policy target."""
        if self.settings.algorithm == "gumbel":
            return self.improved_policy(self.root, ())
        kept = self.pruned_visits() if self.settings.forced_playouts > 0 else self.visits
        return kept / kept.sum() if kept.any() else np.exp(log_softmax(self.root.log_prior))

    @property
    def action(self) -> int:
        """The move at temperature 0."""
        if self.settings.algorithm == "puct":
            likes = self.visits if self.visits.any() else self.policy
            if self.settings.lower_bound and self.visits.any():
                likes = np.full(len(self.visits), -np.inf)
                for move in np.flatnonzero(self.visits >= np.maximum(0.1 * self.visits.max(), 1)):
                    likes[move] = self.values[move] - self.settings.lower_bound / math.sqrt(self.visits[move])
            return int(np.where(self.root.legal, likes, -np.inf).argmax())
        now = self.visits - self.base
        most = now[self.root.legal].max()
        return int(np.where(now == most, self.gumbel_scores(), -np.inf).argmax())

    def count_nodes(self) -> int:
        """The nodes of the tree, the root included."""
        nodes, count = [self.root], 0
        while nodes:
            count += 1
            nodes.extend(nodes.pop().children.values())
        return count


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """-inf stays -inf."""
    shifted = scores - scores.max()
    return shifted - np.log(np.exp(shifted).sum())
