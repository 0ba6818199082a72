"""KataGo's names of rules."""

import json

import pytest

from tengen import games
from tengen.games import go_rules


@pytest.mark.parametrize(
    ("text", "ko", "suicide"),
    [
        ("tromp-taylor", "positional", True),
        ("Tromp_Taylor", "positional", True),
        ("chinese", "simple", False),
        ("chinese-ogs", "positional", False),
        ("aga", "situational", False),
        ("new-zealand", "situational", True),
        ('{"ko": "SIMPLE", "suicide": true}', "simple", True),
        ('{"ko":"situational","scoring":"AREA","suicide":"false"}', "situational", False),
        ("koPOSITIONALscoreAREAtaxNONEsui0", "positional", False),
    ],
)
def test_rules_that_tengen_has(text: str, ko: str, suicide: bool) -> None:
    assert go_rules.to_options(go_rules.parse(text)) == {"ko": ko, "suicide": suicide}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("japanese", "scoring TERRITORY: .*; tax SEKI: "),
        ("korean", "scoring TERRITORY"),
        ("stone-scoring", "tax ALL: "),
        ("aga-button", "hasButton true: "),
        ('{"scoring": "TERRITORY"}', "scoring TERRITORY"),
    ],
)
def test_rules_that_tengen_does_not_have(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        go_rules.to_options(go_rules.parse(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("martian", "unknown rules 'martian', expected JSON or one of tromp-taylor, "),
        ("", "unknown rules"),
        ("{", "not JSON"),
        ("{" + '"a":{' * 100_000, "not JSON"),
        ('{"ko": "TRIPLE"}', "ko: expected one of SIMPLE, POSITIONAL, SITUATIONAL, got 'TRIPLE'"),
        ('{"suicide": 1}', "suicide: expected one of false, true"),
        ('{"komi": 7}', "unknown rule 'komi'"),
    ],
)
def test_what_is_no_rule(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        go_rules.parse(text)


def test_there_and_back() -> None:
    options = games.make("go", ko="situational", suicide=True).options
    rules = go_rules.of_game(options)
    assert go_rules.to_options(rules) == {"ko": "situational", "suicide": True}
    assert go_rules.parse(go_rules.as_json(rules)) == rules
    assert go_rules.as_json(rules) == json.dumps(json.loads(go_rules.as_json(rules)), separators=(",", ":"))
    assert set(rules) == set(go_rules.KEYS)
    with pytest.raises(ValueError, match="unknown rule 'colour'"):
        go_rules.changed(rules, "colour", "blue")


def test_handicap_bonus() -> None:
    for name, points in (("tromp-taylor", 0), ("chinese", 4), ("aga", 3)):
        assert go_rules.bonus(go_rules.NAMED[name], 4) == points
        assert go_rules.bonus(go_rules.NAMED[name], 0) == 0


def test_differences_are_named() -> None:
    mine = go_rules.parse("chinese")
    assert go_rules.differences(mine, mine) == []
    assert go_rules.differences(mine, {**go_rules.parse("aga"), "moon": "full"}) == [
        "ko is SITUATIONAL, not SIMPLE",
        "whiteHandicapBonus is N-1, not N",
    ]
    assert go_rules.differences(mine, {"scoring": "AREA"}) == []
