"""Boards as text, printed and read back."""

from collections.abc import Sequence

Cells = list[list[str]]
Notes = dict[str, str]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
GO_LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"  # Go players leave out I


def render_grid(cells: Cells, columns: Sequence[str], rows: Sequence[str], notes: Notes, slant: int = 0) -> str:
    """The board with its coordinates, then one `key: value` line per note.

    Row r is indented by r * slant characters (for boards of hexagons).
    """
    width = max(len(name) for name in rows)
    lines = [" " * (width + 1) + " ".join(columns)]
    for r, (name, row) in enumerate(zip(rows, cells, strict=True)):
        lines.append(" " * (r * slant) + name.rjust(width) + " " + " ".join(row))
    return "\n".join(lines + [f"{key}: {value}" for key, value in notes.items()])


def parse_grid(text: str, shape: tuple[int, int], symbols: str, keys: Sequence[str], game: str) -> tuple[Cells, Notes]:
    """The cells and notes that `render_grid` printed. Raises ValueError if the text is not such a board."""
    rows, columns = shape
    lines = [line for line in text.splitlines() if line.strip()]
    board = lines[1 : rows + 1]
    if len(board) < rows:
        raise ValueError(f"{game}: expected a line of column names and {rows} rows, got {len(lines)} lines")
    cells = []
    for line in board:
        row = line.split()[1:]
        if len(row) != columns or any(len(cell) != 1 or cell not in symbols for cell in row):
            raise ValueError(f"{game}: expected a row name and {columns} of {' '.join(symbols)}, got {line!r}")
        cells.append(row)
    notes = {}
    for line in lines[rows + 1 :]:
        key, colon, value = line.partition(":")
        if not colon or key.strip() not in keys:
            raise ValueError(f"{game}: expected one of the notes {', '.join(keys)}, got {line!r}")
        if key.strip() in notes:
            raise ValueError(f"{game}: the note {key.strip()!r} appears twice")
        notes[key.strip()] = value.strip()
    missing = [key for key in keys if key not in notes]
    if missing:
        raise ValueError(f"{game}: the note {missing[0]!r} is missing below the board")
    return cells, notes


def check_counts(first: int, second: int, turn: int, game: str) -> None:
    """Raises ValueError unless the numbers of stones fit whose turn it is, every move having placed one stone."""
    if first - second != turn:
        raise ValueError(f"{game}: {first} and {second} stones do not fit whose turn it is")


def player_number(notes: dict[str, str], names: Sequence[str], game: str) -> int:
    """The player that the note `to play` names."""
    if notes["to play"] not in names:
        raise ValueError(f"{game}: to play: expected {' or '.join(names)}, got {notes['to play']!r}")
    return list(names).index(notes["to play"])


def point_name(point: int, columns: int) -> str:
    """A letter for the column and the number of the row, counted from the top: `a1` is the top left."""
    return f"{LETTERS[point % columns]}{point // columns + 1}"
