"""The static site of all boards: what it says is what the files say, and it needs nothing else."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from oodbench.board.cells import scores_of, write_cells
from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.errors import UserError
from oodbench.report.folder import frame_of, write_texts
from oodbench.report.site import write_site
from oodbench.report.sweep import sweep_files
from oodbench.texts import as_csv
from pages import study
from places import ROOT
from studies import changed, failed

NASTY = '<script>alert("x")</script>&\'"'


class Texts(HTMLParser):
    """The links of a page, and its tables as texts."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self._open = False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open = tag in ("td", "th") or (self._open and tag in ("a", "button"))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "a":
            self.links.append(dict(attrs)["href"] or "")

    def handle_data(self, data: str) -> None:
        if self._open and data.strip():
            self.rows[-1][-1] += data.strip()


def write_board(folder: Path, board: Leaderboard, title: str) -> None:
    """The files of a board, without its page of figures."""
    texts = {"board.md": f"# {title}\n", "board.csv": as_csv(frame_of([board]))}
    write_texts(folder, texts | {"board_cells.csv": write_cells(scores_of([board]))} | sweep_files("board", [board]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two folders: one with tiers, and one whose names are as bad as they come."""
    folder = tmp_path_factory.mktemp("all") / "boards"
    tried = ({"learning_rate": 0.012345678901, "penalty": 10},) * 2
    centres = {"srm": 0.2, "erm": 0.5, "irm:released": 0.3}
    studies = [
        changed(study(label, centre, ["a", "b"], seeds=8, trials=2), configurations=tried)
        for label, centre in centres.items()
    ]
    broken = changed(failed(studies[0], "it diverged"), label="broken", study_id="broken")
    write_board(folder / "plain", compile_leaderboard("data r=1", [*studies, broken]), "Plain \\*names\\*")
    bad = [study(f"{NASTY} {word}", 0.3, ["a"], seeds=8, trials=2) for word in ("one", "two")]
    write_board(folder / "b & <b>", compile_leaderboard(f"data {NASTY}", bad), NASTY)
    write_site(folder.parent / "site", folder)
    return folder.parent / "site"


def test_it_says_where_methods_win_and_lose(site: Path) -> None:
    index = Texts(site / "index.html").rows
    assert ["Plain *names*", "plain", "data r=1", "4", "srm"] in index
    (titles,) = (row for row in index if row[0] == "method")
    counts = {row[0]: dict(zip(titles, row, strict=True)) for row in index if row[0] in ("srm", "erm", "irm")}
    assert {name: (count["wins"], count["loses"], count["better than ERM"]) for name, count in counts.items()} == {
        "srm": ("1", "0", "1"), "irm": ("0", "1", "1"), "erm": ("0", "1", "0"),
    }  # fmt: skip


def test_the_page_of_a_method(site: Path) -> None:
    head, row, chosen_head, chosen = Texts(site / "methods" / "irm.html").rows
    shown = dict(zip(head, row, strict=True))
    assert (shown["row"], shown["tier"], shown["beats"], shown["beaten by"]) == ("irm:released", "2", "1", "1")
    assert shown["best"].startswith("srm 0.2")
    assert dict(zip(chosen_head, chosen, strict=True)) == {
        "board": "Plain *names*: data r=1", "row": "irm:released", "search": "1", "learning_rate": "0.01235",
        "penalty": "10",
    }  # fmt: skip


def test_the_page_of_a_board(site: Path) -> None:
    table = Texts(site / "boards" / "plain-board.html").rows
    (broken,) = (dict(zip(table[0], row, strict=True)) for row in table if row[0] == "broken")
    assert (broken["failure"], broken["mean error"], broken["tier"]) == ("it diverged", "–", "–")


def test_names_of_others_stay_texts(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert NASTY not in text
        assert Texts(page).tags.count("script") == 1
    assert any(NASTY in row[0] for page in (site / "boards").iterdir() for row in Texts(page).rows)


def test_every_link_leads_to_a_file_of_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        for link in Texts(page).links:
            path = unquote(link.partition("#")[0])
            assert not path or (page.parent / path).resolve().is_relative_to(site.resolve()), f"{page} links to {link}"
            assert not path or (page.parent / path).is_file(), f"{page} links to {link}"


def test_the_same_boards_give_the_same_bytes(site: Path, tmp_path: Path) -> None:
    again = write_site(tmp_path / "again", site.parent / "boards")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in sorted(site.rglob("*.*"))]


def test_all_committed_boards_are_on_it(tmp_path: Path) -> None:
    write_site(tmp_path / "site", ROOT / "leaderboards")
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"?(https?:)?//", index)
    for folder in (ROOT / "leaderboards").rglob("*_cells.csv"):
        assert folder.parent.relative_to(ROOT / "leaderboards").as_posix() in index


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("", "list index out of range"),
        ("dataset_id,method,tier\nx,y,1\n", "'information'"),
        ("a,b,tier\n1,2,3\n", "'dataset_id'"),
        ("dataset_id,method,tier\nx\n", "more or fewer values than the first"),
        ("dataset_id,method,tier,e,e_spread,e_low\nx,y,1,many,1,1\n", "could not convert string to float"),
    ],
)
def test_what_is_no_board_is_said_in_two_lines(tmp_path: Path, table: str, reason: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "board_cells.csv").write_text("dataset_id,method,task,seed,environment,error\n")
    (tmp_path / "in" / "board.csv").write_text(table)
    with pytest.raises(UserError, match=r"board.csv is not a table that oodbench wrote") as refused:
        write_site(tmp_path / "out", tmp_path / "in")
    assert reason in str(refused.value)
    assert len(str(refused.value).splitlines()) == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("linked", ["board_sweep.csv", "page"])
def test_a_file_of_elsewhere_is_not_published(site: Path, tmp_path: Path, linked: str) -> None:
    shutil.copytree(site.parent / "boards" / "plain", tmp_path / "in")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "index.html").write_text("secret")
    (tmp_path / "in" / linked).unlink(missing_ok=True)
    (tmp_path / "in" / linked).symlink_to(tmp_path / "secret" / ("" if linked == "page" else "index.html"))
    with pytest.raises(UserError, match=r"is behind a symbolic link\.\nPut"):
        write_site(tmp_path / "out", tmp_path / "in")
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        write_site(tmp_path / "out", tmp_path / "nothing")
    with pytest.raises(UserError, match="has no boards"):
        write_site(tmp_path / "out", tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="exists already"):
        write_site(tmp_path / "full", tmp_path)
