"""An auditor of run directories: reads all that a ring has left and says what is not as the documents promise.

Written from docs/data.md, docs/shuffle.md, docs/gate.md and the run directory's plan, with NumPy, JSON and safetensors
alone, so that it cannot make the mistakes of the code that it audits.
"""

import hashlib
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

CHUNK = re.compile(r"(\d{10})-([A-Za-z0-9_]+)\.npz")
NETWORK = re.compile(r".+-[A-Za-z0-9]+-s\d+-d\d+")
SHUFFLE = re.compile(r"\d{8}-[0-9a-f]{8}")
STEP = re.compile(r"step_(\d{9})")
_BUCKET = ("batch", "samples_per_row")
FOLDERS = ("candidates", "models", "rejected", "extra")


@dataclass
class Audit:
    """What there is in a run, and what is wrong with it."""

    problems: list[str] = field(default_factory=list)
    rows: int = 0  # in chunks
    chunks: int = 0
    rows_by_worker: dict[str, int] = field(default_factory=dict)
    rows_by_number: dict[int, int] = field(default_factory=dict)  # of chunks
    shuffles: int = 0
    shuffled_rows: int = 0
    networks: dict[str, str] = field(default_factory=dict)  # name -> folder
    results: int = 0
    steps: int = 0  # of the trainer `main`, by its newest checkpoint
    samples: int = 0
    epochs: int = 0
    unfinished: int = 0  # hidden files and folders of processes that were killed

    def check(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(problem)


@dataclass(frozen=True)
class _Rows:
    """All rows of the chunks, sorted by what identifies them."""

    keys: np.ndarray  # [N] of 80 bits: game, ply
    content: np.ndarray  # UInt8[N, bytes]
    validation: np.ndarray  # Float[N]: where the chunk's name lies in [0, 1)


def audit_learner(base: Path) -> Audit:
    """The same for a run whose learner takes rows from memory: fused, or on a cluster."""
    found = Audit()
    _chunks(base, found)
    for folder in _folders(base / "models"):
        if not folder.name.startswith("."):
            found.networks[folder.name] = "models"
            _weights(folder, found)
    batch, per_row = (float(_setting((base / "config.yaml").read_text(), name) or 0) for name in _BUCKET)
    for path in sorted(_folders(base / "train" / "main")):
        if STEP.fullmatch(path.name) is None or (about := _json(path / "about" / "metadata", found)) is None:
            continue
        content = json.loads(about["content"])
        step, bucket, extras = content["step"], content["about"]["bucket"], content["about"]["extras"]
        on_disk = sum(rows for number, rows in found.rows_by_number.items() if number <= extras["chunk"])
        found.check(extras["counts"]["rows"] == on_disk, f"{path}: counts {extras['counts']['rows']} of {on_disk} rows")
        found.check(bucket["rows"] <= on_disk, f"{path}: learned from more rows than there are")
        found.check(bucket["samples"] == step * batch, f"{path}: {bucket['samples']} samples in {step} steps")
        found.check(bucket["samples"] <= bucket["rows"] * per_row, f"{path}: more samples than the rows allow")
        found.steps, found.samples = step, bucket["samples"]
    _files(base, found)
    return found


def audit(base: Path) -> Audit:
    """Look at everything."""
    found = Audit()
    rows = _chunks(base, found)
    _shuffles(base, found, rows)
    _networks(base, found)
    _results(base, found)
    for trainer in _folders(base / "train"):
        _trainer(base, trainer, found)
    _files(base, found)
    return found


def _chunks(base: Path, found: Audit) -> _Rows:
    keys, content, places = [], [], []
    numbers: Counter[tuple[str, str]] = Counter()
    for path in sorted((base / "selfplay").glob("*/*.npz")):
        match = CHUNK.fullmatch(path.name)
        if path.name.startswith("."):
            continue
        if match is None:
            found.problems.append(f"{path}: not the name of a chunk")
            continue
        numbers[match[1], match[2]] += 1
        read = _npz(path, found)
        if read is None:
            continue
        arrays, meta = read
        found.check(meta["network"] == path.parent.name, f"{path}: network {meta['network']}")
        found.chunks += 1
        found.rows += len(arrays["ply"])
        found.rows_by_number[int(match[1])] = found.rows_by_number.get(int(match[1]), 0) + len(arrays["ply"])
        found.rows_by_worker[match[2]] = found.rows_by_worker.get(match[2], 0) + len(arrays["ply"])
        keys.append(_keys(arrays))
        content.append(_content(arrays))
        place = int(hashlib.md5(path.name.encode()).hexdigest(), 16) / 16**32
        places.append(np.full(len(arrays["ply"]), place))
    found.check(all(count == 1 for count in numbers.values()), "a chunk's name is there twice")
    if not keys:
        return _Rows(np.zeros((0,), "S13"), np.zeros((0, 0), np.uint8), np.zeros((0,)))
    together = np.concatenate(keys)
    order = np.argsort(together, kind="stable")
    together = together[order]
    double = int((together[1:] == together[:-1]).sum())
    found.check(double == 0, f"{double} rows (game, ply) are in chunks twice")
    return _Rows(together, np.concatenate(content)[order], np.concatenate(places)[order])


def _shuffles(base: Path, found: Audit, rows: _Rows) -> None:
    for folder in _folders(base / "shuffled"):
        if folder.name.startswith("."):
            continue
        found.check(SHUFFLE.fullmatch(folder.name) is not None, f"{folder}: not the name of a shuffle")
        index = _json(folder / "index.json", found)
        if index is None or (folder / "removing").exists():
            continue
        found.shuffles += 1
        seen = []
        for side in ("train", "validation"):
            there = {f"{side}/{path.name}" for path in (folder / side).glob("*")}
            listed = [file["path"] for file in index[side]]
            found.check(
                there == set(listed) and len(listed) == len(there), f"{folder}: {side} is not as its index says"
            )
            keys = [_shuffled_file(folder, file, found, rows, side, index["settings"]) for file in index[side]]
            seen += keys
            found.check(sum(map(len, keys)) == index["rows"][side], f"{folder}: the index counts other rows of {side}")
        together = np.sort(np.concatenate(seen)) if seen else np.zeros((0,), "S13")
        double = int((together[1:] == together[:-1]).sum())
        found.check(double == 0, f"{folder}: {double} rows are in it twice")
        wanted = min(index["settings"]["keep_target_rows"], index["window"][1] - index["window"][0])
        whole = len(together) == wanted or bool(index["not_used"])
        found.check(whole, f"{folder}: {len(together)} rows, expected {wanted}")
        found.check(index["window"][1] == index["total_rows"] <= len(rows.keys), f"{folder}: counts rows that are not")
        found.shuffled_rows += len(together)


def _shuffled_file(
    folder: Path, about: dict[str, Any], found: Audit, rows: _Rows, side: str, settings: dict[str, Any]
) -> np.ndarray:
    """The identities of its rows, all of which must be those of a chunk, of that side, and the same to the last bit."""
    path = folder / about["path"]
    read = _npz(path, found)
    if read is None:
        return np.zeros((0,), "S13")
    arrays, _ = read
    data = path.read_bytes()
    found.check(hashlib.sha256(data).hexdigest() == about["sha256"], f"{path}: another sha256 than its index has")
    found.check(len(data) == about["bytes"], f"{path}: another size than its index has")
    found.check(len(arrays["ply"]) == about["rows"], f"{path}: another number of rows than its index has")
    keys = _keys(arrays)
    places = np.minimum(np.searchsorted(rows.keys, keys), max(len(rows.keys) - 1, 0))
    known = rows.keys[places] == keys
    found.check(bool(known.all()), f"{path}: {int((~known).sum())} rows are in no chunk")
    same = (rows.content[places[known]] == _content(arrays)[known]).all(axis=1)
    found.check(bool(same.all()), f"{path}: {int((~same).sum())} rows are not as in their chunk")
    validation = rows.validation[places[known]] >= 1 - settings["validation_share"]
    found.check(bool((validation == (side == "validation")).all()), f"{path}: rows of the wrong side")
    return keys


def _networks(base: Path, found: Audit) -> None:
    numbers = []
    for place in FOLDERS:
        for folder in _folders(base / place):
            if folder.name.startswith("."):
                continue
            found.check(NETWORK.fullmatch(folder.name) is not None, f"{folder}: not the name of a network")
            found.check(folder.name not in found.networks, f"{folder}: also in {found.networks.get(folder.name)}")
            found.networks[folder.name] = place
            _weights(folder, found)
            _json(folder / "made.json", found)
            if place in ("candidates", "extra"):
                continue
            verdict = _json(folder / "verdict.json", found)
            if verdict is not None:
                found.check(verdict["accepted"] is (place == "models"), f"{folder}: the verdict says otherwise")
                numbers += [verdict["number"]] if verdict["accepted"] else []
    found.check(sorted(numbers) == list(range(1, len(numbers) + 1)), f"accepted networks have the numbers {numbers}")


def _weights(folder: Path, found: Audit) -> None:
    try:
        tensors = load_file(folder / "model.safetensors")
        found.check(all(np.isfinite(value).all() for value in tensors.values()), f"{folder}: not finite")
    except Exception as error:
        found.problems.append(f"{folder}: {error!r}")


def _results(base: Path, found: Audit) -> None:
    path = base / "ratings" / "results.jsonl"
    results = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found.results = len(results)
    pairs = Counter((result["a"], result["b"]) for result in results)
    found.check(all(count == 1 for count in pairs.values()), f"{path}: a pair of players is there twice")
    judged = Counter(result["a"] for result in results)
    found.check(all(count == 1 for count in judged.values()), f"{path}: a candidate was judged twice")
    by_name = {result["a"]: result for result in results}
    for name, place in found.networks.items():
        if place not in ("models", "rejected"):
            continue
        verdict = _json(base / place / name / "verdict.json", found) or {}
        if verdict.get("games"):
            same = all(verdict[key] == by_name.get(name, {}).get(key) for key in ("wins", "draws", "losses"))
            found.check(same, f"{path}: not what the verdict on {name} says")
            found.check(by_name.get(name, {}).get("b") == verdict["opponent"], f"{path}: {name} has another opponent")
    known = set(found.networks)
    found.check(set(by_name) <= known, f"{path}: tells of networks that are not there: {set(by_name) - known}")


def _trainer(base: Path, folder: Path, found: Audit) -> None:
    """The counters of all its checkpoints."""
    config = (folder / "config.yaml").read_text() if (folder / "config.yaml").exists() else ""
    batch = int(_setting(config, "batch") or 0)
    per_row, largest = float(_setting(config, "samples_per_row") or 0), float(_setting(config, "largest_debt") or 0)
    per_epoch = int(_setting(config, "samples_per_epoch") or 0)
    for path in sorted(_folders(folder)):
        if STEP.fullmatch(path.name) is None:
            continue
        about = _json(path / "about" / "metadata", found)
        if about is None:
            continue
        content = json.loads(about["content"])
        bucket, ring = content["about"]["bucket"], content["about"]["extras"]["ring"]
        step = content["step"]
        found.check(int(path.name[5:]) == step, f"{path}: of step {step}")
        found.check(bucket["samples"] == step * batch, f"{path}: {bucket['samples']} samples in {step} steps")
        found.check(bucket["samples"] <= bucket["rows"] * per_row, f"{path}: more samples than the rows allow")
        left = bucket["rows"] * per_row - bucket["samples"]
        whole = abs(bucket["level"] - left) < 1e-3 or largest <= bucket["level"] < left  # what would not fit is lost
        found.check(whole, f"{path}: {bucket['level']} samples are left, expected {left}")
        found.check(bucket["rows"] <= found.rows, f"{path}: learned from more rows than there are")
        epoch_steps = max(1, per_epoch // batch)
        found.check(ring["epoch"] * epoch_steps + ring["steps"] == step, f"{path}: epochs and steps do not add up")
        found.check(len(set(ring["used"])) == len(ring["used"]), f"{path}: a file was learned from twice")
        if folder.name == "main":
            found.steps, found.samples, found.epochs = step, bucket["samples"], ring["epoch"]


def _files(base: Path, found: Audit) -> None:
    """Whatever else has its final name must be whole too."""
    for path in base.rglob("*"):
        parts = path.relative_to(base).parts
        if any(part.startswith(".") and not part.startswith(".lock") and part != ".owners" for part in parts):
            found.unfinished += path.name.endswith(".part")
            continue
        if path.suffix == ".json":
            _json(path, found)
        elif path.name == "metrics.jsonl":
            for number, line in enumerate(path.read_bytes().splitlines(), 1):
                try:
                    json.loads(line)
                except ValueError:
                    found.problems.append(f"{path}, line {number}: no JSON")
        elif parts[0] == "games" and path.is_file():
            found.check(path.stat().st_size > 0, f"{path}: is empty")


def _npz(path: Path, found: Audit) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """All arrays of a chunk, and its meta; None if it is not whole."""
    try:
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
        with np.load(path, allow_pickle=False) as opened:
            arrays = {name: opened[name] for name in opened.files}
        meta = json.loads(arrays.pop("meta").tobytes())
    except Exception as error:
        found.problems.append(f"{path}: {error!r}")
        return None
    found.check(bad is None, f"{path}: {bad} has another checksum")
    found.check(meta["schema"] == 1, f"{path}: schema {meta['schema']}")
    count = len(arrays["ply"])
    found.check(all(len(values) == count for values in arrays.values()), f"{path}: arrays of different lengths")
    found.check(meta["rows"] == count, f"{path}: {count} rows, its meta says {meta['rows']}")
    games = len(np.unique(arrays["game"], axis=0))
    found.check(meta["games"] == games, f"{path}: {games} games, its meta says {meta['games']}")
    return arrays, meta


def _keys(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Game and ply of each row, as bytes that sort; never ending in zero, which NumPy would cut off."""
    game, ply = arrays["game"].astype(">u4"), (arrays["ply"].astype(np.int32) + 1).astype(">u4")
    joined = np.concatenate([game.view(np.uint8), ply[:, None].view(np.uint8)], axis=1)
    joined = np.concatenate([joined, np.ones((len(joined), 1), np.uint8)], axis=1)
    return np.ascontiguousarray(joined).view("S13")[:, 0]


def _content(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """All bytes of each row."""
    flat = [np.ascontiguousarray(values).reshape(len(values), -1) for _, values in sorted(arrays.items())]
    return np.concatenate([part.view(np.uint8) for part in flat if part.shape[1]], axis=1)


def _json(path: Path, found: Audit) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        found.problems.append(f"{path}: {error!r}")
        return None
    found.check(isinstance(value, dict), f"{path}: no object")
    return value if isinstance(value, dict) else None


def _setting(text: str, name: str) -> str | None:
    match = re.search(rf"^\s+{name}:\s*(\S+)", text, re.MULTILINE)
    return match[1] if match else None


def _folders(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*")) if path.is_dir())
