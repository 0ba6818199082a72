"""One role of a game in a trainer: its player and, if it learns, its network, optimiser, buffer and schedules."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from tengen import importing
from tengen.config.settings.roles import RoleSettings
from tengen.config.trainers import ROLES
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.games.players import Player, Rule
from tengen.importing import UserCodeError
from tengen.nets import saving
from tengen.roles import rules
from tengen.roles.games import RoleLane, Transition
from tengen.roles.replay import ReplayBuffer
from tengen.roles.rules import GreedyRule, Parameters
from tengen.train import optimizers, schedules
from tengen.train.schedules import AnySchedule, Schedule

AnyNet = nnx.Module | Path | str
"""A module that maps (planes, scalars) to a number per action, or to `Outputs`; or the path of a saved one."""

SCHEDULERS = ("lr_scheduler", "er_scheduler", "beta_scheduler")
PARTS = ("net", "optimizer", "replay_buffer", *SCHEDULERS)
"""The parts of a role that are attributes of a trainer, such as `black_net`."""


class Role:
    """A role that is played by a network, or by a fixed player. Only one with settings learns."""

    def __init__(self, name: str, game: Game, settings: RoleSettings | None, sample: Transition) -> None:
        self.name, self.game, self.settings = name, game, settings
        self.trainable = settings is not None
        self.player: Player | None = None
        self.rule_of: Callable[[Any, Game], Rule] = GreedyRule  # by which its network plays; or `SampledRule`
        self.graph: Any = None  # in training mode while it learns
        self.playing_graph: Any = None  # in evaluation mode
        self.parameters: Parameters = {}  # what gradients change
        self.others: Parameters = {}  # the other variables of the network
        self.optimizer: optax.GradientTransformation | None = None  # for a learning rate of 1
        self.optimizer_state: Any = ()
        self.lr_scheduler: AnySchedule | None = None
        self.er_scheduler: AnySchedule | None = None
        self.beta_scheduler: AnySchedule | None = None
        self.own_schedules: set[str] = set()  # which of these the program has set
        self.replay_buffer: ReplayBuffer | None = None
        self.lane: RoleLane | None = None
        if settings is not None:
            self.change(settings)
            if (buffer := settings.buffer) is not None:
                self.beta_scheduler = Schedule(buffer.beta)
                by_priority = buffer.kind == "prioritised"
                self.replay_buffer = ReplayBuffer(
                    rows(sample), buffer.capacity, prioritised=by_priority, alpha=buffer.alpha, least=buffer.least
                )

    def change(self, settings: RoleSettings) -> None:
        """Go on with other numbers of the optimiser and of schedules, except those that the program has set."""
        if self.optimizer is None or (self.settings and self.settings.optimizer != settings.optimizer):
            self.optimizer = optimizers.make(settings.optimizer)
        self.settings = settings
        if "lr_scheduler" not in self.own_schedules:
            self.lr_scheduler = Schedule(settings.lr_schedule, settings.optimizer.learning_rate)
        if "er_scheduler" not in self.own_schedules:
            self.er_scheduler = Schedule(settings.er_schedule)

    def set_net(self, net: AnyNet) -> None:
        """Use this network from now on. The optimiser's state is reset."""
        what = f"{self.name}_net"
        if isinstance(net, str | Path):
            net = saving.load(net, self.game, dtype=self.settings.net.dtype if self.settings else "float32")
        if not isinstance(net, nnx.Module):
            raise OptionError(f"{what}: expected a flax nnx.Module or the path of a network, got {type(net).__name__}")
        rules.check_outputs(net, self.game, what)
        # Copies, because learning must not change the caller's network, nor the other way round.
        state = jax.tree.map(jnp.copy, nnx.state(net))
        graph = nnx.graphdef(net)
        own = nnx.merge(graph, state)
        learned = saving.named(nnx.state(own, nnx.Param))
        own.eval()
        self.graph, self.playing_graph, self.player = graph, nnx.graphdef(own), None
        self.others = {name: leaf for name, leaf in saving.named(state).items() if name not in learned}
        self.parameters = learned
        if self.optimizer is not None:
            self.optimizer_state = self.optimizer.init(learned)

    def set_player(self, player: Player) -> None:
        if player.on_host:
            raise OptionError(f"{self.name}_player: {player.name} runs on the host, expected a rule that JAX compiles")
        if self.settings is not None:
            raise OptionError(f"{self.name}_player: {self.name} has a section and learns; give it a network instead")
        self.player = player

    def set_schedule(self, part: str, schedule: AnySchedule) -> None:
        """Use the user's own schedule; `part` is lr_scheduler, er_scheduler or beta_scheduler."""
        _ = self.learning  # raises the error
        what = f"{self.name}_{part}"
        if not schedules.has_state(schedule):  # calling one with state may change it
            first = float(schedules.number(schedule, 0, what))
            if part != "lr_scheduler" and not 0 <= first <= 1:
                raise OptionError(f"{what}: expected numbers from 0 to 1, got {first:g} at step 0")
        schedules.saved(schedule, what)  # raises an error now rather than at the first checkpoint
        setattr(self, part, schedule)
        self.own_schedules.add(part)

    @property
    def rule(self) -> Rule:
        """The rule that it plays by. Equal for networks with the same graph."""
        return self.player.rule if self.player else self.rule_of(self.playing_graph, self.game)

    @property
    def params(self) -> Any:
        return self.player.params if self.player else {**self.parameters, **self.others}

    @property
    def net(self) -> Any:
        """A copy of the current network; None for a fixed player. `replace_nets` sets another one."""
        return None if self.player else rules.network(self.graph, {**self.parameters, **self.others})

    @property
    def learning(self) -> RoleSettings:
        """The settings; TengenError if it does not learn."""
        if self.settings is None:
            raise TengenError(f"{self.name} has no section in the configuration, so it cannot learn")
        return self.settings

    def descend(self, loss: Any, step: int, data: tuple[Any, ...]) -> dict[str, Array]:
        """Take one step down the gradient of `loss(net, *data)`; returns figures. TengenError if it does not learn."""
        _ = self.learning  # raises the error
        assert self.lr_scheduler is not None
        rate = schedules.number(self.lr_scheduler, step, f"{self.name}_lr_scheduler")
        self.parameters, self.others, self.optimizer_state, figures = _descend(
            self.graph, self.optimizer, loss, self.parameters, self.others, self.optimizer_state, rate, data
        )
        return figures

    def state(self) -> dict[str, Any]:
        """Everything that changes in a role that learns, as a pytree."""
        return {
            "parameters": self.parameters,
            "others": self.others,
            "optimizer": self.optimizer_state,
            "lane": plain(self.lane),
            "replay": () if self.replay_buffer is None else self.replay_buffer.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.parameters, self.others, self.optimizer_state = (state[x] for x in ("parameters", "others", "optimizer"))
        self.lane = typed(state["lane"], self.lane)
        if self.replay_buffer is not None:
            self.replay_buffer.state = state["replay"]


class Roles(dict[str, Role]):
    """The roles by name, those of players 0 and 1 also as `host` and `agent`: their names in earlier versions."""

    def __missing__(self, name: str) -> Role:
        if name in ROLES[: len(self)]:
            return list(self.values())[ROLES.index(name)]
        raise OptionError(f"role: expected one of {', '.join(self)}, got {name!r}")

    def part(self, attribute: str, parts: Iterable[str] = PARTS) -> tuple[Role, str] | None:
        """The role and the part that an attribute such as `black_net` stands for; None for other attributes."""
        for part in parts:
            name = attribute.removesuffix(f"_{part}")
            if name != attribute and name in (*self, *ROLES[: len(self)]):
                return self[name], part
        return None


def rows(transition: Transition) -> dict[str, Any]:
    """Samples as a replay buffer keeps them."""
    return {
        **transition.observations,
        "action": transition.actions,
        "reward": transition.rewards,
        "done": transition.dones,
        **{f"next_{name}": leaf for name, leaf in transition.next_observations.items()},
    }


def plain(tree: Any) -> Any:
    """The tree with random keys replaced by their data, which files can hold."""
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, tree)


