"""Models of other frameworks: asked for batches of positions, by search, engine and matches; mistakes are explained."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tengen import games
from tengen.config.settings.match import EngineSettings, MatchSettings
from tengen.config.settings.search import SearchSettings
from tengen.engine.engine import Engine
from tengen.errors import TengenError
from tengen.games.core import Observation
from tengen.match import device_match, player_spec, players
from tengen.nets import models
from tengen.run import networks
from tests.helpers.python_models import CENTRE

GAME = games.make("tic_tac_toe")
FILE = "python_models.py, line "


def named(name: str) -> str:
    return f"python:tests.helpers.python_models:{name}"


def seen(count: int = 3) -> Observation:
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), count))
    return jax.vmap(GAME.observe)(states)


def test_policy_and_value_in_every_form() -> None:
    found = models.load(CENTRE, GAME)((), seen())
    assert found.logits.shape == (3, 9)
    assert (found.logits.argmax(1) == 4).all()
    assert np.isfinite(found.logits).all()
    assert np.allclose(found.value, 0.5)
    outputs = models.load(CENTRE, GAME).outputs((), seen())
    chances = jax.nn.softmax(outputs.value)
    assert np.allclose(chances, [0.75, 0.0, 0.25], atol=1e-6)
    assert np.allclose(models.load(named("chances"), GAME)((), seen()).value, 0.25)
    assert np.allclose(models.load(named("exported"), GAME)((), seen()).value, 0)
    assert np.allclose(models.load(named("slices"), GAME)((), seen()).value, 0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", f"evaluating 3 positions of tic_tac_toe failed: KeyError: 'oops' \\(.*{FILE}\\d+, in evaluate\\)"),
        ("one_argument", f"failed: TypeError: .*1 positional argument but 2 were given \\(.*{FILE}\\d+\\)"),
        ("shape", f"{FILE}\\d+: policy: expected the shape \\[3, 9\\], got \\[3, 8\\]"),
        ("nan", f"{FILE}\\d+: policy holds NaN"),
        ("out_of_range", f"{FILE}\\d+: value is not in \\[-1, 1\\]"),
        ("alone", f"{FILE}\\d+: expected \\(policy, value\\), got no policy in ndarray"),
        ("no_value", f"{FILE}\\d+: expected \\(policy, value\\), got no value in dict"),
        ("three", f"{FILE}\\d+: expected \\(policy, value\\), got 3 things"),
        ("complex_numbers", f"{FILE}\\d+: policy: expected real numbers, got complex64"),
        ("ends", f"loading the model failed: SystemExit: 3 .*{FILE}\\d+, in ends"),
        ("nothing", f"{FILE}\\d+: expected a function of planes and scalars, got NoneType"),
        ("fails_to_load", f"loading the model failed: FileNotFoundError: no weights .*{FILE}\\d+, in fails_to_load"),
        ("missing", "missing: unknown name"),
    ],
)
def test_mistakes_are_told_with_the_users_file_and_line(name: str, words: str) -> None:
    with pytest.raises(TengenError, match=words):
        models.load(named(name), GAME)((), seen())


@pytest.mark.slow
def test_an_engine_thinks_with_a_model() -> None:
    found = networks.find_network(f"{CENTRE}@tic_tac_toe")
    engine = Engine(found, settings=EngineSettings(visits=20, leaves=2, slots=64))
    report = engine.think()
    assert report.action == 4
    assert report.visits == 20
    view = engine.look()
    assert view.policy.argmax() == 4
    assert view.win == pytest.approx(0.75)
    with pytest.raises(TengenError, match=f"what does it play\\? Say so at its end, such as {CENTRE}@go9"):
        networks.find_network(CENTRE)


@pytest.mark.slow
def test_a_match_with_search_and_without() -> None:
    settings = players.strongest(SearchSettings(algorithm="puct"), 4)
    for search in (settings, None):
        a = player_spec.parse(CENTRE)
        assert (a.kind, a.about()) == ("model", {"kind": "model"})
        a.check(GAME)
        player = a.player(GAME, search)
        played = device_match.play(
            GAME, player, players.random(GAME), jax.random.key(0), MatchSettings(games=4, opening_moves=0)
        )
        assert played.finished.all()
        assert not played.forfeits.any()
    assert (played.actions[1::2, 1] == 4).all()  # without search, after an opening of one move
    with pytest.raises(TengenError, match="neither player is a network"):
        player_spec.common_game(a, player_spec.parse("random"), None, {})
    b = player_spec.parse(f"{CENTRE}@tic_tac_toe")
    assert player_spec.common_game(b, player_spec.parse("random"), None, {}).name == "tic_tac_toe"


@pytest.mark.slow
def test_the_search_from_the_host_equals_the_compiled_one() -> None:
    """With the same evaluations, every move is the same."""
    from tengen import search

    settings = SearchSettings(simulations=8)
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 4))

    def evaluate(observation: Observation) -> search.Evaluation:
        flat = observation.planes.reshape(len(observation.planes), -1).astype(np.float32)
        return search.Evaluation(flat[:, :9] - flat[:, 9:18], 0.1 * flat[:, :3].sum(1))

    one = search.run(evaluate, GAME, states, jax.random.key(1), settings)
    other = search.run_from_host(evaluate, GAME, states, jax.random.key(1), settings)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_the_example_in_pytorch() -> None:
    pytest.importorskip("torch")
    import importlib.util

    from tests.helpers import paths

    spec = importlib.util.spec_from_file_location("torch_model", Path(paths.EXAMPLES) / "torch_model.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = models.PythonModel("python:torch_model:load", GAME, module.load(GAME))
    found = model((), seen())
    assert found.logits.shape == (3, 9)
    assert np.isfinite(found.value).all()
