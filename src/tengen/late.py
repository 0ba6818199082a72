"""Names of a package whose modules are imported when they are first asked for: JAX takes a second to import."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def names(package: str, late: Mapping[str, tuple[str, ...]], modules: tuple[str, ...] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a package: `late` says which module has which names, `modules` are whole modules."""

    def find(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        for module, found in late.items():
            if name in found:
                return getattr(importlib.import_module(f"{package}.{module}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
