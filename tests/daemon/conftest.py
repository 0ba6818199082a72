"""Many runs of the same configuration: what has no state is compiled once for all of them."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from recording import make
from tengen.daemon import session
from tengen.train import alpha_zero
from tengen.train.learner import Learner


@pytest.fixture(scope="package", autouse=True)
def shared() -> Iterator[None]:
    """One game, and one `Learner` for equal arguments, of which it is a function."""
    known: dict[str, Any] = {}

    def learner(net: Any, game: Any, settings: Any, *more: Any) -> Learner:
        key = repr((net.spec, game.name, game.options, settings, more))
        return known.setdefault(key, Learner(net, game, settings, *more))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alpha_zero, "Learner", learner)
        patch.setattr(session, "games", SimpleNamespace(make=make))
        yield
