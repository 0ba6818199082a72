"""A directory that Tengen and KataGo share."""

import os
from pathlib import Path

import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import TengenError
from tengen.interop.katago import base, model_file
from tests.oracles.katago_network import random_model

GAME = games.make("go", size=5, observation="katago")


def test_networks_are_written_for_katago_where_it_plays(tmp_path: Path) -> None:
    net = nets.build(nets.spec("b1c8", ("score",)), GAME, nnx.Rngs(0), dtype="float32")
    folder = tmp_path / "models" / "run-main-s1-d1"
    assert base.add_model(tmp_path, folder, net, GAME, folder.name) == ""
    assert not folder.exists(), "KataGo does not play here"
    (tmp_path / "selfplay" / "random" / "tdata").mkdir(parents=True)
    folder.mkdir(parents=True)
    assert base.add_model(tmp_path, folder, net, GAME, folder.name) == ""
    assert model_file.read(folder / "model.bin.gz").name == folder.name
    other = nets.build(nets.spec("b1c8-se", ()), GAME, nnx.Rngs(0), dtype="float32")
    assert "not written for KataGo: x: KataGo has no squeeze-and-excitation" in base.add_model(
        tmp_path, folder, other, GAME, "x"
    )


def test_the_newest_network_of_katagos_trainer(tmp_path: Path) -> None:
    models = tmp_path / "models"
    assert base.newest_model(models) is None
    names = ["t-s1-d1/model.bin.gz", "t-s2-d2/model.bin.gz", "kata1.bin.gz", "run-main-s1-d1/model.bin.gz"]
    for number, name in enumerate(names):
        path = models / name
        path.parent.mkdir(parents=True, exist_ok=True)
        model_file.write(random_model(8), path)
        os.utime(path, ns=(0, 10**9 * (5 - number if number < 2 else number)))
    (models / "run-main-s1-d1" / "model.safetensors").touch()  # a network of Tengen, written for KataGo
    found = base.newest_model(models)
    assert found is not None
    assert (found.name, found.path) == ("t-s1-d1", models / names[0])
    assert base.load_model(found.path, GAME, "float32").spec.tower is not None
    with pytest.raises(TengenError, match=r"model\.bin\.gz: .*observation: katago"):
        base.load_model(found.path, games.make("go", size=5), "float32")
    found.path.write_bytes(b"nonsense")
    with pytest.raises(TengenError, match=r"t-s1-d1/model\.bin\.gz"):
        base.load_model(found.path, GAME, "float32")
