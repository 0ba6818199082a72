import subprocess
import sys

CODE = """
import sys
sys.modules["gymnasium"] = None
from tengen import gym
from tengen.errors import TengenError
try:
    gym.GameEnv
except TengenError as error:
    print(error)
"""


def test_without_gymnasium() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert "tengen.gym needs gymnasium; install it with: pip install gymnasium" in done.stdout
