"""A position as it lies on a board, and as SVG: stones, where the policy would play, who will own what, and lines."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tengen.analysis.drawing import Drawing
from tengen.games.core import BoardKind, Game

EMPTY = -1
_SIGNS = {"x": 0, "o": 1, ".": EMPTY}
Place = tuple[int, int]
"""Row from the top and column from the left."""
CELL = 44.0
MARGIN = 34.0
_INK = "#3b2f1e"
_STARS = {9: (2, 4, 6), 13: (3, 6, 9), 19: (3, 9, 15)}
_ROW = 1.5 / math.sqrt(3)  # rows of hexagons lie closer than columns
_LEAST = 0.005  # what is less likely than this is not shown
_CAPTION = 20.0
_LETTER = 6.4  # pixels that a letter of a caption takes, roughly
_NARROWEST = 46  # letters
_CHANCE = 12.0  # size of the letters of a percentage
_ABOVE = 0.31 * CELL  # from the centre of a place to words that leave room for a square there


@dataclass(frozen=True)
class BoardView:
    kind: BoardKind
    stones: np.ndarray  # Int8[H, W]: the player whose stone it is, or EMPTY
    columns: tuple[str, ...]  # names, from the left
    rows: tuple[str, ...]  # from the top

    @property
    def shape(self) -> tuple[int, int]:
        height, width = self.stones.shape
        return height, width


def has_board(game: Game) -> bool:
    return game.drawn_as is not None


def board_of(game: Game, state: Any) -> BoardView:
    """The board of a position. ValueError if the game has none that can be drawn."""
    if game.drawn_as is None:
        raise ValueError(f"{game.name} has no board that can be drawn")
    # What the game prints, since that needs no compiling: a line of columns, then rows that begin with their names.
    columns, *lines = (line.split() for line in game.render(state).splitlines()[: game.planes_shape[0] + 1])
    stones = np.array([[_SIGNS[cell.lower()] for cell in cells] for _, *cells in lines], np.int8)
    return BoardView(game.drawn_as, stones, tuple(columns), tuple(row for row, *_ in lines))


def place_of(board: BoardView, action: int) -> Place | None:
    """Where an action puts its stone, given the board; None if it puts none (pass, swap, a full column)."""
    height, width = board.shape
    if board.kind == "holes":
        free = np.flatnonzero(board.stones[:, action] == EMPTY)
        return (int(free[-1]), action) if len(free) else None
    row, column = divmod(action, width)
    return (row, column) if row < height else None


def player_name(game: Game, player: int) -> str:
    """What the rules call a player. Black and White are names, and begin with a capital letter."""
    name = game.players[player]
    return name.capitalize() if name in ("black", "white") else name


@dataclass(frozen=True)
class PictureStyle:
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
            if self.board.kind == "points":
                self._points(drawing)
            else:
                square = {"fill": "none", "stroke": _INK, "stroke_width": 1.2}
                for row, column in np.ndindex(self.board.shape):
                    self.cell(drawing, row, column, **{"fill": "#eef2f8"} if self.board.kind == "holes" else square)
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


@dataclass(frozen=True)
class PictureLayers:
    heat: np.ndarray | None = None  # Float[A]: how likely each action is
    ownership: np.ndarray | None = None  # Float[H, W]: 1 where player 0 will own the point, -1 where player 1
    line: Sequence[tuple[int, int]] = ()  # (player, action): how the game is expected to go on
    last: int | None = None  # the action that led here


def draw(board: BoardView, layers: PictureLayers, captions: Sequence[str] = (), title: str = "") -> str:
    """The SVG document; `captions` are lines below the board."""
    geometry = Geometry(board)
    width, height = geometry.size
    letters = max(int((width - 2 * MARGIN) / _LETTER), _NARROWEST) if captions else 0
    lines = [line for caption in captions for line in textwrap.wrap(caption, letters, break_on_hyphens=False)]
    drawing = Drawing(max(width, letters * _LETTER + 2 * MARGIN), height + _CAPTION * len(lines) + (8 if lines else 0))
    if title:
        drawing.title(title)
    geometry.draw(drawing)
    expected = _numbered(board, layers.line)
    owned = layers.ownership is not None
    if layers.heat is not None:
        _heat(drawing, geometry, layers.heat, {place for place, _, _ in expected}, _ABOVE if owned else 0.0)
    for row, column in np.argwhere(board.stones != EMPTY):
        _stone(drawing, geometry, (row, column), int(board.stones[row, column]))
    if layers.last is not None:
        _mark_last(drawing, geometry, layers.last, (0.3 if owned else 0.17) * CELL)
    for place, player, number in expected:
        x, y = geometry.centre(*place)
        _disc(drawing, geometry, place, player, f"expected p{player}", opacity=0.75, stroke_dasharray="4 3")
        y, size = (y - 0.28 * CELL, 12) if owned else (y, 17)
        drawing.text(x, y, str(number), size, font_weight="bold", fill=geometry.look.letters[player], kind="number")
    if layers.ownership is not None:
        _ownership(drawing, geometry, layers.ownership)
    for number, line in enumerate(lines):
        drawing.text(MARGIN, height + (number + 0.5) * _CAPTION, line, 13, text_anchor="start", fill="#222222")
    return drawing.to_text()


def _numbered(board: BoardView, line: Sequence[tuple[int, int]]) -> list[tuple[Place, int, int]]:
    """(place, player, number) of the stones of a line; of several on one place the first."""
    found: list[tuple[Place, int, int]] = []
    stones = board.stones.copy()
    for number, (player, action) in enumerate(line, 1):
        place = place_of(replace(board, stones=stones), action)
        if place is not None and stones[place] == EMPTY:
            stones[place] = player
            found.append((place, player, number))
    return found


def _heat(drawing: Drawing, geometry: Geometry, heat: np.ndarray, hidden: set[Place], above: float) -> None:
    """Colour every place by its probability; the square root makes small ones visible too.

    Percentages stand `above` the centres. On points they cover the lines and stars of the board.
    """
    for action in np.flatnonzero(heat >= _LEAST):
        place = place_of(geometry.board, int(action))
        if place is None or geometry.board.stones[place] != EMPTY:
            continue
        if geometry.board.kind == "holes" and place in hidden:
            continue
        chance = float(heat[action])
        opacity = 0.05 + 0.8 * chance**0.5
        geometry.cell(drawing, *place, fill=geometry.look.heat, fill_opacity=opacity, kind="heat")
        if place not in hidden:
            x, y = geometry.centre(*place)
            text = f"{chance:.0%}" if chance >= 0.0095 else f"{chance:.1%}"
            if geometry.board.kind == "points":
                width, height = 0.62 * _CHANCE * len(text) + 6, _CHANCE + 2
                colour = mixed(geometry.look.ground, geometry.look.heat, opacity)
                drawing.rectangle(x - width / 2, y - above - height / 2, width, height, fill=colour, kind="plate", rx=3)
            drawing.text(x, y - above, text, _CHANCE, fill="#1a1a1a", kind="chance")


def _stone(drawing: Drawing, geometry: Geometry, place: Place, player: int) -> None:
    """One element per stone, whatever it looks like."""
    if geometry.board.kind != "marks":
        return _disc(drawing, geometry, place, player, f"stone p{player}")
    x, y = geometry.centre(*place)
    style = {"stroke": geometry.look.players[player], "stroke_width": 5, "kind": f"stone p{player}"}
    if player == 1:
        return drawing.circle(x, y, 0.32 * CELL, fill="none", **style)
    arm = 0.3 * CELL
    ends = [(-arm, -arm), (arm, arm), (0, 0), (-arm, arm), (arm, -arm)]
    return drawing.polyline([(x + dx, y + dy) for dx, dy in ends], stroke_linecap="round", **style)


def _disc(drawing: Drawing, geometry: Geometry, place: Place, player: int, kind: str, **style: Any) -> None:
    radius = (0.36 if geometry.board.kind == "hexagons" else 0.42) * CELL
    colour = geometry.look.players[player]
    drawing.circle(*geometry.centre(*place), radius, fill=colour, stroke="#222222", stroke_width=1, kind=kind, **style)


def _mark_last(drawing: Drawing, geometry: Geometry, action: int, radius: float) -> None:
    """A ring in the stone that was played last; behind it where stones have no middle."""
    board = geometry.board
    if board.kind == "holes":
        rows = np.flatnonzero(board.stones[:, action] != EMPTY)
        place = (int(rows[0]), action) if len(rows) else None
    else:
        place = place_of(board, action)
    if place is None or board.stones[place] == EMPTY:
        return None
    if board.kind == "marks":
        return geometry.cell(drawing, *place, fill="#f5c518", fill_opacity=0.3, kind="last")
    colour = geometry.look.letters[int(board.stones[place])]
    return drawing.circle(*geometry.centre(*place), radius, fill="none", stroke=colour, stroke_width=2, kind="last")


def _ownership(drawing: Drawing, geometry: Geometry, ownership: np.ndarray) -> None:
    """A square at the centre of each place, the larger the surer."""
    for row, column in np.ndindex(geometry.board.shape):
        owner = float(ownership[row, column])
        side = 0.34 * CELL * min(abs(owner), 1.0) ** 0.5
        if side < 2:
            continue
        x, y = geometry.centre(row, column)
        player = int(owner < 0)
        style = {"fill": geometry.look.players[player], "stroke": "#777777", "stroke_width": 0.8, "opacity": 0.9}
        drawing.rectangle(x - side / 2, y - side / 2, side, side, kind=f"owner p{player}", **style)
