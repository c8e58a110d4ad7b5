"""What all figures share: how they look, what tells methods apart, and the same bytes for the same content."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oodbench.errors import UnknownName
from oodbench.plugin.registry import names_own_first

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
COLORS = (  # told apart by everybody (Okabe, Ito), without the yellow, which is faint on white
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a8a",
)  # fmt: skip
MARKERS = "osD^vP<X"
PAGE = 6.8  # inches: the text of a page, both columns; figures are printed as they are, not scaled
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "oodbench",  # else the ids in the file are random
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # letters as letters: conferences refuse others
    "text.parse_math": False,  # a $ in a name is a $
}


@dataclass(frozen=True)
class Look:
    color: str
    marker: str


def looks_of(labels: Sequence[str]) -> dict[str, Look]:
    """A colour and marker for each row of a leaderboard: a method's own in all figures, as far as they go round."""
    installed, taken, looks = names_own_first("method"), set[int](), {}
    for label in labels:
        method = label.partition(" ")[0].partition(":")[0]
        place = installed.index(method) if method in installed else len(installed)
        colors = {other % len(COLORS) for other in taken} if len(taken) < len(COLORS) else set()
        while place in taken or place % len(COLORS) in colors:  # few rows have different colours
            place += 1
        taken.add(place)
        looks[label] = Look(COLORS[place % len(COLORS)], MARKERS[(place + place // len(COLORS)) % len(MARKERS)])
    return looks


def check_format(format: str) -> None:
    if format not in FORMATS:
        raise UnknownName("format of figures", format, FORMATS)


def new_figure(width: float, height: float) -> Figure:
    """To be made and filled inside `style()`; nothing opens a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def explain(artist: Any, texts: Sequence[str]) -> None:
    """What a reader is told who points at it: a text per point of a scatter or marker of a line, or one for a patch.

    Files of figures do not have them; inline.py puts them into pages.
    """
    artist.explanations = tuple(texts)


def style() -> Any:
    from matplotlib import style as styles

    return styles.context(["default", STYLE])


def as_bytes(figure: Figure, format: str) -> bytes:
    """Inside `style()`. Without the date, which would make every file another one."""
    content = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(content, format=format, metadata=undated.get(format))
    return content.getvalue()
