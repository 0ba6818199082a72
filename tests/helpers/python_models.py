"""Models as users write them, for the tests of `python:module:function`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tengen.games.core import Game

CENTRE = "python:tests.helpers.python_models:centre"
Model = Callable[[Any, Any], Any]


def centre(game: Game) -> Model:
    """Likes the middle of the board, in NumPy; impossible moves may be at -inf."""

    def evaluate(planes: Any, scalars: Any) -> Any:
        planes = np.asarray(planes)
        assert planes.dtype == bool
        assert scalars.shape == (len(planes), game.num_scalars)
        policy = np.zeros((len(planes), game.num_actions), np.float64)
        policy[:, game.num_actions // 2] = 20.0
        policy[:, 0] = -np.inf
        return policy, np.full(len(planes), 0.5)

    return evaluate


def chances(game: Game) -> Model:
    """As a dictionary, with logits of win, draw and loss."""

    def evaluate(planes: Any, scalars: Any) -> Any:
        value = np.log(np.tile(np.array([0.5, 0.25, 0.25], np.float32), (len(planes), 1)))
        return {"policy": np.zeros((len(planes), game.num_actions), np.float32), "value": value}

    return evaluate


class Exported:
    """An array of another framework: only DLPack gets at its numbers."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


def exported(game: Game) -> Model:
    """Takes the positions by DLPack, and answers by DLPack."""
    import jax.numpy as jnp

    def evaluate(planes: Any, scalars: Any) -> Any:
        seen = jnp.from_dlpack(Exported(planes))
        return Exported(jnp.zeros((len(seen), game.num_actions))), Exported(jnp.zeros((len(seen), 3)))

    return evaluate


class Tensor(Exported):
    """An array on a device that NumPy cannot reach, as PyTorch's on a GPU: a slice of it goes nowhere as it is."""

    def __init__(self, values: Any, whole: bool = False) -> None:
        super().__init__(values)
        self._whole = whole

    def contiguous(self) -> Any:
        return Tensor(self._values, whole=True)

    def __dlpack__(self, **options: Any) -> Any:
        if not self._whole:
            raise BufferError("only compact arrays")
        return super().__dlpack__(**options)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def slices(game: Game) -> Model:
    """Policy and value are slices of one tensor."""
    import jax.numpy as jnp

    def evaluate(planes: Any, scalars: Any) -> Any:
        return Tensor(jnp.zeros((len(planes), game.num_actions))), Tensor(jnp.zeros(len(planes)))

    return evaluate


def faulty(game: Game, what: str) -> Model:
    def evaluate(planes: Any, scalars: Any) -> Any:
        policy, value = np.zeros((len(planes), game.num_actions)), np.zeros(len(planes))
        if what == "raises":
            raise KeyError("oops")
        if what == "shape":
            return policy[:, 1:], value
        if what == "nan":
            return policy + np.nan, value
        if what == "range":
            return policy, value + 3
        if what == "three":
            return policy, value, policy
        if what == "complex":
            return policy.astype(complex), value
        return policy if what == "alone" else {"policy": policy}

    return evaluate


def raises(game: Game) -> Model:
    return faulty(game, "raises")


def shape(game: Game) -> Model:
    return faulty(game, "shape")


def nan(game: Game) -> Model:
    return faulty(game, "nan")


def out_of_range(game: Game) -> Model:
    return faulty(game, "range")


def alone(game: Game) -> Model:
    return faulty(game, "alone")


def no_value(game: Game) -> Model:
    return faulty(game, "no_value")


def three(game: Game) -> Model:
    return faulty(game, "three")


def complex_numbers(game: Game) -> Model:
    return faulty(game, "complex")


def ends(game: Game) -> Model:
    raise SystemExit(len(game.players) + 1)


def one_argument(game: Game) -> Any:
    return lambda planes: game


def nothing(game: Game) -> None:
    del game


def fails_to_load(game: Game) -> Model:
    raise FileNotFoundError(f"no weights for {game.name}")
