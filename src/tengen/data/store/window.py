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
