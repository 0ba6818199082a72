"""The section `net`: the neural network."""

from collections.abc import Iterator
from dataclasses import dataclass

from tengen import nets
from tengen.schema import REQUIRED, setting

_FIXED = (
    "the checkpoints of this run have the shape of its network; "
    "begin a new run, with net.start_from to start from this run's network"
)


@dataclass(frozen=True)
class NetSection:
    name: str = setting(REQUIRED, "architecture", words="a name as `tengen nets` explains them", fixed=_FIXED)
    heads: tuple[nets.Head, ...] = setting(REQUIRED, "outputs besides policy and value", fixed=_FIXED)
    dtype: nets.Dtype = setting(REQUIRED, "number format of computations; parameters are float32", change="start")

    def check_together(self) -> Iterator[tuple[str, str]]:
        yield from unknown_architecture(self.name)
        if len(set(self.heads)) < len(self.heads):
            yield "heads", f"expected each head once, got {', '.join(self.heads)}"


def unknown_architecture(name: str) -> Iterator[tuple[str, str]]:
    """(key, message) if no network has that name."""
    try:
        nets.spec(name)
    except ValueError as error:
        yield "name", str(error)
