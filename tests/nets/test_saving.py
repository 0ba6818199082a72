"""Networks come back from their files as they were; what is wrong with a file is said."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import load_file, save_file

from tengen import games, nets
from tengen.errors import OptionError, TengenError
from tengen.nets import saving

GO = games.make("go", size=5, komi=5.5)
KERNEL = "stem.conv.kernel"


@pytest.fixture
def net(random_net: Any) -> nets.Network:
    return random_net("b2c8", GO, ("ownership", "score"))


@pytest.fixture
def file(net: nets.Network, tmp_path: Path) -> Path:
    return saving.save(net, tmp_path / "net.safetensors", GO, {"step": 3, "run": "first"})


def tensors(net: nets.Network) -> dict[str, np.ndarray]:
    return {name: np.asarray(x) for name, x in saving.named(nnx.state(net)).items()}


def rewrite(file: Path, change: Any = None, about: Any = None) -> None:
    """The same file after `change` of its tensors and `about` of its description."""
    text = _text(file)
    content = load_file(file)
    if change is not None:
        change(content)
    save_file(content, file, {"tengen": text if about is None else about(text)})


def _text(file: Path) -> str:
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length])["__metadata__"]["tengen"]


def edited(**changes: Any) -> Any:
    return lambda text: json.dumps({**json.loads(text), **changes})


def test_a_network_comes_back_as_it_was(net: nets.Network, file: Path, look: Any) -> None:
    again = saving.load(file, GO, dtype="float32")
    assert again.spec == net.spec
    before, after = tensors(net), tensors(again)
    assert list(before) == list(after)
    for name, x in before.items():
        np.testing.assert_array_equal(after[name], x, err_msg=name)
    planes, scalars = np.ones((1, *GO.planes_shape), bool), np.zeros((1, GO.num_scalars), np.float32)
    np.testing.assert_array_equal(look(again, planes, scalars).policy, look(net, planes, scalars).policy)
    assert nnx.graphdef(again) == nnx.graphdef(net), "it needs no new compilation"


def test_what_the_file_says(file: Path, net: nets.Network) -> None:
    saved = saving.read(file)
    assert (saved.spec, saved.game, saved.version) == (net.spec, "go", GO.version)
    assert saved.info == {"step": 3, "run": "first"}
    assert saved.make_game().options == GO.options
    assert saving.load(file).spec == net.spec, "the game need not be given"


def test_names_are_readable_and_in_order() -> None:
    game = games.make("go", size=5)
    net = nnx.eval_shape(lambda: nets.build(nets.spec("b11c8"), game, nnx.Rngs(0)))
    names = [".".join(map(str, path)) for path, _ in sorted(nnx.to_flat_state(nnx.state(net)), key=saving._readable)]
    assert "blocks.0.branch.steps.0.conv.kernel" in names
    assert "blocks.0.branch.steps.1.norm.variance" in names
    blocks = [int(name.split(".")[1]) for name in names if name.startswith("blocks.")]
    assert blocks == sorted(blocks)
    assert max(blocks) == 10


def test_the_same_network_gives_the_same_bytes_in_a_folder_too(net: nets.Network, file: Path, tmp_path: Path) -> None:
    other = saving.save(net, tmp_path / "models" / "a", GO, {"step": 3, "run": "first"})
    assert other == tmp_path / "models" / "a" / "model.safetensors"
    assert other.read_bytes() == file.read_bytes()
    assert saving.read(tmp_path / "models" / "a").info["step"] == 3
    assert [path.name for path in other.parent.iterdir()] == ["model.safetensors"]


def test_another_size_of_the_board_is_fine(file: Path) -> None:
    large = games.make("go", size=9)
    assert saving.load(file, large, full_board=False).full_board is False


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (games.make("othello"), "a network for go, expected one for othello"),
        (games.make("tic_tac_toe"), "a network for go, expected one for tic_tac_toe"),
    ],
    ids=["othello", "tic_tac_toe"],
)
def test_the_wrong_game(file: Path, game: games.Game, message: str) -> None:
    with pytest.raises(TengenError, match=message):
        saving.load(file, game)


def test_another_observation(file: Path) -> None:
    with pytest.raises(TengenError, match="go with observation: tengen, expected one for observation: katago"):
        saving.load(file, games.make("go", size=5, observation="katago"))
    katago = {"name": "go", "version": 1, "options": {"observation": "katago"}}
    rewrite(file, about=edited(game=katago))
    with pytest.raises(TengenError, match="go with observation: katago, expected one for observation: tengen"):
        saving.load(file, GO)


def test_a_file_from_before_there_was_a_choice_of_observation(file: Path, net: nets.Network) -> None:
    options = {name: value for name, value in vars(GO.options).items() if name != "observation"}
    rewrite(file, about=edited(game={"name": "go", "version": 1, "options": options}))
    assert tensors(saving.load(file, GO)).keys() == tensors(net).keys()


def test_other_rules(file: Path) -> None:
    rewrite(file, about=edited(game={"name": "go", "version": 99, "options": {}}))
    with pytest.raises(TengenError, match="made for version 99 of go; the rules or what a network sees have changed"):
        saving.load(file, GO)


def test_another_network(file: Path) -> None:
    with pytest.raises(
        TengenError, match=r"another network than expected: tower.channels is 8, not 16; tower.mid_channels is"
    ):
        saving.load(file, GO, spec=nets.spec("b2c16"))


def test_missing_odd_and_misshapen_tensors(file: Path) -> None:
    original = file.read_bytes()
    rewrite(file, lambda x: [x.pop("stem.conv.kernel"), x.pop("heads.tip.mean")])
    with pytest.raises(TengenError, match=r"2 tensors are missing: heads.tip.mean, stem.conv.kernel"):
        saving.load(file, GO)
    file.write_bytes(original)
    rewrite(file, lambda x: x.update({"tail.kernel": np.zeros(3, np.float32)}))
    with pytest.raises(TengenError, match=r"1 tensors are not part of the network: tail.kernel"):
        saving.load(file, GO)
    file.write_bytes(original)
    rewrite(file, lambda x: x.update({"heads.tip.mean": np.zeros(3, np.float32)}))
    with pytest.raises(TengenError, match=r"heads.tip.mean: expected F32 \[8\], got F32 \[3\]"):
        saving.load(file, GO)
    file.write_bytes(original)
    rewrite(file, lambda x: x.update({"heads.tip.mean": np.zeros(8, np.float64)}))
    with pytest.raises(TengenError, match=r"heads.tip.mean: expected F32 \[8\], got F64 \[8\]"):
        saving.load(file, GO)
    file.write_bytes(original)
    rewrite(file, lambda x: x["heads.tip.mean"].__setitem__(0, np.nan))
    with pytest.raises(TengenError, match=r"heads.tip.mean: holds numbers that are not finite"):
        saving.load(file, GO)


@pytest.mark.parametrize("length", [0, 4, 8, 100, 5000, -1])
def test_a_file_that_was_cut_off(file: Path, length: int) -> None:
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(TengenError, match=r"net.safetensors: not a whole safetensors file"):
        saving.load(file, GO)
    with pytest.raises(TengenError, match=r"net.safetensors: not a whole safetensors file"):
        saving.read(file)


def test_garbage_and_absence(file: Path, tmp_path: Path) -> None:
    file.write_bytes(np.random.default_rng(0).bytes(3000))
    with pytest.raises(TengenError, match="not a whole safetensors file"):
        saving.read(file)
    with pytest.raises(TengenError, match=r"none.safetensors: there is no such file"):
        saving.read(tmp_path / "none.safetensors")
    with pytest.raises(TengenError, match=r"model.safetensors: there is no such file"):
        saving.load(tmp_path, GO)
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(TengenError, match=r"folder.safetensors: "):
        saving.read(tmp_path / "folder.safetensors")


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (lambda text: text[:-5], "cannot be understood"),
        (lambda text: "[1, 2]", "cannot be understood"),
        (lambda text: "{}", "cannot be understood"),
        (lambda text: "[" * 100_000, "cannot be understood"),
        (edited(schema=3), r"written by another version of Tengen \(schema 3, this Tengen reads 1 and 2\)"),
        (edited(spec={}), "cannot be understood .*tower: missing"),
        (edited(game={"name": "go", "version": "x", "options": {}}), "cannot be understood"),
        (edited(game={"name": "goo", "version": 1, "options": {}}), "its game cannot be made: goo: unknown game"),
        (edited(game={"name": "hironaka", "version": 1, "options": {}}), "hironaka"),
    ],
)
def test_a_description_that_makes_no_sense(file: Path, about: Any, message: str) -> None:
    rewrite(file, about=about)
    with pytest.raises(TengenError, match=message):
        saving.load(file)


def test_safetensors_of_somebody_else(tmp_path: Path) -> None:
    save_file({"a": np.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(TengenError, match="a safetensors file, but not of a Tengen network"):
        saving.read(tmp_path / "other.safetensors")


def test_what_cannot_be_saved(net: nets.Network, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="a folded network cannot be saved"):
        saving.save(nets.fold(net), tmp_path / "a", GO)
    with pytest.raises(OptionError, match="the network's info cannot be written as JSON"):
        saving.save(net, tmp_path / "a", GO, {"when": object()})
    with pytest.raises(OptionError, match="has no ownership to learn from"):
        saving.save(net, tmp_path / "a", games.make("tic_tac_toe"))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TengenError, match="cannot be written"):
        saving.save(net, tmp_path / "file" / "a", GO)
    assert not (tmp_path / "a").exists()


def test_averaged_weights_are_exported_by_updating_a_network(net: nets.Network, tmp_path: Path) -> None:
    averaged = {name: x * 0.5 for name, x in saving.named(nnx.state(net)).items()}
    nnx.update(net, saving.unnamed(averaged))
    again = saving.load(saving.save(net, tmp_path / "half", GO), GO)
    for name, x in tensors(again).items():
        np.testing.assert_array_equal(x, averaged[name], err_msg=name)


@pytest.fixture
def eight_bits(net: nets.Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The network in a file with eight bits for each number of a kernel, however small that is."""
    monkeypatch.setattr(saving, "_LARGE", 0)
    return saving.save(net, tmp_path / "int8.safetensors", GO, stored="int8")


