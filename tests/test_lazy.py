"""Package facades: every name of a stub can be imported, and nothing else is there."""

import importlib
from pathlib import Path

import pytest

import tengen

PACKAGES = sorted(path.parent.name for path in Path(tengen.__file__).parent.glob("*/__init__.pyi"))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_stub_can_be_imported(package: str) -> None:
    if package == "gym":
        pytest.importorskip("gymnasium")
    module = importlib.import_module(f"tengen.{package}")
    assert module.__all__
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018
