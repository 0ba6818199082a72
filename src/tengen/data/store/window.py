"""How many of the newest rows to learn from: KataGo's power law.

Early rows are bad and soon forgotten: the window holds `min_rows` and slides. Later ones stay true for longer, so it
grows, by `growth` rows per row at first and ever more slowly. With N rows in all, m = `min_rows`, s = `scale` and
e = `exponent`:

    window = m + growth * (x^e - s^e) / (e * s^(e-1)),    x = N - m + s

which at N = m has the value m and the slope `growth`, whatever the scale. The scale says when the power is felt: after
s rows beyond m the slope has fallen by the factor 2^(e-1), after 9 s by 10^(e-1).
"""

from tengen.config.settings.data import WindowSettings


def power_law(total_rows: int, settings: WindowSettings) -> int:
    """Rows in the window when the run has made `total_rows`: from `min_rows` to `max_rows`.

    That may be more than there are: below `min_rows` it is up to the caller to wait, or to make do.
    """
    exponent = settings.exponent
    scale = settings.min_rows if settings.scale is None else settings.scale
    beyond = max(total_rows - settings.min_rows, 0)
    # In units of the scale, so that no power of a large number is formed.
    grown = scale * ((beyond / scale + 1) ** exponent - 1) / exponent
    window = settings.min_rows + int(settings.growth * grown)
    return window if settings.max_rows is None else min(window, settings.max_rows)


def explained(total_rows: int, settings: WindowSettings) -> str:
    """The window of a run with this many rows, and how it will grow, in words and numbers."""
    scale = settings.min_rows if settings.scale is None else settings.scale
    most = "no largest window" if settings.max_rows is None else f"at most {settings.max_rows:,}"
    later = max(total_rows, settings.min_rows)
    # One row more would give less than a whole row of the window, so a thousandth of the rows is compared.
    step = max(later // 1000, 1)

    def line(rows: int, name: str) -> str:
        window = min(power_law(rows, settings), rows)
        slope = (power_law(rows + step, settings) - power_law(rows, settings)) / step if rows >= later else 1.0
        return f"{name:<12} {rows:>15,} {window:>15,} {100 * window / max(rows, 1):>8.1f} % {max(slope, 0):>12.2f}"

    return "\n".join(
        [
            "The window is the newest rows of a run, from which the rows of a shuffle are drawn (data.window).",
            f"Up to min_rows = {settings.min_rows:,} rows it holds all of them. Then it slides and grows: by growth = "
            f"{settings.growth:g} rows per new row",
            f"at first, and more slowly later, by the power exponent = {settings.exponent:g} over about "
            f"scale = {scale:,} rows; {most}.",
            "",
            f"{'':<12} {'rows of the run':>15} {'window':>15} {'share':>10} {'per new row':>12}",
            line(total_rows, "now"),
            *(
                line(factor * later, f"{factor} times" if total_rows == later else f"at {factor} x min")
                for factor in (2, 5, 10, 100)
            ),
        ]
    )
