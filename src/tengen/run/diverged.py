"""What users are told when training diverges: from which checkpoint it can go on, and how.

A file in RUN/train/<trainer> says so too, until training is started again.
"""

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from tengen import importing, schema
from tengen.config.sections import Config
from tengen.config.trainers import TrainerConfig
from tengen.errors import Diverged, TengenError
from tengen.run import first_network, grown

_NAME = "diverged.json"
_LOWER = 10.0  # the learning rate is divided by this
_LOWEST = 1e-9  # the lowest rate that the settings allow


def note(folder: Path, message: str) -> None:
    """Write the message, which says at which step training diverged and how to go on, if that is possible."""
    with contextlib.suppress(TengenError, OSError):
        schema.write_json(folder / _NAME, {"message": message})


def forget(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / _NAME).unlink(missing_ok=True)


def read(base: Path) -> str:
    """The message of the trainer that diverged; empty if none did."""
    for path in sorted(base.glob(f"train/*/{_NAME}")):
        with contextlib.suppress(TengenError, OSError):
            found = schema.read_json(dict[str, str], path, limit=100_000).get("message", "")
            if found.startswith(Diverged.BEGINNING):
                return found
    return ""


@contextlib.contextmanager
def advising(
    config: Config | TrainerConfig, folder: Path, command: Sequence[str], overrides: Sequence[str] = ()
) -> Iterator[None]:
    """Around a run whose checkpoints are in `folder`: if it diverges, the error and its status say how to go on.

    `command` with the `overrides` (key=value) starts the run again.
    """
    forget(folder)
    try:
        yield
    except Diverged as error:
        lower = [f"{key}={rate:g}" for key, rate in lower_rates(config).items()]
        keys = {text.partition("=")[0] for text in lower}
        kept = [text for text in overrides if text.partition("=")[0].strip() not in keys]
        rows = isinstance(config, Config)
        words = [*command, *(word for text in (*kept, *lower) for word in ("--set", text))]
        anew = "the same command then " + ("learns anew from the rows that are there" if rows else "begins anew")
        how = f"Start it again with a lower learning rate:\n  {shlex.join(words)}"
        if places := _brought(config):
            how += f"\nA cause may also be in your own code: {', '.join(places)}."
        raise explained(error, folder, how, anew) from error


def _brought(config: Config | TrainerConfig) -> list[str]:
    """Where the user's own networks, trainer and game are written, as far as the run has them."""
    functions = (net.architecture().function for net in first_network.sections(config).values())
    named = [*functions, getattr(config, "trainer", None), config.game and config.game.name]
    found = [importing.load(name, "code") for name in named if importing.is_reference(name)]
    return list(dict.fromkeys(map(importing.where, found)))


def explained(error: Diverged, folder: Path, how: str, anew: str) -> TengenError:
    """The error for users, also kept in `folder`: what happened, the newest checkpoint, and `how` to continue.

    `anew` says what happens if the folder is removed.
    """
    place = grown.folder(folder, grown.times_grown(folder))
    steps = grown.checkpoints(place)
    # All checkpoints in the folder are from before the divergence, but one may still have been being written.
    if steps:
        message = (
            f"{error}\nNothing was saved since the checkpoint {max(steps)}, from which it can go on. {how}\n"
            f"If the loss does not come down even so, remove {folder}; {anew}."
        )
    elif grown.damaged(place):
        message = f"{error}\nNo good checkpoint is left: remove {folder}, and learning begins anew. {how}"
    else:
        message = f"{error}\nThere is no checkpoint from before that, so learning begins anew. {how}"
    note(folder, message)
    return TengenError(message)


def lower_rates(config: Config | TrainerConfig) -> dict[str, float]:
    if isinstance(config, Config):
        rates = {"train": config.train.optimizer.learning_rate}
    else:
        rates = {role: section.optimizer.learning_rate for role, section in config.roles.items() if section is not None}
    return {f"{section}.optimizer.learning_rate": max(rate / _LOWER, _LOWEST) for section, rate in rates.items()}
