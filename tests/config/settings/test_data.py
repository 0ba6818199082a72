"""A configuration can be read without waiting for JAX."""

import subprocess
import sys


def test_settings_need_no_jax() -> None:
    program = (
        "import sys; from tengen.data import WindowSettings, power_law;"
        "print(power_law(0, WindowSettings()), 'jax' in sys.modules, 'numpy' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["100000", "False", "False"]