def test_eight_bits_a_weight(eight_bits: Path, net: nets.Network) -> None:
    """Every output has a factor of its own: large and small ones keep their numbers, and nothing stays nothing."""
    content = tensors(net)
    content[KERNEL] = content[KERNEL] * np.float32([1e-30, 1e-3, 0, 1, 10, 1e20, 1, 1])
    content[KERNEL][0, 0, 0, 3] = -100
    nnx.update(net, saving.unnamed(content))
    saving.save(net, eight_bits, GO, stored="int8")
    saving.check_numbers(eight_bits)
    again = tensors(saving.load(eight_bits, GO))
    assert again.keys() == content.keys()
    for name, x in content.items():
        axes = tuple(range(x.ndim - 1))
        step = np.abs(x).max(axes) / 127 if x.ndim > 1 else 0
        assert (np.abs(again[name] - x) <= 1.001 * step).all(), name
        if x.ndim > 1:  # errors do not add up
            assert (np.abs((again[name].astype(float) - x).sum(axes)) <= 0.51 * step).all(), name
    assert not again[KERNEL][..., 2].any()


def test_small_tensors_have_sixteen_bits(net: nets.Network, tmp_path: Path) -> None:
    file = saving.save(net, tmp_path / "int8.safetensors", GO, stored="int8")
    small = load_file(saving.save(net, tmp_path / "small.safetensors", GO, stored="bfloat16"))
    found = load_file(file)
    assert found.keys() == small.keys()
    assert {name: str(x.dtype) for name, x in found.items()} == {name: str(x.dtype) for name, x in small.items()}
    assert saving.load(file, GO).spec == net.spec


