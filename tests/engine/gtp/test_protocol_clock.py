import pytest

from tengen.engine.gtp.protocol import Clock, GtpError, kgs, standard


def test_no_limit() -> None:
    assert standard(["0", "1", "0"], 0.5).seconds(0, 30) is None  # what GTP says for none
    assert standard(["0", "0", "0"], 0.5).seconds(0, 30) is None  # what some programs say for none
    assert kgs(["none"], 0.5).seconds(0, 30) is None
    assert Clock().seconds(1, 30) is None


def test_absolute_time_is_shared_out_and_never_overdrawn() -> None:
    clock = standard(["300", "0", "0"], 0.5)
    left, spent = 300.0, 0.0
    for moves in range(40, 0, -1):
        seconds = clock.seconds(0, moves)
        assert seconds is not None
        assert 0 < seconds < left
        clock.spend(0, seconds)
        left, spent = left - seconds, spent + seconds
    assert 150 < spent < 300
    assert clock.seconds(1, 40) == pytest.approx((300 - 0.5) / 40, rel=0.1)  # the other clock stands
    clock.left(0, 0.0, 0)
    assert clock.seconds(0, 10) == 0


def test_canadian_overtime_is_shared_among_its_stones() -> None:
    clock = standard(["0", "30", "10"], 0.5)
    for _ in range(3):
        used = 0.0
        for _ in range(10):
            seconds = clock.seconds(0, 30)
            assert seconds is not None
            assert seconds > 1
            used += seconds + 0.5
            clock.spend(0, seconds)
        assert 29 < used < 30.01
    clock.left(0, 4.0, 8)
    assert clock.seconds(0, 30) == pytest.approx(0.25)
    # In main time a move may at least take what a stone of overtime would.
    clock = standard(["10", "30", "10"], 0.5)
    assert clock.seconds(0, 100) == pytest.approx(2.5)
    clock.spend(0, 10.5)
    assert clock.seconds(0, 100) == pytest.approx(29 / 9 - 0.5)


def test_byoyomi_periods_are_for_one_move_each() -> None:
    clock = kgs(["byoyomi", "60", "20", "3"], 0.5)
    assert clock.seconds(0, 30) == pytest.approx(19.5)
    clock.left(0, 12.0, 2)
    assert clock.seconds(0, 30) == pytest.approx(11.5)
    clock.spend(0, 11.5)
    assert clock.seconds(0, 30) == pytest.approx(19.5)
    assert kgs(["byoyomi", "600", "5", "3"], 0.5).seconds(0, 20) == pytest.approx(599.5 / 20)


def test_time_left_without_settings_counts() -> None:
    clock = Clock()
    clock.left(1, 90, 0)
    seconds = clock.seconds(1, 30)
    assert seconds is not None
    assert 2 < seconds < 3.1


@pytest.mark.parametrize("text", ["", "1", "a b c", "-1 0 0", "nan 0 0", "1e99 0 0", "1 2 3 4"])
def test_garbage_is_refused(text: str) -> None:
    arguments = text.split()
    with pytest.raises(GtpError, match="expected 3 numbers"):
        standard(arguments, 0.5)
    with pytest.raises(GtpError):
        kgs(["byoyomi", *arguments], 0.5)


def test_unknown_systems_are_named() -> None:
    for arguments in ([], ["fischer", "1", "2"]):
        with pytest.raises(GtpError, match="absolute, byoyomi or canadian"):
            kgs(arguments, 0.5)
    with pytest.raises(GtpError):
        kgs(["absolute"], 0.5)
    assert kgs(["canadian", "10", "0", "0"], 0.5).system == "absolute"
