"""Pages in a real browser, opened from disk. Needs chromium, chromedriver and selenium; `tox -e browser` runs this.

Set OODBENCH_SCREENSHOTS to a folder to keep what it looked like.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oodbench
from oodbench.board.leaderboard import compile_leaderboard
from oodbench.report.page import Chapter, write_chapters
from pages import METHODS, STATES, census_board, study, with_all_opened

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
pytestmark = [
    pytest.mark.skipif(
        shutil.which(tool) is None, reason=f"{tool} is not installed (Debian: chromium, chromium-driver)"
    )
    for tool in ("chromium", "chromedriver")
]
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
TIMES = """const one = performance.getEntriesByType("navigation")[0];
return [one.domContentLoadedEventEnd, one.loadEventEnd];"""
SHOWN = 'return [...document.querySelectorAll(".ranking tbody tr")].filter(row => !row.hidden).map(row => '
SCROLL = """arguments[0].scrollIntoView({block: "center"});
requestAnimationFrame(() => requestAnimationFrame(arguments[1]));"""
ERROR = 2  # the column of the mean error, behind method and tier
Open = Callable[[str], Any]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A board as large as they come; and small ones, the first with tiers and all configurations opened."""
    folder = tmp_path_factory.mktemp("pages")
    small = [
        compile_leaderboard(f"data r={shift}", [study(label, 0.2 + shift, ["a", "b"]) for label in ("erm", "irm")])
        for shift in (0.0, 0.1)
    ]
    three = [study(label, centre, ["a", "b"]) for label, centre in (("srm", 0.2), ("erm", 0.5), ("irm", 0.3))]
    tiers = [compile_leaderboard("data with tiers", [with_all_opened(made) for made in three])]
    return {
        "census": oodbench.write_page(census_board(), folder / "census"),
        "small": write_chapters(folder / "small", "Small", [Chapter("Some", tiers), Chapter("Others", small)]),
    }


@pytest.fixture
def open_page(browser: Any, pages: dict[str, Path]) -> Open:
    def opened(name: str) -> Any:
        browser.get(pages[name].as_uri())
        return browser

    return opened


@pytest.fixture(autouse=True)
def no_complaints(browser: Any) -> Any:
    yield
    assert browser.get_log("browser") == []


def click(page: Any, css: str, number: int = 0) -> None:
    from selenium.webdriver.common.by import By

    page.find_elements(By.CSS_SELECTOR, css)[number].click()


def labels(page: Any) -> list[str]:
    return list(page.execute_script(SHOWN + "row.cells[0].dataset.value);"))


def column(page: Any, number: int) -> list[str]:
    return list(page.execute_script(SHOWN + f"row.cells[{number}].textContent.trim());"))


def pretend(page: Any, **features: str) -> None:
    listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": listed})


def ground(page: Any) -> str:
    return str(page.execute_script("return getComputedStyle(document.body).backgroundColor"))


def test_it_opens_in_less_than_two_seconds(open_page: Open) -> None:
    parsed, loaded = open_page("census").execute_script(TIMES)
    print(f"\n{len(METHODS)} x {len(STATES)} x 10: parsed {parsed:.0f} ms, loaded {loaded:.0f} ms")
    assert 0 < loaded < 2000


def test_it_asks_for_nothing_else(open_page: Open) -> None:
    page = open_page("census")
    asked = page.execute_script('return performance.getEntriesByType("resource").map(one => one.name)')
    assert [name for name in asked if not name.startswith("data:")] == []


def _number(text: str) -> float:
    return float(text.strip("≈★ ").split()[0])


def test_columns_sort_both_ways_with_what_failed_last(open_page: Open) -> None:
    page = open_page("census")
    click(page, ".ranking thead button", ERROR)
    values = list(map(_number, column(page, ERROR)[:-2]))
    assert values == sorted(values)
    click(page, ".ranking thead button", ERROR)
    assert list(map(_number, column(page, ERROR)[:-2])) == sorted(values, reverse=True)
    assert {"failed", "not run"} == set(column(page, ERROR)[-2:])
    heads = page.execute_script('return [...document.querySelectorAll(".ranking thead th")].map(one => one.ariaSort)')
    assert heads == [*["none"] * ERROR, "descending", *["none"] * (len(heads) - 1 - ERROR)]
    click(page, ".ranking thead button", 0)
    assert labels(page) == sorted([*METHODS, "broken", "forgotten"])


def test_the_keyboard_is_enough(open_page: Open) -> None:
    from selenium.webdriver import ActionChains, Keys

    page = open_page("census")
    press = lambda *keys: ActionChains(page).send_keys(*keys).perform()  # noqa: E731
    focused = lambda: page.execute_script("return document.activeElement.textContent.trim()")  # noqa: E731
    press(Keys.TAB)
    assert focused() == "Skip to the leaderboards"
    left, width = page.execute_script(
        "const b = document.activeElement.getBoundingClientRect(); return [b.left, b.width]"
    )
    assert left >= 0 < width
    press(Keys.ENTER)
    assert page.execute_script("return document.activeElement.id") == "boards"
    for _ in range(20):
        press(Keys.TAB)
        if focused() == "max error":
            break
    assert focused() == "max error"
    outline = page.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    before = labels(page)
    press(Keys.ENTER)
    press(Keys.SPACE)
    assert labels(page) != before
    assert page.execute_script("return document.activeElement.closest('th').ariaSort") == "descending"


