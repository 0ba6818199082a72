"""Lazy imports for packages: a package's stub (`__init__.pyi`) lists its public names, each once.

    __getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)

Type checkers read the same stub; for them, a name is public if it is imported `as` itself or assigned, as in
`Settings = SearchSettings`. docs/architecture.md says why this is not the `lazy_loader` package.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Returns the `__getattr__`, `__dir__` and `__all__` of the package whose `__init__.py` is `file`."""
    imported: dict[str, tuple[str, str]] = {}  # name in the stub -> module, name in it
    public: list[str] = []
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        match node:
            case ast.ImportFrom(module=module, names=names, level=level):
                origin = ".".join(filter(None, (package if level else "", module)))
                imported |= {alias.asname or alias.name: (origin, alias.name) for alias in names}
                public += [alias.asname for alias in names if alias.asname]
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if other in imported:
                imported[name] = imported[other]
                public.append(name)
            case ast.AnnAssign():  # declares what `__init__.py` defines itself
                pass
            case _:
                raise ImportError(
                    f"{package}: line {node.lineno} of its stub is neither `from MODULE import NAME as NAME` nor "
                    "`NAME = IMPORTED` nor `NAME: TYPE`"
                )
    origins = {name: imported[name] for name in sorted(public)}

    def find(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = origins[name]
        known = vars(importlib.import_module(module))
        found = known[attribute] if attribute in known else importlib.import_module(f"{module}.{attribute}")
        setattr(sys.modules[package], name, found)
        return found

    return find, lambda: list(origins), list(origins)
