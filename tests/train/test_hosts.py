"""One learner in several processes: what is announced, who is waited for, and the same parameters as on one device."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np
import pytest

from tengen import train
from tengen.errors import OptionError
from tengen.train import hosts
from tengen.train.checkpoints import flat
from tests.helpers import paths
from tests.helpers.patience import LONG
from tests.helpers.tiny_runs import tiny
from tests.helpers.train_samples import random_rows


def python(*words: str, devices: int = 1) -> "subprocess.Popen[str]":
    environment = {
        **os.environ,
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
        "PYTHONPATH": paths.IMPORTABLE,
    }
    out = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *words], env=environment, **out)


@pytest.mark.parametrize("piece", [hosts._PIECE, 50])
def test_what_is_announced_arrives(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "_PIECE", piece)
    arrays = {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "b": np.array(True), "c": np.zeros((0, 2), np.float32)}
    found = hosts.announce({"do": "learn", "steps": 3}, arrays, stop=True)
    assert (found.order, found.stop) == ({"do": "learn", "steps": 3}, True)
    assert list(found.arrays) == list(arrays)
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


def test_announcements_may_be_larger_than_4_gib() -> None:
    numbers = [3, 5 << 32, 1]
    np.testing.assert_array_equal(hosts._gathered(numbers), [numbers])


def test_the_heartbeat_is_given_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(
        hosts, "announce", lambda order: (said.append(order), hosts.Announcement({}, {}, len(said) > 1))[1]
    )
    now = 0.0
    beat = hosts.Heartbeat(lambda: now)
    assert not beat.look()
    assert not beat.look()
    assert said == [{"do": "wait"}]
    now = 1.0
    assert beat.look()
    assert beat.look()  # from now on, without asking again
    assert len(said) == 2


@pytest.mark.parametrize("text", ["here", ":1234", "here:", "here:port", "here:70000"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(OptionError, match=rf"^--coordinator: expected HOST:PORT of process 0, .* got {text}$"):
        hosts.connect(text, 2, 1)


def test_a_number_that_no_process_has() -> None:
    with pytest.raises(OptionError, match="^--process: expected a number from 0 to 1, got 2$"):
        hosts.connect("localhost:1234", 2, 2)


@pytest.mark.parametrize(
    ("process", "words"),
    [
        (1, "process 0 cannot be reached there"),
        pytest.param(0, "not all of the 2 processes came", marks=pytest.mark.slow),
    ],
)
def test_processes_that_do_not_come(process: int, words: str) -> None:
    address = f"127.0.0.1:{free_port()}"
    done = python("-c", f"from tengen.train import hosts; hosts.connect('{address}', 2, {process}, 0.5)")
    _, errors = done.communicate(timeout=LONG)
    assert done.returncode == 2
    assert errors.splitlines()[-1] == f"--coordinator {address}: {words} within 0 s"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


OPTIMIZER = "train.optimizer.kind=sgd"  # AdamW would enlarge the rounding errors of gradients that are almost 0
PROGRAM = """
import sys
from pathlib import Path
from tengen.train import hosts
from tengen.train.following import follow

address, process, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
hosts.connect(address, 2, process)
import jax
from tengen.schema import to_dict
from tests.train.test_hosts import OPTIMIZER, learn, tiny

if process:
    print(follow(lambda: True, lambda text: None), jax.device_count())
else:
    config = tiny(OPTIMIZER)
    hosts.announce({"do": "begin", "config": to_dict(config)})
    learn(folder, range(2))
    assert hosts.Heartbeat().look()  # the other one would like to stop
    hosts.announce({"do": "end", "why": "enough"})
jax.distributed.shutdown()
"""


def learn(folder: Path, steps: range) -> dict[str, np.ndarray]:
    """The state after these steps, which go on from the checkpoint in the folder; another one is left there."""
    config = train.AlphaZeroConfig.of(tiny(OPTIMIZER))
    trainer = train.AlphaZeroTrainer(config)
    rows = random_rows(config.game, 16 * 4)
    with train.Checkpoints(folder, config.train.checkpoints) as checkpoints:
        trainer.resume(checkpoints)
        assert trainer.step == steps.start
        trainer.earn(1000)
        with mock.patch("tengen.train.learner._SETTLING_ROWS", 1):
            trainer.learn({name: values[16 * step : 16 * step + 16] for name, values in rows.items()} for step in steps)
            learned = flat(trainer.state)
            trainer.validate([{name: values[:16] for name, values in rows.items()}])
        settled = flat(trainer.state)
        assert any(not np.array_equal(learned[name], settled[name]) for name in learned), "all hosts settle"
        checkpoints.save(trainer.checkpoint())
    return flat(trainer.state)


@pytest.mark.slow
def test_two_processes_with_eight_devices_learn_what_one_device_learns(tmp_path: Path) -> None:
    words = ("-c", PROGRAM, f"127.0.0.1:{free_port()}")
    both = [python(*words, str(number), str(tmp_path / "hosts"), devices=4) for number in range(2)]
    said = [process.communicate(timeout=2 * LONG) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[1][0].splitlines()[-1] == "enough 8"
    found = learn(tmp_path / "hosts", range(2, 4))  # on one device
    expected = learn(tmp_path / "one", range(4))
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=2e-4, atol=2e-5, err_msg=name)
