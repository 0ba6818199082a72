"""Checkpoints of a training: written in the background by orbax, checked when they are read.

One that cannot be read, or that holds numbers that are not finite, is set aside (renamed to *.corrupt) and reported,
and the one before it is used. A checkpoint appears under its name only when it is complete.
"""

import json
import logging
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from tengen import files
from tengen.config.settings.train import CheckpointSettings
from tengen.errors import Diverged, TengenError
from tengen.nets import saving

_SCHEMA = 1
_PREFIX = "step"
_DIGITS = 9
_LISTED = 4
_LONGEST = 200
_FREE = frozenset(("lane", "replay", "extra"))  # games, samples and what a trainer adds: they may hold any numbers
Tree = TypeVar("Tree")

# Orbax logs to the terminal what users need not know; errors are raised as well.
logging.getLogger("absl").setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Checkpoint:
    """Arrays and plain data at one step of a training."""

    step: int
    state: Any  # a pytree of arrays
    about: dict[str, Any]  # JSON data: counters, schedule, random key, and whatever the caller wants back


class _Corrupt(Exception):
    """This checkpoint cannot be read."""


class Checkpoints:
    """The checkpoints in one folder: the newest few, and one per long interval, which is never removed."""

    def __init__(self, folder: Path | str, settings: CheckpointSettings, *, read_only: bool = False) -> None:
        """`read_only`: another process may be writing here, so nothing is removed or set aside."""
        import orbax.checkpoint as ocp  # a second, while programs are compiled, that nothing waits for
        from orbax.checkpoint import checkpoint_managers as policies

        self.folder, self._read_only = Path(folder).absolute(), read_only
        kept: list[Any] = [policies.LatestN(settings.keep)]
        if settings.long_term_interval is not None:
            kept.append(policies.EveryNSteps(settings.long_term_interval, exact_interval=False))
        # Of a training with several processes only the first one writes.
        writers = {0} if jax.process_count() > 1 else None
        options = ocp.CheckpointManagerOptions(
            preservation_policy=policies.AnyPreservationPolicy(kept),
            step_prefix=_PREFIX,
            step_format_fixed_length=_DIGITS,
            cleanup_tmp_directories=not read_only,
            read_only=read_only,
            create=writers is None,
            multiprocessing_options=ocp.options.MultiprocessingOptions(active_processes=writers),
        )
        self._refused = self._refuse_odd_files()
        try:
            if writers is not None:  # for which orbax makes no folder
                self.folder.mkdir(parents=True, exist_ok=True)
            self._manager = ocp.CheckpointManager(self.folder, options=options)
        except OSError as error:
            raise TengenError(f"{self.folder}: no place for checkpoints: {error.strerror or error}") from None

    def steps(self) -> tuple[int, ...]:
        """The steps of the checkpoints that are there, oldest first."""
        return tuple(sorted(self._manager.all_steps()))

    def save(self, checkpoint: Checkpoint, *, replace: bool = False) -> None:
        """Write it in the background. The arrays are copied first, so that training may go on and donate them.

        Waits for the one before, and raises TengenError if that could not be written, or if there already is one of
        this step and `replace` is not set. Diverged if numbers are not finite: training could not go on from them.
        """
        import orbax.checkpoint as ocp

        arrays = flat(checkpoint.state)
        if bad := _bad(arrays):
            raise Diverged.at(checkpoint.step, bad)
        layout, blob = joined(arrays)
        about = {"schema": _SCHEMA, "step": checkpoint.step, "arrays": layout, "about": checkpoint.about}
        text = json.dumps(about, allow_nan=False)
        sums = [zlib.crc32(text.encode()), zlib.crc32(blob.tobytes())]
        try:
            if replace and checkpoint.step in self._manager.all_steps():
                self._manager.delete(checkpoint.step)
            self._manager.save(
                checkpoint.step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave({"bytes": blob}),
                    about=ocp.args.JsonSave({"sums": sums, "content": text}),
                ),
                force=True,
            )
        except Exception as error:
            raise self._unwritten(error) from error

    def wait(self) -> None:
        """Wait until everything is on the disk; TengenError if it could not be written."""
        try:
            self._manager.wait_until_finished()
        except Exception as error:
            raise self._unwritten(error) from error

    def restore(self, template: Any, parts: str = "network or optimiser") -> tuple[Checkpoint, tuple[str, ...]] | None:
        """The newest checkpoint that can be read, like `template`, and what was set aside; None if there are none.

        `template` may be a function of the arrays in the checkpoint by their names. TengenError if none of them can be
        read, or if the newest good one is not like `template`; `parts` says in the message what may differ.
        """
        self.wait()
        set_aside = list(self._refused)
        for step in reversed(self.steps()):
            try:
                arrays, about = self._read(step)
            except _Corrupt as error:
                text = f"{self._path(step).name}: {error}"
                set_aside.append(text if self._read_only else self.set_aside(step, str(error)))
                continue
            like = template(arrays) if callable(template) else template
            try:
                state = unflat(arrays, like, f"{self._path(step)}: of another {parts} than this one")
            except TengenError as error:
                advice = (
                    "if an earlier version of Tengen wrote it, a new run can begin with its network (net.start_from)"
                )
                raise TengenError(f"{error}; {advice}") from None
            return Checkpoint(step, state, about), tuple(set_aside)
        if set_aside:
            raise TengenError(f"{self.folder}: no checkpoint can be read: {'; '.join(set_aside)}")
        return None

    def set_aside(self, step: int, reason: str) -> str:
        """Rename the checkpoint of a step, so that it is not used; returns what was wrong, and its new name."""
        words = self._rename(self._path(step), reason)
        self._manager.reload()
        return words

    def close(self) -> None:
        self.wait()
        self._manager.close()

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _path(self, step: int) -> Path:
        return self.folder / f"{_PREFIX}_{step:0{_DIGITS}d}"

    def _read(self, step: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays by name and the plain data; _Corrupt if anything is not as it was written."""
        import orbax.checkpoint as ocp

        args = ocp.args.Composite(state=ocp.args.StandardRestore(), about=ocp.args.JsonRestore())
        try:
            found = self._manager.restore(step, args=args)
            text, blob = str(found["about"]["content"]), np.asarray(found["state"]["bytes"])
            sums = list(found["about"]["sums"])
        except (MemoryError, PermissionError) as error:
            raise TengenError(f"{self._path(step)}: cannot be read: {error}") from None
        except Exception as error:  # orbax and tensorstore raise almost anything when files are damaged
            if "PERMISSION_DENIED" in str(error):
                raise TengenError(f"{self._path(step)}: cannot be read: permission denied") from None
            raise _Corrupt(_first_line(error)) from None
        if sums != [zlib.crc32(text.encode()), zlib.crc32(blob.tobytes())]:
            raise _Corrupt("its content is not what was written")
        about = json.loads(text)
        if about["schema"] != _SCHEMA:
            raise TengenError(f"{self._path(step)}: written by another version of Tengen (schema {about['schema']})")
        if about["step"] != step:
            raise _Corrupt(f"its content is of step {about['step']}")
        try:
            arrays = apart(about["arrays"], blob)
        except (TypeError, ValueError) as error:  # earlier versions wrote anything that a trainer of roles kept
            raise _Corrupt(f"it holds something other than numbers: {error}") from None
        if bad := _bad(arrays):
            raise _Corrupt(f"{bad}: the training had diverged")
        return arrays, about["about"]

    def _refuse_odd_files(self) -> list[str]:
        """Set aside checkpoints with anything in them but files and folders: orbax would wait for a FIFO for ever."""
        found = []
        for path in sorted(self.folder.glob(f"{_PREFIX}_{'[0-9]' * _DIGITS}")):
            try:
                files.check_tree(path)
            except files.NotAFile as error:
                if self._read_only:
                    raise TengenError(f"{path}: cannot be read: {error}") from None
                found.append(self._rename(path, str(error)))
            except OSError:
                continue  # a process that writes here has just removed it, or orbax will say what is wrong
        return found

    def _rename(self, path: Path, reason: str) -> str:
        number = 0
        while (aside := path.with_name(f"{path.name}{f'.{number}' if number else ''}.corrupt")).exists():
            number += 1
        try:
            path.rename(aside)
        except OSError as error:
            raise TengenError(f"{path}: corrupt ({reason}), and cannot be renamed: {error.strerror}") from None
        return f"{path.name} is corrupt ({reason}), set aside as {aside.name}"

    def _unwritten(self, error: Exception) -> TengenError:
        self._manager.reload()  # or it takes what could not be written to be there
        return TengenError(f"{self.folder}: a checkpoint could not be written: {_first_line(error)}")


def flat(state: Any) -> dict[str, np.ndarray]:
    """{path: array} of a pytree, on the host; paths such as `parameters/stem.conv.kernel`."""
    leaves, _ = jax.tree.flatten_with_path(state)
    names = [_name(path) for path, _ in leaves]
    copied = jax.device_get([leaf for _, leaf in leaves])
    # On the CPU a fetched array may share memory with one that training is about to donate.
    return {name: np.array(array) for name, array in zip(names, copied, strict=True)}


def unflat(arrays: Mapping[str, np.ndarray], template: Tree, problem: str) -> Tree:
    """The pytree like `template` with these arrays; TengenError beginning with `problem` if they do not fit."""
    leaves, tree = jax.tree.flatten_with_path(template)
    wanted = {_name(path): leaf for path, leaf in leaves}
    odd = sorted(set(wanted) ^ set(arrays))
    odd = odd or [
        f"{name} {list(arrays[name].shape)} {arrays[name].dtype} instead of {list(leaf.shape)} {leaf.dtype}"
        for name, leaf in wanted.items()
        if arrays[name].shape != leaf.shape or arrays[name].dtype != leaf.dtype
    ]
    if odd:
        more = f" and {len(odd) - _LISTED} more" if len(odd) > _LISTED else ""
        raise TengenError(f"{problem} ({', '.join(odd[:_LISTED])}{more})")
    return jax.tree.unflatten(tree, [arrays[name] for name in wanted])


def _bad(arrays: Mapping[str, np.ndarray]) -> str:
    """Which learned array is not finite, in words; empty if all are."""
    learned = {name: array for name, array in arrays.items() if not _FREE.intersection(name.split("/"))}
    bad = saving.first_not_finite(learned)
    return f"{bad} holds numbers that are not finite" if bad else ""


def _name(path: tuple[Any, ...]) -> str:
    return "/".join(str(getattr(part, "name", getattr(part, "key", getattr(part, "idx", part)))) for part in path)


def joined(arrays: Mapping[str, np.ndarray]) -> tuple[list[Any], np.ndarray]:
    """All arrays as one UInt8[N], and the name, type and shape of each.

    A single array is read in one piece. Of many arrays, orbax reads all at once, and if one is damaged, the others
    complain on the terminal long after the error was handled.
    """
    layout = [[name, str(array.dtype), list(array.shape)] for name, array in arrays.items()]
    return layout, np.frombuffer(b"".join(array.tobytes() for array in arrays.values()), np.uint8)


def apart(layout: list[Any], blob: np.ndarray) -> dict[str, np.ndarray]:
    arrays, begin = {}, 0
    for name, dtype, shape in layout:
        kind = jnp.dtype(dtype)  # knows bfloat16, unlike NumPy
        end = begin + kind.itemsize * math.prod(shape)
        arrays[name] = np.frombuffer(blob[begin:end].tobytes(), kind).reshape(shape)
        begin = end
    return arrays


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    first = lines[0].split(" [tensorstore_spec=")[0] if lines else type(error).__name__
    return first if len(first) <= _LONGEST else f"{first[:_LONGEST]}..."
