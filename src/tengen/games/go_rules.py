"""Rules of Go by KataGo's names, which other programs use too, and the options of Tengen's game for them.

https://lightvector.github.io/KataGo/rules.html explains each of them.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

Rules = dict[str, str | bool]
"""One value for each of KEYS."""

_VALUES: dict[str, tuple[str | bool, ...]] = {
    "ko": ("SIMPLE", "POSITIONAL", "SITUATIONAL"),
    "scoring": ("AREA", "TERRITORY"),
    "tax": ("NONE", "SEKI", "ALL"),
    "suicide": (False, True),
    "hasButton": (False, True),
    "whiteHandicapBonus": ("0", "N-1", "N"),
    "friendlyPassOk": (False, True),
}
KEYS = tuple(_VALUES)

_ONLY = {
    "scoring": ("AREA", "Tengen's Go counts area, not territory"),
    "tax": ("NONE", "Tengen's Go counts every point of a player's area, without a tax on eyes or seki"),
    "hasButton": (False, "Tengen's Go has no button"),
}
"""Rules that Tengen's game does not support otherwise: the value it has, and why."""


def _rules(ko: str, bonus: str, friendly: bool = True, **other: str | bool) -> Rules:
    found: Rules = {
        "ko": ko,
        "scoring": "AREA",
        "tax": "NONE",
        "suicide": False,
        "hasButton": False,
        "whiteHandicapBonus": bonus,
        "friendlyPassOk": friendly,
    }
    return found | other


_TROMP_TAYLOR = _rules("POSITIONAL", "0", friendly=False, suicide=True)
_JAPANESE = _rules("SIMPLE", "0", scoring="TERRITORY", tax="SEKI")
_AGA = _rules("SITUATIONAL", "N-1")
_STONES = _rules("SIMPLE", "0", tax="ALL")
_NEW_ZEALAND = _rules("SITUATIONAL", "0", suicide=True)
_ING = _rules("POSITIONAL", "0", suicide=True)
NAMED: dict[str, Rules] = {
    "tromp-taylor": _TROMP_TAYLOR,
    "chinese": _rules("SIMPLE", "N"),
    "chinese-ogs": _rules("POSITIONAL", "N"),
    "chinese-kgs": _rules("POSITIONAL", "N"),
    "japanese": _JAPANESE,
    "korean": _JAPANESE,
    "stone-scoring": _STONES,
    "ancient-area": _STONES,
    "ancient-territory": _JAPANESE | {"tax": "ALL"},
    "aga": _AGA,
    "bga": _AGA,
    "french": _AGA,
    "aga-button": _AGA | {"hasButton": True},
    "new-zealand": _NEW_ZEALAND,
    "nz": _NEW_ZEALAND,
    "ing": _ING,
    "goe": _ING,
}

_COMPACT = re.compile(
    r"ko(?P<ko>SIMPLE|POSITIONAL|SITUATIONAL)score(?P<scoring>AREA|TERRITORY)(?:tax(?P<tax>NONE|SEKI|ALL))?"
    r"(?:sui(?P<suicide>[01]))?(?:button(?P<hasButton>[01]))?(?:whb(?P<whiteHandicapBonus>0|N-1|N))?"
    r"(?:fpok(?P<friendlyPassOk>[01]))?"
)


def of_game(options: Any) -> Rules:
    return _rules(options.ko.upper(), "0", friendly=False, suicide=options.suicide)


def parse(text: str) -> Rules:
    """Rules from a name, from JSON, or from the short form in SGF files. Raises ValueError for anything else."""
    text = text.strip()
    if text.startswith("{"):
        return _from_json(text)
    if compact := _COMPACT.fullmatch(text):
        given = ((key, value) for key, value in compact.groupdict().items() if value is not None)
        return _filled({key: value == "1" if False in _VALUES[key] else value for key, value in given})
    for name, rules in NAMED.items():
        if _plain(name) == _plain(text):
            return dict(rules)
    raise ValueError(f"unknown rules {text[:40]!r}, expected JSON or one of {', '.join(NAMED)}")


def changed(rules: Rules, key: str, value: str) -> Rules:
    """The rules with one changed. Raises ValueError if the key or the value is unknown."""
    return rules | {key: _value(key, value)}


def as_json(rules: Rules) -> str:
    """As KataGo writes them, on one line."""
    return json.dumps(rules, sort_keys=True, separators=(",", ":"))


def to_options(rules: Rules) -> dict[str, Any]:
    """Options of Tengen's game. Raises ValueError for rules that it does not support, with the reason."""
    wrong = [f"{key} {_shown(rules[key])}: {why}" for key, (value, why) in _ONLY.items() if rules[key] != value]
    if wrong:
        raise ValueError("; ".join(wrong))
    return {"ko": str(rules["ko"]).lower(), "suicide": rules["suicide"]}


def bonus(rules: Rules, stones: int) -> int:
    """Points that White gets for Black's handicap stones."""
    if stones < 2:
        return 0
    return {"0": 0, "N-1": stones - 1, "N": stones}[str(rules["whiteHandicapBonus"])]


def differences(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Descriptions of the rules that differ; rules that either side does not know are ignored."""
    known = [key for key in KEYS if key in mine and key in theirs and mine[key] != theirs[key]]
    return [f"{key} is {_shown(theirs[key])}, not {_shown(mine[key])}" for key in known]


def _from_json(text: str) -> Rules:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("these rules are not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("these rules are not a JSON dictionary")
    return _filled({key: _value(key, value) for key, value in found.items()})


def _filled(given: Rules) -> Rules:
    tax = {"tax": "SEKI"} if given.get("scoring") == "TERRITORY" else {}
    return _TROMP_TAYLOR | tax | given


def _value(key: str, value: object) -> str | bool:
    if key not in _VALUES:
        raise ValueError(f"unknown rule {str(key)[:40]!r}, expected one of {', '.join(KEYS)}")
    for known in _VALUES[key]:
        if value is known or (isinstance(value, str) and value.upper() == _shown(known).upper()):
            return known
    raise ValueError(f"{key}: expected one of {', '.join(map(_shown, _VALUES[key]))}, got {str(value)[:40]!r}")


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())
