"""The data pipeline: a row for every stage of the loader with the queue behind it, in the order of the data flow."""

from rich.text import Text

from tengen.monitor.dashboard.drawing import BAD, DIM, GOOD, WARM, bar, fit, share
from tengen.monitor.dashboard.model import Model, still
from tengen.monitor.dashboard.panes import Pane, lines
from tengen.protocol.messages import LoaderStage, LoaderStatus
from tengen.words import short, short_clock, short_rate

_NAME, _RATE, _TOTAL, _LOAD = 9, 8, 6, 4  # columns
_FIXED = _NAME + 1 + _RATE + 1 + _TOTAL + 1 + _LOAD + 1
_COUNTING = ("working", "waiting for input", "waiting for output", "idle", "ended")  # what stages of a loader do
_WORDS = 28  # columns for what a stage does, where there is room
_BAR = 24  # columns of a bar and its numbers, at most


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
        found = [_heading(width), *(_row(stage, width) for stage in stages)]
        if not any(stage.split == model.view for stage in stages):
            found.append(Text(f"nothing is read for {model.view} yet", DIM))
        return lines([*found, *_notes(loader, stages)])


def _heading(width: int) -> Text:
    words = f"{'stage':{_NAME}} {'rate':>{_RATE}} {'total':>{_TOTAL}} {'load':>{_LOAD}} queue"
    return Text(fit(words, width).rstrip(), DIM)


def _row(stage: LoaderStage, width: int) -> Text:
    """One stage; red if it is stuck."""
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
    """How full the queue behind it is."""
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
