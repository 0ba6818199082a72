"""How often searches may end, and settings that do not go together."""

import subprocess
import sys

import pytest

from tengen.config.settings.selfplay import BoardSize, SelfplaySettings, resized, size, stage_at, stride
from tengen.errors import OptionError
from tengen.schema import from_options


@pytest.mark.parametrize("leaves", [1, 3])
def test_the_stride_is_the_longest_that_ends_with_both_searches(leaves: int) -> None:
    for full in range(1, 40):
        for cheap in range(1, full + 1):
            steps = [-(-count // leaves) for count in (full, cheap)]
            longest = max(n for n in range(1, full + 1) if all(count % n == 0 for count in steps))
            assert stride(full, SelfplaySettings(full_share=0.5, cheap_simulations=cheap), leaves) == longest


def test_without_cheap_searches_it_is_a_whole_search() -> None:
    assert stride(24, SelfplaySettings(full_share=1.0, cheap_simulations=7)) == 24


def test_temperature_does_not_rise() -> None:
    with pytest.raises(OptionError, match="last_temperature: expected at most temperature, 0.5, got 0.6"):
        from_options(SelfplaySettings, {"temperature": 0.5, "last_temperature": 0.6}, "selfplay")


def test_settings_need_no_jax() -> None:
    program = "import sys, tengen.selfplay; tengen.selfplay.SelfplaySettings(); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_search_is_whole_only_if_decided_games_have_none_that_are_cheap() -> None:
    assert stride(24, SelfplaySettings(full_share=1.0, decided_full_share=0.5, cheap_simulations=16)) == 8


def test_other_sizes() -> None:
    assert size("7:0.25") == BoardSize(7, 0.25, None)
    assert size("13:.5:-6.5") == BoardSize(13, 0.5, -6.5)
    for text in ("7", "7:2", "7:0.2:", "0:0.2", "7:0.2:1:2", "7x7:0.2", "7:0.2:6.25", "seven:0.2"):
        with pytest.raises(OptionError, match="expected SIZE:SHARE"):
            size(text)
    options = {"size": 9, "komi": 7.0, "max_moves": 81, "ko": "simple"}
    assert resized(options, BoardSize(3, 0.5, None)) == {"size": 3, "komi": 7.0, "max_moves": 9, "ko": "simple"}
    assert resized({**options, "max_moves": None}, BoardSize(3, 0.5, 1.5))["max_moves"] is None
    assert resized(options, BoardSize(3, 0.5, 1.5))["komi"] == 1.5


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        (["7:0.2", "7:0.3"], "expected each size once, got 7:0.2, 7:0.3"),
        (["7:0.5", "5:0.5"], "expected shares that leave some games for the game's own size"),
        (["7:0.001"], "expected a share of at least one game in 100, got 0.001"),
        (["7"], "expected"),
    ],
)
def test_sizes_that_do_not_go_together(sizes: list[str], problem: str) -> None:
    with pytest.raises(OptionError, match=f"sizes.*: {problem}"):
        from_options(SelfplaySettings, {"sizes": sizes, "games": 100}, "selfplay")


def test_stages_come_one_after_the_other_and_end_with_the_settings_themselves() -> None:
    settings = SelfplaySettings(cheap_simulations=24, stages=(".25:32/8:2.5", "0.6:64/16"))
    found = [stage_at(progress, 160, settings) for progress in (0.0, 0.24, 0.25, 0.59, 0.6, 1.0, 1.3)]
    numbers = [(each.simulations, each.cheap, each.rate) for each in found]
    assert numbers == [(32, 8, 2.5)] * 2 + [(64, 16, 1.0)] * 2 + [(160, 24, 1.0)] * 3
    assert stride(160, settings) == 8, "searches of all stages end with a phase"
    assert stride(160, SelfplaySettings(full_share=1.0, stages=("0.5:48/8",))) == 16


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        (("0.5:64/8", "0.2:32/8"), "one after the other"),
        (("0.5:8/16",), "at most as many cheap simulations"),
        (("1.5:8/4",), "expected UNTIL:SIMULATIONS/CHEAP"),
        (("0.5:8",), "expected UNTIL:SIMULATIONS/CHEAP"),
    ],
)
def test_stages_that_make_no_sense(stages: tuple[str, ...], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        from_options(SelfplaySettings, {"stages": stages}, "selfplay")
