"""PyTorch on a GPU: positions and answers stay on it, in models that play and in contexts."""

from typing import Any

import jax
import numpy as np
import pytest

from tengen import games
from tengen.config.settings.match import MatchSettings
from tengen.config.settings.search import SearchSettings
from tengen.context import GameContext, replies
from tengen.match import device_match, players
from tengen.nets import models

pytestmark = pytest.mark.gpu

GAME = games.make("connect_four")
SEARCH = SearchSettings(algorithm="puct", simulations=4, noise_share=0.0, forced_playouts=0.0)


class TorchModel:
    """A linear model on the GPU that notes where its arrays lie."""

    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch")
        if not self.torch.cuda.is_available():
            pytest.skip("this PyTorch has no CUDA")
        self.calls = 0
        self.given: dict[int, tuple[int, ...]] = {}  # addresses of answers -> their shapes
        self.weights = self.torch.randn(int(np.prod(GAME.planes_shape)), GAME.num_actions + 1, device="cuda")

    def __call__(self, planes: Any, scalars: Any = None) -> tuple[Any, Any]:
        """Policy and value as slices of one tensor, as many models give them."""
        self.calls += 1
        assert isinstance(planes, jax.Array)
        seen = self.torch.from_dlpack(planes)
        assert seen.is_cuda
        assert seen.dtype == self.torch.bool
        assert seen.data_ptr() == planes.unsafe_buffer_pointer(), "the observation was copied"
        np.testing.assert_array_equal(seen.cpu().numpy(), np.asarray(planes))
        found = seen.flatten(1).float() @ self.weights
        policy, value = found[:, :-1].contiguous(), self.torch.tanh(found[:, -1])
        self.given |= {one.data_ptr(): tuple(one.shape) for one in (policy, value)}
        return policy, value


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> TorchModel:
    """Its answers must arrive in JAX at the addresses where PyTorch put them."""
    made, plain = TorchModel(), models.to_jax

    def to_jax(value: Any) -> jax.Array:
        array = plain(value)
        assert array.device.platform == "gpu"
        assert made.given.get(array.unsafe_buffer_pointer()) == array.shape, "the answer was copied"
        np.testing.assert_array_equal(np.asarray(array), value.cpu().numpy())
        return array

    monkeypatch.setattr(models, "to_jax", to_jax)
    monkeypatch.setattr(replies, "to_jax", to_jax)
    return made


def test_a_model_in_a_match(model: TorchModel) -> None:
    network = models.PythonModel("python:torch:model", GAME, model)
    for player in (players.policy("torch", network, GAME), players.network("torch", network, GAME, SEARCH)):
        played = device_match.play(GAME, player, players.random(GAME), jax.random.key(0), MatchSettings(games=8))
        assert played.finished.all()
        assert not played.forfeits.any()
    assert model.calls > 20


def test_a_context(model: TorchModel) -> None:
    def actor(batch: Any) -> dict[str, Any]:
        policy, value = model(batch["planes"])
        return {"policy": policy, "value": value}

    context = GameContext(GAME, num_games=16, batch_size=8, search=SEARCH, total_games=16, arrays="jax")
    context.on("actor", actor)
    with context:
        while context.run() is not None:
            pass
    assert context.stats().games_finished == 16
    assert model.calls > 20


@pytest.mark.parametrize("kind", ["float64", "float16", "bfloat16", "gradient", "slice", "transposed", "expanded"])
def test_answers_of_any_type_and_layout(kind: str) -> None:
    """Those that JAX cannot take over as they are are copied, on the GPU."""
    torch: Any = TorchModel().torch
    values = torch.arange(12.0, device="cuda").reshape(3, 4)
    kinds = {
        "gradient": values.clone().requires_grad_(),
        "slice": values[:, 1:],
        "transposed": values.T,
        "expanded": values[:1].expand(3, 4),
    }
    value = kinds[kind] if kind in kinds else values.to(getattr(torch, kind))
    array = models.to_jax(value)
    assert array.device.platform == "gpu"
    np.testing.assert_array_equal(np.asarray(array, np.float32), value.detach().float().cpu().numpy())
