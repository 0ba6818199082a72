"""Defaults that suit the device."""

from typing import Any

import jax

from tengen import jax_setup, search
from tengen.config.settings.engine import EngineSettings
from tengen.config.settings.search import SearchSettings
from tengen.cores import cores
from tengen.games.core import Game
from tengen.nets.specs import Dtype

_TREE_BYTES = 2**29
_MOST_SLOTS = 2**17
_FEWEST_WALKS = 8  # that a search should be made of: leaves of one batch do not know of one another


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
    """How many positions a tree has room for."""
    enough = 4 * told.leaves
    if settings.slots is not None:
        return max(settings.slots, enough)
    per_thousand = search.bytes_needed(game, told, 1, 100_000) // 100
    return max(min(1000 * _TREE_BYTES // per_thousand, _MOST_SLOTS), enough)
