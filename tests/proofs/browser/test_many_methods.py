"""A board of 45 methods on 50 environments in a real browser: it stays readable. `tox -e browser` runs this."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import oodbench
from oodbench.board.leaderboard import compile_leaderboard
from pages import STATES, study
from studies import changed

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
pytestmark = [
    pytest.mark.skipif(
        shutil.which(tool) is None, reason=f"{tool} is not installed (Debian: chromium, chromium-driver)"
    )
    for tool in ("chromium", "chromedriver")
]
METHODS = 45
TOLD = ((), ("environments",), ("alpha0=0.1",))
SHOWN = (
    'return [...document.querySelectorAll(".heat tr[data-words]")].filter(row => !row.hidden)'
    ".map(row => row.cells[0].textContent)"
)
HEADS = (
    """return [...document.querySelectorAll(".heat thead th")].filter(cell => !cell.hidden).map(c => c.textContent)"""
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    studies = []
    for place in range(METHODS):
        one = study(f"method_{place:02}", 0.2 + 0.004 * place)
        studies.append(changed(one, information=TOLD[place % 3], ledger__gradient_steps=1000 * (place % 7 + 1)))
    return oodbench.write_page(compile_leaderboard("acs_travel", studies), tmp_path_factory.mktemp("many"))


@pytest.fixture
def page(browser: Any, path: Path) -> Any:
    browser.get(path.as_uri())
    yield browser
    assert browser.get_log("browser") == []


def find(page: Any, css: str) -> Any:
    from selenium.webdriver.common.by import By

    return page.find_element(By.CSS_SELECTOR, css)


def test_it_opens_in_less_than_three_seconds(page: Any, path: Path) -> None:
    loaded = page.execute_script('return performance.getEntriesByType("navigation")[0].loadEventEnd')
    print(f"\n{METHODS} x {len(STATES)}: {path.stat().st_size / 1e6:.1f} MB, loaded in {loaded:.0f} ms")
    assert 0 < loaded < 3000


def test_heads_and_names_stay_in_sight_while_the_table_scrolls(page: Any) -> None:
    for table in (".ranking", ".heat"):
        seen = page.execute_script(
            """const table = document.querySelector(arguments[0]), box = table.closest(".box");
            box.scrollTop = 300; box.scrollLeft = 150;
            const place = (cell) => cell.getBoundingClientRect(), edge = place(box);
            const rows = table.querySelectorAll("tbody tr[data-words]");
            return [box.scrollTop, place(table.tHead.rows[0].cells[1]).top - edge.top,
                    place(rows[rows.length - 1].cells[0]).left - edge.left, edge.height / innerHeight];""",
            table,
        )
        scrolled, top, left, height = seen
        assert scrolled == 300, table
        assert -2 <= top <= 2, table
        assert -2 <= left <= 2, table
        assert height < 0.9, table


def test_groups_fold_to_their_best_method_one_by_one_and_together(page: Any) -> None:
    every = page.execute_script(SHOWN)
    assert len(every) == METHODS
    titles = page.execute_script(
        'return [...document.querySelectorAll(".heat .group")].map(one => one.textContent.trim())'
    )
    assert sorted(titles) == ["told alpha0 (15)", "told environments (15)", "told nothing (15)"]  # the best one first
    page.execute_script('document.querySelector(".heat .group button").click()')
    assert page.execute_script(SHOWN) == [every[0], *every[15:]]
    page.execute_script('document.querySelector(".fold").click()')
    assert page.execute_script(SHOWN) == every[::15]
    assert find(page, ".fold").get_attribute("aria-pressed") == "true"
    page.execute_script('document.querySelector(".fold").click()')
    assert page.execute_script(SHOWN) == every


def test_one_search_is_for_the_board_and_for_its_heat_map(page: Any) -> None:
    find(page, ".filter").send_keys("alpha0 _1")
    expected = [f"method_{place:02}" for place in range(10, 20) if place % 3 == 2]
    assert page.execute_script(SHOWN) == expected
    assert find(page, ".count").text == f"{len(expected)} of {METHODS}"
    assert page.execute_script('return [...document.querySelectorAll(".heat .group")].map(one => one.hidden)') == [
        True,
        True,
        False,
    ]


def test_environments_are_found_by_name(page: Any) -> None:
    find(page, ".environments").send_keys("NY ca")
    assert sorted(page.execute_script(HEADS)) == ["CA", "NY", "method"]
    widths = page.execute_script(
        'return [...document.querySelectorAll(".heat tr[data-words]")].map(row => '
        "[...row.cells].filter(cell => !cell.hidden).length)"
    )
    assert set(widths) == {3}
    for _ in range(5):
        find(page, ".environments").send_keys("\b")
    assert len(page.execute_script(HEADS)) == 1 + len(STATES)


def test_the_front_and_the_critical_differences_are_drawn(page: Any) -> None:
    for name in ("time", "steps"):
        told = page.execute_script(
            f'return [...document.querySelectorAll("figure.{name} title")].map(one => one.textContent)'
        )
        assert len(told) == METHODS
        assert any("method_00" in text and text.endswith("on the front") for text in told)
        assert 0 < sum(text.endswith("on the front") for text in told) < METHODS
    told = page.execute_script(
        'return [...document.querySelectorAll("figure.critical title")].map(one => one.textContent)'
    )
    joined = [text for text in told if text.startswith("no significant difference")]
    assert joined
    assert len(told) == METHODS + len(joined)


def test_long_figures_are_folded_and_open(page: Any) -> None:
    details = find(page, "figure.states details")
    assert details.get_attribute("open") is None
    page.execute_script("arguments[0].querySelector('summary').click()", details)
    assert find(page, "figure.states svg").is_displayed()


def test_what_it_looks_like(page: Any, tmp_path: Path) -> None:
    from PIL import Image

    folder = Path(os.environ.get("OODBENCH_SCREENSHOTS", tmp_path))
    for name in ("table.heat", "figure.critical", "figure.time", "table.ranking"):
        element = find(page, name)
        page.execute_script("arguments[0].scrollIntoView()", element)
        page.save_screenshot(str(folder / f"many-{name.partition('.')[2]}.png"))
        with Image.open(folder / f"many-{name.partition('.')[2]}.png") as picture:
            assert len(set(picture.convert("RGB").resize((200, 200)).get_flattened_data())) > 50
