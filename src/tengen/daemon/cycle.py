"""The cycle of the daemon: wait for data, train, validate, save, export, upload, and wait again.

It is a state machine on a separate thread, with messages in (`post`) and out (`tell`); nothing that clients do can
block it. After an error is reported, it goes on, or idles in stage ERROR until it is started again.
"""

import contextlib
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen import config as configuration
from tengen.errors import TengenError
from tengen.loop.parts.running import is_full
from tengen.protocol import messages
from tengen.protocol.messages import Stage
from tengen.run import config_file
from tengen.run.part import Progress
from tengen.words import first_few

if TYPE_CHECKING:
    from tengen.daemon.session import DaemonSession

_LOOK = 0.1  # seconds between two checks for new data
_FULL = 5.0  # seconds before a full disk is tried again

Tell = Callable[[Any], None]
Log = Callable[[str, str], None]


@dataclass(frozen=True)
class _InputClosed:
    ends: bool  # unless the configuration says otherwise


@dataclass(frozen=True)
class DaemonStage:
    """What the daemon is doing. Times are `time.monotonic()`."""

    stage: Stage
    words: str
    since: float
    cycle: float  # when the current cycle began
    trained: float = 0.0  # seconds of training in this cycle, before `training`
    training: float | None = None  # since when it trains without a pause
    previous_cycle: float | None = None  # seconds
    previous_training: float | None = None

    def training_seconds(self, now: float) -> float:
        return self.trained + (now - self.training if self.training is not None else 0.0)


