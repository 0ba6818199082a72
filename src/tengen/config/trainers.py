"""The configurations of trainers of roles, told from those of self-play by their key `trainer`.

A trainer of one's own: derive from `TrainerConfig`, add what it needs, and read it with `load_as`.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from tengen import nets
from tengen.config.sections import GameSection, GoalSection, RunSection
from tengen.config.settings.dqn import DQNRoleSettings
from tengen.config.settings.roles import EvaluationSection, PlayersSection, RoleSettings
from tengen.config.settings.train import CheckpointSettings
from tengen.schema import REQUIRED, setting

ROLES = ("host", "agent")


@dataclass(frozen=True)
class TrainerConfig:
    """Everything that makes a training of roles what it is."""

    trainer: str = setting(REQUIRED, "how it is learned", pattern=r"[a-z0-9_]{1,60}", words="the name of a trainer")
    reward: Literal["returns", "finished"] = setting(
        REQUIRED,
        "what an end is worth: the game's result; or (hironaka) 1 to the host and -1 to the agent if one point is left",
    )
    run: RunSection = setting(REQUIRED, "what this run is")
    game: GameSection | None = setting(REQUIRED, "which rules are played (null: given by the program)")
    host: RoleSettings | None = setting(REQUIRED, "how the role that moves first learns (null: it does not)")
    agent: RoleSettings | None = setting(REQUIRED, "how the other role learns (null: it does not)")
    players: PlayersSection = setting(REQUIRED, "who plays the roles that do not learn")
    evaluation: EvaluationSection = setting(REQUIRED, "how good the roles are, measured on the way")
    checkpoints: CheckpointSettings = setting(REQUIRED, "what is kept to go on from")
    goal: GoalSection = setting(REQUIRED, "when the run ends: at whichever comes first; rows are samples")

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for sections that do not go together."""
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
        """What is wrong with the networks for this game."""
        from tengen import games

        game = games.make(section.name, **asdict(section.options))
        for role in ROLES:
            settings = getattr(self, role)
            if settings is None:
                continue
            if role not in game.roles:
                yield role, f"expected null, because {game.name} has no such role"
                continue
            for key, message in nets.problems(nets.spec(settings.net.name), game):
                yield f"{role}.net.{key}", message


@dataclass(frozen=True)
class DQNConfig(TrainerConfig):
    """Deep Q-learning."""

    trainer: Literal["dqn"] = setting(REQUIRED, "how it is learned")
    host: DQNRoleSettings | None = setting(REQUIRED, "how the role that moves first learns (null: it does not)")
    agent: DQNRoleSettings | None = setting(REQUIRED, "how the other role learns (null: it does not)")
