"""Texts of others, made safe for the place that shows them: a terminal, Markdown, a spreadsheet; addresses anywhere.

Names of datasets, methods and environments and the errors of plug-ins are texts of others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import pandas as pd

SECRET = "***"

_SECRET_KEY = r"[^=&;#\s]*(?:pass|pwd|token|secret|key|auth|sig|credential|odbc_connect)[^=&;#\s]*"
_SECRET_VALUE = re.compile(rf"([?&;#]{_SECRET_KEY}=)[^&;#\s'\"]*?(?=:?(?:[&;#\s'\"]|$))", re.IGNORECASE)
_USERS = (
    (re.compile(r"://[^\s/?#]*@"), f"://{SECRET}@"),
    (re.compile(r"://[^\s/:@]*:\S*@"), f"://{SECRET}@"),  # a password with a slash
    (re.compile(r"://[^\s/:@]*:[^/\n]*@"), f"://{SECRET}@"),  # one with a blank
    (re.compile(r"(?<![\w.:*])[^\s/:@'\"()]+:[^\s/@]+@(?=[\w\[])"), f"{SECRET}@"),  # without a scheme
)
# direction marks make a text look like another one
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKDOWN = re.compile(r"([\\`|*\[])")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_QUOTED = re.compile(r"'+[=+\-@\t\r]")


def redact(text: str) -> str:
    """An address without its password or token, well-formed or not; or a text with such addresses in it.

    Examples:
        >>> redact("http://team:hunter2@host/?api_key=abc")
        'http://***@host/?api_key=***'
    """
    for pattern, shown in _USERS:
        text = pattern.sub(shown, text)
    return _SECRET_VALUE.sub(rf"\1{SECRET}", text)


def without_user(address: str) -> str:
    """An address without user and password, and without the values of its secret keys: as it may be stored."""
    try:
        parts = urlsplit(address)
        netloc, _ = parts.netloc, parts.port  # to read the port is to check it
    except ValueError:
        netloc = ""
    if netloc:  # exactly what it is, for it is used again
        return _SECRET_VALUE.sub(rf"\1{SECRET}", address.replace(netloc, netloc.rpartition("@")[2], 1))
    return redact(address).replace(f"{SECRET}@", "")


def printable(text: str) -> str:
    """Without what would steer a terminal; lines and tabs stay."""
    return _CONTROL.sub("", text)


def markdown(text: str) -> str:
    """The text as it is, within a line or a table's cell of Markdown."""
    plain = " ".join(printable(text).split("\n")).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKDOWN.sub(r"\\\1", plain)


def markdown_code(text: str) -> str:
    """The text as code within a line of Markdown, whatever backticks it has."""
    plain = " ".join(printable(text).split("\n"))
    fence = "`" * (1 + max((len(ticks) for ticks in re.findall("`+", plain)), default=0))
    blank = " " if "`" in plain else ""
    return f"{fence}{blank}{plain}{blank}{fence}"


def csv_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula; numbers stay. `from_csv_text` undoes it."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_csv_text(text: str) -> str:
    return text[1:] if _QUOTED.match(text) else text


def as_csv(frame: pd.DataFrame) -> str:
    """A table as CSV whose texts no spreadsheet takes for formulas."""
    quoted = {
        str(name): frame[name].map(lambda value: csv_text(value) if isinstance(value, str) else value)
        for name in frame.select_dtypes(["object", "string"])
    }
    return str(frame.assign(**quoted).to_csv(index=False))
