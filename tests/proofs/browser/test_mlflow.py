"""MLflow's pages of a real record, in a real browser. `tox -e browser` runs this.

The pictures of docs/mlflow.md: `OODBENCH_SCREENSHOTS=$PWD/docs/images tox -e browser -- tests/browser/test_mlflow.py`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
pytestmark = [
    pytest.mark.skipif(
        shutil.which(tool) is None, reason=f"{tool} is not installed (Debian: chromium, chromium-driver)"
    )
    for tool in ("chromium", "chromedriver")
]
METHODS = ["erm", "irm", "srm"]
STUDY = ["-m", "erm", "-m", "irm", "-m", "srm", "-d", "selection_bias", "--trials", "10", "--seeds", "6"]
PATIENCE = 60
WIDE, HIGH = 1200, 800
Look = Callable[[str], Any]


def _heed_ctrl_c() -> None:
    """These tests may run in the background of a shell, where Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`oodbench run` and then `oodbench ui`: the address that it prints."""
    folder = tmp_path_factory.mktemp("record")
    oodbench = [sys.executable, "-m", "oodbench"]
    subprocess.run([*oodbench, "run", *STUDY], cwd=folder, check=True, capture_output=True, timeout=600)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*oodbench, "ui", "--port", str(port)]
    server = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_ctrl_c)
    try:
        assert server.stderr is not None
        yield server.stderr.readline().strip()
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 0


@pytest.fixture
def look(browser: Any, page: str) -> Look:
    """Open the page, with another ending of its address if one is given; without MLflow's assistant beside it."""
    browser.set_window_size(WIDE, HIGH + 150)
    browser.get(page.split("#")[0])
    wait(browser, "Experiments")
    time.sleep(2)  # the assistant opens itself once, and then remembers what we say
    browser.execute_script("localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false')")
    browser.get("about:blank")

    def opened(ending: str = "") -> Any:
        browser.get(page.split("?")[0] + ending if ending else page)
        return browser

    return opened


def wait(browser: Any, *texts: str) -> str:
    """What the page says once it says all of these."""
    deadline = time.monotonic() + PATIENCE
    said = ""
    while time.monotonic() < deadline:
        said = " ".join(str(browser.execute_script("return document.body.innerText")).split())
        if all(text in said for text in texts):
            return said
        time.sleep(0.3)
    raise AssertionError(f"{[text for text in texts if text not in said]} not found in:\n{said}")


def keep(browser: Any, name: str, high: int = HIGH, wide: int = WIDE) -> None:
    """A picture for docs/mlflow.md, small enough for a repository."""
    folder = os.environ.get("OODBENCH_SCREENSHOTS")
    if not folder:
        return
    from PIL import Image

    size = {"width": wide, "height": high, "deviceScaleFactor": WIDE / wide, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_script(
        "for (const one of document.querySelectorAll('.modebar, [aria-label*=ssistant]')) one.style.display = 'none'"
    )
    time.sleep(2)
    path = Path(folder) / f"mlflow-{name}.png"
    browser.save_screenshot(str(path))
    with Image.open(path) as picture:
        colours = picture.convert("RGB").quantize(128)
    colours.save(path, optimize=True)


def names(browser: Any) -> list[str]:
    """The runs of the table from top to bottom."""
    script = """const name = row => row.querySelector('a[href*="/runs/"]:not([href*="/artifacts"])')?.innerText;
    return [...document.querySelectorAll('.ag-row')].map(row => [row.getBoundingClientRect().top, name(row)])
    .filter(one => one[1]).sort((a, b) => a[0] - b[0]).map(one => one[1])"""
    return list(dict.fromkeys(browser.execute_script(script)))


def press(browser: Any, css: str, text: str = "") -> None:
    from selenium.webdriver.common.by import By

    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = [one for one in browser.find_elements(By.CSS_SELECTOR, css) if text in one.text]
        if found:
            browser.execute_script("arguments[0].click()", found[0])
            return
        time.sleep(0.3)
    raise AssertionError(f"nothing to press: {css} {text}")


def test_the_page_opens_with_the_methods_and_their_errors_the_best_first(look: Look) -> None:
    browser = look("")
    wait(browser, "test/mean_error", "test/max_error", *METHODS, "3 matching runs")
    shown = names(browser)
    assert sorted(shown) == METHODS
    assert shown.index("srm") < shown.index("erm")
    assert "Studies on selection_bias" in wait(browser, "methods")
    keep(browser, "methods", 560, 1600)


def test_parents_have_their_configurations_in_order_and_the_chosen_one_is_marked(look: Look) -> None:
    browser = look("?workflowType=machine_learning")
    wait(browser, *METHODS, "33 matching runs")
    assert sorted(names(browser)) == METHODS
    first = names(browser)[0]
    press(browser, ".ag-row [class*=expander], .ag-row [role=button], .ag-row button")
    wait(browser, f"{first} 0", f"{first} 9")
    children = [name for name in names(browser) if name not in METHODS]
    assert [name.removesuffix(" (chosen)") for name in children] == [f"{first} {index}" for index in range(10)]
    assert sum(name.endswith(" (chosen)") for name in children) == 1


def test_two_runs_compare_by_choices_and_errors(look: Look) -> None:
    browser = look("")
    wait(browser, "3 matching runs", *METHODS)
    press(browser, ".ag-row[row-index='0'] input[type=checkbox]")
    press(browser, ".ag-row[row-index='2'] input[type=checkbox]")
    press(browser, "button", "Compare")
    said = wait(browser, "Comparing 2 Runs", "chosen.learning_rate", "chosen.weight_decay", "test/mean_error")
    assert "srm" in said
    assert "erm" in said
    press(browser, "[role=button], button", "Visualizations")  # folds them away
    keep(browser, "compare", 1100)


def test_charts_begin_with_the_test_errors(look: Look) -> None:
    browser = look("?workflowType=machine_learning&compareRunsMode=CHART")
    said = wait(browser, "test/mean_error", "test_spread", "Model metrics")
    assert said.index("test/mean_error") < said.index("test_spread") < said.index("Model metrics")


def test_environments_are_a_table_with_a_column_per_method(look: Look) -> None:
    browser = look("?workflowType=machine_learning&compareRunsMode=ARTIFACT")
    wait(browser, "environments.json", "Group by: environment", "Compare: error", "r=-1.9", *METHODS)
    keep(browser, "environments", 900, 1800)


def test_configurations_compare_in_parallel_coordinates(look: Look) -> None:
    browser = look("?workflowType=machine_learning&viewStateShareKey=configurations")
    wait(browser, "validation_worst_error", "learning_rate", "30 matching runs")
    for row in range(8):
        press(browser, f".ag-row[row-index='{row}'] input[type=checkbox]")
    press(browser, "button", "Compare")
    wait(browser, "Comparing 8 Runs", "Parallel Coordinates Plot", "learning_rate", "validation_worst_error")
    keep(browser, "configurations", 700)


def test_a_run_says_what_it_is_and_which_data_it_used(look: Look, page: str) -> None:
    browser = look("")
    wait(browser, "3 matching runs", *METHODS)
    press(browser, ".ag-row a[href*='/runs/']")
    wait(browser, "Description", "Test error", "Datasets", "selection_bias (", "test/mean_error")
    run = browser.current_url.split("?")[0].rstrip("/")
    browser.get(f"{run}/artifacts/models/seed-0")
    wait(browser, "MLflow Model", "S1 (required)", "double", "Register model")
