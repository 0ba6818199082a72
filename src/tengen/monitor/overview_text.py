"""What `tengen status` prints: whether a run is alive, how far and how strong it is, its parts, networks and data."""

from datetime import datetime

from tengen.monitor.overview import NetworkInfo, RunOverview
from tengen.run.part_status import DRIVERS, PartStatus
from tengen.words import clock, counted, duration, figure, in_bytes, printable

_LISTED = 5  # files of a kind that are named
_NEWEST = 20  # networks that are listed
_LONG = 10.0  # seconds from which on the time that a driver has been doing the same is shown


def describe(found: RunOverview, every: bool = False) -> str:
    """The whole text, with every network or only the newest."""
    sections = [
        [printable(line) for line in head(found)],
        _parts(found),
        _networks(found, every),
        _data(found),
        _changes(found, every),
        _disk(found),
    ]
    if corrupt := [f"  {path}" for path in found.played.corrupt]:
        more = [f"  and {len(corrupt) - _LISTED:,} more"] if len(corrupt) > _LISTED else []
        sections.append([f"{counted(len(corrupt), 'chunk')} that cannot be used:", *corrupt[:_LISTED], *more])
    if found.problems:
        sections.append(["problems:", *(f"  {problem}" for problem in found.problems)])
    return "\n\n".join("\n".join(section) for section in sections if section)


def head(found: RunOverview) -> list[str]:
    """The first lines, the state first."""
    lines = [_state(found)]
    if found.state != "new":
        status, counts = found.status, found.status.counts
        done = f"{counts.games:,} games, {counts.rows:,} rows, {status.steps:,} steps"
        lines.append(f"how far:  {'; '.join(filter(None, (str(status.outlook() or ''), done)))}")
        rating = status.rating
        strength = f"{rating.elo:.0f} +-{rating.error:.0f} Elo above {rating.against}" if rating else ""
        lines.append(f"strength: {f'{strength} ({status.network})' if strength else 'not measured yet'}")
    return [*lines, *_next(found)]


def _state(found: RunOverview) -> str:
    driver, elapsed = found.driver, clock(found.status.counts.seconds)
    who = f" ({driver.kind}, process {driver.process} on {driver.machine})" if driver else ""
    if found.state == "new":
        return "not running, and nothing was done yet"
    if found.state == "running":
        since = found.since.astimezone() if found.since else None
        today = since is None or since.date() == datetime.now().astimezone().date()
        at = "" if since is None else f", since {since:%H:%M:%S}" if today else f", since {since:%Y-%m-%d %H:%M}"
        doing = "" if driver is None else f": {driver.words}"
        if driver is not None and driver.seconds >= _LONG and driver.kind != "async":
            doing += f" (for {clock(driver.seconds)})"
        return f"running for {clock(found.running)}{at}{who or ' (parts without a driver)'}{doing}"
    ago = "at an unknown time" if found.silent is None else f"{duration(found.silent)} ago"
    if found.state == "killed":
        return f"killed {ago} after {elapsed}{who}" + (f", while: {driver.words}" if driver else "")
    if found.state == "diverged":
        return printable(f"stopped {ago} after {elapsed}: {found.diverged.splitlines()[0]}")
    return f"stopped {ago} after {elapsed}" + (f": {found.reached}" if found.reached else "")


def _next(found: RunOverview) -> list[str]:
    words, outlook = [], found.status.outlook()
    if found.next_rating is not None:
        words.append(f"a rating in {clock(found.next_rating)}" if found.next_rating > 0 else "a rating, which is due")
    if found.state == "running" and outlook is not None and outlook.left:
        words.append(f"the end in {clock(outlook.left)}")
    advice = map(printable, found.diverged.splitlines()[1:])
    lines = ["; ".join(words), *advice, *(f"{purpose}: {command}" for purpose, command in found.commands.items())]
    return [f"{'next:' if number == 0 else '':<9} {line}" for number, line in enumerate(filter(None, lines))]


def part_words(part: PartStatus) -> str:
    if not part.alive:
        return printable(f"was killed (process {part.process} on {part.machine}), while: {part.words}")
    what = f"waiting for {clock(part.seconds)}: " if part.waiting else ""
    return printable(f"{what}{part.words}")


