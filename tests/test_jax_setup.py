"""What a process is told about the devices that it may use."""

from pathlib import Path

import pytest

from tengen import jax_setup


def test_devices_are_counted_among_the_visible_ones() -> None:
    assert jax_setup.restricted("gpu", [3, 0], {}) == {"CUDA_VISIBLE_DEVICES": "3,0"}
    seen = {"CUDA_VISIBLE_DEVICES": "5, GPU-abc,7"}
    assert jax_setup.restricted("gpu", [1, 2], seen) == {"CUDA_VISIBLE_DEVICES": "GPU-abc,7"}


def test_virtual_devices_of_a_cpu_are_all_alike() -> None:
    flag = "--xla_force_host_platform_device_count"
    assert jax_setup.restricted("cpu", [4, 7], {"XLA_FLAGS": f"{flag}=8"}) == {"XLA_FLAGS": f"{flag}=8 {flag}=2"}
    assert jax_setup.restricted("cpu", [0], {}) == {"XLA_FLAGS": f"{flag}=1"}


def test_who_asked_for_no_gpu_sees_none_and_who_shares_one_takes_its_part_of_the_memory() -> None:
    assert jax_setup.gpu_share(0, {"JAX_PLATFORMS": "cuda"}) == {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    assert jax_setup.gpu_share(0.25, {}) == {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.225"}
    assert jax_setup.gpu_share(0.25, {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"}) == {}
    assert jax_setup.gpu_share(1, {}) == jax_setup.gpu_share(2, {}) == {}


@pytest.mark.parametrize(
    ("text", "allowed"), [("123456\n", True), ("max\n", False), ("", False), ("99999999999999999\n", False)]
)
def test_the_memory_of_a_cpu_is_what_the_machine_has_and_a_container_allows(
    text: str, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax_setup, "_LIMITS", ())
    everything = jax_setup.machine_memory()
    assert everything is not None
    assert everything > 2**28
    limit = tmp_path / "memory.max"
    limit.write_text(text)
    monkeypatch.setattr(jax_setup, "_LIMITS", (tmp_path / "missing", tmp_path, limit))
    assert jax_setup.machine_memory() == (123456 if allowed else everything)
