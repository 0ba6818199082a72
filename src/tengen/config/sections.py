"""The configuration of a run of self-play, as one tree of sections. No setting has a default in a configuration file.

The settings of each section are in config/settings: `search` in search.py, `train` in train.py and so on; those of runs
in several parts in parts.py, `daemon` in data.py, `rating` in match.py.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from tengen import nets, schema
from tengen.config.settings.data import DaemonSettings, DataSection
from tengen.config.settings.match import RatingSection
from tengen.config.settings.net import NetSection
from tengen.config.settings.parts import ClusterSettings, GateSettings, PipelineSettings, ShuffleSettings
from tengen.config.settings.run import RULES_FIXED, GameSection, GoalSection, RunSection
from tengen.config.settings.search import SearchSettings
from tengen.config.settings.selfplay import SearchStage, SelfplaySettings, named, resized, size, stage, stage_at
from tengen.config.settings.train import TrainSettings
from tengen.errors import OptionError
from tengen.schema import REQUIRED, setting


@dataclass(frozen=True)
class Config:
    run: RunSection = setting(REQUIRED, "the run")
    game: GameSection = setting(REQUIRED, "the game and its rules", fixed=RULES_FIXED)
    net: NetSection = setting(REQUIRED, "the neural network")
    search: SearchSettings = setting(REQUIRED, "tree search", change="now")
    selfplay: SelfplaySettings = setting(REQUIRED, "self-play", change="now")
    data: DataSection = setting(REQUIRED, "training data", change="now")
    train: TrainSettings = setting(REQUIRED, "training", change="now")
    shuffle: ShuffleSettings = setting(
        REQUIRED, "sync, async: drawing rows from the window, in random order", change="now"
    )
    ring: PipelineSettings = setting(REQUIRED, "sync, async: how the parts work together", change="now")
    gate: GateSettings = setting(REQUIRED, "sync, async, cluster.gate: which networks are accepted", change="now")
    cluster: ClusterSettings = setting(
        REQUIRED, "cluster: many machines, by Ray", before=ClusterSettings(), change="now"
    )
    daemon: DaemonSettings = setting(REQUIRED, "daemon: training on data that other programs write", change="now")
    rating: RatingSection = setting(REQUIRED, "matches that measure strength during the run", change="now")
    goal: GoalSection = setting(REQUIRED, "the run ends at whichever comes first", change="now")

    def check_together(self) -> Iterator[tuple[str, str]]:

        game = self.game.make()
        spec = self.net.architecture()
        for key, message in nets.problems(spec, game):
            yield f"net.{key}", message
        for number, text in enumerate(self.net.growth, start=1):
            for _, message in nets.problems(self.net.grown(number).architecture(), game):
                yield "net.growth", f"{text}: {message}"
        for text in self.selfplay.opponents:
            if (role := named(text).role) not in game.roles:
                expected = " or ".join(f"{name}=" for name in game.roles)
                yield "selfplay.opponents", f"{text}: {self.game.name} has no {role}, expected {expected}"
        if self.selfplay.komi_spread and self.game.name != "go":
            yield "selfplay.komi_spread", f"expected 0, because {self.game.name} has no komi"
        if self.search.score_weight and not (game.target("score") and "score" in spec.heads):
            missing = "net.heads has no score" if game.target("score") else f"{self.game.name} has no score"
            yield "search.score_weight", f"expected 0, because {missing}"
        if self.data.format == "katago" and getattr(self.game.options, "observation", "") != "katago":
            yield "data.format", "expected tengen, because KataGo trains on go with game.observation=katago only"
        if self.data.format == "lc0" and (self.game.name != "chess" or self.game.options.chess960):
            yield "data.format", "expected tengen, because Lc0 trains on chess with game.chess960=false only"
        for text in self.train.loss.extra:
            name, others = text.partition("=")[0], [target.name for target in nets.extra_targets(spec, game)]
            if name not in others:
                yield "train.loss.extra", f"{name}: {schema.unknown('extra target of the network', name, others)}"
        yield from self._sizes()
        if self.selfplay.cheap_simulations > self.search.simulations:
            yield "selfplay.cheap_simulations", f"expected at most search.simulations, {self.search.simulations}"
        for text in self.selfplay.stages:
            if stage(text).simulations > self.search.simulations:
                yield "selfplay.stages", f"{text}: expected at most search.simulations, {self.search.simulations}"
        if self.selfplay.stages and self.goal == GoalSection(None, None, None, None):
            yield "selfplay.stages", "expected none, because the run has no goal of which a share could be reached"
        if any(step.share for step in self.net.growth_steps) and self.goal == GoalSection(None, None, None, None):
            yield "net.growth", "expected none, because the run has no goal of which a share could be reached"
        if self.data.format != "tengen" and self.selfplay.value_horizon:
            yield (
                "selfplay.value_horizon",
                "expected 0, because files of KataGo and Lc0 have the values of single searches",
            )
        if self.data.format == "lc0":
            for name in ("cheap_weight", "surprise_share"):
                if getattr(self.selfplay, name):
                    yield f"selfplay.{name}", "expected 0, because Lc0's records have no weights"
        if self.data.first_rows > self.data.ring_rows:
            yield "data.first_rows", f"expected at most data.ring_rows, {self.data.ring_rows}"

    def stage(self, progress: float) -> SearchStage:
        """The searches of the run when that share of its goal is reached."""
        return stage_at(progress, self.search.simulations, self.selfplay)

    def grown(self, times: int) -> "Config":
        """These settings with the network of a run that has grown so many times."""
        return replace(self, net=self.net.grown(times))

    def with_selfplay_of(self, other: "Config") -> "Config":
        """These settings, with the searches and the self-play of others."""
        return replace(self, search=other.search, selfplay=other.selfplay)

    def check_stages_in_parts(self) -> None:
        """OptionError if the parts of a run, which do not count its games, could not know its stage."""
        goal = self.goal
        if self.selfplay.stages and goal.minutes is goal.rows is goal.steps is None:
            raise OptionError(
                "selfplay.stages: with a goal of games alone, only the fused loop and --mode cluster know how far "
                "a run is; add goal.minutes, goal.rows or goal.steps"
            )

    def _sizes(self) -> Iterator[tuple[str, str]]:
        from tengen import games

        if not self.selfplay.sizes:
            return
        if self.game.name != "go":
            yield "selfplay.sizes", "expected none, because only go is played on boards of several sizes"
            return
        for text in self.selfplay.sizes:
            other, own = size(text), self.game.options.size
            if other.size >= own:
                yield "selfplay.sizes", f"expected sizes below the game's own, {own}, got {other.size}"
                continue
            try:
                games.make("go", **resized(asdict(self.game.options), other))
            except ValueError as error:
                yield "selfplay.sizes", f"{text}: {error}"
