"""Many runs of the same configuration: what has no state is compiled once for all of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tengen.loop import playing
from tengen.selfplay import Selfplay
from tengen.train import alpha_zero
from tengen.train.learner import Learner


@pytest.fixture(scope="package", autouse=True)
def shared() -> Iterator[None]:
    """`Selfplay` and `Learner` are functions of their arguments, so equal arguments may share one."""
    known: dict[str, Any] = {}

    def selfplay(game: Any, evaluate: Any, *settings: Any) -> Selfplay:
        return known.setdefault(repr((game.name, game.options, settings)), Selfplay(game, evaluate, *settings))

    def learner(net: Any, game: Any, settings: Any, *more: Any) -> Learner:
        return known.setdefault(
            repr((net.spec, game.name, game.options, settings, more)), Learner(net, game, settings, *more)
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(playing, "Selfplay", selfplay)
        patch.setattr(alpha_zero, "Learner", learner)
        yield
