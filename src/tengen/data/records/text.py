"""Records as plain text, for every game; docs/data.md shows the format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tengen.data.records import moves
from tengen.data.records.moves import RecordMove
from tengen.data.records.records import (
    FIRST_LINE,
    Record,
    RecordError,
    header,
    one_line,
    parse_header,
    parse_value,
    shorten,
    shown_value,
    without_mark,
)


def write(records: Iterable[Record]) -> str:
    """The records as text, with an empty line between them."""
    return "\n".join(write_annotated(record, {}) for record in records)


def write_annotated(record: Record, comments: Mapping[int, Sequence[str]]) -> str:
    """One record with lines of comment below its moves, which are counted from 0."""
    lines = [*header(record), f"moves: {len(record.actions)}"]
    for number, (move, value) in enumerate(zip(moves.named(record), record.values, strict=True), 1):
        lines.append(f"{number} {move.player} {move.name} {shown_value(value)}")
        lines += [f"# {one_line(comment)}" for comment in comments.get(number - 1, ())]
    return "\n".join(lines) + "\n"


def read_each(content: bytes) -> Iterator[Record | RecordError]:
    """The records in a file; at least one. RecordError as for `read`."""
    try:
        yield from read(without_mark(content).decode())
    except UnicodeDecodeError as error:
        raise RecordError(f"expected text in UTF-8, byte {error.start} is something else") from None


def read(text: str) -> list[Record]:
    """The records in a text; at least one. RecordError says which line is wrong, and why."""
    lines = [(n, line.strip()) for n, line in enumerate(text.split("\n"), 1) if line.strip() and line[0] != "#"]
    if not lines or lines[0][1] != FIRST_LINE:
        raise RecordError(f"expected a record, which begins with the line '{FIRST_LINE}'")
    starts = [place for place, (_, line) in enumerate(lines) if line == FIRST_LINE]
    return [_read(lines[a:b]) for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)]


def _read(lines: list[tuple[int, str]]) -> Record:
    split = next((place for place, (_, line) in enumerate(lines) if line.startswith("moves:")), None)
    if split is None:
        raise RecordError(f"line {lines[0][0]}: this record has no line 'moves: ...'; the text may be cut short")
    found = parse_header(lines[1:split])
    number, line = lines[split]
    announced, listed = line.removeprefix("moves:").strip(), lines[split + 1 :]
    if announced != str(len(listed)):
        said = f"announces {shorten(announced)} moves, and {len(listed)} follow"
        raise RecordError(f"line {number}: this record {said}; the text may be cut short")
    parsed = [_move(ply, number, line) for ply, (number, line) in enumerate(listed)]
    try:
        record = Record(**found, actions=())
        actions = moves.actions_of(record, [move for move, _ in parsed])
    except RecordError as error:
        raise RecordError(f"the record from line {lines[0][0]} on: {error}") from error
    return Record(**found, actions=actions, values=tuple(value for _, value in parsed))


def _move(ply: int, number: int, line: str) -> tuple[RecordMove, float | None]:
    words = line.split()
    try:
        if len(words) < 4 or words[0] != str(ply + 1) or words[1] not in ("0", "1"):
            raise ValueError(f"expected '{ply + 1} PLAYER MOVE VALUE', got {shorten(line)}")
        return RecordMove(int(words[1]), " ".join(words[2:-1])), parse_value(words[-1])
    except ValueError as error:
        raise RecordError(f"line {number}: {error}") from None
