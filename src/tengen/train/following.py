"""The processes of a training besides the first: they compute what process 0 announces, and touch no files."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
from flax import nnx

from tengen import nets
from tengen.config.loading import from_dict
from tengen.config.sections import Config
from tengen.config.settings.train import TrainSettings
from tengen.schema import from_options
from tengen.train.alpha_zero import AlphaZeroConfig
from tengen.train.checkpoints import unflat
from tengen.train.hosts import announce, key_of
from tengen.train.learner import Learner


def follow(stop: Callable[[], bool], say: Callable[[str], None]) -> str:
    """Compute what process 0 announces until it ends; returns why it ended. `stop` asks process 0 to stop."""
    learner: Any = None
    fresh: Any = None  # a state, for its shapes
    state: Any = None
    while True:
        order, arrays, _ = announce(stop=stop())
        match order["do"]:
            case "begin":
                learner, fresh = _learner(from_dict(order["config"], cls=Config))
                say(f"learning with process 0, on {jax.local_device_count()} of {jax.device_count()} devices")
            case "place":
                state = learner.place(unflat(arrays, fresh, "process 0 trains another network"))
            case "change":
                learner = learner.changed(from_options(TrainSettings, order["train"], "train"))
            case "learn":
                state = learner.scaled(state, order["scale"])
                state, _ = learner.in_order(state, arrays, key_of(order["key"]), order["steps"])
            case "settle":
                state = learner.settle(state, arrays, key_of(order["key"]))
            case "judge":
                jax.block_until_ready(learner.judge(state, arrays))
            case "end":
                return order["why"]


def _learner(config: Config) -> tuple[Learner, Any]:
    """The learner on all devices, and a state of the right shapes. Process 0 provides all values."""
    wanted = AlphaZeroConfig.of(replace(config, net=replace(config.net, start_from=None)))
    full = not wanted.smaller
    net = nets.build(wanted.spec, wanted.game, nnx.Rngs(0), dtype=wanted.dtype, full_board=full)
    learner = Learner(net, wanted.game, wanted.train, jax.devices(), None, wanted.smaller)
    return learner, learner.fresh(net)
