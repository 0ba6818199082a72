"""The section `net`: the neural network."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tengen import nets
from tengen.importing import is_reference
from tengen.nets.specs import HEAD_NAME, NetOptions
from tengen.schema import REQUIRED, setting

_FIXED = (
    "the checkpoints of this run have the shape of its network; "
    "begin a new run, with net.start_from to start from this run's network"
)


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

    def check_together(self) -> Iterator[tuple[str, str]]:
        yield from super().check_together()
        if len(set(self.heads)) < len(self.heads):
            yield "heads", f"expected each head once, got {', '.join(self.heads)}"

    def architecture(self, heads: Iterable[nets.Head] | None = None) -> nets.Spec:
        """The spec of the network, with its own extra heads unless others are given."""
        return super().architecture(self.heads if heads is None else heads)
