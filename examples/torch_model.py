"""A PyTorch model that plays wherever a network of Tengen could: over GTP, in matches, in analyses.

    pip install torch
    cd examples
    tengen gtp python:torch_model:load@connect_four --visits 100
    tengen match python:torch_model:load mcts:50 --game connect_four --games 20

`load` is called once and gives the function that evaluates positions. This model is untrained; load your weights where
it says so. `examples/torch_player.py` trains one.
"""

from collections.abc import Callable
from typing import Any

try:
    import torch
    from torch import nn

    from tengen.games.core import Game
except ModuleNotFoundError as missing:
    raise SystemExit(f"{missing}: this example needs Tengen and PyTorch (pip install torch)") from None


class Model(nn.Module):
    """Two convolutions, a policy and a value."""

    def __init__(self, game: Game, width: int = 32) -> None:
        super().__init__()
        rows, columns, planes = game.planes_shape
        self.body = nn.Sequential(
            nn.Conv2d(planes, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Flatten(),
        )  # fmt: skip
        self.policy = nn.Linear(width * rows * columns, game.num_actions)
        self.value = nn.Linear(width * rows * columns, 3)  # logits of win, draw, loss

    def forward(self, planes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.body(planes.permute(0, 3, 1, 2))  # Tengen's channels come last
        return self.policy(x), self.value(x)


def load(game: Game) -> Callable[[Any, Any], tuple[torch.Tensor, torch.Tensor]]:
    """The model for a game, as Tengen asks for it."""
    torch.manual_seed(0)
    model = Model(game).eval()
    # model.load_state_dict(torch.load("weights.pt", weights_only=True))

    @torch.inference_mode()
    def evaluate(planes: Any, scalars: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Both are JAX arrays, which PyTorch takes over where they lie: nothing is copied, on a GPU neither."""
        del scalars
        seen = torch.from_dlpack(planes)
        return model.to(seen.device)(seen.float())

    return evaluate
