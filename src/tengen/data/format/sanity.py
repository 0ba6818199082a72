"""Whether the numbers in rows are possible. Others come from broken files or programs, and must not be used."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tengen.data.format.rows import TARGET_WEIGHTS, UNKNOWN, RowFormat

# Half precision rounds each probability by up to one part in 2048, and drops what is below 6e-8.
_POLICY_SLACK = 0.01
_SLACK = 1e-3
LARGEST = 1e9
"""No number is larger: learning would overflow, and one row would end a run."""
_STEP = 4096  # rows that are looked at together
# Float32[65536]: every number of half precision. Looking them up is six times faster than NumPy's conversion.
_HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)


def problems(form: RowFormat, rows: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Problems with rows that have the shapes and types of `form`: `field: message`."""
    count = len(rows["ply"])
    wanted = {name: check for name, check in _EXPECTED.items() if name in form.fields}
    wanted |= {name: (_target(name), f"numbers up to {LARGEST:.0e}, or unknown") for name, _, _ in form.targets}
    bad = dict.fromkeys(wanted, 0)
    for begin in range(0, count, _STEP):  # what is computed on the way takes several times the memory of the rows
        part = {name: values[begin : begin + _STEP] for name, values in rows.items()}
        with np.errstate(invalid="ignore"):
            for name in bad:
                bad[name] += int((~wanted[name][0](part)).sum())
    for name, number in bad.items():
        if number:
            yield f"{name}: expected {wanted[name][1]}, which {number} of {count} rows are not"
    spare = -form.planes_shape[0] * form.planes_shape[1] * form.planes_shape[2] % 8
    if spare and (rows["planes"][:, -1] & ((1 << spare) - 1)).any():
        yield f"planes: expected the last {spare} bits to be unused"


def _policy(policy: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Bool[N]: probabilities; where the weight is 0 they need not add up to anything."""
    values = _HALVES.take(policy.view(np.uint16))
    total = values.sum(-1)
    adds_up = (abs(total - 1) <= _POLICY_SLACK) | ((weight == 0) & (total <= 1 + _POLICY_SLACK))
    return (values >= 0).all(-1) & np.isfinite(total) & adds_up


def _weight(name: str) -> "_Check":
    return lambda rows: (rows[name] >= 0) & (rows[name] <= LARGEST)


def _outcome(outcome: np.ndarray) -> np.ndarray:
    possible = ((outcome >= -_SLACK) & (outcome <= 1 + _SLACK)).all(-1)
    return possible & (abs(outcome.sum(-1) - 1) <= _SLACK)


def _target(name: str) -> "_Check":
    return lambda rows: (~(abs(rows[name]) > LARGEST)).reshape(len(rows[name]), -1).all(-1)


_WEIGHTS = ("policy_weight", "weight", "opponent_weight", *TARGET_WEIGHTS)
_Check = Callable[[Mapping[str, Any]], np.ndarray]
_EXPECTED: dict[str, tuple[_Check, str]] = {
    "scalars": (lambda r: (abs(r["scalars"]) <= LARGEST).all(-1), f"numbers up to {LARGEST:.0e}"),
    "policy": (lambda r: _policy(r["policy"], r["policy_weight"]), "probabilities that sum to 1"),
    "outcome": (lambda r: _outcome(r["outcome"]), "probabilities that sum to 1"),
    "search_value": (lambda r: abs(r["search_value"]) <= 1 + _SLACK, "numbers from -1 to 1"),
    "to_play": (lambda r: (r["to_play"] == 0) | (r["to_play"] == 1), "0 or 1"),
    "ply": (lambda r: r["ply"] >= 0, "numbers of at least 0"),
    "moves_left": (
        lambda r: (r["moves_left"] >= 0) | (r["moves_left"] == UNKNOWN),
        "numbers of at least 0, or unknown",
    ),
    "opponent_policy": (lambda r: _policy(r["opponent_policy"], r["opponent_weight"]), "probabilities that sum to 1"),
    "ownership": (
        lambda r: ((abs(r["ownership"].astype(np.int16)) <= 1) | (r["ownership"] == UNKNOWN)).all((-1, -2)),
        "-1, 0 or 1, or unknown",
    ),
    **{name: (_weight(name), f"numbers from 0 to {LARGEST:.0e}") for name in _WEIGHTS},
    "score": (_target("score"), f"numbers up to {LARGEST:.0e}, or unknown"),
}
