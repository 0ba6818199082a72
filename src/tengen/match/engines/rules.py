"""Tells Go engines the rules of the match, and says what may still differ (docs/match.md).

An engine is told the rules by its command line (GNU Go) or by GTP (KataGo's and KGS' commands); where that is not
possible, the user is warned before the first game.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from tengen.data.records.records import shorten
from tengen.games import go_rules
from tengen.match.engines.process import Refusal

Ask = Callable[[str], str]
"""Gives the answer to a GTP command; Refusal if the engine answers with an error."""

_DECIDES = "Tengen's own count decides"
_COUNTING = ("--chinese-rules", "--capture-all-dead")  # of GNU Go: area, and no stone is taken off without a fight
_KO = {"simple": "--simple-ko", "positional": "--positional-superko", "situational": "--situational-superko"}
_SUICIDE = {False: "--forbid-suicide", True: "--allow-suicide"}
_DEFAULTS = ("--simple-ko", "--forbid-suicide")
_AGAINST = ("--japanese-rules", "--no-ko", "--allow-all-suicide", *_KO.values(), *_SUICIDE.values())
_SHORTEST = len("--chin")  # GNU Go knows its options by their first letters, too
_KGS = {("positional", False): "chinese", ("situational", False): "aga", ("situational", True): "new_zealand"}


def complete(text: str, options: Mapping[str, Any]) -> str:
    """The text of an engine, with the options for the rules of the match if it starts GNU Go and they are missing."""
    protocol, _, line = text.partition(":")
    words = _words(line)
    if protocol != "gtp" or not words or PurePath(words[0]).name.lower() not in ("gnugo", "gnugo.exe"):
        return text
    missing, against = _gnugo(words, options)
    return text if against or not missing else f"{text} {' '.join(missing)}"


def settle(ask: Ask, known: set[str], name: str, line: str, options: Any) -> tuple[str, ...]:
    """Tells an engine the rules of the match; gives remarks about what may still differ.

    `known` are its GTP commands, `name` is the name it gives, and `line` the command that started it.
    """
    if "kata-set-rules" in known:
        return _by_katago(ask, known, options)
    if name.lower().startswith("gnu go"):
        return _by_gnugo(line, options)
    if name.lower().startswith("leela zero"):
        return _by_leela(options)
    if "kgs-rules" in known:
        return _by_kgs(ask, name, line, options)
    return (
        f"its own count may differ, since it cannot be told the rules by GTP: {_in_words(options)}. If it has options "
        f"for them, add these to its command; {_DECIDES}",
    )


def _by_katago(ask: Ask, known: set[str], options: Any) -> tuple[str, ...]:
    """Sets the rules by kata-set-rules, with those that this version supports."""
    wanted = go_rules.of_game(options)
    asks = "kata-get-rules" in known
    try:
        there = _dictionary(ask("kata-get-rules")) if asks else {}
        told = {key: value for key, value in wanted.items() if key in there} or wanted
        ask(f"kata-set-rules {go_rules.as_json(told)}")
        differences = go_rules.differences(wanted, _dictionary(ask("kata-get-rules"))) if asks else []
    except Refusal as refusal:
        return (f"refuses the rules of the match ({shorten(refusal.answer)}), so its count may differ; {_DECIDES}",)
    return (f"plays by other rules: {', '.join(differences)}; {_DECIDES}",) if differences else ()


def _by_gnugo(line: str, options: Any) -> tuple[str, ...]:
    """GNU Go learns the rules from its command line only, which a script may hide."""
    missing, against = _gnugo(_words(line), vars(options))
    if against:
        told, has = " ".join(against), _in_words(options)
        return (f"its count may differ, since its command says {told}, and the match has {has}; {_DECIDES}",)
    if missing:
        added = " ".join(missing)
        return (
            f"its count may differ, since GNU Go is not told the rules; start it with {added}, as in "
            f"'gtp:{line} {added}'; {_DECIDES}",
        )
    return ()


def _by_leela(options: Any) -> tuple[str, ...]:
    """Leela Zero counts area as the board stands, and its other rules cannot be changed."""
    if options.ko == "positional" and not options.suicide:
        return ()
    return (f"knows only positional superko without suicide, and the match has {_in_words(options)}",)


def _by_kgs(ask: Ask, name: str, line: str, options: Any) -> tuple[str, ...]:
    """Sets the rules by the names of the server KGS, which say nothing about dead stones."""
    rules = _KGS.get((options.ko, options.suicide))
    remarks = []
    try:
        if rules is None:
            raise Refusal("kgs-rules", "KGS has no name for them")
        ask(f"kgs-rules {rules}")
    except Refusal as refusal:
        remarks.append(f"could not be told the rules, {_in_words(options)} ({shorten(refusal.answer)})")
    if not (name.lower().startswith("pachi") and "pass_all_alive" in line):
        advice = ", unless pass_all_alive is added to its command" if name.lower().startswith("pachi") else ""
        remarks.append(f"may count without stones that it takes for dead{advice}")
    return (f"{'; '.join(remarks)}; {_DECIDES}",) if remarks else ()


def _gnugo(words: list[str], options: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Options that a command line of GNU Go lacks, and those in it that contradict the rules of the match."""
    wanted = (*_COUNTING, _KO[options["ko"]], _SUICIDE[options["suicide"]])

    def is_one(word: str, of: tuple[str, ...]) -> bool:
        return len(word) >= _SHORTEST and any(option.startswith(word) for option in of)

    there = [word for word in words if word.startswith("--")]
    missing = [one for one in wanted if one not in _DEFAULTS and not any(is_one(word, (one,)) for word in there)]
    return missing, [word for word in there if is_one(word, _AGAINST) and not is_one(word, wanted)]


def _in_words(options: Any) -> str:
    suicide = "suicide" if options.suicide else "no suicide"
    return f"area scoring with all stones on the board alive, {options.ko} ko, {suicide}"


def _dictionary(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []
