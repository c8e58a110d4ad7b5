"""The site of all boards in a real browser, opened from disk: `tox -e browser` runs this."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from oodbench.report.site import write_site
from places import ROOT

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
pytestmark = [
    pytest.mark.skipif(
        shutil.which(tool) is None, reason=f"{tool} is not installed (Debian: chromium, chromium-driver)"
    )
    for tool in ("chromium", "chromedriver")
]
WIDER = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
SHOWN = """return [...document.querySelectorAll(arguments[0] + " tbody tr")].filter(row => !row.hidden)
    .map(row => [...row.cells].map(cell => cell.textContent.trim()))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sites") / "site"
    write_site(folder, ROOT / "leaderboards")
    return folder


@pytest.fixture(autouse=True)
def no_complaints(browser: Any) -> Any:
    yield
    assert browser.get_log("browser") == []


def find(page: Any, css: str) -> list[Any]:
    from selenium.webdriver.common.by import By

    return list(page.find_elements(By.CSS_SELECTOR, css))


def keep(page: Any, name: str) -> None:
    if os.environ.get("OODBENCH_SCREENSHOTS"):
        page.save_screenshot(str(Path(os.environ["OODBENCH_SCREENSHOTS"]) / f"{name}.png"))


def test_from_the_index_to_a_method_to_its_board_and_back(browser: Any, site: Path) -> None:
    browser.get((site / "index.html").as_uri())
    keep(browser, "site-index")
    methods = f"#{find(browser, 'section')[-1].get_attribute('id')}"
    (head,) = (head for head in find(browser, f"{methods} thead button") if head.text == "wins")
    head.click()
    head.click()
    wins = [int(row[2]) for row in browser.execute_script(SHOWN, methods)]
    assert wins == sorted(wins, reverse=True)
    assert wins[0] > 0
    (erm,) = (link for link in find(browser, f"{methods} a") if link.text == "erm")
    erm.click()
    assert browser.title == "erm – oodbench"
    keep(browser, "site-method")
    board = find(browser, "tbody th a")[0]
    title = board.text
    board.click()
    assert find(browser, "h1")[0].text == title
    keep(browser, "site-board")
    find(browser, ".brand a")[0].click()
    assert find(browser, "h1")[0].text == "Leaderboards"


def test_rows_are_filtered_and_lists_of_methods_are_explained(browser: Any, site: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser.get((site / "index.html").as_uri())
    whole = browser.execute_script(SHOWN, "#part-1")
    find(browser, "#part-1 .filter")[0].send_keys("spurious_correlation fair")
    some = browser.execute_script(SHOWN, "#part-1")
    assert some == [row for row in whole if row[1] == "paper/fair" and row[2].startswith("spurious_correlation")]
    assert find(browser, "#part-1 .count")[0].text == f"{len(some)} of {len(whole)}"
    browser.get((site / "methods" / "erm.html").as_uri())
    explained = find(browser, "td[data-tip]")
    assert explained
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", explained[0])
    ActionChains(browser).move_to_element(explained[0]).perform()
    assert find(browser, "#tip")[0].text == explained[0].get_attribute("data-tip")


@pytest.mark.parametrize("page", ["index.html", "methods/srm.html", "boards/paper-fair-table2.html"])
def test_pages_fit_a_phone(browser: Any, site: Path, page: str) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    browser.get((site / page).as_uri())
    keep(browser, f"site-phone-{Path(page).stem}")
    assert not browser.execute_script(WIDER)


def test_nothing_is_asked_of_the_network(browser: Any, site: Path) -> None:
    browser.get((site / "index.html").as_uri())
    names = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert names == []
    assert browser.execute_script("return document.scripts.length") == 1
