import functools
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from tengen import importing
from tengen.errors import Diverged, OptionError

BROKEN = """
def limit():
    return 1 / 0


LIMIT = limit()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # and taken away again afterwards
    return tmp_path


def write(here: Path, name: str, text: str) -> None:
    (here / name).parent.mkdir(exist_ok=True)
    (here / name).write_text(text)


def message(reference: str) -> str:
    with pytest.raises(OptionError) as caught:
        importing.load(reference, "a game")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_name_of_a_module_in_the_current_directory(here: Path) -> None:
    write(here, "brought_one.py", "class Chosen:\n    class Inner: ...\n")
    write(here, "brought_folder/two.py", "def chosen(): ...\n")
    assert importing.load("brought_one:Chosen", "a game").__name__ == "Chosen"
    assert importing.load("brought_one:Chosen.Inner", "a game").__name__ == "Inner"
    assert importing.load("brought_folder.two:chosen", "a network").__module__ == "brought_folder.two"


@pytest.mark.parametrize(
    "reference", ["", "module", "module:", ":Name", "a b:C", "os.path:2", "../x:Y", "a.b:C:D", "a..b:C"]
)
def test_a_malformed_reference(reference: str) -> None:
    assert not importing.is_reference(reference)
    assert "expected a game as PACKAGE.MODULE:NAME" in message(reference)


def test_a_module_that_does_not_exist(here: Path) -> None:
    found = message("brought_nowhere.game:Game")
    assert found.startswith("brought_nowhere.game:Game: a game: there is no module brought_nowhere,")
    assert str(here) in found
    assert "PYTHONPATH" in found


def test_a_module_whose_own_import_is_missing(here: Path) -> None:
    write(here, "brought_importer.py", "import os\nimport not_installed_anywhere\n")
    found = message("brought_importer:Game")
    assert "No module named 'not_installed_anywhere' (brought_importer.py, line 2)" in found


def test_a_name_that_does_not_exist_or_is_something_else(here: Path) -> None:
    write(here, "brought_names.py", "class Chosen: ...\nSIZE = 3\n")
    assert "brought_names.py: Chosn: unknown name, did you mean Chosen?" in message("brought_names:Chosn")
    assert "expected a game, a class or a function, got 3" in message("brought_names:SIZE")
    assert "unknown name" in message("brought_names:SIZE.deeper")


def test_an_exception_while_importing_is_told_with_the_users_line(here: Path) -> None:
    write(here, "brought_broken.py", BROKEN)
    write(here, "brought_syntax.py", "x = 1\ndef f(:\n")
    write(here, "brought_exit.py", "import sys\nsys.exit('usage: none')\n")
    assert message("brought_broken:Game").endswith(
        "failed: ZeroDivisionError: division by zero (brought_broken.py, line 3, in limit)"
    )
    assert "(brought_syntax.py, line 2)" in message("brought_syntax:Game")
    assert "ended the program: SystemExit: usage: none (brought_exit.py, line 2)" in message("brought_exit:Game")


def test_the_place_of_an_error_skips_libraries(here: Path) -> None:
    write(here, "brought_numpy.py", "import numpy as np\n\ndef stack():\n    return np.stack([])\n")
    stack = importing.load("brought_numpy:stack", "a function")
    with pytest.raises(ValueError, match="array") as caught:
        stack()
    assert importing.place_of(caught.value) == "brought_numpy.py, line 4, in stack"
    assert importing.place_of(ValueError("never raised")) == ""


def test_errors_are_told_with_the_place(here: Path) -> None:
    write(here, "brought_wrong.py", "def divide():\n    return 1 / 0\n\ndef call(f):\n    return f()\n")
    divide, call = (importing.load(f"brought_wrong:{name}", "a function") for name in ("divide", "call"))

    def refuse() -> None:
        raise OptionError("role: unknown")

    def exhaust() -> None:
        raise RuntimeError("RESOURCE_EXHAUSTED: no memory")

    with pytest.raises(importing.UserCodeError) as caught, importing.told("brought_wrong:divide"):
        divide()
    assert (
        str(caught.value)
        == "brought_wrong:divide: ZeroDivisionError: division by zero (brought_wrong.py, line 2, in divide)"
    )
    with pytest.raises(RuntimeError, match="^RESOURCE_EXHAUSTED"), importing.told("call"):
        call(exhaust)
    with pytest.raises(importing.UserCodeError, match="^call: role: unknown"), importing.told("call"):
        call(refuse)
    with pytest.raises(Diverged), importing.told("call"):
        raise Diverged("training diverged")
    assert importing.where(call) == "brought_wrong.py, line 4"
    assert importing.where(3) == "int"


def test_an_exception_is_blamed_on_the_module_that_a_user_brought(here: Path) -> None:
    write(here, "brought_later.py", "def divide(by):\n    return 1 / by\n\ndef shape():\n    return 3\n")
    divide = importing.load("brought_later:divide", "a function")
    with pytest.raises(ZeroDivisionError) as caught:
        divide(0)
    assert importing.blamed(caught.value) == "ZeroDivisionError: division by zero (brought_later.py, line 2, in divide)"
    with pytest.raises(TypeError) as ours:
        len(importing.load("brought_later:shape", "a function")())
    assert importing.blamed(ours.value) == ""


def test_an_exception_in_a_callback_of_compiled_code_is_blamed_too(here: Path) -> None:
    write(here, "brought_back.py", "def refuse(x):\n    raise ValueError('not this one')\n")
    refuse = importing.load("brought_back:refuse", "a function")
    with pytest.raises(Exception, match="not this one") as caught:
        jax.jit(lambda x: jax.pure_callback(refuse, x, x))(np.float32(1)).block_until_ready()
    assert importing.blamed(caught.value) == "ValueError: not this one (brought_back.py, line 2, in refuse)"


def test_folders_are_noted_and_found_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = here / "elsewhere"
    write(here, "elsewhere/brought_far.py", "def found(): ...\n")
    importing.add_folders([folder])
    importing.load("brought_far:found", "a function")
    lines = importing.noted_folders()
    assert f"modules {folder}" in lines
    text = "".join(f"# {line}\n" for line in lines) + "# modules relative\nrun:\n"
    assert str(folder) in importing.read_folders(text)
    assert "relative" not in importing.read_folders(text)


def test_what_has_no_file_is_known_by_its_name() -> None:
    assert importing.where(max) == "max"
    assert importing.where(np.add) == "add"
    assert importing.where(functools.partial(test_what_has_no_file_is_known_by_its_name)).startswith(
        importing.where(test_what_has_no_file_is_known_by_its_name)
    )