class DaemonCycle:
    """One daemon. Any thread may read `now`, `session` and `run_name`."""

    def __init__(self, tell: Tell, log: Log, base: Path | None = None, overrides: Sequence[str] = ()) -> None:
        """`base` is the run directory, whatever the configuration says; `overrides` apply to every configuration."""
        self._tell, self._log, self._base, self._overrides = tell, log, base, tuple(overrides)
        self._inbox: queue.Queue[Any] = queue.Queue()
        self._active = self._immediately = self._over = False
        self._finished = False  # whether the network that is pending ends a cycle
        self._path = ""  # of the last configuration
        self.opened = False  # whether there ever was a session
        self.session: DaemonSession | None = None
        self.run_name = ""
        began = time.monotonic()
        self.now = DaemonStage("IDLE", "nothing has been started", began, began)
        self.ended = threading.Event()

    def post(self, message: Any) -> None:
        """Queue a message. Any thread may call this."""
        self._inbox.put(message)

    def start(self) -> None:
        threading.Thread(target=self.run, name="tengen-daemon", daemon=True).start()

    def input_closed(self, ends: bool) -> None:
        """After all messages so far, end if the configuration says so; if it says nothing, end if `ends`."""
        self._inbox.put(_InputClosed(ends))

    def run(self) -> None:
        try:
            while not self._over:
                with self._explaining():
                    self._turn()
        finally:
            self._enter("IDLE", "the daemon has ended")
            self._close()
            self.ended.set()

    def _turn(self) -> None:
        session = self.session
        if session is None or not (self._active or session.place.pending):
            if self.now.stage != "ERROR":
                self._enter("IDLE", "stopped" if session is not None else self.now.words)
            self._handle(self._inbox.get())
            return
        while not self._inbox.empty():
            self._handle(self._inbox.get())
            if self._over or self.session is not session:
                return
        session.take_changes()
        self._name_rejected(session)
        if session.place.pending:
            self._export(session)
        elif not self._active:
            return
        elif session.place.training:
            self._train(session)
        else:
            self._wait(session)

    def _wait(self, session: "DaemonSession") -> None:
        new, wanted = session.new_chunks, session.settings.chunks_per_network
        if (new >= wanted or self._immediately) and session.has_data:
            self._immediately = False
            session.begin()
            self._log("info", f"training network {session.place.networks + 1:,}, {new:,} new chunks")
            return
        if self._immediately or new >= wanted:
            words = f"there is nothing to learn from yet: {session.loader.waiting('train')}"
        else:
            words = f"{new:,} of {wanted:,} new chunks in {session.data}"
        self._enter("WAITING_FOR_DATA", words)
        self._pause(_LOOK)

    def _train(self, session: "DaemonSession") -> None:
        number = f"network {session.place.networks + 1:,}"
        if not session.figures:
            self._enter("TRAINING", f"{number}: compiling")
        finished = session.learn(lambda: not self._inbox.empty())
        self._enter("TRAINING", f"{number}: {session.waits_for or 'learning'}")
        if finished:
            self._enter("TRAINING", f"{number}: validating")
            self._finished = True
            session.finish()

    def _export(self, session: "DaemonSession") -> None:
        self._enter("EXPORTING", session.place.pending)
        made = session.export()
        if made is not None:
            facts = (made.name, str(made.path), made.step, made.samples, made.validation_loss)
            self._tell(messages.NetworkExported(*facts))
        if self._finished:
            self._finished = False
            moment = time.monotonic()
            spent = {"previous_cycle": moment - self.now.cycle, "previous_training": self.now.training_seconds(moment)}
            self.now = replace(self.now, cycle=moment, trained=0.0, training=None, **spent)

    def _name_rejected(self, session: "DaemonSession") -> None:
        new, reasons = session.rejections()
        lines = first_few([f"skipped, not a chunk: {reason}" for reason in reasons], "not chunks", new)
        for line in (*lines, *session.loader.remarks()):
            self._log("warning", line)

    def _handle(self, message: Any) -> None:
        try:
            match message:
                case messages.StartTraining():
                    self._start(message.config_filepath)
                case messages.StartTrainingImmediately():
                    self._start_now()
                case messages.StopTraining():
                    self._stop()
                case messages.ExportNow():
                    self._export_now()
                case messages.Shutdown():
                    self._shut_down()
                case _InputClosed():
                    chosen = None if self.session is None else self.session.settings.end_with_input
                    if message.ends if chosen is None else chosen:
                        self._shut_down()
        except TengenError as error:
            where = next((name for name, kind in messages.TYPES.items() if kind is type(message)), "shutdown")
            self._tell(messages.Error(str(error), where, True))

    def _shut_down(self) -> None:
        self._over = True
        self._save()

    def _start(self, path: str) -> None:
        if self._active:
            raise TengenError(f"{self._path} is being trained already: stop_training first")
        config = configuration.load(path, self._overrides)
        base = configuration.base_of(path, config.run.name, self._base)
        config, notes = config_file.settled(config, base, self._overrides)
        for note in notes:
            self._log("info", note)
        session = self.session
        if session is None or session.config != config:
            self._open(config, base)
        self._path, self._active = path, True
        self.now = replace(self.now, cycle=time.monotonic(), trained=0.0, training=None)
        self._enter("WAITING_FOR_DATA", "looking for chunks")

    def _start_now(self) -> None:
        if not self._active:
            if not self._path:
                raise TengenError("there is nothing to train yet: start_training first, with a configuration")
            self._start(self._path)
        if self.session is not None and self.session.place.training:
            self._log("info", "a network is being trained already")
        else:
            self._immediately = True

    def _stop(self) -> None:
        if not self._active:
            self._log("info", "nothing is being trained")
            return
        self._active = self._immediately = False
        self._save()
        self._log("info", "training has stopped, and is saved")

    def _export_now(self) -> None:
        if self.session is None:
            raise TengenError("there is no network to export: start_training first, with a configuration")
        if not self.session.export_soon():
            self._log("info", "the current network has been exported already, or is about to be")

    def _open(self, config: configuration.Config, base: Path) -> None:
        self._close()
        self._enter("WAITING_FOR_DATA", "building the network and reading the last checkpoint")
        from tengen.daemon.session import DaemonSession
        from tengen.jax_setup import keep_compiled

        try:
            keep_compiled()
            self.session = DaemonSession(config, base, self._log)
        except BaseException:
            self._enter("IDLE", "it could not be started")
            raise
        self.run_name, self.opened = config.run.name, True
        self._log("info", f"{config.run.name} in {base}, chunks from {self.session.data}")

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        """Around one turn: report what went wrong, and leave a state from which it can go on."""
        try:
            yield
        except Exception as error:
            if is_full(error):
                self._tell(messages.Error(f"waiting for space on the disk: {error}", "disk", True))
                self._pause(_FULL)
                return
            if not isinstance(error, TengenError):
                traceback.print_exc()
            self._active = self._immediately = False
            where = self.now.stage.lower()
            self._close()
            what = str(error) if isinstance(error, TengenError) else f"{type(error).__name__}: {error}"
            self._enter("ERROR", what)
            self._tell(messages.Error(what, where, False))

    def _enter(self, stage: Stage, words: str) -> None:
        moment = time.monotonic()
        if stage != self.now.stage:
            trains = stage == "TRAINING"
            spent = self.now.training_seconds(moment)
            self.now = replace(self.now, stage=stage, since=moment, trained=spent, training=moment if trains else None)
        if words != self.now.words:
            self.now = replace(self.now, words=words)
        if self.session is not None:
            figures = {"steps": self.session.trainer.step}
            doing = f"{stage.lower().replace('_', ' ')}: {words}"
            self.session.status_writer.show(Progress(doing, figures=figures))

    def _pause(self, seconds: float) -> None:
        """Wait, unless there is a message to handle."""
        end = time.monotonic() + seconds
        while self._inbox.empty() and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.02))

    def _save(self) -> None:
        if self.session is not None:
            self.session.flush()

    def _close(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            try:
                session.close()
            except Exception as error:
                self._log("error", f"while closing {session.base}: {error}")
