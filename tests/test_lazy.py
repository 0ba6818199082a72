"""Package facades: every name of a stub can be imported, and nothing else is there."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import tengen
from tengen import lazy

PACKAGES = sorted(path.parent.name for path in Path(tengen.__file__).parent.glob("**/__init__.pyi"))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_stub_can_be_imported(package: str) -> None:
    if package == "gym":
        pytest.importorskip("gymnasium")
    module = importlib.import_module("tengen" if package == "tengen" else f"tengen.{package}")
    assert module.__all__
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_a_plain_import_offers_every_facade_without_importing_jax() -> None:
    facades = {package for package in PACKAGES if package != "tengen"}
    assert facades | {"games", "testing", "play"} <= set(tengen.__all__)
    program = """
import sys, tengen
assert {"games", "nets", "search", "train", "play", "match", "context", "config", "data"} <= set(dir(tengen))
assert not {"jax", "numpy", "tengen.games"} & set(sys.modules)
assert tengen.search.Settings(simulations=8) and tengen.nets.spec("b1c8") and tengen.config.load and tengen.__version__
assert "jax" not in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_parts_of_tengen_are_found_after_a_plain_import() -> None:
    program = "import tengen; print(tengen.games.make('tic_tac_toe').num_actions, tengen.search.run.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "9 run\n"


def test_a_stub_holds_imports_and_types_only(tmp_path: Path) -> None:
    (tmp_path / "__init__.pyi").write_text("from json import loads, dumps as dumps\nread = loads\nsize: int\n")
    find, _, names = lazy.attach("mine", str(tmp_path / "__init__.py"))
    assert names == ["dumps", "read"]
    with pytest.raises(AttributeError, match="'loads'"):
        find("loads")
    (tmp_path / "__init__.pyi").write_text("size = 3\n")
    with pytest.raises(ImportError, match="mine: line 1 of its stub is neither"):
        lazy.attach("mine", str(tmp_path / "__init__.py"))
