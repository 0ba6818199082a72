"""Networks that come with Tengen: found by name, small, and complete."""

from pathlib import Path

import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.commands import main
from tengen.config import load
from tengen.match import player_spec
from tengen.nets import saving
from tengen.run import networks, shipped

LARGEST = 5_000_000  # bytes of all files together
GAME = games.make("tic_tac_toe")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with one network."""
    folder = tmp_path / "run" / "models" / "first"
    net = nets.build(nets.spec("b2c32"), GAME, nnx.Rngs(3))
    saving.save(net, folder, GAME, {"seconds": 90.0, "step": 7})
    (tmp_path / "run" / "config.yaml").write_text("run:\n  seed: 3\n")
    return tmp_path / "run"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of the package's own; the current folder is another, empty one."""
    place = tmp_path / "networks"
    place.mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(shipped, "_folder", lambda: place)
    return place


def test_a_name_stands_where_a_path_may(run: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(folder / "ttt.safetensors")
    about = ["--about", "machine=two cores", "--about", "strength=draws with perfect play"]
    assert main(["export", str(run), "--format", "tengen", out, *about]) == 0
    assert shipped.names() == ("ttt",)
    found = networks.find("ttt")
    assert (found.name, found.saved.game) == ("ttt", "tic_tac_toe")
    assert found.saved.info["about"] == {"machine": "two cores", "strength": "draws with perfect play"}
    assert found.saved.info["configuration"] == "run:\n  seed: 3\n"
    assert found.saved.info["seconds"] == 90.0
    assert player_spec.parse("ttt").kind == "network"
    assert networks.find_network("ttt").path == folder / "ttt.safetensors"
    capsys.readouterr()
    assert main(["nets", "ttt"]) == 0
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("tic_tac_toe", "1.5 minutes", "two cores", "tengen play ttt", "seed: 3"))


def test_what_the_user_has_comes_first(run: Path, folder: Path) -> None:
    shipped.write(run / "models" / "first", folder / "ttt.safetensors", {})
    Path("ttt").symlink_to(run)
    assert networks.find("ttt").name == "first"


@pytest.mark.parametrize(("form", "size"), [("tengen", 0.7), ("tengen-int8", 0.6)])
def test_files_are_smaller_and_the_network_almost_the_same(
    run: Path,
    folder: Path,
    form: str,
    size: float,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, file = run / "models" / "first", folder / "ttt.safetensors"
    monkeypatch.setattr(saving, "_LARGE", 3000)
    assert main(["export", str(first), "--format", form, str(file), "--about", "machine=two cores"]) == 0
    before, after = (saving.named(nnx.state(saving.load(path))) for path in (first, file))
    assert file.stat().st_size < size * (first / "model.safetensors").stat().st_size
    assert saving.read(file).info["about"] == {"machine": "two cores"}
    capsys.readouterr()
    assert main(["nets", str(file)]) == 0  # which need not ship
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("tic_tac_toe", "two cores", f"tengen play {file}", "seed: 3"))
    for name, tensor in before.items():
        assert after[name].dtype == tensor.dtype
        allowed = 0.004 * np.abs(tensor) if tensor.ndim > 1 else 0
        if form == "tengen-int8" and tensor.size >= 3000:
            allowed = np.abs(tensor).max(tuple(range(tensor.ndim - 1))) / 126
        assert (np.abs(after[name] - tensor) <= allowed).all(), name


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--format", "tengen", "out.bin"], "expected a name that ends in .safetensors"),
        (["--format", "tengen", "out.safetensors", "--about", "strong"], "expected KEY=TEXT"),
        (["--format", "onnx", "out.onnx", "--about", "a=b"], "--about is for --format tengen"),
    ],
)
def test_exports_that_make_no_sense(
    run: Path, folder: Path, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del folder
    assert main(["export", str(run), *arguments]) == 2
    assert problem in capsys.readouterr().err


def test_those_that_ship_are_small_and_tell_how_they_were_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = {name: shipped.path(name) for name in shipped.names()}
    assert sum(path.stat().st_size for path in files.values() if path) <= LARGEST
    for name in files:
        found = networks.find(name)
        saving.check_numbers(found.path)
        assert set(found.saved.info["about"]) >= {"machine", "strength"}, name
        assert found.saved.info["seconds"] > 0, name
        file = tmp_path / f"{name}.yaml"
        file.write_text(found.saved.info["configuration"])
        assert load(file).game.name == found.saved.game
        game = found.saved.make_game()
        assert (game.name, game.version) == (found.saved.game, found.saved.version), "train it again"
    assert not caplog.messages
