"""The pictures of the page in the documentation: `python -m tests.helpers.web_pictures RUN docs/images`.

RUN is the folder of a run, or its report. Needs Chromium and Selenium. web.png shows the curves of the run,
web-games.png a game, and web-dark.png the ladder in dark colours.
"""

import sys
import tempfile
from pathlib import Path

from tengen.web import report
from tests.helpers.browser import Browser, browsing

WIDTH, HEIGHT = 1280, 860
_VIEWS = {"web": ("curves", False), "web-games": ("games", False), "web-dark": ("ladder", True)}


def main(run: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, browsing(WIDTH, HEIGHT) as browser:
        page = run.resolve() if run.is_file() else report.write(Path(place) / report.NAME, [run])
        for name, (tab, dark) in _VIEWS.items():
            browser.dark(dark)
            browser.resize(WIDTH, HEIGHT)
            browser.open(f"{page.as_uri()}#{tab}")
            if tab == "games":
                _half_way(browser)
            browser.driver.save_screenshot(str(folder / f"{name}.png"))
            print(folder / f"{name}.png")


def _half_way(browser: Browser) -> None:
    """A late position of the longest game."""
    order = "document.querySelectorAll('.game-picker select')[1]"
    browser.get(f"({order}.value = 'long', {order}.dispatchEvent(new Event('change')))")
    browser.click(".game-list button")
    browser.until("Number(document.querySelector('.viewer-host').dataset.length) > 0")
    moves = "document.querySelectorAll('.moves button')"
    browser.get(f"{moves}[Math.floor(0.8 * {moves}.length)].click()")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
