"""A tree that lies beside its network. In a process of its own, two halves of the CPU play the parts of GPU and CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.config.settings.match import EngineSettings
from tengen.engine import engine
from tengen.run.networks import FoundNetwork
from tests.helpers.patience import LONG

_BOTH = """
import sys
import jax
jax.config.update("jax_compilation_cache_dir", sys.argv[2])
from tengen import search
from tengen.engine import engine
from tengen.engine.engine import Engine
from tengen.run.networks import find
from tengen.config.settings.match import EngineSettings

def play(engine):
    engine.think(visits=1)
    engine.think(visits=40)
    engine.play(engine.think(visits=60).action)
    engine.undo()
    engine.play(4)
    engine.look()
    engine.think(visits=300)
    return search.dump.as_dict(engine.tree, depth=3)

def seen(node):
    return node["move"], node["visits"], [seen(child) for child in node["children"]]

settings = EngineSettings(leaves=2, slots=64)
together = play(Engine(find(sys.argv[1]), settings=settings))
engine.beside = lambda: jax.devices()[1]
engine = Engine(find(sys.argv[1]), settings=settings)
apart = play(engine)
assert engine.tree.visits.devices() == {jax.devices()[1]}, engine.tree.visits.devices()
assert all(leaf.devices() == {jax.devices()[0]} for leaf in jax.tree.leaves(engine.params))
assert together["visits"] == 300
assert seen(apart) == seen(together), (seen(apart), seen(together))
assert abs(apart["q"] - together["q"]) < 1e-4
print("same")
"""


@pytest.mark.slow
def test_a_tree_beside_its_network_is_the_same(noughts: FoundNetwork, tmp_path: Path) -> None:
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    words = [sys.executable, "-c", _BOTH, str(noughts.path), str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.stdout.strip() == "same", done.stderr[-2000:]


def test_a_cpu_needs_nothing_beside_it() -> None:
    assert engine.beside() is None
    assert engine.precision(EngineSettings()) == "float32"
    assert engine.precision(EngineSettings(precision="bfloat16")) == "bfloat16"
