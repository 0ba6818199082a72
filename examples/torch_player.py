"""A PyTorch network that learns connect four: Tengen plays and searches, PyTorch evaluates and learns.

    pip install torch
    python examples/torch_player.py --games 1000

Works the same with a network of any framework: a function from arrays to arrays. See docs/context.md.
"""

import argparse
import os
from collections.abc import Sequence

try:
    import torch
    from torch import nn
    from torch.nn import functional

    from tengen import games, search
    from tengen.context import GameContext, Stats
except ModuleNotFoundError as missing:
    raise SystemExit(f"{missing}: this example needs Tengen and PyTorch (pip install torch)") from None

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS_PER_VERSION = 50  # games are marked with the version that played them


class Network(nn.Module):
    """Two convolutions, a policy and a value."""

    def __init__(self, game: games.Game, width: int = 32) -> None:
        super().__init__()
        rows, columns, planes = game.planes_shape
        self.body = nn.Sequential(
            nn.Conv2d(planes, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Flatten(),
        )  # fmt: skip
        self.policy = nn.Linear(width * rows * columns, game.num_actions)
        self.value = nn.Linear(width * rows * columns, 1)

    def forward(self, planes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.body(planes.to(DEVICE, torch.float32).permute(0, 3, 1, 2))
        return self.policy(x), torch.tanh(self.value(x))[:, 0]


def main(arguments: Sequence[str] | None = None) -> Stats:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=128)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    if DEVICE == "cpu":  # the games need cores too, and threads of PyTorch that wait for one another cost far more
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    game = games.make("connect_four")
    network = Network(game).to(DEVICE)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    context = GameContext(
        game, num_games=2 * options.batch, batch_size=options.batch, search=search.Settings(simulations=32),
        temperature=1.0, temperature_moves=8, total_games=options.games,
    )  # fmt: skip
    steps = 0

    def act(batch: dict) -> dict:
        # The tensor shares the context's memory: it is good until this function returns.
        with torch.inference_mode():
            policy, value = network(torch.from_numpy(batch["planes"]))
        return {"policy": policy.cpu(), "value": value.cpu()}

    def learn(batch: dict) -> None:
        nonlocal steps
        target, outcome = torch.from_numpy(batch["policy"]), torch.from_numpy(batch["outcome"])
        policy, value = network(torch.from_numpy(batch["planes"]))
        result = (outcome[:, 0] - outcome[:, 2]).to(DEVICE)
        loss = functional.cross_entropy(policy, target.to(DEVICE)) + functional.mse_loss(value, result)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % STEPS_PER_VERSION == 0:
            context.set_version(black=steps, white=steps)
            print(f"step {steps}: loss {loss.item():.3f}, {context.stats().games_finished} games", flush=True)

    context.on("actor_black", act)
    context.on("actor_white", act)
    context.on("train", learn)
    with context:
        while context.run() is not None:  # None: all games are over
            pass
        stats = context.stats()
    rate = stats.evaluations / (stats.callback_seconds + stats.waiting_seconds)
    print(f"{stats.games_finished} games, {stats.evaluations:,} positions, {rate:,.0f} a second, {steps} steps")
    return stats


if __name__ == "__main__":
    main()
