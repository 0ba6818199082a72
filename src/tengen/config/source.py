"""Where the text of a configuration comes from: a file, a run, or a shipped configuration."""

import os.path
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from tengen import files
from tengen.config import provenance
from tengen.errors import ConfigError
from tengen.schema import quote, unknown

RUN_FILE = "config.yaml"
"""The file that makes a folder a run."""
_SUFFIXES = (".yaml", ".yml")
# A configuration has some ten thousand bytes. This makes naming a disk or a network by mistake harmless.
_MAX_BYTES = 100_000


@dataclass(frozen=True)
class ConfigSource:
    """The text of a configuration, and its place for messages."""

    label: str
    text: str

    @property
    def is_of_a_run(self) -> bool:
        """Whether a run wrote it: then it was complete, but may lack newer settings."""
        return self.text.startswith(provenance.FIRST)


def shipped() -> tuple[str, ...]:
    """The names of the shipped configurations, go9 before go19."""
    files = resources.files("tengen.configs").iterdir()
    found = [file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")]
    return tuple(sorted(found, key=lambda name: re.sub(r"\d+", lambda number: number[0].zfill(4), name)))


def find(config: str | Path) -> ConfigSource:
    """The configuration with this path or shipped name. The path may also be that of a run.

    A Path, or text with a slash or a YAML suffix, is always a path; anything else is always a name, so that a file in
    the current folder never takes the place of a shipped configuration.
    """
    label = str(config)
    if is_path(config):
        run = run_of(config)
        label = label if run is None else str(run / RUN_FILE)
        return ConfigSource(label, _decode(_read(label), label))
    if label not in shipped():
        raise ConfigError([_unknown_name(label)])
    file = resources.files("tengen.configs") / f"{label}.yaml"
    return ConfigSource(f"shipped {label}.yaml", file.read_text("utf-8"))


def is_path(config: str | Path) -> bool:
    """Whether this is the path of a configuration, not the name of a shipped one."""
    return isinstance(config, Path) or "/" in config or config.endswith(_SUFFIXES)


def run_of(config: str | Path) -> Path | None:
    """The run directory that this is the path of; None for a file and for a shipped name.

    Raises ConfigError for a folder without a run.
    """
    if not is_path(config) or not os.path.isdir(config):
        return None
    if not os.path.isfile(os.path.join(config, RUN_FILE)):
        raise ConfigError([f"{config}: is a folder, expected a YAML file or a run (a folder with a {RUN_FILE})"])
    return Path(config)


def base_of(config: str | Path, name: str, base: Path | None = None) -> Path:
    """The directory of the run `name`: `base`, or `config` if that is the path of a run, or else one in runs/."""
    return base or run_of(config) or Path("runs") / name


def as_config(base: Path) -> str:
    """A run directory as the CONFIG of a command, where a word without a slash would be a shipped name."""
    return str(base) if is_path(str(base)) else f"./{base}"


def _unknown_name(name: str) -> str:
    if os.path.isfile(name):
        return f"{quote(name)}: for the file of that name write ./{name}"
    if os.path.isfile(os.path.join(name, RUN_FILE)):
        return f"{quote(name)}: for the run of that name write ./{name}"
    return f"{quote(name)}: {unknown('configuration', name, shipped())} (`tengen config list` shows them all)"


def _read(path: str) -> bytes:
    try:
        data = files.read_bytes(path, _MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError([f"{path}: there is no such file"]) from None
    except (IsADirectoryError, files.NotAFile) as error:
        raise ConfigError([f"{error}; expected a YAML file"]) from None
    except PermissionError:
        raise ConfigError([f"{path}: may not be read, ask its owner for permission"]) from None
    except (OSError, ValueError) as error:  # ValueError: no path can have a NUL in it
        raise ConfigError([f"{quote(path)}: cannot be read: {getattr(error, 'strerror', error)}"]) from None
    if len(data) > _MAX_BYTES:
        raise ConfigError([f"{path}: has more than {_MAX_BYTES} bytes, expected a configuration"])
    return data


def _decode(data: bytes, label: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([f"not UTF-8 text: byte 0x{data[error.start]:02x} ({label}, line {line})"]) from None