def test_the_table_filters_by_words_and_by_tier(open_page: Open) -> None:
    from selenium.webdriver.common.by import By

    page = open_page("small")
    assert page.find_element(By.CSS_SELECTOR, ".count").text == "3 of 3"
    page.find_element(By.CSS_SELECTOR, ".filter").send_keys("NOTHING ir")
    assert page.find_element(By.CSS_SELECTOR, ".count").text == "1 of 3"
    assert labels(page)[0] == "irm"
    page.find_element(By.CSS_SELECTOR, ".filter").clear()
    click(page, ".first-tier")
    assert labels(page)[0] == "srm"
    assert page.find_element(By.CSS_SELECTOR, ".count").text == "1 of 3"
    assert len(labels(page)) == 1 + 2 + 2  # other boards are as they were


def test_the_table_of_selectors_is_below_their_figure(open_page: Open) -> None:
    from selenium.webdriver.common.by import By

    page = open_page("small")
    (figure,) = page.find_elements(By.CSS_SELECTOR, "figure.selection")
    (table,) = page.find_elements(By.CSS_SELECTOR, '[aria-label="Selectors of data with tiers"] table')
    assert table.is_displayed()
    assert table.location["y"] >= figure.location["y"] + figure.size["height"]
    assert [cell.text for cell in table.find_elements(By.CSS_SELECTOR, "tbody th")] == ["srm", "irm", "erm"]


def test_the_theme_follows_the_system_until_the_reader_says_otherwise(open_page: Open, browser: Any) -> None:
    pretend(browser, prefers_color_scheme="light")
    page = open_page("small")
    light = ground(page)
    pretend(page, prefers_color_scheme="dark")
    dark = ground(page)
    assert light == "rgb(255, 255, 255)" != dark
    assert page.execute_script("return document.getElementById('theme').ariaPressed") == "true"
    click(page, "#theme")
    assert ground(page) == light
    page.refresh()
    assert ground(page) == light  # remembered
    click(page, "#theme")
    assert ground(page) == dark


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        (".heat td", "erm on AK: error"),
        ("figure.distribution use:has(> title)", "boosting on ME: accuracy"),
        ("figure.states g > path:has(> title)", "erm on ME: error"),
        ("figure.search use:has(> title)", ", trial 1: score"),
    ],
)
def test_pointing_at_something_explains_it(open_page: Open, css: str, expected: str) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    page = open_page("census")
    target = page.find_element(By.CSS_SELECTOR, css)
    page.execute_async_script(SCROLL, target)
    ActionChains(page).move_to_element(target).perform()
    tip = page.find_element(By.ID, "tip")
    assert tip.is_displayed()
    assert expected in tip.text
    box = tip.rect
    assert box["width"] > 0
    ActionChains(page).move_to_element(page.find_element(By.CSS_SELECTOR, "footer")).perform()
    assert not tip.is_displayed()


@pytest.mark.parametrize("name", ["census", "small"])
def test_a_phone_scrolls_tables_and_not_the_page(open_page: Open, browser: Any, name: str) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page = open_page(name)
    assert page.execute_script("return [innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    if name == "census":
        wide = page.execute_script(
            'return [...document.querySelectorAll(".box")].filter(box => box.scrollWidth > box.clientWidth).length'
        )
        assert wide > 5
        page.execute_script('document.querySelector(".box").scrollLeft = 300')
        assert (
            page.execute_script('return document.querySelector(".ranking tbody th").getBoundingClientRect().left') < 20
        )


@pytest.mark.parametrize(
    ("look", "scheme", "width"), [("light", "light", 1280), ("dark", "dark", 1280), ("phone", "light", 390)]
)
def test_what_it_looks_like(open_page: Open, browser: Any, tmp_path: Path, look: str, scheme: str, width: int) -> None:
    """Pictures for people to look at; checked is that they are not blank."""
    from PIL import Image

    pretend(browser, prefers_color_scheme=scheme)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for name in ("census", "small"):
        page = open_page(name)
        size["height"] = min(page.execute_script("return document.documentElement.scrollHeight"), 8000)
        page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        folder = Path(os.environ.get("OODBENCH_SCREENSHOTS", tmp_path))
        page.save_screenshot(str(folder / f"{name}-{look}.png"))
        with Image.open(folder / f"{name}-{look}.png") as picture:
            assert len(set(picture.convert("RGB").resize((200, 200)).get_flattened_data())) > 50
