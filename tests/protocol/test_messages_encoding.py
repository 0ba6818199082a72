"""Messages as lines and back; and lines that are none."""

import contextlib
import json
import math
import re
import typing
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.protocol import messages
from tengen.protocol.messages import LONGEST, TYPES, LineSplitter, ProtocolError, decode, encode
from tests.helpers import paths

_DOCS = paths.DOCS / "protocol.md"


def _values(kind: Any) -> st.SearchStrategy[Any]:
    """Anything of a type that a message may have."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{each.name: _values(hints[each.name]) for each in fields(kind)})
    if origin is typing.Literal:
        return st.sampled_from(inner)
    if origin is tuple:
        return st.lists(_values(inner[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(st.text(max_size=5), _values(inner[1]), max_size=2)
    if inner:
        return st.none() | _values(next(one for one in inner if one is not type(None)))
    texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    return {str: texts, int: st.integers(), float: numbers, bool: st.booleans()}[kind]


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_every_message_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    message = data.draw(_values(TYPES[name]))
    line = encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line)["type"] == name
    assert decode(line) == message


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_garbage_is_a_protocol_error_and_nothing_else(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(line)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(list(TYPES)), _json)
def test_any_payload_is_a_message_or_a_protocol_error(name: str, payload: Any) -> None:
    with contextlib.suppress(ProtocolError):
        assert isinstance(decode(json.dumps({"type": name, "payload": payload})), TYPES[name])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("3", 'expected {"type": ..., "payload": {...}}'),
        ('{"type": 3}', 'expected {"type": ..., "payload": {...}}'),
        ('{"type": "stop_training", "more": 1}', 'expected {"type": ..., "payload": {...}}'),
        ('{"type": "stop_trainin"}', "stop_training"),
        ('{"type": "start_training"}', "start_training: config_filepath: missing, expected text"),
        ('{"type": "start_training", "payload": {"config_filepath": 3}}', "config_filepath: expected text, got 3"),
        ('{"type": "stop_training", "payload": {"now": true}}', "now"),
        ('{"type": "stop_training", "payload": []}', "stop_training: expected an empty section, got a list"),
    ],
)
def test_what_is_wrong_is_named(line: str, problem: str) -> None:
    with pytest.raises(ProtocolError, match=re.escape(problem)):
        decode(line)


def test_numbers_that_are_not_finite_become_null() -> None:
    figures = messages.TrainingFigures(1, 2, 3, math.inf, math.nan, math.nan, {}, None)
    status = messages.TrainingStatus("r", 1.0, _schedule(), training=figures)
    found = decode(encode(status)).training
    assert (found.steps_per_second, found.seconds_left, found.loss) == (None, None, None)


def _schedule() -> messages.ScheduleStatus:
    return messages.ScheduleStatus("IDLE", "", 0.0, 0, 0, 0, 0.0, 0.0)


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line)), st.lists(st.integers(1, 40)))
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    data, reader, found = b"".join(line + b"\n" for line in lines), LineSplitter(20), []
    for cut in [*cuts, len(data)]:
        found += list(reader.feed(data[:cut]))
        data = data[cut:]
    assert [isinstance(each, ProtocolError) for each in found] == [len(line) > 20 for line in lines]
    assert [each for each in found if isinstance(each, bytes)] == [line for line in lines if len(line) <= 20]
    assert reader.end() is None


def test_half_a_line_at_the_end_is_told() -> None:
    reader = LineSplitter()
    assert list(reader.feed(b'{"type": "stop_tr')) == []
    assert "in the middle of a line" in str(reader.end())


def test_a_long_line_is_not_held() -> None:
    reader = LineSplitter()
    found = [each for _ in range(100) for each in reader.feed(b"x" * 2**20)]
    assert len(found) == 1
    assert f"{LONGEST:,}" in str(found[0])
    assert len(reader._held) == 0
    assert list(reader.feed(b'\n{"type": "get_status"}\n')) == [b'{"type": "get_status"}']


def test_the_page_has_an_example_of_every_message() -> None:
    examples = [line for line in _DOCS.read_text("utf-8").splitlines() if line.startswith('{"type"')]
    found = [decode(line) for line in examples]
    assert {type(message) for message in found} == set(TYPES.values())
    text = _DOCS.read_text("utf-8")
    for kind in TYPES.values():
        for each in fields(kind):
            assert f"`{each.name}`" in text, f"{kind.__name__}.{each.name} is not explained"
