import sys
from pathlib import Path

import numpy as np
import pytest

from tengen.analysis import saving
from tengen.analysis.board_picture import LOOKS, BoardView, Geometry, PictureLayers, draw
from tengen.analysis.drawing import Drawing
from tengen.errors import TengenError
from tests.helpers.analyses import pixels


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def test_a_png_is_twice_as_large_and_has_the_stones_where_they_lie(tmp_path: Path) -> None:
    board = BoardView("points", np.array([[0, -1, -1], [-1, -1, -1], [-1, -1, 1]]), ("A", "B", "C"), ("3", "2", "1"))
    saving.save_picture(tmp_path / "board.PNG", draw(board, PictureLayers()))
    image = pixels((tmp_path / "board.PNG").read_bytes())
    width, height = Geometry(board).size
    assert image.shape == (2 * height, 2 * width, 4)
    for player, place in enumerate([(0, 0), (2, 2)]):
        x, y = (round(2 * c) for c in Geometry(board).centre(*place))
        assert tuple(image[y, x, :3]) == _rgb(LOOKS["points"].players[player])
    assert tuple(image[2, 2]) == (255, 255, 255, 255)


def test_letters_are_drawn_even_where_the_system_has_no_fonts() -> None:
    drawing = Drawing(40, 20)
    drawing.text(20, 10, "W", 16, fill="#000000")
    assert (pixels(saving.to_png(drawing.to_text()))[..., 0] < 128).sum() > 50


def test_an_svg_is_written_as_it_is(tmp_path: Path) -> None:
    drawing = Drawing(40, 20)
    drawing.text(20, 10, "± é 本", 16)
    svg = drawing.to_text()
    saving.save_picture(tmp_path / "a.svg", svg)
    assert (tmp_path / "a.svg").read_text("utf-8") == svg
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_what_is_missing_for_png_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(TengenError, match=r"pip install 'tengen-zero\[pictures\]'"):
        saving.check_picture(Path("a.png"))
    saving.check_picture(Path("a.svg"))


@pytest.mark.parametrize("name", ["a.jpg", "a", "svg"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(TengenError, match=r"ends in \.svg or \.png"):
        saving.check_picture(Path(name))


def test_folders_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="there is no folder .*nowhere"):
        saving.check_folder(tmp_path / "nowhere" / "a.svg")
    with pytest.raises(TengenError, match="cannot be written"):
        saving.save_json(tmp_path / "nowhere" / "a", {})
    saving.check_folder("-")
    saving.check_folder(None)
    saving.check_folder(Path("a.svg"))
