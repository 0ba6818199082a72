"""Lazy imports for packages: a package's stub (`__init__.pyi`) lists its public names, each once.

    __getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)

A module is imported when one of its names is first used, because importing JAX takes a second. Type checkers read the
same stub. The `lazy_loader` package does this only for names from inside the package itself.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Returns the `__getattr__`, `__dir__` and `__all__` of the package whose `__init__.py` is `file`."""
    origins: dict[str, tuple[str, str]] = {}  # public name -> module, name in it
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom):
            raise ImportError(f"{package}: its stub may hold only `from MODULE import NAME as NAME`")
        module = ".".join(filter(None, (package if node.level else "", node.module)))
        origins |= {alias.asname or alias.name: (module, alias.name) for alias in node.names}

    def find(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = origins[name]
        known = vars(importlib.import_module(module))
        found = known[attribute] if attribute in known else importlib.import_module(f"{module}.{attribute}")
        setattr(sys.modules[package], name, found)
        return found

    return find, lambda: sorted(origins), sorted(origins)
