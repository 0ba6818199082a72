"""How often searches may end, and settings that do not go together."""

import subprocess
import sys

import pytest

from tengen.errors import OptionError
from tengen.schema import from_options
from tengen.selfplay.settings import SelfplaySettings, stride


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
