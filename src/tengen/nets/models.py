"""Models of any framework: `python:package.module:function` wherever a network's path may stand. See docs/match.md.

    def load(game):                                     # called once
        return lambda planes, scalars: (policy, value)  # called with every batch of positions

Arrays go to the model and come back without a copy.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen import importing
from tengen.errors import TengenError
from tengen.games.core import Game, Observation
from tengen.nets.outputs import OFF_BOARD, Evaluation, Outputs
from tengen.words import counted

_PREFIX = "python:"


def is_model(text: str | Path) -> bool:
    """Whether the text names a model rather than a file."""
    return str(text).startswith(_PREFIX)


@lru_cache(maxsize=4)
def load(text: str, game: Game) -> "PythonModel":
    """The model that `python:package.module:function` names. TengenError if it cannot be loaded."""
    reference = text.removeprefix(_PREFIX)
    function = importing.load(reference, "a function that loads a model")
    try:
        model = function(game)
    except (Exception, SystemExit) as error:
        raise TengenError(f"{text}: loading the model failed: {importing.explain(error, function)}") from error
    if not callable(model):
        got = f"got {type(model).__name__}"
        raise TengenError(f"{text}: {importing.where(function)}: expected a function of planes and scalars, {got}")
    return PythonModel(text, game, model)


@dataclass(frozen=True, eq=False)
class PythonModel:
    """A model with the interface of `evaluators.Evaluator`. It cannot be part of a compiled program."""

    text: str
    game: Game
    model: Callable[[Array, Array], Any]
    on_host: ClassVar[bool] = True

    def __call__(self, params: Any, observation: Observation) -> Evaluation:
        return _evaluation(*self._asked(observation))

    def outputs(self, params: Any, observation: Observation) -> Outputs:
        """The same as logits; a model has no other heads."""
        return _outputs(*self._asked(observation))

    def _asked(self, observation: Observation) -> tuple[Array, Array]:
        """Float32[B, A] and Float32[B] or Float32[B, 3], on the device of the observation."""
        count = len(observation.planes)
        try:
            found = self.model(observation.planes, observation.scalars)
        except (Exception, SystemExit) as error:
            what = f"evaluating {counted(count, 'position')} of {self.game.name} failed"
            raise TengenError(f"{self.text}: {what}: {importing.explain(error, self.model)}") from error
        device = next(iter(observation.planes.devices()))
        policy, value = (jax.device_put(self._array(name, x), device) for name, x in self._parts(found))
        if policy.shape != (count, self.game.num_actions):
            self._wrong(f"policy: expected the shape {[count, self.game.num_actions]}, got {list(policy.shape)}")
        if value.shape not in ((count,), (count, 1), (count, 3)):
            self._wrong(f"value: expected the shape {[count]} or {[count, 3]}, got {list(value.shape)}")
        policy, value, problems = _checked(policy, value)
        problems = jax.device_get(problems)  # three flags: all that leaves the device
        if problems.any():
            words = ("policy holds NaN or +inf", "value holds numbers that are not finite", "value is not in [-1, 1]")
            self._wrong(next(text for text, there in zip(words, problems, strict=True) if there))
        return policy, value

    def _parts(self, found: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(found, tuple | list) and len(found) == 2 and not hasattr(found, "policy"):
            found = dict(zip(("policy", "value"), found, strict=True))
        for name in ("policy", "value"):
            part = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
            if part is None:
                several = isinstance(found, tuple | list)
                got = f"{len(found)} things" if several else f"no {name} in {type(found).__name__}"
                self._wrong(f"expected (policy, value), got {got}")
            yield name, part

    def _array(self, name: str, value: Any) -> Array:
        try:
            array = to_jax(value)
        except Exception as error:
            self._wrong(f"{name}: {type(value).__name__} cannot be read as an array of numbers ({error})")
        if jnp.issubdtype(array.dtype, jnp.complexfloating):
            self._wrong(f"{name}: expected real numbers, got {array.dtype}")
        return array

    def _wrong(self, text: str) -> NoReturn:
        raise TengenError(f"{self.text}: {importing.where(self.model)}: {text}")


def to_jax(value: Any) -> Array:
    """An array of any framework as JAX's, without a copy where there is a way. Raises whatever that framework does."""
    if isinstance(value, Array):
        return value
    value = _exportable(value)
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        try:
            return jax.dlpack.from_dlpack(value)
        except (TypeError, ValueError, RuntimeError, BufferError):
            pass  # of a type, a layout or a device that JAX does not know
    array = to_numpy(value)
    return jnp.asarray(array if np.iscomplexobj(array) else array.astype(np.float32))


def to_numpy(value: Any) -> np.ndarray:
    """An array of any framework as NumPy's, from a GPU too. Raises whatever that framework does."""
    value = _exportable(value)
    return np.asarray(value.cpu() if hasattr(value, "cpu") else value)


def _exportable(value: Any) -> Any:
    """A tensor of PyTorch as others can take it: without a gradient, and a slice as an array on the same device."""
    for method in ("detach", "contiguous"):
        value = getattr(value, method)() if hasattr(value, method) else value
    return value


@jax.jit
def _checked(policy: Array, value: Array) -> tuple[Array, Array, Array]:
    """Both in float32, and Bool[3]: what is wrong with them. Impossible moves may be at -inf."""
    policy, value = policy.astype(jnp.float32), value.astype(jnp.float32)
    value = value[:, 0] if value.shape[1:] == (1,) else value
    outside = jnp.array(False) if value.ndim == 2 else (jnp.abs(value) > 1 + 1e-3).any()
    problems = jnp.stack([(jnp.isnan(policy) | (policy == jnp.inf)).any(), ~jnp.isfinite(value).all(), outside])
    return jnp.maximum(policy, OFF_BOARD), value, problems


@jax.jit
def _evaluation(policy: Array, value: Array) -> Evaluation:
    return Evaluation(policy, value) if value.ndim == 1 else Evaluation.of(Outputs(policy, value))


@jax.jit
def _outputs(policy: Array, value: Array) -> Outputs:
    if value.ndim == 1:  # no draws, as far as is known
        value = jnp.log(jnp.maximum(jnp.stack([(1 + value) / 2, jnp.zeros_like(value), (1 - value) / 2], 1), 1e-9))
    return Outputs(policy, value)
