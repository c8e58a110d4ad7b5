"""All boards of a folder as one static site: an index, a page for each board and each method, and the files themselves.

It needs no network and no server. The same files give the same bytes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from oodbench.board.cells import ENDING
from oodbench.errors import UserError
from oodbench.plugin.files import filling
from oodbench.report.committed import CommittedBoard, read_committed
from oodbench.report.site_pages import (
    Cell,
    SitePage,
    board_page,
    boards_section,
    entries_of,
    method_page,
    methods_section,
)
from oodbench.report.sweep import CHOSEN, SWEEP
from oodbench.report.template import render_template

INDEX = "index.html"
PAGE = f"page/{INDEX}"  # of a folder of boards, with figures, ledger and provenance
ABOUT = (
    "Methods are tuned on training and validation data, and the test environments are opened once, after the choice. "
    "Boards show the budget of each row. Lower errors are better."
)


@dataclass
class _Names:
    """Names of files for texts of others: each its own, of letters that every disk and address takes."""

    taken: set[str] = field(default_factory=set)

    def of(self, text: str) -> str:
        plain = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")[:60] or "other"
        name = next(name for name in _numbered(plain) if name not in self.taken)
        self.taken.add(name)
        return f"{name}.html"


def _numbered(name: str) -> Iterable[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def write_site(folder: Path, source: Path) -> list[Path]:
    """All of it, into a new folder; or nothing."""
    with filling(folder) as partial:
        _write(partial, read_committed(source))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _write(folder: Path, boards: Sequence[CommittedBoard]) -> None:
    names, of_methods = _Names(), _Names()
    pages = {id(board): f"boards/{names.of(f'{board.place}-{board.name}')}" for board in boards}
    entries = [entry for board in boards if board.compares for entry in entries_of(board, pages[id(board)])]
    methods = sorted({entry.row.method for entry in entries if entry.row.ranked})
    files = {method: f"methods/{of_methods.of(method)}" for method in methods}

    def up(path: str) -> str:
        return f"../{path}"

    _page(folder / INDEX, SitePage(
        "Leaderboards",
        (ABOUT,),
        sections=[
            *boards_section(boards, lambda board: pages[id(board)]),
            *([methods_section(methods, entries, files.__getitem__)] if methods else []),
        ],
    ))  # fmt: skip
    for board in boards:
        links = [Cell(text, up(path)) for text, path in _copy_files(folder, board)]
        page = board_page(board, links, lambda method: up(files[method]) if method in files else "")
        _page(folder / pages[id(board)], page)
    for method in methods:
        chosen = [(board, row) for board in boards if board.compares for row in board.chosen]
        _page(folder / files[method], method_page(method, entries, chosen, up))


def _copy_files(folder: Path, board: CommittedBoard) -> list[tuple[str, str]]:
    """What there is of the board, beside its page: texts of links, and where they lead."""
    kinds = [
        ("All boards of this folder on one page, with figures, ledger and provenance", PAGE),
        ("What is shown, as CSV", f"{board.name}.csv"),
        ("Every seed and environment, as CSV", f"{board.name}{ENDING}"),
        ("What was chosen, as CSV", f"{board.name}{CHOSEN}"),
        ("Every configuration that was tried, as CSV", f"{board.name}{SWEEP}"),
    ]
    links = []
    for text, name in kinds:
        source, target = board.folder / name, folder / "files" / board.place / name
        if source.is_file():
            if source.resolve() != board.folder.resolve() / name:  # a site must not publish what is elsewhere
                raise UserError(f"{source} is behind a symbolic link.\nPut the file itself there.")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            links.append((text, quote(f"files/{board.place}/{name}")))
    return links


def _page(path: Path, page: SitePage) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = render_template("oodbench.report", "site.html.j2", page=page)
    path.write_text(text, encoding="utf-8", newline="\n")
