"""`Trainer`, the base class for trainers that users write. See docs/trainers.md.

A game has the role `host` (player 0) and, if it is a game for two, `agent` (player 1). Each has its own network,
optimiser, schedules, replay buffer and games. A role without a section in the configuration is played by a network or
a fixed player and never learns.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from tengen import games, nets
from tengen.config.loading import from_dict
from tengen.config.trainers import TrainerConfig
from tengen.errors import Diverged, OptionError, TengenError
from tengen.games.core import Game
from tengen.games.hironaka import Hironaka
from tengen.games.players import Player
from tengen.nets import saving
from tengen.roles import role as roles
from tengen.roles import rules, trainer_state
from tengen.roles.evaluation import RoleEvaluation
from tengen.roles.games import FusedGame, Returns, Reward, Transition, finished
from tengen.roles.role import AnyNet, Role
from tengen.train import schedules
from tengen.train.base import BaseTrainer, Metrics
from tengen.train.checkpoints import Checkpoint, Checkpoints

C = TypeVar("C", bound=TrainerConfig)
Report = Callable[[str, Mapping[str, Any]], None]
"""(kind, figures by name): `run.metrics.Metrics(folder).write` is one."""

_INIT, _KEY, _EVALUATE = range(3)  # what random keys are for


def _of(role: str, part: str) -> Any:
    """`trainer.host_net` is `trainer.role("host").net`, and so on; schedules can be set."""
    found = property(lambda trainer: getattr(trainer.role(role), part))
    if not part.endswith("_scheduler"):
        return found
    return found.setter(lambda trainer, schedule: trainer.role(role).set_schedule(part, schedule))


class Trainer(BaseTrainer[C]):
    """Trains the roles of a game. A subclass implements `_train(steps)` on what is here:

    - `trainer.host_net`, `host_optimizer`, `host_lr_scheduler`, `host_er_scheduler`, `host_replay_buffer`, and the same
      for `agent`; `trainer.roles["host"]` has all of them; `trainer.fused_game`
    - `roll_out(role, n)`: samples; `update(role, loss, *data)`: a step down a gradient; `next_key()`
    - `extra`: a pytree of arrays that checkpoints keep. They keep schedules too: those set in place of the above, and
      attributes whose names contain `schedule`, if they have `state_dict` and `load_state_dict` or are a `Schedule`

    `_train` calls `self.advance()` after each step. One that never does is taken to have made all its steps.
    """

    Config: ClassVar[type] = TrainerConfig
    """The class of its configuration: C of `Trainer[C]`, which subclasses need not repeat."""

    host_net, agent_net = _of("host", "net"), _of("agent", "net")
    host_optimizer, agent_optimizer = _of("host", "optimizer"), _of("agent", "optimizer")
    host_lr_scheduler, agent_lr_scheduler = _of("host", "lr_scheduler"), _of("agent", "lr_scheduler")
    host_er_scheduler, agent_er_scheduler = _of("host", "er_scheduler"), _of("agent", "er_scheduler")
    host_replay_buffer, agent_replay_buffer = _of("host", "replay_buffer"), _of("agent", "replay_buffer")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in getattr(cls, "__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type) and issubclass(argument, TrainerConfig) and "Config" not in vars(cls):
                    cls.Config = argument

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], overrides: Iterable[str] = (), **given: Any) -> Self:
        """The trainer with a configuration from a dictionary, which is checked as a file is."""
        return cls(from_dict(data, overrides, cls.Config), **given)

    def __init__(
        self,
        config: C,
        *,
        game: Game | None = None,
        host_net: AnyNet | None = None,
        agent_net: AnyNet | None = None,
        host_player: Player | None = None,
        agent_player: Player | None = None,
        reward: Reward | None = None,
        report: Report | None = None,
    ) -> None:
        """`game` and `reward` take the place of the configuration's. A role with a section may be given the network
        that it begins with; one without needs a network or a player, from here or from `players` of the configuration.
        """
        if not hasattr(config, "trainer"):
            raise OptionError("expected the configuration of a trainer, as config.load_any('dqn_tic_tac_toe') gives it")
        super().__init__(config)
        if game is None:
            if config.game is None:
                raise TengenError("game: the configuration has none (null), so the program must give one, as game=...")
            game = games.make(config.game.name, **asdict(config.game.options))
        self.game = game
        self.training = True
        self.extra: dict[str, Any] = {}
        self.games = 0  # finished in roll-outs
        self.samples = 0  # of roll-outs
        self._step = 0
        self._report = report or (lambda kind, figures: None)
        self._base = jax.random.key(config.run.seed)
        self._key = jax.random.fold_in(self._base, _KEY)
        if reward is None and config.reward == "finished" and not isinstance(self.game, Hironaka):
            raise OptionError(f"reward: expected returns, because {self.game.name} has no points that could be left")
        self._reward = reward or (finished if config.reward == "finished" else Returns(self.game))
        sample = FusedGame(self.game, _no_rule, _no_rule, self._reward).sample
        self.roles = {name: Role(name, self.game, getattr(config, name), sample) for name in self.game.roles}
        self._seat({"host": host_net, "agent": agent_net}, {"host": host_player, "agent": agent_player})
        self._evaluation = RoleEvaluation(self.game, self.roles, config.evaluation)

    @property
    def step(self) -> int:
        return self._step

    def advance(self, steps: int = 1) -> None:
        """Count steps that have been made."""
        self._step += steps

    def next_key(self) -> Array:
        """A new random key. A resumed training continues the same sequence."""
        key, self._key = jax.random.split(self._key)
        return key

    @property
    def fused_game(self) -> FusedGame:
        """The game with the current players of its roles."""
        return FusedGame.of(self.game, {name: role.rule for name, role in self.roles.items()}, self._reward)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the roles' rules, for the functions of `fused_game`."""
        return {name: role.params for name, role in self.roles.items()}

    @property
    def learning(self) -> list[str]:
        """The roles that learn now."""
        return [name for name, role in self.roles.items() if role.trainable]

    def role(self, name: str) -> Role:
        """The role of that name."""
        if name not in self.roles:
            raise OptionError(f"role: expected one of {', '.join(self.roles)}, got {name!r}")
        return self.roles[name]

    def roll_out(self, role: str, n: int) -> Transition:
        """n samples of a role that has a section: (observations, actions, rewards, dones, next_observations), [n, ...]

        From the role's move to its next one; with `n_step` above 1 over that many moves, rewards discounted. It
        explores by `er_scheduler`, or not at all after `set_training(False)`. The games go on from call to call; as
        they move in step, up to one sample per game is not used if n is no multiple of their number.
        """
        _whole("n", n, 1)
        which = self.role(role)
        settings = which.learning
        lane = self._lane(which)
        steps = math.ceil(n / settings.games)
        er, others_er = self._exploration(which)
        which.lane, samples, ended = self.fused_game.roll_out(
            role, steps, lane, self.params, self.next_key(), er, others_er, settings.gamma
        )
        self.games += int(ended)
        self.samples += n
        return samples if steps * settings.games == n else jax.tree.map(lambda leaf: leaf[:n], samples)

    def collect(self, role: str, n: int) -> None:
        """Roll out n samples, and put them into the role's replay buffer."""
        buffer = self.role(role).replay_buffer
        if buffer is None:
            raise TengenError(f"{role} has no replay buffer; give it one in the configuration")
        buffer.add(roles.rows(self.roll_out(role, n)))

    def update(self, role: str, loss: Callable[..., Any], *data: Any) -> dict[str, Array]:
        """Take one step of a role's optimiser down the gradient of `loss(net, *data)`, at its scheduled learning rate.

        `loss` gives a number, or (number, figures by name); it is compiled once, so pass the same function every
        time (a method will do). Returns the figures, among them `loss`, `gradient` (its length) and `learning_rate`.
        """
        return self.role(role).descend(loss, self._step, data)

    def train(self, steps: int, evaluation_interval: int | None = None) -> Metrics:
        """Take `steps` steps, and evaluate at every multiple of the interval (by default the configuration's).

        Returns the figures of the last steps and of the last evaluation. All of them are reported as they come.
        """
        interval = self.config.evaluation.interval if evaluation_interval is None else evaluation_interval
        _whole("evaluation_interval", interval, 1)
        _whole("steps", steps, 0)
        before, goal = self._step, self._step + steps
        figures, measured = Metrics(), Metrics()
        while self._step < goal:
            self.set_training(True)
            step, count = self._step, min(goal - self._step, interval - self._step % interval)
            found = self._train(count)
            if self._step == step:
                self.advance(count)
            figures = trainer_state.numbers(self, found)
            self._report("training", {"steps": self._step, **figures})
            if self._step // interval > step // interval:  # also if `_train` made more steps than it was asked for
                measured = self.evaluate()
                self._report("evaluation", {"steps": self._step, **measured})
        return {**figures, **measured, "step": self._step, "steps": self._step - before}

    def evaluate(self) -> Metrics:
        """Games without exploration: each learning role against the other role and those that the configuration names.

        {"host_vs_random": mean result, "host_vs_random_length": mean moves, "host_vs_random_lost": share}
        """
        was = self.training
        self.set_training(False)
        key = jax.random.fold_in(jax.random.fold_in(self._base, _EVALUATE), self._step)
        found = self._evaluation.play(self._reward, key)
        self.set_training(was)
        return found

    def set_training(self, training: bool) -> None:
        """Whether roll-outs explore, and networks are in training mode while they learn (batch norms, dropout).

        Those of roles without a section never are. Moves are always played in evaluation mode.
        """
        if training != self.training:
            self.training = training
            for role in self.roles.values():
                self._set_mode(role)

    def set_trainable(self, role: str, trainable: bool) -> None:
        """Whether a role goes on learning; one without a section never does."""
        which = self.role(role)
        which.trainable = trainable and which.learning is not None  # or an error

    def replace_nets(self, host_net: AnyNet | None = None, agent_net: AnyNet | None = None) -> None:
        """Use these networks from now on. The optimiser's state is reset."""
        for name, net in (("host", host_net), ("agent", agent_net)):
            if net is not None:
                self.role(name).set_net(net)
                self._set_mode(self.role(name))
                self._replaced(name)

    def replace_reward(self, reward: Reward) -> None:
        """Use this reward from now on."""
        self._reward = reward

    def save_net(self, role: str, path: Path | str, info: Mapping[str, Any] | None = None) -> Path:
        """Write the network of a role, for `train.load_player` and everything else that reads networks."""
        net = self.role(role).net
        if not isinstance(net, nets.Network):
            raise TengenError(f"{role}: only networks of tengen.nets can be saved as such, not {type(net).__name__}")
        if bad := saving.first_not_finite(self.role(role).params):
            raise Diverged.at(self._step, f"{bad} of the {role} holds numbers that are not finite")
        return saving.save(net, path, self.game, {**(info or {}), "role": role, "step": self._step})

    def save(self, folder: Path | str) -> None:
        """Write a checkpoint with everything that going on needs, buffers included, to a folder of checkpoints.

        In place of one of the same step. TengenError if the folder has a later one, which `load` would take instead.
        """
        with Checkpoints(folder, self.config.checkpoints) as checkpoints:
            newest = max(checkpoints.steps(), default=-1)
            if newest > self._step:
                raise TengenError(
                    f"{folder}: has a checkpoint of step {newest}, later than this one of step {self._step}, and "
                    "`load` takes the latest; save to another folder"
                )
            checkpoints.save(self.checkpoint(), replace=True)

    def load(self, folder: Path | str) -> tuple[str, ...]:
        """Go on from the newest good checkpoint in the folder; what is wrong with those that had to be set aside.

        TengenError if there is none, or if it is of another training than this one.
        """
        if not Path(folder).is_dir():
            raise TengenError(f"{folder}: there is no such folder, expected one with checkpoints")
        with Checkpoints(folder, self.config.checkpoints) as checkpoints:
            found = self.resume(checkpoints)
        if found is None:
            raise TengenError(f"{folder}: has no checkpoint")
        return found[1]

    def checkpoint(self, extras: dict[str, Any] | None = None) -> Checkpoint:
        """Everything that a resumed training needs; `extras` is JSON data of the caller."""
        for role in self.roles.values():
            if role.settings is not None:
                self._lane(role)  # starts its games with the next random key
        return trainer_state.take(self, extras)

    def resume(self, checkpoints: Checkpoints) -> tuple[dict[str, Any], tuple[str, ...]] | None:
        """Go on from the newest good checkpoint: its extras, and which had to be set aside. None if there is none."""
        if not checkpoints.steps():
            return None
        like = self.checkpoint().state
        found = checkpoints.restore(like, "network or optimiser, buffer, n_step or number of games")
        return None if found is None else (trainer_state.restore(self, found[0]), found[1])

    def _set_mode(self, role: Role) -> None:
        """Put the network of a role in training, or not, in whichever mode it came."""
        if role.player is None:
            net = role.net
            (net.train if self.training and role.settings is not None else net.eval)()
            role.graph = nnx.graphdef(net)

    def _replaced(self, role: str) -> None:
        """The network of a role was replaced from outside; for subclasses that keep something about it."""

    def _lane(self, role: Role) -> Any:
        """The games of a role, started if they have not been."""
        if role.lane is None:
            settings, (er, others_er) = role.learning, self._exploration(role)
            role.lane = self.fused_game.start(
                role.name, settings.games, settings.n_step, self.params, self.next_key(), er, others_er
            )
        return role.lane

    def _exploration(self, role: Role) -> tuple[Array, Array]:
        """The exploration rates of the role and, meanwhile, of the other one."""
        assert role.er_scheduler is not None
        if not self.training:
            return jnp.float32(0), jnp.float32(0)
        rate = schedules.number(role.er_scheduler, self._step, f"{role.name}_er_scheduler")
        return rate, jnp.float32(role.learning.others_er)

    def _seat(self, given: Mapping[str, AnyNet | None], players: Mapping[str, Player | None]) -> None:
        """Assign every role its network or player."""
        for index, name in enumerate(("host", "agent")):
            net, player = given[name], players[name]
            if net is not None and player is not None:
                raise OptionError(f"{name}: expected a network or a player, got both")
            if name not in self.roles:
                if net is not None or player is not None or getattr(self.config, name) is not None:
                    raise OptionError(f"{name}: {self.game.name} has no such role")
                continue
            role = self.roles[name]
            named = getattr(self.config.players, name)
            if player is None and net is None and named is not None:
                player = rules.parse(named, self.game, name)
            if player is not None:
                role.set_player(player)
            elif net is not None:
                role.set_net(net)
            elif role.settings is not None:
                start = jax.random.fold_in(jax.random.fold_in(self._base, _INIT), index)
                role.set_net(roles.build(role.settings.net, self.game, nnx.Rngs(start)))
            else:
                raise TengenError(
                    f"{name}: has no section in the configuration, so it needs a network ({name}_net), a player "
                    f"({name}_player), or the name of a player (players.{name})"
                )
            self._set_mode(role)


def _whole(what: str, number: Any, least: int) -> None:
    """OptionError unless it is a whole number of at least `least`."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        raise OptionError(f"{what}: expected a whole number of at least {least}, got {number!r}")


def _no_rule(params: Any, key: Array, states: Any, which: Array) -> Array:
    """Stands in where no move is made."""
    raise AssertionError("this role has no player")
