"""Networks of users: built, trained, saved and loaded as Tengen's own, and mistakes in them told with their place."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.commands import main
from tengen.config import load, render
from tengen.config.loading import from_dict
from tengen.errors import ConfigError, OptionError, TengenError
from tengen.nets import custom, saving
from tengen.run import networks
from tengen.schema import to_dict
from tengen.sweep import space
from tests.helpers import custom_nets
from tests.helpers.custom_nets import TINY
from tests.helpers.tiny_runs import settings

GAME = games.make("tic_tac_toe")
FILE = "custom_nets.py, line "


def seen(count: int = 3) -> Any:
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), count))
    return jax.vmap(GAME.observe)(states)


def test_a_function_gives_a_network_that_is_saved_and_loaded_with_all_its_variables(tmp_path: Path) -> None:
    spec = nets.spec(TINY, ("moves_left",))
    net = nets.build(spec, GAME, nnx.Rngs(1))
    before = net(*seen())
    net(*seen(), train=True)  # moves the statistics and the random key of dropout
    after = net(*seen())
    assert not np.allclose(before.policy, after.policy)
    saving.save(net, tmp_path, GAME)
    found = saving.read(tmp_path)
    assert found.spec == spec
    assert nets.name_of(found.spec) == TINY
    loaded = saving.load(tmp_path, GAME)
    for one, other in zip(net(*seen()), loaded(*seen()), strict=True):
        assert (one is None and other is None) or np.allclose(one, other)
    one, other = (saving.named(nnx.state(each)) for each in (net, loaded))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert nets.parameter_count(net) == nets.parameter_count(nets.shapes(spec, GAME)) > 0
    assert nets.operations(spec, GAME) > 1000


def test_training_and_evaluation_mode_follow_the_call_and_leave_the_graph_alone() -> None:
    net = nets.build(nets.spec(TINY), GAME, nnx.Rngs(1))
    graph = nnx.graphdef(net)
    one = net(*seen(64), train=True).policy
    assert nnx.graphdef(net) == graph
    assert not np.allclose(one, net(*seen(64), train=True).policy)  # dropout draws anew
    assert np.allclose(net(*seen()).policy, net(*seen()).policy)
    folded = nets.fold(net)
    assert np.allclose(net(*seen()).policy, folded(*seen()).policy)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("wrong_shape", f"{FILE}\\d+: value: expected the shape \\[2, 3\\], got \\[2, 1\\] for 2 positions"),
        ("no_outputs", f"{FILE}\\d+: expected nets.Outputs, got tuple"),
        ("failing_call", f"for play failed: KeyError: 'oops' \\(.*{FILE}\\d+, in __call__\\)"),
        ("failing", f"building the network failed: TypeError.*{FILE}\\d+, in failing\\)"),
        ("too_few", f"building the network failed: TypeError.*were given \\(.*{FILE}\\d+\\)"),
        ("no_module", f"{FILE}\\d+: expected a flax.nnx.Module, got int"),
        ("no_call", f"{FILE}\\d+: NoCall lacks the method __call__\\(self, planes, scalars\\)"),
        ("missing", "missing: unknown name"),
    ],
)
def test_mistakes_are_told_with_the_users_file_and_line(function: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        nets.build(nets.spec(f"tests.helpers.custom_nets:{function}"), GAME, nnx.Rngs(0))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("list", f"{FILE}\\d+: policy: expected the shape \\[2, 9\\], got list for 2 positions"),
        ("extra", f"{FILE}\\d+: extra: expected a dictionary of outputs by name"),
        ("batch", f"evaluating 37 positions .*ValueError: a batch of 37 \\(.*{FILE}\\d+, in __call__\\)"),
        ("changes", f"for play failed: .*{FILE}\\d+, in __call__\\); a module changes its variables in training only"),
        ("fold", f"{FILE}\\d+: fold must not change the outputs; value differs by up to 2"),
    ],
)
def test_other_mistakes_are_told_as_well(fault: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        custom.check_quickly("tests.helpers.custom_nets:faulty", {"fault": fault}, [], "float32", GAME.name, {})


def test_a_head_that_is_missing_and_numbers_that_are_not_finite() -> None:
    with pytest.raises(OptionError, match=f"{FILE}\\d+: the outputs have no opponent_policy, which net.heads asks for"):
        nets.build(nets.spec(TINY, ("opponent_policy",)), GAME, nnx.Rngs(0))
    net = nets.build(nets.spec("tests.helpers.custom_nets:not_finite"), GAME, nnx.Rngs(0))
    with pytest.raises(OptionError, match=f"{FILE}\\d+: policy holds numbers that are not finite"):
        custom.check_numbers(net, GAME)


def test_a_file_whose_function_is_gone_or_builds_another_network(tmp_path: Path, monkeypatch: Any) -> None:
    saving.save(nets.build(nets.spec(TINY), GAME, nnx.Rngs(1)), tmp_path, GAME)

    class Wider(custom_nets.Tiny):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.more = nnx.Param(jnp.zeros(3))

    monkeypatch.setattr(custom_nets, "Tiny", Wider)
    with pytest.raises(TengenError, match=r"model.safetensors: 1 tensors are missing: module.more"):
        saving.load(tmp_path, GAME)
    monkeypatch.delattr(custom_nets, "tiny")
    with pytest.raises(TengenError, match=r"model.safetensors: .*tiny: unknown name"):
        saving.load(tmp_path, GAME)


SCALED = "tests.helpers.custom_nets:scaled"


def test_options_are_given_to_the_function_and_kept_with_the_network(tmp_path: Path) -> None:
    spec = nets.spec(SCALED, options={"scale": 0.5, "more": (1, 2)})
    assert spec == nets.spec(SCALED, options={"scale": 0.5, "more": [1, 2]})
    assert hash(spec) == hash(nets.Spec.from_dict(spec.to_dict())) != hash(nets.spec(SCALED, options={"scale": 1}))
    net = nets.build(spec, GAME, nnx.Rngs(1))
    assert saving.named(nnx.state(net))["module.extra"].shape == (2,)
    saving.save(net, tmp_path, GAME)
    assert saving.read(tmp_path).spec == spec
    assert nnx.graphdef(saving.load(tmp_path, GAME, dtype=net.dtype)) == nnx.graphdef(net)
    assert "options" not in nets.spec(TINY).to_dict()


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ((f"net.name={SCALED}",), rf"net.options: {SCALED}: needs the option scale \(.*{FILE}\d+\)"),
        (
            (f"net.name={SCALED}", "net.options={scal: 3, scale: 2}"),
            rf"net.options.scal: {SCALED}: unknown option, did you mean scale\? \(.*{FILE}\d+\) \(--set",
        ),
        (
            ("net.options.width=3",),
            r"net.options.width: expected no options, because only .* \(--set net.options.width=3",
        ),
        (("net.options=3",), r"net.options: expected a mapping or null, got 3"),
    ],
)
def test_options_that_do_not_fit(overrides: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load("tic_tac_toe", [*overrides, "net.heads=[]"])


def test_options_in_a_configuration() -> None:
    sets = [f"net.name={SCALED}", "net.options.scale=0.5", "net.heads=[]"]
    config = load("tic_tac_toe", sets)
    assert config.net.architecture() == nets.spec(SCALED, options={"scale": 0.5})
    assert hash(config.net) == hash(load("tic_tac_toe", sets).net)
    assert from_dict(to_dict(config)) == config
    assert 'options: {"scale": 0.5}' in render(config)
    assert load("tic_tac_toe", ["net.options=null"]) == load("tic_tac_toe")
    (axis,) = space.parse(["net.options.scale=1,2"], (), config)
    assert axis == space.ValueChoice("net.options.scale", (1, 2))
    (axis,) = space.parse((), ["net.options.scale=1..2.5"], config)
    assert axis == space.ValueRange("net.options.scale", 1.0, 2.5)


@pytest.mark.parametrize("function", ["failing", "not_finite"])
@pytest.mark.parametrize("mode", ["fused", "sync"])
def test_no_folder_is_made_for_a_network_that_cannot_be_used(
    mode: str, function: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "tic_tac_toe", "--mode", mode, "--set", f"net.name=tests.helpers.custom_nets:{function}"]
    words += ["--set", "net.heads=[]", "--base"]
    assert main([*words, str(tmp_path / "run")]) != 0
    assert FILE in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("kept")
    assert main([*words, str(tmp_path / "there")]) != 0
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_no_folder_is_made_in_async_mode_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = "net.name=tests.helpers.custom_nets:failing"
    words = ["run", "tic_tac_toe", "--mode", "async", "--set", network, "--set", "net.heads=[]"]
    assert main([*words, "--base", str(tmp_path / "run")]) != 0
    error = capsys.readouterr().err.strip()
    assert error.startswith("tests.helpers.custom_nets:failing: building the network failed: TypeError")
    assert not (tmp_path / "run").exists()


def test_no_folder_is_made_for_a_training_of_roles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = "x.net.name=tests.helpers.custom_nets:failing"
    assert main(["run", "dqn_tic_tac_toe", "--set", network, "--base", str(tmp_path / "run")]) != 0
    assert "building the network failed: TypeError" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fused", "sync", "async"])
def test_runs_learn_with_a_network_of_a_user(mode: str, tmp_path: Path) -> None:
    more = ("net.dtype=float32", "goal.steps=40", "ring.selfplay_rows=100", "ring.samples_per_epoch=160")
    overrides = settings(f"net.name={TINY}", "net.heads=[moves_left]", "gate.kind=none", *more)
    words = [word for text in overrides for word in ("--set", text)]
    assert main(["run", "tic_tac_toe", "--base", str(tmp_path), "--mode", mode, *words]) == 0
    found = networks.find(tmp_path)
    assert found.saved.spec == nets.spec(TINY, ("moves_left",))
    assert found.saved.info["step"] > 0
    first = nets.build(found.saved.spec, GAME, nnx.Rngs(0))
    now = saving.named(nnx.state(saving.load(found.path)))
    moved = [name for name, x in saving.named(nnx.state(first)).items() if not np.array_equal(x, now[name])]
    assert {"module.norm.mean", "module.norm.var", "module.conv.kernel"} <= set(moved)
