"""How engines are told the rules of a match, and what the user is told where they cannot be."""

import json
import shlex

import pytest

from tengen import games
from tengen.match.engines import engine, rules
from tengen.match.engines.process import Refusal
from tests.helpers.foreign_engines import GNUGO, PATIENT, fake

GAME = games.make("go", size=5, komi=6.5)
SITUATIONAL = games.make("go", size=5, ko="situational", suicide=True).options
ALL = "--chinese-rules --capture-all-dead --positional-superko"


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("gtp:gnugo --mode gtp", ALL),
        ("gtp:/usr/games/gnugo --mode gtp --level 3", ALL),
        ("gtp:gnugo --mode gtp --chinese-rules", "--capture-all-dead --positional-superko"),
        ("gtp:gnugo --mode gtp --chinese --capture-all-dead", "--positional-superko"),
        (f"gtp:gnugo --mode gtp {ALL}", ""),
        ("gtp:gnugo --mode gtp --japanese-rules", ""),  # the user knows what he wants, and is warned
        ("gtp:gnugo --mode gtp --situational-superko", ""),
        ("gtp:katago gtp", ""),
        ("gtp:./wrapped.sh", ""),
        ("uci:gnugo", ""),
        ("gtp:gnugo 'half a quote", ""),
        ("gtp:", ""),
    ],
)
def test_the_command_of_gnu_go(text: str, added: str) -> None:
    assert rules.complete(text, vars(GAME.options)) == f"{text} {added}".strip()


def test_the_command_of_gnu_go_under_other_rules() -> None:
    text = rules.complete("gtp:gnugo --mode gtp", vars(SITUATIONAL))
    assert text.endswith("--chinese-rules --capture-all-dead --situational-superko --allow-suicide")
    simple = games.make("go", ko="simple").options
    assert rules.complete("gtp:gnugo", vars(simple)) == "gtp:gnugo --chinese-rules --capture-all-dead"


class Kata:
    """What an engine with KataGo's commands says; it does not know some of them, or keeps some rules."""

    def __init__(self, unknown: tuple[str, ...] = (), stubborn: dict[str, str] | None = None) -> None:
        self.asked: list[str] = []
        self.rules = {
            "ko": "SIMPLE", "scoring": "TERRITORY", "tax": "SEKI", "suicide": True, "hasButton": False,
            "whiteHandicapBonus": "N", "friendlyPassOk": True,
        }  # fmt: skip
        for key in unknown:
            del self.rules[key]
        self.stubborn = stubborn or {}

    def __call__(self, command: str) -> str:
        self.asked.append(command)
        if command == "kata-get-rules":
            return json.dumps(self.rules)
        word, _, text = command.partition(" ")
        assert word == "kata-set-rules"
        told = json.loads(text)
        if set(told) - set(self.rules):
            raise Refusal(command, "Unknown rule")
        self.rules |= told | self.stubborn
        return ""


def test_katago_is_told() -> None:
    kata = Kata()
    assert rules.settle(kata, {"kata-get-rules", "kata-set-rules"}, "KataGo", "katago gtp", GAME.options) == ()
    assert kata.rules == {
        "ko": "POSITIONAL", "scoring": "AREA", "tax": "NONE", "suicide": False, "hasButton": False,
        "whiteHandicapBonus": "0", "friendlyPassOk": False,
    }  # fmt: skip


def test_an_old_katago_is_told_what_it_knows() -> None:
    kata = Kata(unknown=("friendlyPassOk", "whiteHandicapBonus"))
    assert rules.settle(kata, {"kata-get-rules", "kata-set-rules"}, "KataGo", "katago gtp", SITUATIONAL) == ()
    assert (kata.rules["ko"], kata.rules["scoring"], kata.rules["suicide"]) == ("SITUATIONAL", "AREA", True)


def test_what_katago_does_not_take_is_named() -> None:
    known = {"kata-get-rules", "kata-set-rules"}
    (remark,) = rules.settle(Kata(stubborn={"ko": "SIMPLE"}), known, "KataGo", "katago gtp", GAME.options)
    assert remark == "plays by other rules: ko is SIMPLE, not POSITIONAL; Tengen's own count decides"
    (remark,) = rules.settle(Kata(unknown=("tax",)), {"kata-set-rules"}, "KataGo", "katago gtp", GAME.options)
    assert "refuses the rules of the match ('Unknown rule')" in remark


def test_gnu_go_in_a_script() -> None:
    (remark,) = rules.settle(_silent, set(), "GNU Go", "./go.sh", GAME.options)
    assert f"start it with {ALL}, as in 'gtp:./go.sh {ALL}'" in remark
    assert "Tengen's own count decides" in remark
    assert rules.settle(_silent, set(), "GNU Go", f"ssh host gnugo --mode gtp {ALL}", GAME.options) == ()
    (remark,) = rules.settle(_silent, set(), "GNU Go", "gnugo --japanese-rules", GAME.options)
    assert remark.startswith("its count may differ, since its command says --japanese-rules, and the match has area")


def test_pachi_and_leela_zero() -> None:
    asked: list[str] = []

    def ask(command: str) -> str:
        asked.append(command)
        return ""

    assert rules.settle(ask, {"kgs-rules"}, "Pachi UCT", "pachi -t 1 pass_all_alive", GAME.options) == ()
    assert asked == ["kgs-rules chinese"]
    (remark,) = rules.settle(ask, {"kgs-rules"}, "Pachi UCT", "pachi -t 1", SITUATIONAL)
    assert asked[-1] == "kgs-rules new_zealand"
    assert "unless pass_all_alive is added to its command" in remark
    (remark,) = rules.settle(ask, {"kgs-rules"}, "Other", "other", games.make("go", ko="simple").options)
    assert remark.startswith("could not be told the rules, area scoring")
    assert rules.settle(_silent, set(), "Leela Zero", "leelaz -g", GAME.options) == ()
    assert "only positional superko" in rules.settle(_silent, set(), "Leela Zero", "leelaz -g", SITUATIONAL)[0]


def test_an_engine_that_nobody_knows() -> None:
    player = engine.start(fake("gtp", "fine"), GAME, PATIENT)
    player.close()
    (remark,) = player.remarks
    assert remark.startswith("its own count may differ, since it cannot be told the rules by GTP: area scoring")
    assert "positional ko, no suicide" in remark


@pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
def test_gnu_go_itself_counts_as_tengen_does() -> None:
    """Black has played in his own area: by area that costs nothing, by territory a point."""
    assert GNUGO is not None
    game = games.make("go", size=5, komi=0.0)
    short = f"gtp:{shlex.quote(GNUGO)} --mode gtp"
    counts = {}
    for text in (short, rules.complete(short, vars(game.options))):
        player = engine.start(text, game, PATIENT)
        try:
            walls = [column + str(row) for row in range(1, 6) for column in "CD"]
            for number, move in enumerate([*walls, "B3", "pass", "pass"]):
                player.tell(number % 2, move)
            counts[player.opinion()] = player.remarks
        finally:
            player.close()
    score = float(game.score(game.from_text(_AFTER)))
    assert list(counts) == ["B+4.0", f"B+{score}"]
    assert "GNU Go is not told the rules; start it with" in counts["B+4.0"][0]
    assert counts[f"B+{score}"] == ()


_AFTER = """
  A B C D E
5 . . X O .
4 . . X O .
3 . X X O .
2 . . X O .
1 . . X O .
to play: white
komi: 0
ko: none
"""


def _silent(command: str) -> str:
    raise AssertionError(command)
