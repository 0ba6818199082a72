"""Summaries of runs that have ended, in every mode."""

import contextlib
import shlex
from pathlib import Path
from typing import Any

from tengen import nets
from tengen.analysis import run_chart
from tengen.config.settings.engine import EngineSettings
from tengen.config.source import as_config
from tengen.errors import TengenError
from tengen.monitor import strength, totals
from tengen.monitor.summary import RunSummary
from tengen.run import changes, networks
from tengen.run.status import losses
from tengen.words import program


def of_loop(loop: Any, reason: str, commands: dict[str, str]) -> RunSummary:
    ratings, path = loop.rater.ratings, loop.network_path
    play = {} if path is None else {"play it": shlex.join([program(), "play", str(loop.base)])}
    return RunSummary(
        **_facts(loop, reason),
        table="" if ratings is None else str(ratings),
        curve=loop.rater.curve(),
        changes=changes.over_time(loop.base),
        verdict=strength_words(loop),
        network=str(path or ""),
        commands={**_chart(loop.base), **play, **commands},
    )


def of_roles(loop: Any, reason: str, commands: dict[str, str]) -> RunSummary:
    from tengen.loop.roles import results

    lines = results(loop.evaluation)
    heading = "mean result of the last evaluation (1 is the best, -1 the worst)"
    return RunSummary(
        **_facts(loop, reason),
        table="\n".join([heading, *lines]) if lines else "nothing was evaluated this time",
        network=", ".join(map(str, loop.networks)),
        commands={**_chart(loop.base), **commands},
    )


def of_parts(driver: Any, reason: str, commands: dict[str, str]) -> RunSummary:
    base, status = driver.base, driver.status
    newest, run = networks.newest(base), as_config(base)
    try:
        ratings, waiting = totals.ratings(base), networks.candidates(base)
        curve = totals.curve(base, ratings)
    except TengenError:  # `tengen status` shows it
        ratings, waiting, curve = None, [], ()
    drawn = driver.leads and not run_chart.write(base, driver.config.run.name, ratings, curve)
    found = {"the chart": str(base / run_chart.NAME)} if drawn else {}
    found["networks"] = str(status.networks or "") or "none yet"
    if waiting:
        found["judge the rest"] = shlex.join([program(), "gate", run, "--once"])
        found["play the newest"] = shlex.join([program(), "play", str(waiting[-1].path)])
    found["what there is"] = shlex.join([program(), "status", str(base)])
    if newest is not None:
        found["play it"] = shlex.join([program(), "play", str(base)])
        found["rate it"] = shlex.join([program(), "rate", str(base)])
    return RunSummary(
        name=driver.config.run.name,
        counts=status.counts,
        steps=status.steps,
        reason=reason,
        table=str(ratings) if ratings is not None else _why_no_rating(len(waiting), newest is not None),
        curve=curve,
        changes=changes.over_time(base),
        network="" if newest is None else str(newest.path),
        commands={**found, **commands},
    )


def strength_words(loop: Any) -> str:
    """How strong the network is, and what would make it stronger."""
    config, base, rated = loop.config, loop.base, loop.rater.rated()
    if loop.trainer.step == 0:
        first, rows = config.data.first_rows, loop.counts.rows
        why = f"learning begins with {first:,} rows (data.first_rows), and {rows:,} were played"
        return f"Nothing was learned yet: {why if rows < first else 'the run ended before the first step'}."
    name, larger = strength.larger_network(config.net.name), ""
    with contextlib.suppress(TengenError, ValueError):
        nets.spec(name)
        # With this run's configuration, all that was --set, and its mode.
        words = [program(), "run", as_config(base), "--base", f"{base}-{name}"]
        larger = shlex.join([*words, "--set", f"net.name={name}"])
    visits = EngineSettings().visits
    search = f"{shlex.join([program(), 'play', str(base), '--visits', str(4 * visits)])} (without --visits: {visits}"
    search += f"; in its matches: {config.rating.simulations})"
    hints = strength.hints(rated, search, larger, config.rating.references)
    text = "" if rated is None else strength.in_words(rated, loop.counts.seconds)
    return "\n".join(filter(None, (text, "To make it stronger:", *(f"  {hint}" for hint in hints))))


def _facts(loop: Any, reason: str) -> dict[str, Any]:
    return {
        "name": loop.config.run.name,
        "counts": loop.counts,
        "steps": loop.trainer.step,
        "reason": reason,
        "losses": losses(loop.figures),
    }


def _chart(base: Path) -> dict[str, str]:
    path = base / run_chart.NAME
    return {"the chart": str(path)} if path.exists() else {}


def _why_no_rating(waiting: int, accepted: bool) -> str:
    why = "the first network is accepted without a match, and no match has ended since" if accepted else ""
    left = f"{waiting} {'network waits' if waiting == 1 else 'networks wait'} for the gate" if waiting else ""
    return "; ".join(filter(None, (f"no rating: {why or 'no network was accepted yet'}", left)))
