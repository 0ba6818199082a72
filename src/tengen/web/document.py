"""A run as one JSON document: what the report contains, and what the live page asks for."""

import contextlib
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tengen import schema
from tengen.config import reader, source
from tengen.errors import ConfigError, TengenError
from tengen.games import Game, game_class, ships
from tengen.match import results
from tengen.monitor import overview, totals
from tengen.monitor.totals import PlayedTotals, TotalsCounter
from tengen.redact import hide
from tengen.run import changes, metrics, networks, part_status
from tengen.run.status import RatedNetwork
from tengen.web import curves, games, ladder
from tengen.web.curves import MetricsHistory
from tengen.web.folders import inside

SCHEMA = 1
_NETWORKS = 300  # that the page lists
_MARKS = 300
_DISK = 60.0  # seconds after which the disk space is counted again
_STATES = {"accepted": networks.ACCEPTED, "waiting": networks.CANDIDATES, "rejected": networks.REJECTED}


class RunReader:
    """One run, read again and again: what has not changed since the last time is not read again."""

    def __init__(self, base: Path, id: str = "") -> None:
        """TengenError if there is no run in `base`. `id` is what the page calls the run."""
        overview.check(base)
        self.base, self.id = base, id or base.resolve().name
        self._history = MetricsHistory(base / metrics.NAME)
        self._trainers: dict[Path, MetricsHistory] = {}
        self._totals = TotalsCounter(base, totals.memory_of(base))
        self._cached: dict[str, tuple[Any, Any]] = {}
        self._disk: tuple[float, overview.DiskUse] | None = None

    def stamp(self) -> str:
        """Changes when the run does. Costs a few calls of `stat`."""
        watched = [self.base / name for name in (metrics.NAME, source.RUN_FILE, changes.NAME, *_STATES.values())]
        watched += [self.base / part_status.FOLDER, self.base / results.OF_RUN, *_trainer_files(self.base)]
        watched += list(inside(self.base / part_status.FOLDER))
        watched += [folder / ladder.SUMMARY for folder in inside(self.base / "matches")]
        found = 0
        for path in watched:
            with contextlib.suppress(OSError):
                status = path.stat()
                found = hash((found, status.st_mtime_ns, status.st_size))
        return f"{found & (2**64 - 1):016x}"

    def summary(self) -> dict[str, Any]:
        """A few figures for a list of runs. Reads only the ends of files."""
        return self._summary(self._overview(PlayedTotals(), None))

    def _summary(self, found: overview.RunOverview) -> dict[str, Any]:
        settings = self._settings()
        line = metrics.last(self.base / metrics.NAME, "progress") or {}
        outlook, goal = found.status.outlook(), None
        is_daemon = found.driver is not None and found.driver.kind == "daemon"
        if found.driver is None:  # a daemon writes no metrics but those of its trainer
            is_daemon = not (self.base / metrics.NAME).exists() and bool(_trainer_files(self.base))
        if outlook is not None and not is_daemon:  # which has no goal
            goal = {"words": outlook.goal, "share": outlook.share, "left": outlook.left}
        return {
            "id": self.id,
            "name": str(settings.get("run.name", self.id)),
            "about": str(settings.get("run.about") or ""),
            "game": str(settings.get("game.name", "")),
            "state": found.state,
            "elapsed": found.status.counts.seconds,
            "games": found.status.counts.games,
            "rows": found.status.counts.rows,
            "steps": found.status.steps,
            "loss": curves.brief(self._loss(line)),
            "rating": self._rating(),
            "network": str(line.get("network") or ""),
            "goal": goal,
            "since": None if found.since is None else found.since.astimezone(UTC).isoformat(timespec="seconds"),
            "stage": found.driver.doing if found.driver else "",
        }

    def _loss(self, line: Mapping[str, Any]) -> float | None:
        """The newest loss: of the run's last line, or else of its trainers, whose parts may have ended before."""
        found = curves.figures_of(line)["loss"]
        lines = [] if found is not None else [metrics.last(path) for path in _trainer_files(self.base)]
        return next((loss for one in lines if one and (loss := curves.figures_of(one)["loss"]) is not None), found)

    def _rating(self) -> dict[str, Any] | None:
        """The rating of the newest rated network: as the run measured it, or else by the results of its gate."""
        line = metrics.last(self.base / metrics.NAME, "rating")
        if line is not None:
            return {name: curves.brief(line.get(name)) for name in ("elo", "error")}
        rated = [one for one in (self._own_ladder() or {}).get("players", ()) if one["elo"] is not None]
        newest = max(rated, key=lambda one: networks.parse_counts(one["name"]) or (-1, -1), default=None)
        if newest is None or networks.parse_counts(newest["name"]) is None:
            return None
        return {name: newest[name] for name in ("elo", "error")}

    def _own_ladder(self) -> dict[str, Any] | None:
        return next((one for one in self._ladders()[0] if one["own"]), None)

    def _ladders(self) -> tuple[list[dict[str, Any]], list[str]]:
        """The ladders of the run, and messages about what cannot be read."""
        return self._once(
            f"ladders {bool(self._history.others)}",  # without the metrics, some ratings may be missing
            self.base / results.OF_RUN,
            lambda: ladder.ladders(self.base, self._history.others),
        )

    def disk(self) -> dict[str, Any] | None:
        """The disk space of the run; None if its folder cannot be read. Takes long for thousands of networks."""
        with contextlib.suppress(TengenError, OSError):
            if self._disk is None or time.monotonic() - self._disk[0] > _DISK:
                self._disk = (time.monotonic(), overview.disk_use(self.base))
            disk = self._disk[1]
            return {"folders": disk.folders, "free": disk.free, "used": disk.used}
        return None

    def document(self) -> dict[str, Any]:
        """Everything but the games and the disk space."""
        self._history.look()
        progress, others = self._history.progress, self._history.others
        problems: list[str] = []
        epochs = [line for history in self._trainer_histories() for line in history.others]
        if not progress:  # a daemon writes a line for each network, and no others
            progress = [line for line in epochs if line.get("kind") == "network"]
        played_since = curves.differences(progress)
        tables: dict[str, Any] = {
            "progress": curves.progress_columns(progress, played_since),
            "epochs": curves.epoch_columns(epochs),
            "evaluations": curves.evaluation_columns(others),
        }
        tables = {name: ladder.with_axes(table, tables["progress"]) for name, table in tables.items() if table}
        ladders, complaints = self._ladders()
        problems += complaints
        own = self._own_ladder()
        if rated := ladder.rating_columns(own, others, tables.get("progress", {})):
            tables["ratings"] = rated
        there = self._networks(own)
        played = self._played(problems)
        found = self._overview(played, _newest_rated(own, there))
        settings = self._settings()
        game = str(settings.get("game.name", ""))
        # Looking at a run imports no code of users, so the players of their games have the usual names.
        players = (game_class(game) if ships(game) else Game).players
        return self._summary(found) | {
            "schema": SCHEMA,
            "base": str(self.base),
            "players": list(players),
            "tables": tables,
            "charts": curves.charts(tables, players),
            "references": [
                {"name": one["name"], "elo": one["elo"]}
                for one in (own or {}).get("players", ())
                if one["kind"] != "network" and one["elo"] is not None
            ],
            "calibration": curves.calibration(played_since),
            "marks": self._marks(progress, others, tables.get("progress", {})),
            "ladders": ladders,
            "matches": ladder.match_summaries(inside(self.base / "matches")),
            "networks": there[:_NETWORKS],
            "more_networks": max(len(there) - _NETWORKS, 0),
            "games_of": games.networks_with_games(self.base),
            "data": self._data(played) | _of_others(found, progress),
            "parts": [{**part.values(), "restarts": part.restarts} for part in found.status.parts],
            "commands": dict(found.commands),
            "reached": found.reached,
            "settings": settings,
            "lines": self._history.lines,
            "problems": [hide(text) for text in dict.fromkeys(problems)],
        }

    def _overview(self, played: PlayedTotals, rated: tuple[str, RatedNetwork] | None) -> overview.RunOverview:
        parts: list[Any] = []
        with contextlib.suppress(TengenError, OSError):
            parts = part_status.look(self.base)
        playable = any(True for _ in inside(self.base / networks.ACCEPTED))
        return overview.summarise(
            self.base, parts, {"games": played.games, "rows": played.rows}, rated, playable=playable
        )

    def _settings(self) -> dict[str, Any]:
        """{"train.batch": 64, ...}; empty if the configuration cannot be read."""

        def read() -> dict[str, Any]:
            try:
                found = reader.parse(source.find(self.base).text).data
                settings = schema.leaves(found if isinstance(found, dict) else {})
                return {name: hide(value) if isinstance(value, str) else value for name, value in settings}
            except (ConfigError, TengenError):
                return {}

        return self._once("settings", self.base / source.RUN_FILE, read)

    def _networks(self, own: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        rated = {one["name"]: one for one in (own or {}).get("players", ())}
        found = []
        for state, folder in _STATES.items():
            for name in self._listed(folder):
                samples, rows = networks.parse_counts(name) or (None, None)
                one = {"name": name, "state": state, "samples": samples, "rows": rows}
                found.append(one | {key: rated[name][key] for key in ("elo", "error", "games") if name in rated})
        found.sort(key=lambda one: (one["samples"] or 0, one["name"]), reverse=True)
        for one in found[:_NETWORKS]:
            verdict = self._verdict(_STATES[one["state"]], one["name"])
            if one["state"] == "accepted" and "kind" not in verdict:  # by a run without a gate
                one["state"] = "saved"
            if verdict:
                one["verdict"] = verdict
        return found

    def _listed(self, folder: str) -> list[str]:
        return self._once(folder, self.base / folder, lambda: _listed(self.base / folder))

    def _verdict(self, folder: str, name: str) -> dict[str, Any]:
        """The verdict of the gate on a network, which never changes once it has moved."""

        def read() -> dict[str, Any]:
            found = networks.verdict(self.base / folder / name)
            return {key: curves.brief(value) for key, value in found.items() if key != "schema"}

        return self._once(f"{folder}/{name}", self.base / folder / name, read)

    def _played(self, problems: list[str]) -> PlayedTotals:
        try:
            found = self._totals.look()
        except (TengenError, OSError) as error:
            problems.append(str(error))
            return PlayedTotals()
        problems += found.unreadable
        return found

    def _marks(
        self, progress: list[dict[str, Any]], others: list[dict[str, Any]], table: Mapping[str, list[Any]]
    ) -> list[dict[str, Any]]:
        """Moments to show in the charts: starts, changed settings, verdicts of the gate."""
        found = [
            {"elapsed": line["elapsed"], "kind": "start", "text": "resumed"}
            for line in [line for line in others if line["kind"] == "session"][1:]
        ]
        times = [(moment, line["elapsed"]) for line in (*progress, *others) if (moment := metrics.time_of(line))]
        times.sort()
        for change in changes.read(self.base):
            elapsed = changes.elapsed_at(change.moment, times)
            found.append({"elapsed": elapsed, "kind": "setting", "text": str(change)})
        elapsed_at = ladder.made_at(table)
        for state, folder in (("accepted", networks.ACCEPTED), ("rejected", networks.REJECTED)):
            for name in self._listed(folder)[-_MARKS:]:
                if networks.parse_counts(name) and "kind" in self._verdict(folder, name):
                    found.append({"elapsed": elapsed_at(name), "kind": state, "text": f"{state}: {name}"})
        return sorted((mark for mark in found if mark["elapsed"] is not None), key=lambda mark: mark["elapsed"])

    def _data(self, played: PlayedTotals) -> dict[str, Any]:
        found: dict[str, Any] = {name: getattr(played, name) for name in ("rows", "games", "chunks")}
        found["corrupt"] = len(played.corrupt)
        with contextlib.suppress(TengenError, OSError, ValueError, TypeError):
            if (newest := overview.newest_shuffle(self.base)) is not None:
                found["shuffle"] = asdict(newest)
        return found

    def _trainer_histories(self) -> list[MetricsHistory]:
        for path in _trainer_files(self.base):
            self._trainers.setdefault(path, MetricsHistory(path)).look()
        return list(self._trainers.values())

    def _once(self, name: str, path: Path, read: Any) -> Any:
        """What `read` gives, again only if `path` has changed since."""
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            stamp = None
        known = self._cached.get(name)
        if known is None or known[0] != stamp or stamp is None:
            known = self._cached[name] = (stamp, read())
        return known[1]


def page(runs: list[dict[str, Any]], matches: list[dict[str, Any]], *, live: bool) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "live": live,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "runs": runs,
        "matches": matches,
    }


def _of_others(found: overview.RunOverview, progress: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows per second that the learner of a cluster could use, and chunks that a daemon has read; None: not known."""
    appetite = found.driver.figures.get("appetite_rows_per_second") if found.driver else None
    chunks = progress[-1].get("chunks") if progress else None
    return {"appetite": curves.brief(appetite), "chunks_read": chunks if isinstance(chunks, int) else None}


def _listed(folder: Path) -> list[str]:
    found = [path.name for path in inside(folder) if not path.name.endswith(".corrupt") and networks.is_there(path)]
    return sorted(
        (name for name in found if not name.startswith(".")),
        key=lambda name: (networks.parse_counts(name) or (0, 0), name),
    )


def _newest_rated(own: Mapping[str, Any] | None, there: list[dict[str, Any]]) -> tuple[str, RatedNetwork] | None:
    rated = [one for one in there if one.get("elo") is not None]
    if own is None or not rated:
        return None
    return rated[0]["name"], RatedNetwork(rated[0]["elo"], rated[0]["error"] or 0.0, own["anchor"])


def _trainer_files(base: Path) -> list[Path]:
    return sorted(path for folder in inside(base / "train") if (path := folder / metrics.NAME).is_file())
