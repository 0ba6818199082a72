"""`tengen export --format lc0` and `tengen import lc0`, from file to file."""

from pathlib import Path

import numpy as np
import pytest

from tengen.commands import main
from tengen.interop.lc0 import weights_file
from tengen.interop.lc0.network import to_lc0
from tengen.nets import saving
from tests.oracles import lc0_network as oracle


def test_in_and_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = {**oracle.network(0), "training_params": {"training_steps": 70}}
    weights_file.write(theirs, tmp_path / "theirs.pb.gz", "float32")
    assert main(["import", "lc0", str(tmp_path / "theirs.pb.gz"), str(tmp_path / "net")]) == 0
    assert "theirs.pb.gz: 2 blocks of 8 channels, policy by convolution, moves left" in capsys.readouterr().out
    saved = saving.read(tmp_path / "net")
    assert (saved.game, saved.info["step"], saved.spec.heads) == ("chess", 70, ("moves_left",))
    assert main(["export", str(tmp_path / "net"), "--format", "lc0", str(tmp_path / "mine.pb.gz")]) == 0
    assert "Lc0 does not find so small a file by itself" in capsys.readouterr().out
    found = weights_file.read(tmp_path / "mine.pb.gz")
    assert found["training_params"] == {"training_steps": 70}
    assert found["min_version"] == {"major": 0, "minor": 21, "patch": 0}
    assert main(["export", str(tmp_path / "net"), "--format", "lc0-float32", str(tmp_path / "exact.pb.gz")]) == 0
    assert "the file needs Lc0 0.33 or newer" in capsys.readouterr().out
    exact = weights_file.read(tmp_path / "exact.pb.gz")
    assert exact["min_version"] == {"major": 0, "minor": 33, "patch": 0}
    game = saved.make_game()
    made = to_lc0(saving.load(tmp_path / "net", game, dtype="float32"), "net")
    np.testing.assert_array_equal(exact["weights"]["policy"]["weights"], made["weights"]["policy"]["weights"].ravel())
    assert (exact["weights"]["policy"]["weights"] != found["weights"]["policy"]["weights"]).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "{tmp}", "--format", "lc0", "{tmp}/net.bin"], "net.bin: expected a name that ends in .pb.gz"),
        (["import", "lc0", "{tmp}/nothing.pb.gz", "{tmp}/in"], "nothing.pb.gz"),
        (["import", "lc0", "{tmp}/other.pb", "{tmp}/in"], "other.pb: a network of Lc0's kind 'ONNX'"),
        (["import", "lc0", "{tmp}/other.pb", "{tmp}/in", "--size", "9"], "--size is for networks of KataGo"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    net = oracle.network(0)
    weights_file.write(net, tmp_path / "good.pb")
    net["format"]["network_format"]["network"] = 5
    weights_file.write(net, tmp_path / "other.pb")
    main(["import", "lc0", str(tmp_path / "good.pb"), str(tmp_path)]) if "export" in arguments else None
    assert main([part.format(tmp=tmp_path) for part in arguments]) == 2
    assert message in capsys.readouterr().err
