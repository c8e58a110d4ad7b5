"""Leaderboards as a folder of files: tables, scores, what was tried and chosen, and a page that links them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.board.cells import ENDING, scores_of, write_cells
from oodbench.errors import UserError
from oodbench.report.page import Chapter, write_chapters
from oodbench.report.sweep import sweep_files
from oodbench.report.tables import markdown_report
from oodbench.texts import as_csv

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.board.leaderboard import Leaderboard

NAME = "board"


def write_boards(boards: Sequence[Leaderboard], folder: str | Path) -> list[Path]:
    """All of a board as files, as for those of a suite; several settings of datasets are together in each file."""
    markdown = "\n\n".join(markdown_report(board, ledger=False) for board in boards) + "\n"
    texts = {f"{NAME}.md": markdown, f"{NAME}.csv": as_csv(frame_of(boards))}
    texts[f"{NAME}{ENDING}"] = write_cells(scores_of(boards))
    return [*write_texts(folder, texts), *write_board_page(boards, folder)]


def write_board_page(boards: Sequence[Leaderboard], folder: str | Path) -> list[Path]:
    """The page, which is the last, and the files that it links."""
    linked = sweep_files(NAME, boards)
    title = boards[0].dataset_id if len(boards) == 1 else f"{len(boards)} dataset settings"
    written = write_texts(folder, linked)
    return [*written, write_chapters(folder, title, [Chapter("", boards, files=tuple(linked))])]


def frame_of(boards: Sequence[Leaderboard]) -> pd.DataFrame:
    """One below the other."""
    import pandas as pd

    frames = [board.frame() for board in boards]
    for board, frame in zip(boards, frames, strict=True):
        frame.insert(0, "dataset_id", board.dataset_id)
    return pd.concat(frames, ignore_index=True)


def write_texts(folder: str | Path, texts: Mapping[str, str]) -> list[Path]:
    """Files of these names and contents."""
    paths = [Path(folder) / name for name in texts]
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.\nName a folder with --output.") from None
    return paths
