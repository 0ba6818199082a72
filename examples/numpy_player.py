"""A player in NumPy alone, that learns tic-tac-toe from its own games.

    python examples/numpy_player.py --games 500

Tengen plays the games and searches; this file is the network: one matrix from the position to policy and value,
moved along the gradient by hand. See docs/context.md.
"""

import argparse
from collections.abc import Sequence

try:
    import numpy as np

    from tengen import games, search
    from tengen.context import GameContext, Stats
except ModuleNotFoundError as missing:
    raise SystemExit(f"{missing}: this example needs Tengen; use the Python that it is installed in") from None


class Linear:
    """Policy and value as linear functions of the planes."""

    def __init__(self, game: games.Game) -> None:
        features = int(np.prod(game.planes_shape)) + 1
        self.policy = np.zeros((features, game.num_actions))
        self.value = np.zeros(features)

    def features(self, batch: dict) -> np.ndarray:
        """[n, F]: the planes, and a 1."""
        planes = batch["planes"].reshape(len(batch["planes"]), -1)
        return np.concatenate([planes, np.ones((len(planes), 1))], 1)

    def act(self, batch: dict) -> dict:
        """What Tengen asks of each batch of positions: logits, and values for the player to move."""
        x = self.features(batch)
        return {"policy": x @ self.policy, "value": np.tanh(x @ self.value)}

    def learn(self, batch: dict, rate: float = 0.05) -> None:
        """One step towards what the search found, and how the game ended."""
        x = self.features(batch)
        logits, value = x @ self.policy, np.tanh(x @ self.value)
        guess = np.exp(logits - logits.max(1, keepdims=True))
        guess /= guess.sum(1, keepdims=True)
        outcome = batch["outcome"] @ [1, 0, -1]
        self.policy += rate * x.T @ (batch["policy"] - guess) / len(x)
        self.value += rate * x.T @ ((outcome - value) * (1 - value**2)) / len(x)


def main(arguments: Sequence[str] | None = None) -> Stats:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--games", type=int, default=500)
    wanted = parser.parse_args(arguments).games
    game = games.make("tic_tac_toe")
    network, results = Linear(game), []

    context = GameContext(
        game, num_games=64, batch_size=32, search=search.Settings(simulations=16),
        temperature=1.0, temperature_moves=4, total_games=wanted,
    )  # fmt: skip
    context.on("actor_black", network.act)
    context.on("actor_white", network.act)
    context.on("train", network.learn)
    context.on("game_end", lambda end: results.append(end["result"]))
    with context:
        while context.run() is not None:  # None: all games are over
            pass
        stats = context.stats()
    third = max(len(results) // 3, 1)
    for name, part in (("first", results[:third]), ("last", results[-third:])):
        print(f"{name} {len(part)} games: black won {part.count(1)}, white {part.count(-1)}, {part.count(0)} drawn")
    print(f"{stats.evaluations:,} positions in {stats.batches:,} batches, {stats.train_batches:,} steps of learning")
    return stats


if __name__ == "__main__":
    main()
