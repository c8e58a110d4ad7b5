"""Standard output that cannot take what is printed: a full device, a closed pipe, an encoding without our signs."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from oodbench.errors import Unprintable

if TYPE_CHECKING:
    from rich.console import Console

SPELLED = "oodbench.spelled"  # the name of a handler of encoding errors
SPELLINGS = str.maketrans(
    {
        "±": "+-", "×": "x", "★": "*", "≈": "~", "†": "+", "✓": "yes", "✗": "no", "…": "...", "–": "-", "—": "-",
        "≥": ">=", "≤": "<=", "→": "->", "·": ".", "•": "*", "“": '"', "”": '"', "’": "'",
        **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼┏┓┗┛┡┩╇┳┻╋", "+"), **dict.fromkeys("─━═╌", "-"), **dict.fromkeys("│┃║", "|"),
    }
)  # fmt: skip


def _spell(error: UnicodeError) -> tuple[str, int]:
    """What an encoding lacks, in letters that all have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(SPELLINGS)
    return text.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error(SPELLED, _spell)


def spelled(text: str, encoding: str) -> str:
    """The text as a stream of that encoding shows it."""
    return text.encode(encoding, SPELLED).decode(encoding)


def make_console(**settings: Any) -> Console:
    """A console that lays out its tables with the letters that its stream can show."""
    from rich.text import Text

    from oodbench.report.printing import PlainConsole

    class SpellingConsole(PlainConsole):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(spelled(text, self.encoding), **options)

    console = PlainConsole(**settings)
    return console if console.encoding.startswith("utf") else SpellingConsole(**settings)


class _Output(io.TextIOWrapper):
    """Standard output, whose faults are told like other errors."""

    def write(self, text: str) -> int:
        with self._faults():
            return super().write(text)

    def flush(self) -> None:
        with self._faults():
            super().flush()

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:  # whoever closes a pipe has seen enough
            _silence(self)
            raise
        except OSError as error:
            _silence(self)
            raise Unprintable(error) from None


class _Errors(io.TextIOWrapper):
    """Standard error: where it cannot be written there is nobody to tell, and the work goes on."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            _silence(self)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            _silence(self)


def _silence(stream: io.TextIOWrapper) -> None:
    """What is still to be printed goes nowhere: the interpreter's last flush would fail once more."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def guard_streams() -> None:
    """From here on no sign is too much for the standard streams, and a full device is told in two lines."""
    kinds: dict[str, type[io.TextIOWrapper]] = {"stdout": _Output, "stderr": _Errors}
    for name, kind in kinds.items():
        stream = _guarded(getattr(sys, name), kind)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _guarded(stream: TextIO | None, kind: type[io.TextIOWrapper]) -> TextIO:
    if stream is None:  # closed by whoever started us; no other file must get its number
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  (open to the end)
    if type(stream) is not io.TextIOWrapper:  # another's, as in a notebook or a test
        return stream
    encoding, through, lines = stream.encoding, stream.write_through, stream.line_buffering
    return kind(stream.detach(), encoding, SPELLED, line_buffering=lines, write_through=through)
