"""The page itself: the static files of this package in one HTML document that loads nothing."""

import base64
import hashlib
import json
import re
from functools import lru_cache
from html import escape
from importlib import resources
from typing import Any

MODULES = (
    "dom.js",
    "boards.js",
    "calibration.js",
    "chart_input.js",
    "chart_layers.js",
    "charts.js",
    "viewer.js",
    "tables.js",
    "play.js",
    "app.js",
)
"""In the order in which they need each other."""
_IMPORT = re.compile(r"^import .*$\n?", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@lru_cache
def script() -> str:
    """All modules as one script: their names are unique, so imports and exports can go."""
    own = "\n".join(_EXPORT.sub("", _IMPORT.sub("", _static(name))) for name in MODULES)
    licence = _static("uPlot-LICENSE.txt").replace("*/", "* /")
    return f'/* uPlot:\n{licence}*/\n{_static("uPlot.js")}\n(() => {{\n"use strict";\n{own}\n}})();\n'


@lru_cache
def style() -> str:
    return _static("uPlot.css") + _static("app.css")


@lru_cache
def policy(live: bool) -> str:
    """The Content-Security-Policy: this script and this style alone, and no connection but to the own server."""
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src '{_digest(script())}'; style-src '{_digest(style())}'; img-src data: blob:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'" + ("; frame-ancestors 'none'" if live else "")
    )


def html(content: dict[str, Any], title: str = "Tengen") -> str:
    """The document with its data. Text in the data cannot end the element that holds it."""
    data = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy_in_page(content["live"])}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{style()}</style>
</head>
<body>
<noscript>This page draws its charts with JavaScript, which is switched off.</noscript>
<script type="application/json" id="page">{data}</script>
<script>{script()}</script>
</body>
</html>
"""


def policy_in_page(live: bool) -> str:
    """The same policy as far as a page can have it without a server."""
    return policy(live).partition("; frame-ancestors")[0]


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _static(name: str) -> str:
    return (resources.files("tengen.web") / "static" / name).read_text("utf-8")
