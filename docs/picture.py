"""The picture of a board for the README: a part of a page, as a browser shows it.

python docs/picture.py [PAGE.html [PICTURE.png]]

Needs chromium, chromium-driver and the extra `browser`.
"""

from __future__ import annotations

import base64
import shutil
import sys
from pathlib import Path

from selenium import webdriver

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "leaderboards" / "acs_travel_2024" / "fair" / "page" / "index.html"
PICTURE = ROOT / "docs" / "images" / "board.png"
WIDTH = 1240  # of the window; the README shows it in about 900
FLAGS = "--headless --no-sandbox --disable-gpu --hide-scrollbars".split()


def take(page: Path, picture: Path) -> None:
    """From the first board's title to the end of its table of environments, in the light theme."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in FLAGS:
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.set_window_size(WIDTH, 900)
        browser.get(page.resolve().as_uri())
        top, bottom = browser.execute_script(
            """const section = document.querySelector("section.board");
            return [section.previousElementSibling ?? section, section.querySelector("figure")].map(
                one => one.getBoundingClientRect().top + window.scrollY)"""
        )
        clip = {"x": 0, "y": top - 10, "width": WIDTH, "height": bottom - top, "scale": 1}
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    finally:
        browser.quit()
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    take(*given, *(PAGE, PICTURE)[len(given) :])
