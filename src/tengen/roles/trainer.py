"""`Trainer`, the base class for trainers that users write. See docs/trainers.md."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from tengen import nets
from tengen.config.loading import from_dict
from tengen.config.settings.roles import RoleSettings
from tengen.config.trainers import ROLES, TrainerConfig
from tengen.errors import Diverged, OptionError, TengenError
from tengen.games.core import Game
from tengen.games.hironaka import Hironaka
from tengen.nets import saving
from tengen.roles import role as roles
from tengen.roles import rules, trainer_state
from tengen.roles.evaluation import RoleEvaluation
from tengen.roles.games import FusedGame, Returns, Reward, Transition, finished, one_sample
from tengen.roles.role import SCHEDULERS, AnyNet, Role, Roles
from tengen.train import schedules
from tengen.train.alpha_zero import checked_start
from tengen.train.base import BaseTrainer, Metrics
from tengen.train.checkpoints import Checkpoint, Checkpoints

C = TypeVar("C", bound=TrainerConfig)
Report = Callable[[str, Mapping[str, Any]], None]
"""(kind, figures by name): `run.metrics.Metrics(folder).write` is one."""

_INIT, _KEY, _EVALUATE = range(3)  # what random keys are for


class Trainer(BaseTrainer[C]):
    """Trains the roles of a game. A subclass implements `_train(steps)` on what is here:

    - `trainer.black_net`, `black_optimizer`, `black_lr_scheduler`, `black_er_scheduler`, `black_replay_buffer`, and the
      same for `white`, or whatever the game calls its players; `trainer.roles["black"]` has all; `trainer.fused_game`
    - `roll_out(role, n)`: samples; `update(role, loss, *data)`: a step down a gradient; `next_key()`
    - `extra`: a pytree of arrays that checkpoints keep. They keep schedules too: those set in place of the above, and
      attributes whose names contain `schedule`, if they have `state_dict` and `load_state_dict` or are a `Schedule`

    `_train` calls `self.advance()` after each step. If it never does, all its steps count as taken.
    """

    Config: ClassVar[type] = TrainerConfig
    """The class of its configuration: C of `Trainer[C]`, which subclasses need not repeat."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in getattr(cls, "__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type) and issubclass(argument, TrainerConfig) and "Config" not in vars(cls):
                    cls.Config = argument

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], overrides: Iterable[str] = (), **given: Any) -> Self:
        """The trainer with a configuration from a dictionary, which is checked in the same way as a file."""
        return cls(from_dict(data, overrides, cls.Config), **given)

    def __init__(
        self,
        config: C,
        *,
        game: Game | None = None,
        reward: Reward | None = None,
        report: Report | None = None,
        **given: Any,
    ) -> None:
        """`game` and `reward` replace those of the configuration. A role with a section may be given the network that
        it begins with (`black_net=`); one without needs a network or a player (`black_player=`), from here or from
        `players` in the configuration.
        """
        if not hasattr(config, "trainer"):
            raise OptionError("expected the configuration of a trainer, as config.load_any('dqn_tic_tac_toe') gives it")
        super().__init__(config)
        if game is None:
            if config.game is None:
                raise TengenError("game: the configuration has none (null), so the program must give one, as game=...")
            game = config.game.make()
        self.game = game
        self.training = True
        self.extra: dict[str, Any] = {}
        self.games = 0  # finished in roll-outs
        self.samples = 0  # of roll-outs
        self._report = report or (lambda kind, figures: None)
        self._base = jax.random.key(config.run.seed)
        self._key = jax.random.fold_in(self._base, _KEY)
        if reward is None and config.reward == "finished" and not isinstance(self.game, Hironaka):
            raise OptionError(f"reward: expected returns, because {self.game.name} has no points that could be left")
        self._reward = reward or (finished if config.reward == "finished" else Returns(self.game))
        sample = one_sample(self.game)
        self.roles = Roles(
            {name: Role(name, self.game, settings, sample) for name, settings in self._role_settings(config).items()}
        )
        self._seat(given)
        self._evaluation = RoleEvaluation(self.game, self.roles, config.evaluation)

    def __getattr__(self, name: str) -> Any:
        """`trainer.black_net` is `trainer.roles["black"].net`, and so on; schedules can be set."""
        if found := vars(self).get("roles", Roles()).part(name):
            return getattr(*found)
        raise AttributeError(f"{type(self).__name__} has no attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        found = vars(self).get("roles", Roles()).part(name)
        if found is None:
            return super().__setattr__(name, value)
        role, part = found
        if part not in SCHEDULERS:
            raise AttributeError(f"{name} cannot be set; replace_nets({role.name}_net=...) replaces a network")
        return role.set_schedule(part, value)

    def advance(self, steps: int = 1) -> None:
        self._step += steps

    def change(self, config: C) -> None:
        """Go on with other settings, as far as they can change while a run goes on."""
        self.config = config
        for name, settings in self._role_settings(config).items():
            if settings is not None:
                self.roles[name].change(settings)

    def _role_settings(self, config: C) -> dict[str, RoleSettings | None]:
        return {name: getattr(config, field) for name, field in zip(self.game.roles, ROLES, strict=False)}

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

    def roll_out(self, role: str, n: int) -> Transition:
        """n samples of a role that has a section: (observations, actions, rewards, dones, next_observations), [n, ...]

        A sample goes from the role's move to its next one; with `n_step` above 1 over that many moves, with discounted
        rewards. The role explores by `er_scheduler`, or not at all after `set_training(False)`. The games go on from
        call to call in lockstep, so up to one sample per game is not used if n is not a multiple of their number.
        """
        _whole("n", n, 1)
        which = self.roles[role]
        settings = which.learning
        lane = self._lane(which)
        steps = math.ceil(n / settings.games)
        er, others_er = self._exploration(which)
        which.lane, samples, ended = self.fused_game.roll_out(
            which.name, steps, lane, self.params, self.next_key(), er, others_er, settings.gamma
        )
        self.games += int(ended)
        self.samples += n
        return samples if steps * settings.games == n else jax.tree.map(lambda leaf: leaf[:n], samples)

    def collect(self, role: str, n: int) -> None:
        """Roll out n samples, and put them into the role's replay buffer."""
        buffer = self.roles[role].replay_buffer
        if buffer is None:
            raise TengenError(f"{role} has no replay buffer; give it one in the configuration")
        buffer.add(roles.rows(self.roll_out(role, n)))

    def update(self, role: str, loss: Callable[..., Any], *data: Any) -> dict[str, Array]:
        """Take one step of a role's optimiser down the gradient of `loss(net, *data)`, at its scheduled learning rate.

        `loss` returns a number, or (number, figures by name); it is compiled once, so pass the same function every
        time (a method will do). Returns figures, among them `loss`, `gradient` (its norm) and `learning_rate`.
        """
        return self.roles[role].descend(loss, self._step, data)

    def train(self, steps: int, evaluation_interval: int | None = None) -> Metrics:
        """Take `steps` steps, and evaluate at every multiple of the interval (by default the configuration's).

        Returns the figures of the last steps and of the last evaluation. All figures are also passed to `report`.
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
            trainer_state.check_extra(self)
            figures = trainer_state.numbers(self, found)
            self._report("training", {"steps": self._step, **figures})
            if self._step // interval > step // interval:  # also if `_train` made more steps than it was asked for
                measured = self.measured()
                self._report("evaluation", {"steps": self._step, **measured})
        return {**figures, **measured, "step": self._step, "steps": self._step - before}

    def evaluate(self) -> Metrics:
        """Play each learning role, without exploration, against the other role and the configuration's players.

        {"black_vs_random": mean result, "black_vs_random_length": mean moves, "black_vs_random_lost": share}
        """
        was = self.training
        self.set_training(False)
        key = jax.random.fold_in(jax.random.fold_in(self._base, _EVALUATE), self._step)
        found = self._evaluation.play(self._reward, key)
        self.set_training(was)
        return found

    def measured(self) -> Metrics:
        """What `evaluate` gives. UserCodeError if a subclass has another one, and that gives no numbers by name."""
        return trainer_state.numbers(self, self.evaluate(), "evaluate")

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
        which = self.roles[role]
        which.trainable = trainable and which.learning is not None  # or an error

    def replace_nets(self, **nets: AnyNet | None) -> None:
        """Use these networks (`black_net=`) from now on. The optimiser's state is reset."""
        for (role, _), net in self._given(nets, "net").items():
            role.set_net(net)
            self._set_mode(role)
            self._replaced(role.name)

    def save_net(self, role: str, path: Path | str, info: Mapping[str, Any] | None = None) -> Path:
        """Write the network of a role, for `train.load_player` and everything else that reads networks."""
        which = self.roles[role]
        net, name = which.net, which.name
        if not isinstance(net, nets.Network):
            raise TengenError(f"{name}: only networks of tengen.nets can be saved as such, not {type(net).__name__}")
        if bad := saving.first_not_finite(which.params):
            raise Diverged.at(self._step, f"{bad} of the {name} holds numbers that are not finite")
        return saving.save(net, path, self.game, {**(info or {}), "role": name, "step": self._step})

    def save(self, folder: Path | str) -> None:
        """Write a checkpoint with everything that is needed to resume, buffers included, to a folder of checkpoints.

        It replaces one of the same step. TengenError if the folder has a later one, which `load` would use instead.
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
        """Resume from the newest good checkpoint in the folder; returns what is wrong with those that were set aside.

        TengenError if there is none, or if it belongs to another training.
        """
        if not Path(folder).is_dir():
            raise TengenError(f"{folder}: there is no such folder, expected one with checkpoints")
        with Checkpoints(folder, self.config.checkpoints) as checkpoints:
            found = self.resume(checkpoints)
        if found is None:
            raise TengenError(f"{folder}: has no checkpoint")
        return found[1]

    def checkpoint(self, extras: dict[str, Any] | None = None) -> Checkpoint:
        for role in self.roles.values():
            if role.settings is not None:
                self._lane(role)  # starts its games with the next random key
        return trainer_state.take(self, extras)

    def resume(self, checkpoints: Checkpoints) -> tuple[dict[str, Any], tuple[str, ...]] | None:
        if not checkpoints.steps():
            return None
        like = partial(trainer_state.with_extra, self.checkpoint().state)
        found = checkpoints.restore(like, "network or optimiser, buffer, n_step, number of games or extra")
        return None if found is None else (trainer_state.restore(self, found[0]), found[1])

    def _set_mode(self, role: Role) -> None:
        if role.player is None:
            net = role.net
            (net.train if self.training and role.settings is not None else net.eval)()
            role.graph = nnx.graphdef(net)

    def _replaced(self, role: str) -> None:
        """The network of a role was replaced from outside; for subclasses that keep something about it."""

    def _lane(self, role: Role) -> Any:
        if role.lane is None:
            settings, (er, others_er) = role.learning, self._exploration(role)
            role.lane = self.fused_game.start(
                role.name, settings.games, settings.n_step, self.params, self.next_key(), er, others_er
            )
        return role.lane

    def _exploration(self, role: Role) -> tuple[Array, Array]:
        """The exploration rates of the role and of the other one in its roll-outs."""
        assert role.er_scheduler is not None
        if not self.training:
            return jnp.float32(0), jnp.float32(0)
        rate = schedules.number(role.er_scheduler, self._step, f"{role.name}_er_scheduler", share=True)
        return rate, jnp.float32(role.learning.others_er)

    def _given(self, options: Mapping[str, Any], *parts: str) -> dict[tuple[Role, str], Any]:
        """What the program has given as `black_net=` and so on, by role and part. OptionError for another keyword."""
        found = {}
        for option, value in options.items():
            of = self.roles.part(option, parts)
            if of is None:
                known = ", ".join(f"{name}_{part}" for name in self.roles for part in parts)
                raise OptionError(f"{option}: {self.game.name} has no such role, expected one of {known}")
            if value is not None:
                found[of] = value
        return found

    def _seat(self, options: Mapping[str, Any]) -> None:
        given = self._given(options, "net", "player")
        for field in ROLES[len(self.roles) :]:
            if getattr(self.config, field) is not None:
                raise OptionError(f"{field}: {self.game.name} has no such role")
        for index, (field, (name, role)) in enumerate(zip(ROLES, self.roles.items(), strict=False)):
            net, player = given.get((role, "net")), given.get((role, "player"))
            if net is not None and player is not None:
                raise OptionError(f"{name}: expected a network or a player, got both")
            named = getattr(self.config.players, field)
            if player is None and net is None and named is not None:
                player = rules.parse(named, self.game, name)
            if player is not None:
                role.set_player(player)
            elif net is not None:
                role.set_net(net)
            elif role.settings is not None:
                start = jax.random.fold_in(jax.random.fold_in(self._base, _INIT), index)
                chosen = role.settings.net
                net = nets.build(chosen.architecture(), self.game, nnx.Rngs(start), dtype=chosen.dtype)
                role.set_net(checked_start(net, self.game, chosen.start_from))
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
