"""Keeps passwords and tokens out of messages and files.

An address may hold secrets in two places: before the host (`https://me:password@host`) and in a parameter whose name
says so (`?token=...`). A command may also spell out a header (`Authorization: Bearer ...`). `secret_in` finds them, so
that such a text can be refused before it is written anywhere; `hide` takes them out of a message. `repeats` tells
whether what somebody else said contains a known secret.
"""

import html
import json
import re
import urllib.parse

TOKEN = "{token}"
"""Stands in an address for the token."""

_HIDDEN = "***"
_PIECE = 8  # characters of a secret that give it away
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<place>[^/?#\s\"']*)(?P<rest>[^\s\"']*)")
_NAME = (
    r"(?:[\w.-]*(?:token|secret|passw|pwd|signature|credential|api[_-]?key|access[_-]?key)[\w.-]*"
    r"|key|sig|auth|authorization|pass)"
)
_PARAMETER = re.compile(rf"[?&;](?P<name>{_NAME})=(?P<value>[^&;#\s\"']+)", re.IGNORECASE)
_HEADER = re.compile(
    r"(?P<name>authorization[\"']?\s*[:=]\s*[\"']?(?:bearer\s|basic\s)?\s*)(?P<value>[^\s\"']+)", re.IGNORECASE
)


def secret_in(text: str) -> str | None:
    """What in an address or a command is secret, in words without the secret itself; None if nothing is.

    Values that begin with `$` or are `{token}` are filled in later and are no secrets. A user name without a
    password is a secret only for http, where tokens are often written that way.
    """
    for url in _URL.finditer(text):
        user, at, _ = url["place"].rpartition("@")
        if at and "$" not in user and (":" in user or url["scheme"].lower() in ("http", "https")):
            return "a user name or password"
        for parameter in _PARAMETER.finditer(url["rest"]):
            if not parameter["value"].startswith(("$", TOKEN)):
                return f"the value of {parameter['name']}"
    header = _HEADER.search(text)
    return None if header is None or header["value"].startswith("$") else "the value of Authorization"


def hide(text: str) -> str:
    """`text` with *** for whatever may be a secret in an address, even one that is not well formed."""
    text = re.sub(r"://[^\n]*@", f"://{_HIDDEN}@", text)
    text = _PARAMETER.sub(lambda found: found[0][: found.start("value") - found.start()] + _HIDDEN, text)
    text = re.sub(r"(token_variable\s*=).+", rf"\1{_HIDDEN}", text)  # people put the token itself there
    return _HEADER.sub(lambda found: found["name"] + _HIDDEN, text)


def repeats(text: str, secret: str) -> bool:
    """Whether `text` contains the secret or a telling part of it, in plain text or in a common encoding."""
    bare = "".join(text.split())
    forms = {secret, json.dumps(secret)[1:-1], html.escape(secret), urllib.parse.quote(secret, safe="")}
    for form in forms:
        packed = "".join(form.split())
        pieces = (packed[at : at + _PIECE] for at in range(max(len(packed) - _PIECE, 0) + 1))
        if any(piece and piece in bare for piece in pieces):
            return True
    return False
