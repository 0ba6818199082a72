"""The panes of the dashboard, except the log."""

from itertools import zip_longest
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from tengen.monitor.dashboard.drawing import BAD, DIM, GOOD, WARM, bar, chart, figure, fit, harmless, labelled, share
from tengen.monitor.dashboard.model import Model, clean, still
from tengen.protocol.messages import LoaderStage, LoaderStatus, NetworkStatus, SelfplayStatus, TrainingFigures
from tengen.words import age, short, short_clock, short_rate

_LEAST_CHART = 2  # lines
_WIDE = 60  # columns from which there is room for more about the networks
_UPLOADS = {"done": GOOD, "failed": BAD, "uploading": WARM, "waiting": WARM}
_FIGURES = 22  # columns
_STONES = {"x": "bold cyan", "X": "bold cyan", "o": "bold yellow", "O": "bold yellow", ".": "dim"}
_NAME, _RATE, _TOTAL, _LOAD = 9, 8, 6, 4  # columns
_FIXED = _NAME + 1 + _RATE + 1 + _TOTAL + 1 + _LOAD + 1
_COUNTING = ("working", "waiting for input", "waiting for output", "idle", "ended")  # what stages of a loader do
_WORDS = 28  # columns for what a stage does, where there is room
_BAR = 24  # columns of a bar and its numbers, at most


class Pane(VerticalScroll):
    """A frame with text that is redrawn when it changes, and scrolls if there is more than fits."""

    title: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.border_title = self._entitled = self.title
        self._body = Static()
        self._shown: Text | None = None

    def compose(self) -> ComposeResult:
        yield self._body

    def show(self, model: Model, now: float) -> None:
        """Redraw what has changed."""
        if (wanted := self.wanted(model)) != self.display:
            self.display = wanted
        width, height = self.scrollable_content_region.size
        if not self.display or not width:
            return
        text = harmless(self.draw(model, now, width, height))
        text.no_wrap, text.overflow = True, "ellipsis"
        if text != self._shown:
            # Without a change of height only the content has to be drawn, which is far less work.
            same = self._shown is not None and self._shown.plain.count("\n") == text.plain.count("\n")
            self._shown = text
            self._body.update(text, layout=not same)

    def entitle(self, title: str) -> None:
        """Change the title if it is a new one: setting it redraws the whole frame."""
        if title != self._entitled:
            self._entitled = title
            self.border_title = title

    def wanted(self, model: Model) -> bool:
        return True

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        raise NotImplementedError


def lines(parts: list[Text]) -> Text:
    return Text("\n").join(parts)


class SchedulePane(Pane):
    """Networks so far, and the current cycle next to the previous one."""

    title = "schedule"

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        if model.status is None:
            return Text("nothing is known yet", DIM)
        schedule = model.status.schedule
        since = short_clock(schedule.since)
        found = [Text.assemble(fit(schedule.words, width - len(since) - 1), " ", (since, DIM))]
        found.append(Text(fit(f"{'networks':9}{schedule.networks_done:,}", width)))
        if schedule.chunks_to_wait_for > 0:
            words = f"{schedule.new_chunks:,}/{schedule.chunks_to_wait_for:,}"
            found.append(labelled("chunks", share(schedule.new_chunks, schedule.chunks_to_wait_for), words, width))
        training, cycle = schedule.training_seconds, schedule.cycle_seconds
        if model.status.selfplay is None or training > 0:
            found.append(_compared("training", training, schedule.previous_training_seconds, width))
        found.append(_compared("cycle", cycle, schedule.previous_cycle_seconds, width))
        return lines(found)


def _compared(label: str, seconds: float, before: float | None, width: int) -> Text:
    """A time next to that of the previous cycle; yellow if it is longer."""
    if before is None:
        return labelled(label, None, short_clock(seconds), width)
    style = WARM if seconds > before else GOOD
    return labelled(label, share(seconds, before), f"{short_clock(seconds)}/{short_clock(before)}", width, style)


class TrainingPane(Pane):
    """Steps, speed, every loss, and a chart of the total loss."""

    title = "training"

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        self.entitle(f"{self.title}: {model.view}")
        training = model.status.training if model.status else None
        if training is None:
            return Text("no step yet", DIM)
        total, parts = model.losses()
        found = [_steps(training, width), _speed(training, width)]
        rate = "" if training.learning_rate is None else f"  lr {figure(training.learning_rate)}"
        if total is None and not parts:
            found.append(Text(f"no loss of {model.view} yet", DIM))
        else:
            found.append(Text.assemble("loss ", (figure(total) or "?", "bold"), (rate, DIM)))
            found += _wrapped([f"{name} {figure(value)}" for name, value in parts.items()], width)
        rows = max(height - len(found), _LEAST_CHART)
        found += [Text(line, "cyan") for line in chart(model.curve, width, rows)]
        return lines(found)


