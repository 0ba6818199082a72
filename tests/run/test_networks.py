"""The networks of a run: names, order, verdicts, finding one by its path, and saving them."""

from pathlib import Path

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import TengenError
from tengen.nets import saving
from tengen.run import networks
from tengen.run.networks import RunNetworks, SavedNetwork
from tests.helpers.pipeline_data import put

GAME = games.make("tic_tac_toe")
SPEC = nets.spec("b1c8")


def net(seed: int = 0, name: str = "b1c8") -> nets.Network:
    return nets.build(nets.spec(name), GAME, nnx.Rngs(seed), dtype="float32")


def opened(base: Path) -> RunNetworks:
    return RunNetworks(base, GAME, SPEC, "float32")


def test_none_yet(tmp_path: Path) -> None:
    ours = opened(tmp_path)
    assert (ours.saved, ours.newest, ours.notes) == ([], None, ())


def test_they_are_found_again_in_the_order_of_saving(tmp_path: Path) -> None:
    ours = opened(tmp_path)
    for step in (100, 20):
        ours.save(net(step), f"s{step}", step, {"seconds": step / 10})
    ours.save(net(20), "s20", 20, {"seconds": 3.0})  # the same name again is the same network
    again = opened(tmp_path)
    assert ours.saved == again.saved == [SavedNetwork(3.0, 20, "s20"), SavedNetwork(10.0, 100, "s100")]
    assert again.newest.name == "s100"
    expected = nnx.state(nets.fold(net(100)))
    jax.tree.map(np.testing.assert_array_equal, again.parameters("s100"), expected)
    assert jax.tree.structure(again.parameters("s100")) == jax.tree.structure(expected)


def test_what_is_no_network_is_passed_over_and_named(tmp_path: Path) -> None:
    folder = tmp_path / networks.ACCEPTED
    ours = opened(tmp_path)
    ours.save(net(), "good", 1, {"seconds": 1.0})
    ours.save(net(), "timeless", 2, {"seconds": float(2**60)})
    (folder / "empty").mkdir()
    (folder / "file").write_text("mine")
    (folder / ".hidden").mkdir()
    (folder / "cut").mkdir()
    data = (folder / "good" / "model.safetensors").read_bytes()
    (folder / "cut" / "model.safetensors").write_bytes(data[:100])
    again = opened(tmp_path)
    assert [saved.name for saved in again.saved] == ["good", "timeless"]
    assert len(again.notes) == 2
    assert all(str(folder / name) in note for name, note in zip(("cut", "empty"), again.notes, strict=True))


def test_a_network_that_is_saved_after_the_gate_was_switched_off_is_the_newest(tmp_path: Path) -> None:
    ours, (judged, *later) = opened(tmp_path), (networks.name_of("r", "main", step, 9) for step in (10, 20, 30))
    ours.submit(net(), judged, 10, {"seconds": 1.0})
    (entry,) = networks.candidates(tmp_path)
    networks.write_verdict(entry, {"accepted": True, "number": 1})
    networks.move(tmp_path, entry)
    for name in later:
        ours.save(net(), name, 20, {"seconds": 2.0})
        assert networks.find(tmp_path).name == networks.newest(tmp_path).name == name
    assert [entry.name for entry in networks.accepted(tmp_path)] == [judged, *later]


def test_networks_that_cannot_play(tmp_path: Path) -> None:
    ours = opened(tmp_path)
    ours.save(net(name="b2c8"), "other", 1, {"seconds": 1.0})
    with pytest.raises(TengenError, match="another network than expected"):
        ours.parameters("other")
    with pytest.raises(TengenError, match="there is no such file"):
        ours.parameters("gone")


def test_the_newest_that_is_not_finite_is_passed_over_and_named(tmp_path: Path) -> None:
    ours = opened(tmp_path)
    for step in (1, 2):
        ours.save(net(step), f"s{step}", step, {"seconds": float(step)})
    file = tmp_path / networks.ACCEPTED / "s2" / "model.safetensors"
    data = file.read_bytes()
    file.write_bytes(data[:-4] + np.float32(np.nan).tobytes())
    again = opened(tmp_path)
    assert [saved.name for saved in again.saved] == ["s1"]
    (note,) = again.notes
    assert note.startswith(f"skipped, it cannot play: {file}: ")
    assert "holds numbers that are not finite" in note


def test_names() -> None:
    name = networks.name_of("my-run_2", "big", 64, 500)
    assert name == "my-run_2-big-s64-d500"
    assert networks.parse(name) == (64, "big")
    assert networks.parse("g170-s3-d4") == (3, "g170")
    for other in (
        "",
        "random",
        "-s1-d1",
        "a-b-s1",
        "a-b-sx-d1",
        "a-b-s1-d1.part",
        ".a-b-s1-d1.0a.part",
        "a-b-s1-d1.corrupt",
    ):
        assert networks.parse(other) is None


