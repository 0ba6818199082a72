"""What is published: under which name, and with everything in it."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
NAME = "tengen-zero"


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


@pytest.mark.slow
def test_the_wheel_is_small_and_holds_the_package_alone(tmp_path: Path) -> None:
    """Needs hatchling, which pip brings for the build."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True)
    [wheel] = tmp_path.glob("*.whl")
    members = zipfile.ZipFile(wheel).infolist()
    code = [each for each in members if re.search(r"\.(py|pyi|cu|cuh|js|css|tcss)$", each.filename)]
    own = [each for each in code if not each.filename.endswith("/uPlot.js")]  # of others, in the web page
    assert sum(each.compress_size for each in own) < 2**20
    networks = sum(path.stat().st_size for path in (ROOT / "src/tengen/networks").glob("*.safetensors"))
    assert wheel.stat().st_size < 1_350_000 + networks
    names = {each.filename for each in members}
    assert {name.split("/")[0] for name in names} == {"tengen", wheel.name.rsplit("-", 3)[0] + ".dist-info"}
    assert not [name for name in names if re.search(r"(^|/)(tests?|test_\w+\.py|conftest\.py)(/|$)", name)]
    package = ROOT / "src" / "tengen"
    wanted = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {f"tengen/{path.relative_to(package).as_posix()}" for path in wanted} <= names
