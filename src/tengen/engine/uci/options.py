"""What chess programs may change by `setoption`."""

from dataclasses import dataclass, replace

_MOST = 64  # lines of MultiPV
_LONGEST = 60_000  # milliseconds


@dataclass(frozen=True)
class Options:
    """All of them, with their usual values."""

    multi_pv: int = 1
    show_wdl: bool = False
    overhead: int = 100  # milliseconds of each move that are lost between clock and engine

    def declared(self) -> list[str]:
        """As `uci` lists them."""
        return [
            f"option name MultiPV type spin default {self.multi_pv} min 1 max {_MOST}",
            "option name UCI_ShowWDL type check default false",
            f"option name Move Overhead type spin default {self.overhead} min 0 max {_LONGEST}",
            "option name Ponder type check default false",
        ]

    def changed(self, name: str, value: str) -> "Options":
        """With another value. ValueError says what is wrong."""
        match name.lower():
            case "multipv":
                return replace(self, multi_pv=_whole(name, value, 1, _MOST))
            case "uci_showwdl":
                return replace(self, show_wdl=_truth(name, value))
            case "move overhead":
                return replace(self, overhead=_whole(name, value, 0, _LONGEST))
            case "ponder":  # only says that `go ponder` may come
                _truth(name, value)
                return self
        raise ValueError(f"no such option: {name}")


def _whole(name: str, value: str, low: int, high: int) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 10 and low <= int(value) <= high):
        raise ValueError(f"{name}: expected a whole number from {low} to {high}, got {value!r}")
    return int(value)


def _truth(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(f"{name}: expected true or false, got {value!r}")
    return value.lower() == "true"