@pytest.mark.parametrize("stored", ["bfloat16", "int8"])
def test_numbers_that_have_no_room_are_not_saved(net: nets.Network, tmp_path: Path, stored: saving.Stored) -> None:
    content = tensors(net)
    content[KERNEL] = np.full_like(content[KERNEL], 3.4e38)  # infinite in bfloat16
    nnx.update(net, saving.unnamed(content))
    with pytest.raises(TengenError, match=f"not written, because {KERNEL} holds numbers that are not finite"):
        saving.save(net, tmp_path / "large.safetensors", GO, stored=stored)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.pop(f"{KERNEL}#scale"), rf"1 tensors are missing: {KERNEL}#scale"),
        (lambda x: x.update({f"{KERNEL}#scale": np.ones(3, np.float32)}), r"#scale: expected F32 \[8\], got F32 \[3\]"),
        (lambda x: x.update({f"{KERNEL}#scale": np.ones(8, np.int8)}), r"#scale: expected F32 \[8\], got I8 \[8\]"),
        (lambda x: x[f"{KERNEL}#scale"].__setitem__(1, np.inf), "#scale: holds numbers that are not finite"),
        (lambda x: x.update({KERNEL: np.zeros(x[KERNEL].shape, np.float32)}), "1 tensors are not part of the network"),
        (lambda x: x.update({KERNEL: x[KERNEL][:1]}), r"kernel: expected F32 \[3, 3, 12, 8\], got I8 \[1, 3, 12, 8\]"),
        (lambda x: x.update({"heads.tip.mean": np.zeros(8, np.int8)}), r"tip.mean: expected F32 \[8\], got I8 \[8\]"),
    ],
)
def test_damaged_files_with_eight_bits(eight_bits: Path, change: Any, message: str) -> None:
    rewrite(eight_bits, change)
    with pytest.raises(TengenError, match=message):
        saving.load(eight_bits, GO)


def test_a_network_without_a_board(tmp_path: Path) -> None:
    game = games.make("hironaka")
    net = nets.build(nets.spec("mlp1x4"), game, nnx.Rngs(0))
    again = saving.load(saving.save(net, tmp_path, game), game, full_board=False)
    assert again.full_board is True
    np.testing.assert_array_equal(again.policy.kernel[...], net.policy.kernel[...])


@pytest.mark.parametrize("name", ["stem.conv.kernel", "heads.tip.variance"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_never_saved(
    net: nets.Network, tmp_path: Path, name: str, number: float
) -> None:
    content = tensors(net)
    content[name] = np.full_like(content[name], number)
    nnx.update(net, saving.unnamed(content))
    with pytest.raises(TengenError, match=rf"not written, because {name} holds numbers that are not finite"):
        saving.save(net, tmp_path / "bad", GO)
    assert not (tmp_path / "bad").exists()


def test_the_numbers_of_a_file_are_looked_at_without_building_the_network(file: Path) -> None:
    saving.check_numbers(file)
    rewrite(file, lambda x: x["heads.tip.variance"].__setitem__(0, np.inf))
    with pytest.raises(TengenError, match=r"net.safetensors: heads.tip.variance: holds numbers that are not finite"):
        saving.check_numbers(file)
