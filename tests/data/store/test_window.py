"""KataGo's window, against numbers worked out by hand."""

import itertools

import pytest

from tengen import schema
from tengen.config.settings.data import WindowSettings
from tengen.data.store import window
from tengen.data.store.window import power_law


def settings(**changes: object) -> WindowSettings:
    return schema.from_options(WindowSettings, changes, "window")


def test_by_hand() -> None:
    # m = 100, s = 25, e = 0.5, growth 0.4: window = 100 + 0.4 * (sqrt(x) - 5) / (0.5 / 5), x = N - 75.
    small = settings(min_rows=100, scale=25, exponent=0.5, growth=0.4)
    assert power_law(100, small) == 100  # x = 25
    assert power_law(175, small) == 120  # x = 100: 0.4 * 5 * 10
    assert power_law(475, small) == 160  # x = 400: 0.4 * 15 * 10
    assert power_law(10_075, small) == 480  # x = 10000: 0.4 * 95 * 10


def test_scale_of_null_is_min_rows() -> None:
    # m = s = 100: x = N, window = 100 + 0.4 * (sqrt(N) - 10) * 20.
    assert power_law(400, settings(min_rows=100, scale=None, exponent=0.5, growth=0.4)) == 180


def test_katago_s_own_numbers() -> None:
    # 250k rows at least, exponent 0.65, 0.4 rows per row: what its shuffler does after ten million rows.
    # 250000 + 0.4 * (10e6^0.65 - 250e3^0.65) / (0.65 * 250e3^-0.35)
    # 10e6^0.65 = 35481.34; 250e3^0.65 = 3226.31; 250e3^-0.35 = 0.01290525
    expected = 250_000 + 0.4 * (35_481.34 - 3_226.31) / (0.65 * 0.012_905_25)
    found = power_law(10_000_000, settings(min_rows=250_000, scale=None, exponent=0.65, growth=0.4))
    assert found == pytest.approx(expected, rel=1e-4)
    assert 1_780_000 < found < 1_800_000


def test_an_exponent_of_one_grows_evenly() -> None:
    assert power_law(1100, settings(min_rows=100, exponent=1.0, growth=0.25, scale=7)) == 350


def test_limits() -> None:
    few = settings(min_rows=1000, max_rows=5000)
    assert [power_law(n, few) for n in (0, 1, 999, 1000)] == [1000] * 4
    assert power_law(10**12, few) == 5000
    assert 10**6 < power_law(10**15, settings()) < 10**15


def test_never_shrinks_and_never_outgrows_the_rows() -> None:
    sizes = [power_law(n, settings(min_rows=50, scale=20)) for n in range(50, 3000)]
    assert sizes == sorted(sizes)
    assert all(size <= n for n, size in enumerate(sizes, 50))
    assert all(later - size <= 1 for size, later in itertools.pairwise(sizes))


@pytest.mark.parametrize(
    "wrong", [{"min_rows": 0}, {"exponent": 0}, {"exponent": 1.5}, {"growth": 2}, {"min_rows": 9, "max_rows": 8}]
)
def test_wrong_settings(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"window: {list(wrong)[-1]}"):
        settings(**wrong)


def test_explained_with_the_numbers_of_a_run() -> None:
    small = settings(min_rows=100, scale=25, exponent=0.5, growth=0.4)
    lines = window.explained(475, small).splitlines()
    assert lines[-5].split() == ["now", "475", "160", "33.7", "%", "0.00"]
    assert lines[-4].split()[2:4] == ["950", f"{power_law(950, small)}"]
    assert "min_rows = 100" in lines[1]
    assert window.explained(0, small).splitlines()[-5].split()[:3] == ["now", "0", "0"]