def typed(tree: Any, like: Any) -> Any:
    """Undo `plain`, for a tree like `like`."""
    return jax.tree.map(lambda old, new: jax.random.wrap_key_data(new) if _is_key(old) else new, like, tree)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


@partial(jax.jit, static_argnames=("graph", "optimizer", "loss"))
def _descend(
    graph: Any,
    optimizer: Any,
    loss: Any,
    parameters: Parameters,
    others: Parameters,
    state: Any,
    rate: Array,
    data: tuple[Any, ...],
) -> tuple[Parameters, Parameters, Any, Any]:
    """`loss` gives a number or (number, figures by name)."""

    def of(learned: Parameters) -> tuple[Array, Any]:
        net = rules.network(graph, {**learned, **others})
        found = loss(net, *data)
        value, figures = found if isinstance(found, tuple) else (found, {})
        if jnp.shape(value):
            got = f"got the shape {[*jnp.shape(value)]}; did you forget .mean()?"
            raise UserCodeError(f"{importing.where(loss)}: expected one number as the loss, {got}")
        kept = saving.named(nnx.state(net))
        return value, ({name: kept[name] for name in others}, figures)

    (value, (others, figures)), gradient = jax.value_and_grad(of, has_aux=True)(parameters)
    parameters, state = optimizers.step(optimizer, gradient, state, parameters, rate)
    figures = {**figures, "loss": value, "gradient": optax.tree.norm(gradient), "learning_rate": rate}
    return parameters, others, state, figures
