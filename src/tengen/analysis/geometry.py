"""Where the places of a board are in a picture, and what the empty board looks like."""

import math
from dataclasses import dataclass

import numpy as np

from tengen.analysis.board import BoardView
from tengen.analysis.drawing import Drawing

CELL = 44.0
MARGIN = 34.0
_INK = "#3b2f1e"
_STARS = {9: (2, 4, 6), 13: (3, 6, 9), 19: (3, 9, 15)}
_ROW = 1.5 / math.sqrt(3)  # rows of hexagons lie closer than columns


@dataclass(frozen=True)
class PictureStyle:
    """The colours of a game."""

    ground: str
    players: tuple[str, str]
    letters: tuple[str, str]  # on a stone of each player, so that they can be read
    heat: str  # likely moves; unlike the players


LOOKS = {
    "points": PictureStyle("#dcb35c", ("#111111", "#fbfbfb"), ("#ffffff", "#000000"), "#e4002b"),
    "squares": PictureStyle("#2e7d4f", ("#111111", "#fbfbfb"), ("#ffffff", "#000000"), "#ff8c00"),
    "marks": PictureStyle("#f4f1ea", ("#1f4e8c", "#c0392b"), ("#ffffff", "#ffffff"), "#1b9e5a"),
    "holes": PictureStyle("#2456a8", ("#d43a2f", "#f5c518"), ("#ffffff", "#000000"), "#1b9e5a"),
    "hexagons": PictureStyle("#f4f1ea", ("#c0392b", "#2c6fbb"), ("#ffffff", "#ffffff"), "#1b9e5a"),
}


def mixed(below: str, above: str, opacity: float) -> str:
    """The colour `below` seen through the colour `above`, both as `#rrggbb`."""
    pairs = [(int(below[at : at + 2], 16), int(above[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(under + (over - under) * opacity):02x}" for under, over in pairs)


@dataclass(frozen=True)
class Geometry:
    """A board in a picture."""

    board: BoardView

    @property
    def look(self) -> PictureStyle:
        return LOOKS[self.board.kind]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the board with its coordinates."""
        height, width = self.board.shape
        if self.board.kind == "hexagons":
            along = (width + (height - 1) / 2) * CELL
            return along + 2 * MARGIN, ((height - 1) * _ROW + 2 / math.sqrt(3)) * CELL + 2 * MARGIN
        return width * CELL + 2 * MARGIN, height * CELL + 2 * MARGIN

    def centre(self, row: int, column: int) -> tuple[float, float]:
        if self.board.kind == "hexagons":
            return MARGIN + (column + 0.5 + row / 2) * CELL, MARGIN + (row * _ROW + 1 / math.sqrt(3)) * CELL
        return MARGIN + (column + 0.5) * CELL, MARGIN + (row + 0.5) * CELL

    def cell(self, drawing: Drawing, row: int, column: int, **style: object) -> None:
        """Fill the whole place."""
        x, y = self.centre(row, column)
        if self.board.kind == "hexagons":
            drawing.polygon(self._corners(row, column), **style)
        elif self.board.kind == "holes":
            drawing.circle(x, y, 0.42 * CELL, **style)
        else:
            drawing.rectangle(x - CELL / 2, y - CELL / 2, CELL, CELL, **style)

    def draw(self, drawing: Drawing) -> None:
        """The empty board with its coordinates."""
        height, width = self.board.shape
        if self.board.kind == "hexagons":
            self._hexagons(drawing)
        else:
            drawing.rectangle(MARGIN, MARGIN, width * CELL, height * CELL, fill=self.look.ground, kind="ground")
            {"points": self._points, "holes": self._holes}.get(self.board.kind, self._squares)(drawing)
        self._coordinates(drawing)

    def _corners(self, row: int, column: int) -> list[tuple[float, float]]:
        x, y = self.centre(row, column)
        radius = CELL / math.sqrt(3)
        angles = [math.radians(60 * k - 90) for k in range(6)]
        return [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]

    def _points(self, drawing: Drawing) -> None:
        height, width = self.board.shape
        style = {"stroke": _INK, "stroke_width": 1.2}
        for row in range(height):
            drawing.line(*self.centre(row, 0), *self.centre(row, width - 1), **style)
        for column in range(width):
            drawing.line(*self.centre(0, column), *self.centre(height - 1, column), **style)
        stars = _STARS.get(height, ())
        for row in stars:
            for column in stars:
                if height > 9 or (row == 4) == (column == 4):  # small boards have no star on the sides
                    drawing.circle(*self.centre(row, column), 3.2, fill=_INK, kind="star")

    def _squares(self, drawing: Drawing) -> None:
        for row, column in np.ndindex(self.board.shape):
            self.cell(drawing, row, column, fill="none", stroke=_INK, stroke_width=1.2)

    def _holes(self, drawing: Drawing) -> None:
        for row, column in np.ndindex(self.board.shape):
            self.cell(drawing, row, column, fill="#eef2f8")

    def _hexagons(self, drawing: Drawing) -> None:
        height, width = self.board.shape
        for row, column in np.ndindex(self.board.shape):
            self.cell(drawing, row, column, fill=self.look.ground, stroke=_INK, stroke_width=1.0, kind="ground")
        first, second = self.look.players
        # Each player connects the two edges of their colour. Corners go clockwise from the top one.
        top = [corner for column in range(width) for corner in self._part(0, column, (5, 0, 1))]
        bottom = [corner for column in range(width) for corner in self._part(height - 1, column, (4, 3, 2))]
        left = [corner for row in range(height) for corner in self._part(row, 0, (5, 4, 3))]
        right = [corner for row in range(height) for corner in self._part(row, width - 1, (0, 1, 2))]
        for points, colour in ((top, first), (bottom, first), (left, second), (right, second)):
            drawing.polyline(points, stroke=colour, stroke_width=5, stroke_linecap="round", kind="edge")

    def _part(self, row: int, column: int, which: tuple[int, ...]) -> list[tuple[float, float]]:
        corners = self._corners(row, column)
        return [corners[k] for k in which]

    def _coordinates(self, drawing: Drawing) -> None:
        height, width = self.board.shape
        style = {"fill": "#555555", "kind": "coordinate"}
        for column, name in enumerate(self.board.columns):
            x, y = self.centre(0, column)
            drawing.text(x, y - (0.9 if self.board.kind == "hexagons" else 0.78) * CELL, name, 13, **style)
            if self.board.kind != "hexagons":
                drawing.text(x, self.centre(height - 1, column)[1] + 0.78 * CELL, name, 13, **style)
        for row, name in enumerate(self.board.rows):
            x, y = self.centre(row, 0)
            drawing.text(x - 0.82 * CELL, y, name, 13, **style)
            if self.board.kind != "hexagons":
                drawing.text(self.centre(row, width - 1)[0] + 0.82 * CELL, y, name, 13, **style)
