"""Configurations of trainers of roles, which have the key `trainer`. Their sections are declared in config/settings.

For your own trainer, derive from `TrainerConfig` and add its settings; see docs/trainers.md.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from tengen import nets
from tengen.config.settings.roles import DQNRoleSettings, EvaluationSection, PlayersSection, RoleSettings
from tengen.config.settings.run import RULES_FIXED, GameSection, GoalSection, RunSection
from tengen.config.settings.train import CheckpointSettings
from tengen.schema import REQUIRED, setting

ROLES = ("host", "agent")


@dataclass(frozen=True)
class TrainerConfig:
    """All settings of a training of roles."""

    trainer: str = setting(
        REQUIRED,
        "the algorithm",
        pattern=r"[A-Za-z0-9_.:]{1,200}",
        words="the name of a trainer, or package.module:Class for your own",
    )
    reward: Literal["returns", "finished"] = setting(
        REQUIRED,
        "reward at the end: the game's result; or (hironaka) 1 to the host and -1 to the agent if one point is left",
    )
    run: RunSection = setting(REQUIRED, "the run")
    game: GameSection | None = setting(
        REQUIRED, "the game and its rules (null: given by the program)", fixed=RULES_FIXED
    )
    host: RoleSettings | None = setting(REQUIRED, "the role that moves first (null: it does not learn)")
    agent: RoleSettings | None = setting(REQUIRED, "the other role (null: it does not learn)")
    players: PlayersSection = setting(REQUIRED, "players of the roles that do not learn")
    evaluation: EvaluationSection = setting(REQUIRED, "matches that measure the roles during training", change="start")
    checkpoints: CheckpointSettings = setting(REQUIRED, "checkpoints", change="start")
    goal: GoalSection = setting(REQUIRED, "the run ends at whichever comes first; rows are samples", change="now")

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.host is None and self.agent is None:
            yield "host", "expected a section for host or agent, or nobody learns"
        for role in ROLES:
            if getattr(self, role) is not None and getattr(self.players, role) is not None:
                yield f"players.{role}", f"expected null, because {role} has a section and learns"
        if self.reward == "finished" and self.game is not None and self.game.name != "hironaka":
            yield "reward", f"expected returns, because {self.game.name} has no points that could be left"
        if self.game is not None:
            yield from self._nets(self.game)

    def _nets(self, section: GameSection) -> Iterator[tuple[str, str]]:
        """Problems of the networks with this game."""
        from tengen import games

        game = games.make(section.name, **asdict(section.options))
        for role in ROLES:
            settings = getattr(self, role)
            if settings is None:
                continue
            if role not in game.roles:
                yield role, f"expected null, because {game.name} has no such role"
                continue
            for key, message in nets.problems(settings.net.architecture(), game):
                yield f"{role}.net.{key}", message


@dataclass(frozen=True)
class DQNConfig(TrainerConfig):
    """Deep Q-learning."""

    trainer: Literal["dqn"] = setting(REQUIRED, "the algorithm")
    host: DQNRoleSettings | None = setting(REQUIRED, "the role that moves first (null: it does not learn)")
    agent: DQNRoleSettings | None = setting(REQUIRED, "the other role (null: it does not learn)")
