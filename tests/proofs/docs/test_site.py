"""The built site, which tox makes before: it asks nothing of the network and has what it should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from places import ROOT

SITE = ROOT / "site"
FETCHED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?(https?:)?//|<link[^>]*\shref=\"?(https?:)?//")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    assert SITE.is_dir(), "there is no site; build it with `mkdocs build --strict`"
    found = {path.relative_to(SITE).as_posix(): path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")}
    assert len(found) > 15
    return found


def test_no_page_fetches_anything_from_elsewhere(pages: dict[str, str]) -> None:
    assert [name for name, text in pages.items() if FETCHED.search(text)] == []
    styles = [path.read_text(encoding="utf-8") for path in SITE.rglob("*.css")]
    assert not [text for text in styles if re.search(r"url\(['\"]?(https?:)?//|@import", text)]


def test_links_between_pages_lead_to_files(pages: dict[str, str]) -> None:
    """Without a server, too: a link names a file, not a folder."""
    for name, text in pages.items():
        for link in re.findall(r'<a [^>]*href="([^"#?]+)', text):
            if name != "404.html" and not re.match(r"[a-z]+:", link):  # the page for servers has links from the root
                assert ((SITE / name).parent / link).is_file(), f"{name} links to {link}"


def test_references_are_made_of_the_code(pages: dict[str, str]) -> None:
    assert 'id="oodbench-data-fetch"' in pages["commands.html"]
    assert "--cpus-per-pack" in pages["commands.html"]
    for name in ("oodbench.run", "oodbench.LossMethod.loss", "oodbench.kit.stability.ood_stability"):
        assert f'id="{name}"' in pages["reference.html"]
    assert "gradient steps of one training" in pages["reference.html"]  # what `setting` is given


def test_nothing_but_pages_comes_along() -> None:
    kinds = {path.suffix for path in SITE.rglob("*") if path.is_file()}
    assert not kinds & {".py", ".pyc", ".md"}


def test_all_boards_are_on_the_site(pages: dict[str, str]) -> None:
    assert "boards/index.html" in pages
    assert "boards/methods/erm.html" in pages


def test_the_board_is_on_the_site_as_a_page() -> None:
    page = Path("leaderboards/acs_travel_2024/fair/page/index.html")
    assert (SITE / page).read_bytes() == (ROOT / page).read_bytes()