def _steps(training: TrainingFigures, width: int) -> Text:
    if training.steps <= 0:
        return Text(fit(f"{'step':9}{training.step:,}", width))
    return labelled("step", share(training.step, training.steps), f"{training.step:,}/{training.steps:,}", width)


def _speed(training: TrainingFigures, width: int) -> Text:
    left = "" if training.seconds_left is None else f"{short_clock(training.seconds_left)} left"
    words = (short_rate(training.steps_per_second), left, f"{short(training.total_steps)} in all")
    return Text(fit("  ".join(filter(None, words)), width))


def _wrapped(words: list[str], width: int) -> list[Text]:
    found: list[str] = []
    for word in words:
        if found and cell_len(found[-1]) + 2 + cell_len(word) <= width:
            found[-1] += f"  {word}"
        else:
            found.append(word)
    return [Text(line) for line in found]


class NetworksPane(Pane):
    """The last networks with their strength or loss, and their uploads."""

    title = "networks"

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        networks = model.networks(now)
        if not networks:
            return Text("none yet", DIM)
        rated = any(network.rating is not None for network in networks)
        judged = any(network.validation_loss is not None for network in networks)
        columns = {"Elo": rated, "loss": judged and (not rated or width >= _WIDE)}
        figures = [name for name, known in columns.items() if known]
        upload = any(network.upload for network in networks)
        room = (20 if width >= _WIDE else 9) if upload else 0
        name = max(width - 7 * len(figures) - 5 - room - bool(room), 6)
        heads = "".join(f" {figure:>6}" for figure in figures)
        heading = Text(f"{fit('network', name)}{heads} {'ago':>4}{' upload' if upload else ''}", DIM)
        return lines([heading, *(_network(network, name, figures, room) for network in networks)])


def _network(network: NetworkStatus, name: int, figures: list[str], room: int) -> Text:
    text = Text(fit(fit(network.name, name, right=True).strip(), name))
    elo = f"{network.rating:.0f}" if network.rating is not None and abs(network.rating) < 1e9 else ""
    for kind in figures:
        value = elo if kind == "Elo" else figure(network.validation_loss)
        text.append(f" {value[:6]:>6}", "bold")
    text.append(f" {age(network.seconds):>4}", DIM)
    if room and network.upload:
        state = network.upload.partition(" ")[0].rstrip(":,;(")
        text.append(" " + fit(network.upload, room).rstrip(), _UPLOADS.get(state, ""))
    return text


class SelfplayPane(Pane):
    """The speed of self-play, the last rating, and one of the games."""

    title = "self-play"

    def wanted(self, model: Model) -> bool:
        return model.ended is None and model.status is not None and model.status.selfplay is not None

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        selfplay = model.status.selfplay if model.status else None
        if selfplay is None:
            return Text()
        figures, board = _figures(selfplay), [clean(line) for line in selfplay.board.splitlines()]
        words = [f"rating {selfplay.rating}"] if selfplay.rating else []
        words += [f"waiting: {selfplay.waiting}"] if selfplay.waiting else []
        above = [Text(fit(text, width)) for text in words]
        broad = max(map(cell_len, board), default=0)
        drawn = [_coloured(line) for line in board]
        if not board or width < _FIGURES + broad:
            return lines([*map(Text, figures), *above, *drawn])
        gap = min(4, width - _FIGURES - broad)
        blank = " " * _FIGURES
        rows = zip_longest((fit(line, _FIGURES) for line in figures), drawn, fillvalue=None)
        return lines([*above, *(Text.assemble(left or blank, " " * gap, right or "") for left, right in rows)])


def _figures(selfplay: SelfplayStatus) -> list[str]:
    rows = (
        ("games", selfplay.games, selfplay.games_per_second),
        ("rows", selfplay.rows, selfplay.rows_per_second),
        ("evals", None, selfplay.evaluations_per_second),
        ("window", selfplay.window, None),
    )
    return [
        f"{name:6} {short(count):>6} {short_rate(rate):>8}".rstrip()
        for name, count, rate in rows
        if count is not None or rate is not None
    ]


def _coloured(line: str) -> Text:
    """A row of a board with coloured stones; notes below the board and names of columns are dim."""
    cells = line.split()[1:]
    if ":" in line or not cells or any(cell not in _STONES for cell in cells):
        return Text(line, DIM)
    text, start = Text(line), line.index(line.split()[0]) + len(line.split()[0])
    for place in range(start, len(line)):
        if line[place] in _STONES:
            text.stylize(_STONES[line[place]], place, place + 1)
    return text