def _parts(found: RunOverview) -> list[str]:
    """All parts but the driver, which is in the first line."""
    parts = [part for part in found.status.parts if part.kind not in DRIVERS]
    width = max((len(part.part) for part in parts), default=0) + 1
    return [f"{part.part + ':':<{width}} {part_words(part)}" for part in parts]


def _networks(found: RunOverview, every: bool) -> list[str]:
    if not found.networks:
        return ["no networks yet"]
    shown = found.networks if every else found.networks[-_NEWEST:]
    width = max(len(network.name) for network in shown)
    lines = [f"{'network':<{width}} {'Elo':>7} {'+-':>6}  verdict"]
    for network in shown:
        elo = "" if network.elo is None else f"{network.elo:.0f}"
        error = "" if not network.error else f"{network.error:.0f}"
        lines.append(f"{network.name:<{width}} {elo:>7} {error:>6}  {_verdict(network)}".rstrip())
    states = [network.state for network in found.networks]
    if len(states) > len(shown):
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        lines.append(f"and {len(states) - len(shown)} older ones, which --all shows; together: {counts}")
    return lines


def _verdict(network: NetworkInfo) -> str:
    """`accepted: 56.0 % of 200 games against x; why`, as far as the verdict has these; it may hold anything."""
    share, games, opponent, why = (network.verdict.get(key) for key in ("share", "games", "opponent", "why"))
    result = [
        f"{100 * share:.1f} %" if isinstance(share, int | float) else "",
        f"{'of ' if share is not None else ''}{games:,} games" if isinstance(games, int) and games else "",
        f"against {opponent}" if isinstance(opponent, str) and opponent else "",
    ]
    parts = " ".join(filter(None, result)), why if isinstance(why, str) else ""
    words = printable("; ".join(filter(None, parts)))
    return f"{network.state}: {words}" if words else network.state


def _data(found: RunOverview) -> list[str]:
    played = found.played
    chunks = f", in {counted(played.chunks, 'chunk')}" if played.chunks or not played.rows else ""
    lines = [f"played:   {played.rows:,} rows, {played.games:,} games{chunks}"]
    if (made := found.shuffle) is not None:
        window = f"drawn from rows {made.window[0]:,} to {made.window[1]:,}"
        lines.append(
            f"shuffled: {made.rows:,} rows and {made.validation_rows:,} for validation, {window} ({made.name})"
        )
    if found.status.steps:
        loss = f", loss {figure(found.losses['loss'])}" if "loss" in found.losses else ""
        lines.append(f"learned:  {found.status.steps:,} steps{loss}")
    # Mean results of the roles of a training in its last evaluation.
    line = found.evaluation or {}
    results = [
        f"{printable(name)} {line[name]:.2f}" + (f" ({length:.1f} moves)" if isinstance(length, int | float) else "")
        for name in line
        if isinstance(line[name], float) and name != "elapsed" and not name.endswith(("_length", "_lost"))
        for length in [line.get(f"{name}_length")]
    ]
    if results:
        at = f"step {line['steps']:,}: " if isinstance(line.get("steps"), int) else ""
        lines.append(f"results:  {at}{', '.join(results)}")
    return lines


def _changes(found: RunOverview, every: bool) -> list[str]:
    shown = found.changes if every else found.changes[-_LISTED:]
    lines = [f"  {clock(elapsed)}  {printable(str(change))}" for elapsed, change in shown]
    older = len(found.changes) - len(shown)
    more = [f"  and {older:,} earlier ones, which --all shows"] if older else []
    return ["changed settings:", *lines, *more] if lines else []


def _disk(found: RunOverview) -> list[str]:
    disk = found.disk
    largest = sorted(((size, name or "other files") for name, size in disk.folders.items() if size), reverse=True)
    free = "" if disk.free is None else f", {in_bytes(disk.free)} free"
    folders = ", ".join(f"{name} {in_bytes(size)}" for size, name in largest)
    return [f"disk:     {in_bytes(disk.used)}{free}" + (f" ({folders})" if folders else "")]
