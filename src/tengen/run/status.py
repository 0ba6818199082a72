"""The status of a run: the one type that loops fill in and that displays, metrics and messages read. Needs no JAX."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tengen.config.sections import GoalSection
from tengen.run import goals
from tengen.run.goals import Outlook, RunCounts
from tengen.run.part_status import NODE, PartStatus

SPEEDS = ("games", "rows", "evaluations", "steps", "samples")
_COUNTED = ("samples", "rows", "bucket", "step", "steps")  # a trainer's figures that are not means over its steps


@dataclass(frozen=True)
class RatedNetwork:
    elo: float
    error: float  # half of the 95 % interval
    against: str = ""

    def __str__(self) -> str:
        return f"{self.elo:.0f} +-{self.error:.0f}" + (f" against {self.against}" if self.against else "")


@dataclass(frozen=True)
class NetworkCounts:
    accepted: int = 0
    rejected: int = 0
    candidates: int = 0  # waiting for the gate

    def __str__(self) -> str:
        counts = {"accepted": self.accepted, "rejected": self.rejected, "at the gate": self.candidates}
        return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


@dataclass(frozen=True)
class RunStatus:
    """Counts are totals of the whole run, over all its restarts; None is a figure that is not known yet."""

    counts: RunCounts = field(default_factory=RunCounts)
    steps: int = 0
    samples: int = 0
    window: int = 0  # rows that training draws from
    network: str = ""
    figures: Mapping[str, float] | None = None  # the trainer's last report
    playing: float = 0.0  # seconds that this process spent in self-play, without compiling
    learning: float = 0.0  # the same for training
    stage: str = "starting"  # as "playing", "learning", "writing"
    waiting: str = ""  # "12,410 of 20,000 rows until learning begins"
    speeds: Mapping[str, float | None] = field(default_factory=dict)  # per second, by the names in SPEEDS
    rating: RatedNetwork | None = None
    goal: GoalSection | None = None
    board: str = ""  # one of the games, as the game renders it; only if the display wants it
    parts: tuple[PartStatus, ...] = ()  # of a run in parts, or the nodes of a cluster
    networks: NetworkCounts | None = None  # of a run in parts, or on a cluster with a gate
    appetite: float | None = None  # rows per second that the learner could use, if others play for it
    played: Mapping[str, Any] | None = None  # results of this process's games, see `selfplay.collector`

    @property
    def doing(self) -> str:
        return f"{self.stage}, waiting: {self.waiting}" if self.waiting else self.stage

    @property
    def losses(self) -> dict[str, float]:
        return losses(self.figures or {})

    @property
    def learning_rate(self) -> float | None:
        return (self.figures or {}).get("learning_rate")

    def outlook(self) -> Outlook | None:
        return None if self.goal is None else goals.outlook(self.goal, self.counts, self.steps, self.speeds)

    def speeds_since(self, before: "RunStatus", seconds: float) -> dict[str, float | None]:
        """Speeds since an earlier status, `seconds` ago; None for evaluations if they were never counted."""
        now, then = self._totals(), before._totals()
        found: dict[str, float | None] = {name: (now[name] - then[name]) / seconds for name in SPEEDS}
        return found if now["evaluations"] else {**found, "evaluations": None}

    def _totals(self) -> dict[str, float]:
        counts = self.counts
        values = (counts.games, counts.rows, counts.evaluations, self.steps, self.samples)
        return dict(zip(SPEEDS, values, strict=True))

    def values(self) -> dict[str, Any]:
        """The figures of a `progress` line of the metrics, which write the time themselves."""
        parts = self.losses
        found = {
            "stage": self.stage,
            "network": self.network,
            "games": self.counts.games,
            "rows": self.counts.rows,
            "window": self.window,
            "steps": self.steps,
            **{f"{name}_per_second": self.speeds.get(name) for name in SPEEDS},
            "learning_rate": self.learning_rate,
            "loss": parts.pop("loss", None),
            "losses": parts,
        }
        if self.networks is not None:
            found |= asdict(self.networks)
            if not any(part.kind == NODE for part in self.parts):
                return found  # a run in parts, whose trainers report the rest
        figures = {name: value for name, value in (self.figures or {}).items() if name not in _COUNTED}
        seconds = {"playing": self.playing, "learning": self.learning}
        found |= {"played": dict(self.played)} if self.played else {}
        if self.parts:
            nodes = {part.part: {**part.values(), "restarts": part.restarts} for part in self.parts}
            found |= {"appetite_rows_per_second": self.appetite, "parts": nodes}
        return found | seconds | {"waiting": self.waiting, "samples": self.samples, "figures": figures}


def losses(figures: Mapping[str, float]) -> dict[str, float]:
    """The loss and its parts by name, among the figures that a trainer reports."""
    parts = {name.removesuffix("_loss"): value for name, value in figures.items() if name.endswith("_loss")}
    return {"loss": figures["loss"], **parts} if "loss" in figures else parts
