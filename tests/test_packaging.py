"""What is published: under which name, and with everything in it."""

import re
import subprocess
import sys
import tomllib
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
NAME = "tengen-zero"
PACKAGE = ROOT / "src" / "tengen"
CODE = (".py", ".pyi", ".cu", ".cuh", ".js", ".css", ".tcss")
MOST = 1 << 20  # bytes of code in the wheel, compressed as it is


def test_the_distribution_is_not_called_like_the_one_of_somebody_else() -> None:
    assert PROJECT["project"]["name"] == NAME
    assert list(PROJECT["project"]["scripts"]) == ["tengen"]
    extras = PROJECT["project"]["optional-dependencies"]
    own = [each for group in extras.values() for each in group if each.startswith("tengen")]
    assert own
    for each in own:
        name, inner = re.fullmatch(r"([\w-]+)\[([\w,]+)\]", each).groups()
        assert name == NAME
        assert set(inner.split(",")) <= set(extras)


def test_wherever_people_are_told_to_install_it_the_name_is_right() -> None:
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    told = [
        found
        for file in files
        for found in re.findall(
            r"(?:pip|uv pip) install [^\n`]*?['\" ](tengen[\w-]*)[\[ '\"`\n]", file.read_text("utf-8")
        )
    ]
    assert len(told) > 5
    assert set(told) == {NAME}


def test_links_into_the_package_do_not_take_its_files_out_of_it() -> None:
    """hatchling packs a folder once, where it comes across it first."""
    source = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert source["skip-excluded-dirs"] is True
    links = [path for path in ROOT.iterdir() if path.is_symlink() and (ROOT / "src") in path.resolve().parents]
    assert {f"/{path.name}" for path in links} <= set(source["exclude"])


def compressed(path: Path) -> int:
    """Bytes of a file in a wheel, which compresses each file by itself."""
    packer = zlib.compressobj(wbits=-15)
    return len(packer.compress(path.read_bytes()) + packer.flush())


def is_code(name: str) -> bool:
    """Not configurations, networks and licences, and not uPlot, which others wrote."""
    return name.endswith(CODE) and not name.endswith(("uPlot.js", "uPlot.css"))


def test_the_code_is_small() -> None:
    """In bytes of the wheel: Python, GPU programs, and the scripts and styles of the pages, all together."""
    found = {path: compressed(path) for path in PACKAGE.rglob("*") if path.is_file() and is_code(path.name)}
    rooms: Counter[str] = Counter()
    for path, size in found.items():
        rooms[path.relative_to(PACKAGE).parts[0]] += size
    largest = ", ".join(f"{room} {size:,}" for room, size in rooms.most_common(8))
    assert sum(found.values()) < MOST, f"the code has {sum(found.values()):,} bytes in the wheel ({largest})"


@pytest.mark.slow
def test_the_wheel_is_small_and_holds_the_package_alone(tmp_path: Path) -> None:
    """Needs hatchling, which pip brings for the build."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True)
    [wheel] = tmp_path.glob("*.whl")
    members = zipfile.ZipFile(wheel).infolist()
    code = sum(each.compress_size for each in members if is_code(each.filename))
    assert code < MOST, f"{code:,} bytes of code"
    networks = sum(path.stat().st_size for path in (ROOT / "src/tengen/networks").glob("*.safetensors"))
    assert wheel.stat().st_size < 1_350_000 + networks
    names = {each.filename for each in members}
    assert {name.split("/")[0] for name in names} == {"tengen", wheel.name.rsplit("-", 3)[0] + ".dist-info"}
    assert not [name for name in names if re.search(r"(^|/)(tests?|test_\w+\.py|conftest\.py)(/|$)", name)]
    wanted = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {f"tengen/{path.relative_to(PACKAGE).as_posix()}" for path in wanted} <= names
