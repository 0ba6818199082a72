"""The load of this machine."""

from tengen.web.machine import MachineLoad


def test_shares_are_shares() -> None:
    found = MachineLoad().look()
    assert found["cores"] >= 1
    assert found["cpu"] is None or 0 <= found["cpu"] <= 1
    if found["memory"] is not None:
        used, there = found["memory"]
        assert 0 < used <= there
    assert isinstance(found["gpus"], list)