def test_orders(tmp_path: Path, saved: list[Path]) -> None:
    assert networks.newest(tmp_path) is None
    assert networks.next_number(tmp_path) == 1
    for number, samples in enumerate((300, 100, 200), 1):
        put(tmp_path, networks.ACCEPTED, samples, saved[0], accepted=True, number=number)
        put(tmp_path, networks.CANDIDATES, samples + 1, saved[0])
        put(tmp_path, networks.EXTRA, samples + 2, saved[0])
        put(tmp_path, networks.REJECTED, samples + 3, saved[0], accepted=False)
    assert [entry.samples for entry in networks.accepted(tmp_path)] == [300, 100, 200], "as they were accepted"
    assert networks.newest(tmp_path).samples == 200
    assert networks.next_number(tmp_path) == 4
    assert [entry.samples for entry in networks.candidates(tmp_path)] == [101, 201, 301]
    assert [entry.samples for entry in networks.extra(tmp_path)] == [102, 202, 302]
    assert [entry.samples for entry in networks.rejected(tmp_path)] == [103, 203, 303]


def test_half_a_folder_is_no_network_but_a_candidate_that_the_gate_must_see(tmp_path: Path) -> None:
    put(tmp_path, networks.ACCEPTED, 100, None, accepted=True, number=1)
    put(tmp_path, networks.CANDIDATES, 100, None)
    assert networks.accepted(tmp_path) == []
    assert len(networks.candidates(tmp_path)) == 1


def test_where_a_network_is(tmp_path: Path, saved: list[Path]) -> None:
    entry = put(tmp_path, networks.CANDIDATES, 100, saved[0])
    assert networks.known(tmp_path, entry.name) == entry.path
    assert networks.known(tmp_path, "other") is None
    assert not networks.is_judged(tmp_path, entry)
    networks.write_verdict(entry, {"accepted": True, "number": 1})
    assert networks.candidates(tmp_path)[0].accepted is True
    moved = networks.move(tmp_path, entry)
    assert networks.known(tmp_path, entry.name) == moved == tmp_path / networks.ACCEPTED / entry.name
    assert networks.verdict(moved)["number"] == 1
    copy = put(tmp_path, networks.CANDIDATES, 100, saved[1])
    assert networks.is_judged(tmp_path, copy)
    networks.drop(copy)
    assert networks.candidates(tmp_path) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2, "accepted": true}', '{"schema": 1, "accepted": "yes"}'])
def test_verdicts_that_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / networks.VERDICT).write_text(text)
    assert networks.verdict(tmp_path) == {}


def _save(path: Path, seconds: float) -> Path:
    saving.save(net(), path, GAME, {"seconds": seconds, "step": int(seconds)})
    return path


def test_a_folder_and_its_file_are_the_same_network(tmp_path: Path) -> None:
    folder = _save(tmp_path / "mine", 1)
    for path in (folder, folder / "model.safetensors"):
        found = networks.find(path)
        assert (found.name, found.saved.game) == ("mine", "tic_tac_toe")


def test_of_a_run_the_newest_is_meant(tmp_path: Path) -> None:
    for name, seconds in (("a-s9", 5.0), ("b-s10", 50.0), ("c-s11", 20.0)):
        _save(tmp_path / "models" / name, seconds)
    (tmp_path / "models" / "broken").mkdir()
    (tmp_path / "models" / "broken" / "model.safetensors").write_bytes(b"no network")
    assert networks.find(tmp_path).name == "b-s10"
    assert [found.name for found in networks.usable(tmp_path)] == ["a-s9", "c-s11", "b-s10"]


def test_of_a_ring_the_last_accepted_is_meant(tmp_path: Path) -> None:
    for number, samples in ((2, 100), (1, 900)):
        folder = _save(tmp_path / "models" / networks.name_of("r", "main", samples, 5), float(samples))
        networks.write_verdict(networks.NetworkEntry(folder, "main", samples, 5), {"accepted": True, "number": number})
    assert networks.find(tmp_path).name == "r-main-s100-d5"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "here: there is no such file or folder"),
        (lambda path: path.mkdir(), "neither a network"),
        (lambda path: (path.mkdir(), (path / "config.yaml").touch()), "without a network so far"),
        (lambda path: path.write_bytes(b"?"), "here: not a network, whose file ends in .safetensors"),
    ],
)
def test_what_is_no_network_is_named(make, words: str, tmp_path: Path) -> None:
    make(tmp_path / "here")
    with pytest.raises(TengenError, match=words) as caught:
        networks.find(tmp_path / "here")
    assert "here" in str(caught.value)
