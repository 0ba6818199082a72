"""The benchmark's synthetic actors answer the same calls as real ones, and its curve can be drawn."""

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tengen.cluster.actor import SelfplayActor, pack
from tests.helpers.fake_ray import finished
from tests.helpers.paths import BENCHMARKS


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("cluster_benchmark", BENCHMARKS / "cluster.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "cluster_benchmark", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("method", ["look", "play", "stop", "take"])
def test_a_synthetic_actor_takes_what_a_real_one_takes(method: str, benchmark: ModuleType) -> None:
    real, synthetic = getattr(SelfplayActor, method), getattr(benchmark.ManyActors, method)
    _, number, *others = inspect.signature(synthetic).parameters
    assert number == "actor"
    assert others == list(inspect.signature(real).parameters)[1:]


def test_games_are_read_from_a_file(benchmark: ModuleType, tmp_path: Path) -> None:
    chunk = pack(0, [finished(1, games=2, rows=5)])
    (tmp_path / "chunk").write_bytes(chunk.data)
    found = benchmark.played(tmp_path / "chunk")
    assert (found.rows, found.others, found.games) == (5, 0, 2)


def test_the_curve_is_a_picture(benchmark: ModuleType) -> None:
    points = [(1, 180_000.0), (10, 210_000.0), (1000, 190_000.0)]
    picture = ElementTree.fromstring(benchmark.drawn(points, 15_000.0))
    texts = [text for element in picture.iter() if (text := element.text)]
    assert {"actors", "rows per second", "1", "10", "1,000", "processor time allows"} <= set(texts)
