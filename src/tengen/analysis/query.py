"""The game, and the position in it, that the user asks about."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tengen.data.format.identity import plain_options
from tengen.data.records import moves
from tengen.data.records.records import Record, RecordError, load_comments, load_records, shorten
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.nets.saving import NetworkFile


@dataclass(frozen=True)
class Query:
    """A game under rules that the network can play, up to the position that is meant."""

    record: Record
    remarks: tuple[str, ...] = ()  # notes for the user
    comments: Mapping[int, str] = field(default_factory=dict)  # on its moves, which are counted from 0

    @property
    def game(self) -> Game:
        return moves.game_of(self.record)

    def states(self) -> list[Any]:
        """The positions from the start to the end. RecordError names a move that is not legal, and its number."""
        return list(moves.replay(self.record))

    def until(self, number: int | None) -> "Query":
        """The same after `number` moves; None means all."""
        there = len(self.record.actions)
        if number is None:
            return self
        if not 0 <= number <= there:
            raise TengenError(f"--move {number}: the game has {there} moves, expected 0 (the start) to {there}")
        return replace(self, record=replace(self.record, actions=self.record.actions[:number], values=()))

    def then(self, text: str) -> "Query":
        """The same after the moves in a text, such as "D4 E5 pass", which are separated by spaces."""
        step, state, actions = jax.jit(self.game.step), self.states()[-1], list(self.record.actions)
        for number, word in enumerate(text.split(), 1):
            try:
                actions.append(self.game.parse_action(state, word))
            except ValueError as error:
                raise TengenError(f"--position: move {number}: {error}") from None
            # Only the new move is played: a game of hundreds of moves is not gone through for each of them.
            state = step(state, np.int32(actions[-1]))
        return replace(self, record=replace(self.record, actions=tuple(actions), values=()))


def new_game(saved: NetworkFile, options: Mapping[str, Any] | None = None) -> Query:
    """The start of the game that the network plays, with these options changed."""
    return Query(Record(saved.game, _options(saved, options or {}), ()))


def read_game(
    path: Path,
    saved: NetworkFile,
    which: int | None = None,
    options: Mapping[str, Any] | None = None,
    until: int | None = None,
) -> Query:
    """The `which`-th game of a file (None: the first) until a move (None: the last), as the network can play it.

    TengenError says what is wrong; moves that come later may be.
    """
    records = load_records(path)
    number = 1 if which is None else which
    if not 1 <= number <= len(records):
        raise TengenError(f"{path}: --which {number}: the file has {len(records)} games, expected 1 to {len(records)}")
    record = records[number - 1]
    if record.game != saved.game:
        raise TengenError(f"{path}: a game of {record.game}, and the network plays {saved.game}")
    remarks = () if len(records) == 1 else (f"game {number} of {len(records)} in {path}",)
    try:
        found, more = _fitted(Query(record).until(until).record, saved, options or {})
    except (RecordError, OptionError) as error:
        raise TengenError(f"{path}: {error}") from error
    return Query(found, remarks + more, load_comments(path, number - 1))


def _fitted(record: Record, saved: NetworkFile, options: Mapping[str, Any]) -> tuple[Record, tuple[str, ...]]:
    """The record under the first rules that allow all of its moves, and a note about these rules."""
    refused: RecordError | None = None
    for rules, remark in _rules(record, saved, options):
        found = _under(record, rules)
        try:
            for _ in moves.replay(found):
                pass
        except RecordError as error:
            refused = refused or error
            continue
        return found, tuple(each for each in (_komi_remark(found, options), remark) if each)
    assert refused is not None
    raise refused


def _komi_remark(record: Record, options: Mapping[str, Any]) -> str:
    """That the komi of the file was not taken, if so: all values hang on it."""
    said = record.notes.get("komi")
    if not said or "komi" in options:
        return ""
    taken = f"with komi {record.options['komi']:g}"
    return f"{taken}: the file says {shorten(said)}, which is no number of half points; --set komi=... takes another"


def _rules(record: Record, saved: NetworkFile, options: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Options under which the game may have been played, the network's own first, each with a remark.

    Records of Tengen say all options. SGF from elsewhere says size and komi for sure, the rest is a matter of custom.
    """
    base = _options(saved, {})
    seen = {key: base[key] for key in ("observation",) if key in base}  # depends on the network, not on the players
    if record.game != "go" or set(base) <= {*record.options, *seen}:
        yield _options(saved, {**record.options, **seen, **options}), ""
        return
    known = {key: record.options[key] for key in ("size", "komi") if key in record.options}
    if known["size"] != base["size"]:
        known["max_moves"] = None
    wanted = _options(saved, known | dict(options))
    yield wanted, ""
    if wanted["ko"] != "simple":
        yield (
            wanted | {"ko": "simple"},
            f"under simple ko: the game repeats a position, which {wanted['ko']} ko forbids",
        )
    if not wanted["suicide"]:
        yield wanted | {"ko": "simple", "suicide": True}, "under simple ko with suicide, as the game was played"


def _under(record: Record, options: dict[str, Any]) -> Record:
    found = replace(record, options=options)
    if record.game == "go":
        longest = moves.game_of(found).max_moves
        if len(record.actions) >= longest:  # the players had no such limit
            found = replace(found, options=options | {"max_moves": len(record.actions) + longest})
        if record.start is not None and ("komi" not in record.options or options["komi"] != record.options["komi"]):
            lines = record.start.split("\n")
            komi = f"komi: {options['komi']:g}"
            found = replace(found, start="\n".join(komi if line.startswith("komi:") else line for line in lines))
    return found


def _options(saved: NetworkFile, changed: Mapping[str, Any]) -> dict[str, Any]:
    """All options of the network's game, some of them changed. OptionError if that is no game."""
    options = {**saved.options, **changed}
    return plain_options(moves.game_of(Record(saved.game, options, ())))


def parse_options(texts: list[str]) -> dict[str, Any]:
    """Options of a game from `--set komi=6.5`. OptionError says which is none."""
    from tengen.config.reader import read_overrides

    found, problems = read_overrides(texts)
    problems += [
        f"{shorten(each.place)}: expected --set KEY=VALUE, an option of the game"
        for each in found
        if len(each.path) != 1
    ]
    if problems:
        raise OptionError("\n".join(problems))
    return {str(each.path[0]): each.value for each in found}
