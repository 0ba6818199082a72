"""The HTML document."""

import base64
import hashlib
import html as escaping
import json
import re

from tengen.web import page
from tests.helpers.web_runs import HOSTILE


def test_nothing_in_the_data_can_end_its_element_or_become_markup() -> None:
    found = page.html({"live": False, "name": HOSTILE, "odd": "\u2028<!--"}, HOSTILE)
    data = re.search(r'<script type="application/json" id="page">(.*?)</script>', found, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["name"] == HOSTILE
    assert "<" not in data[1]
    assert f"<title>{escaping.escape(HOSTILE)}</title>" in found


def test_the_policy_allows_this_script_and_this_style_alone() -> None:
    found = page.html({"live": False})
    for kind, element in (("script", "<script>"), ("style", "<style>")):
        start = found.index(element) + len(element)
        text = found[start : found.index(f"</{kind}>", start)]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in found
    assert "default-src 'none'" in found
    assert "connect-src 'none'" in found
    assert "connect-src 'self'" in page.policy(True)
    assert "frame-ancestors 'none'" in page.policy(True)


def test_the_page_loads_nothing() -> None:
    found = page.html({"live": False})
    assert not re.search(r'(?:src|href)="(?!data:,")', found)
    assert "@import" not in found
    assert "url(" not in page.style()


def test_modules_become_one_script_with_the_licence_of_the_chart_library() -> None:
    found = page.script()
    assert not re.search(r"^(import|export) ", found, re.MULTILINE)
    assert "Permission is hereby granted" in found
    names = re.findall(
        r"^(?:async )?(?:function\*?|class|const|let) (\w+)", found.split('"use strict";')[-1], re.MULTILINE
    )
    assert len(names) == len(set(names)), "modules share one scope, so their names must differ"


def test_no_module_writes_markup() -> None:
    """Text from records only ever becomes text."""
    own = page.script().split('"use strict";')[-1]
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert word not in own


def test_text_has_enough_contrast_in_light_and_dark_colours() -> None:
    """By the formula of WCAG 2, which wants 4.5 for text, and 3 for lines and the edges of fields."""
    blocks = re.findall(r"^:root[^{]*\{(.*?)\}", page.style()[page.style().index(":root") :], re.MULTILINE | re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks[:2])
    for colours in (light, {**light, **dark}):
        for ground in ("bg", "card"):
            for name in ("ink", "muted", "accent", "good", "bad", "mark"):
                assert _contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        for name in ("edge", "heat", *(f"c{number}" for number in range(8))):
            assert _contrast(colours[name], colours["card"]) >= 3, name


def _contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)