class ExitPane(Pane):
    """How a process ended, its last output, and the keys to press."""

    title = "ended"

    def wanted(self, model: Model) -> bool:
        return model.ended is not None

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        ended = model.ended
        if ended is None:
            return Text()
        good = ended.code == 0
        self.set_class(good, "good")
        found = [Text(ended.words, GOOD if good else BAD), Text("r starts it again, q quits", "bold")]
        return lines([*found, *(Text(fit(line, width).rstrip(), DIM) for line in model.tail())])


class PipelinePane(Pane):
    title = "data pipeline"

    def wanted(self, model: Model) -> bool:
        # The exit pane takes its place; a run with self-play may have no loader.
        status = model.status
        return model.ended is None and (status is None or status.loader is not None or status.selfplay is None)

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        loader = model.status.loader if model.status else None
        stages = model.stages()
        in_parts = bool(stages) and not any(stage.doing in _COUNTING for stage in stages)
        self.entitle("parts" if in_parts else f"{self.title}: {model.view}")
        if loader is None:
            return Text("no loader yet", DIM)
        if in_parts:
            return lines([_worded(stage, width) for stage in stages])
        heads = f"{'stage':{_NAME}} {'rate':>{_RATE}} {'total':>{_TOTAL}} {'load':>{_LOAD}} queue"
        found = [Text(fit(heads, width).rstrip(), DIM), *(_row(stage, width) for stage in stages)]
        if not any(stage.split == model.view for stage in stages):
            found.append(Text(f"nothing is read for {model.view} yet", DIM))
        return lines([*found, *_notes(loader, stages)])


def _row(stage: LoaderStage, width: int) -> Text:
    if stage.doing not in _COUNTING:
        return _worded(stage, width)
    style = BAD if still(stage) else DIM if stage.doing in ("idle", "ended") else ""
    name = fit(stage.name, _NAME)
    load = f"{100 * min(max(stage.load, 0), 9.99):.0f}%" if stage.load == stage.load else "?"
    text = Text(f"{name} {short_rate(stage.rate):>{_RATE}} {short(stage.total):>{_TOTAL}} {load:>{_LOAD}} ", style)
    rest = width - _FIXED
    words = width >= _FIXED + _BAR + _WORDS
    queue = _queue(stage, min(rest, _BAR), style)
    text.append(queue)
    if words:
        doing = f"{stage.doing} {short_clock(stage.since)}" + (f": {stage.waits_for}" if stage.waits_for else "")
        text.append(" " * (min(rest, _BAR) - queue.cell_len + 1))
        text.append(fit(doing, width - _FIXED - _BAR - 1).rstrip(), style or DIM)
    return text


def _worded(stage: LoaderStage, width: int) -> Text:
    """A stage that counts nothing, such as a part of a run: what it does in words, and how much of that is done."""
    words = fit(f"{stage.doing} ({short_clock(stage.since)})", max(width - _NAME - 1 - 7 * (stage.capacity > 0), 0))
    text = Text(f"{fit(stage.name, _NAME)} {words}", DIM if stage.doing.startswith("waiting") else "")
    return Text.assemble(text, " ", bar(share(stage.filled, stage.capacity), 6)) if stage.capacity > 0 else text


def _queue(stage: LoaderStage, width: int, style: str) -> Text:
    if not stage.queue and not stage.capacity:
        return Text("")
    if stage.capacity <= 0:
        return Text(fit(f"{short(stage.filled)} {stage.queue}", width).rstrip(), style)
    full = share(stage.filled, stage.capacity)
    words = f"{short(stage.filled)}/{short(stage.capacity)}"
    if width >= _BAR:
        words = fit(f"{words} {stage.queue}", 15)
    room = width - len(words) - 1
    colour = style or (WARM if full <= 0 else GOOD)
    return Text.assemble(bar(full, room, colour) if room > 1 else "", " " if room > 1 else "", (words, style))


def _notes(loader: LoaderStatus, stages: list[LoaderStage]) -> list[Text]:
    """What a stage waits for, how many chunks there were, and which files were rejected."""
    waits = [f"{stage.name} waits for {stage.waits_for}" for stage in stages if still(stage) and stage.waits_for]
    counts = ", ".join(f"{short(count)} {split}" for split, count in loader.chunks.items())
    rejected = ", ".join(f"{short(count)} {why}" for why, count in loader.rejected.items() if count)
    found = [Text(waits[0], BAD)] if waits else []
    if counts:
        found.append(Text(f"chunks {counts}", DIM))
    if rejected:
        last = f": {loader.last_rejected[-1]}" if loader.last_rejected else ""
        found.append(Text(f"rejected {rejected}{last}", WARM))
    return found
