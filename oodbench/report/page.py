"""Leaderboards as one page that needs nothing else: no network, no server, no other file.

The same record gives the same bytes. What a reader's browser may do is in the page itself: run its one script, and
load nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.board.metrics import cells_of
from oodbench.errors import UserError
from oodbench.report.cost import draw_cost, draw_search
from oodbench.report.critical import draw_critical
from oodbench.report.curve import draw_curve
from oodbench.report.drawing import MARKERS, style
from oodbench.report.figures import drawings_of, gather
from oodbench.report.inline import SETTINGS, inline_svg
from oodbench.report.page_data import Sheet, looks_on, sheet_of, studies_shown
from oodbench.report.selection import draw_selection
from oodbench.report.template import render_template

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oodbench.board.leaderboard import Leaderboard
    from oodbench.suite.results import BoardResult

FILE = "index.html"
MOST_INCHES = 14.0  # of a figure that is shown unfolded
GLYPHS = dict(zip(MARKERS, "●■◆▲▼✚◀✖", strict=True))
CAPTIONS = {
    "accuracy_f1": "Accuracy against F1",
    "distribution": "Distribution over test environments",
    "states": "Error on the map of the states",
    "critical": "Critical differences: a bar joins methods that cannot be told apart",
    "time": "Result against training time",
    "steps": "Result against gradient steps",
    "search": "The search, trial by trial",
    "selection": "Test against validation error of all configurations, opened after the choice",
    "curve": "Curve",
}


@dataclass(frozen=True)
class Chapter:
    """Leaderboards that belong together, and the curve that they are points of."""

    title: str
    leaderboards: Sequence[Leaderboard]
    curve: BoardResult | None = None
    files: tuple[str, ...] = ()  # with what was tried and chosen, as the page links them


@dataclass(frozen=True)
class Drawing:
    name: str
    caption: str
    svg: str
    folded: bool = False  # a panel for each of many methods is long


@dataclass(frozen=True)
class Section:
    """A leaderboard on the page."""

    id: str
    sheet: Sheet
    drawings: list[Drawing]


@dataclass(frozen=True)
class ChapterShown:
    title: str
    sections: list[Section]
    drawings: list[Drawing] = field(default_factory=list)
    files: tuple[str, ...] = ()


def write_chapters(
    folder: str | Path, title: str, chapters: Sequence[Chapter], about: Sequence[str] = (), command: str = ""
) -> Path:
    """The page, as index.html in the folder."""
    path = Path(folder) / FILE
    text = render_page(title, chapters, about, command)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.\nName a folder with --output.") from None
    return path


def render_page(title: str, chapters: Sequence[Chapter], about: Sequence[str] = (), command: str = "") -> str:
    shown = _show(chapters)
    notices = dict.fromkeys(
        notice for chapter in shown for section in chapter.sections for notice in section.sheet.notices
    )
    return render_template(
        "oodbench.report",
        "page.html.j2",
        title=title,
        about=about,
        command=command,
        chapters=shown,
        notices=list(notices),
        glyphs=GLYPHS,
        several=sum(len(chapter.sections) for chapter in shown) > 1,
    )


def _show(chapters: Sequence[Chapter]) -> list[ChapterShown]:
    from matplotlib import rc_context

    shown, number = [], 0
    with style(), rc_context(SETTINGS):
        for place, chapter in enumerate(chapters, start=1):
            sections = []
            for board in chapter.leaderboards:
                number += 1
                sections.append(_section(f"board-{number}", board, chapter.curve is None))
            curves = []
            if chapter.curve is not None:
                curves.append(_drawing(f"curve-{place}", "curve", draw_curve(chapter.curve), chapter.title))
            shown.append(ChapterShown(chapter.title, sections, curves, chapter.files))
    return shown


def _section(id: str, board: Leaderboard, environments: bool) -> Section:
    drawings = [
        _drawing(f"{id}-{name}", name, figure, board.dataset_id) for name, figure in _figures(board, environments)
    ]
    return Section(id, sheet_of(board, looks_on(board)), drawings)


def _figures(board: Leaderboard, environments: bool) -> Iterator[tuple[str, Figure]]:
    """What this board's studies allow: of test environments where there are several."""
    studies, looks = studies_shown(board), looks_on(board)
    tested = {
        name for study in studies if study.results is not None for name in cells_of(study.results, "error").columns
    }
    if environments and len(tested) > 1:
        scores = gather(board.dataset_id, studies)
        for name, draw in drawings_of(scores).items():
            yield name, draw(scores)
    others = {
        "critical": draw_critical(board, looks),
        "time": draw_cost(board, looks, "seconds"),
        "steps": draw_cost(board, looks, "gradient_steps"),
        "search": draw_search(studies, looks),
        "selection": draw_selection(board.dataset_id, studies, looks),
    }
    for name, figure in others.items():
        if figure is not None:
            yield name, figure


def _drawing(id: str, name: str, figure: Figure, where: str) -> Drawing:
    caption = CAPTIONS[name]
    folded = figure.get_figheight() > MOST_INCHES
    return Drawing(name, caption, inline_svg(figure, id, f"{caption}: {where}"), folded)
