"""The section `net`: the neural network."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from tengen import nets
from tengen.errors import OptionError
from tengen.importing import is_reference
from tengen.nets.specs import HEAD_NAME, NetOptions
from tengen.schema import REQUIRED, setting

_FIXED = (
    "the checkpoints of this run have the shape of its network; "
    "begin a new run, with net.start_from to start from this run's network"
)


_GROWTH = re.compile(r"(0?\.[0-9]+|[1-9][0-9]{0,11}):([a-z][a-z0-9-]*)")


class GrowthStep(NamedTuple):
    """A larger network that takes over in the course of a run."""

    share: float  # of the run's goal; 0 if it is a matter of rows
    rows: int  # from self-play; 0 if it is a matter of the goal
    name: str  # its architecture

    def is_due(self, progress: float, rows: int) -> bool:
        """Whether it takes over when this share of the goal is reached, and that many rows."""
        return rows >= self.rows if self.rows else progress >= self.share


def growth_step(text: str) -> GrowthStep:
    """Parses an item of `NetSection.growth`."""
    if (found := _GROWTH.fullmatch(text)) is None:
        raise OptionError(f"expected SHARE:NAME or ROWS:NAME, got {text!r}")
    if (at := float(found[1])) == 0:
        raise OptionError(f"expected a share above 0, got {text!r}")
    return GrowthStep(at, 0, found[2]) if at < 1 else GrowthStep(0.0, int(at), found[2])


@dataclass(frozen=True)
class RoleNetSettings:
    name: str | None = setting(
        REQUIRED,
        "architecture (null: by `spec`)",
        words="a name as `tengen nets` explains them, PACKAGE.MODULE:FUNCTION",
        fixed=_FIXED,
    )
    spec: nets.Architecture | None = setting(
        REQUIRED, "architecture in detail (null: by `name`)", before=None, fixed=_FIXED
    )
    options: dict[str, Any] | None = setting(
        REQUIRED, "options of PACKAGE.MODULE:FUNCTION (as {width: 64})", before=None, fixed=_FIXED
    )
    start_from: str | None = setting(
        REQUIRED,
        "network or run whose parameters to begin with (null: random ones)",
        before=None,
        fixed="parameters are taken over only at the beginning of a run; begin a new one",
    )
    dtype: nets.Dtype = setting(REQUIRED, "number format of computations; parameters are float32", change="start")

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", NetOptions(self.options))

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.options and not is_reference(self.name):
            first = next(iter(self.options))
            yield f"options.{first}", "expected no options, because only networks of PACKAGE.MODULE:FUNCTION have some"
        if (self.name is None) == (self.spec is None):
            yield "name", "expected either a name or a spec, the other null"
        elif self.name is not None:
            try:
                nets.spec(self.name)
            except ValueError as error:
                yield "name", str(error)

    def architecture(self, heads: Iterable[nets.Head] = ()) -> nets.Spec:
        """The spec of the network with these extra heads."""
        if self.spec is not None:
            return nets.Spec.from_dict({**asdict(self.spec), "heads": list(heads)}, "net.spec")
        assert self.name is not None
        return nets.spec(self.name, heads, self.options if is_reference(self.name) else None)

    @property
    def label(self) -> str:
        """The name; or the nearest thing to one."""
        return self.name or nets.name_of(self.architecture()) or "net.spec"


@dataclass(frozen=True)
class NetSection(RoleNetSettings):
    heads: tuple[nets.Head, ...] = setting(
        REQUIRED,
        "outputs besides policy and value",
        pattern=HEAD_NAME,
        fixed=_FIXED,
        words=f"one of {', '.join(nets.HEADS)}, or another target of the game",
    )
    growth: tuple[str, ...] = setting(
        REQUIRED,
        "fused: larger networks that take over at a share of the goal, or after so many rows",
        pattern=_GROWTH.pattern,
        words="SHARE:NAME or ROWS:NAME, as 0.35:b10c128 or 2000000:b10c128",
        before=(),
        fixed="the checkpoints of this run have the shapes of its networks; begin a new run",
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        yield from super().check_together()
        if len(set(self.heads)) < len(self.heads):
            yield "heads", f"expected each head once, got {', '.join(self.heads)}"
        try:
            steps = self.growth_steps
        except OptionError as error:
            yield "growth", str(error)
            return
        shares, rows = ([step[part] for step in steps if step[part]] for part in (0, 1))
        if shares != sorted({*shares}) or rows != sorted({*rows}):
            yield "growth", f"expected networks that take over one after the other, got {', '.join(self.growth)}"
        for text, step in zip(self.growth, steps, strict=True):
            try:
                nets.spec(step.name)
            except ValueError as error:
                yield "growth", f"{text}: {error}"

    def architecture(self, heads: Iterable[nets.Head] | None = None) -> nets.Spec:
        """The spec of the network, with its own extra heads unless others are given."""
        return super().architecture(self.heads if heads is None else heads)

    @property
    def growth_steps(self) -> list[GrowthStep]:
        return [growth_step(text) for text in self.growth]

    def grown(self, times: int) -> "NetSection":
        """The network of a run that has grown so many times."""
        if not times:
            return self
        return replace(self, name=self.growth_steps[times - 1].name, spec=None, options={}, start_from=None)
