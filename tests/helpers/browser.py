"""Debian's Chromium, driven by Selenium. Without them, tests of the page in a browser are skipped."""

import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers.patience import eventually

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER and importlib.util.find_spec("selenium")),
    reason="needs chromium, chromium-driver (Debian's packages) and selenium",
)


class Browser:
    """A page in a browser. Scripts see the arguments as `arguments[0]` and so on."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        """Open a page and wait until it has drawn itself."""
        self.driver.get("about:blank")
        self.errors()  # of the page before, whose server may have ended
        self.driver.get(address)
        self.until("document.body.dataset.ready === 'yes'")

    def get(self, expression: str, *arguments: Any) -> Any:
        """The value of a JavaScript expression."""
        return self.driver.execute_script(f"return ({expression})", *arguments)

    def until(self, expression: str, *arguments: Any) -> Any:
        """The value of an expression once it is true."""
        return eventually(lambda: self.get(expression, *arguments), lambda: f"{expression}\n{self.errors()}", 0.05)

    def click(self, selector: str) -> None:
        """Click the first element that fits, as a user would."""
        self.driver.find_element("css selector", selector).click()

    def press(self, selector: str, *keys: str) -> None:
        """Press keys in an element."""
        self.driver.find_element("css selector", selector).send_keys(*keys)

    def text(self, selector: str) -> str:
        return self.get("document.querySelector(arguments[0]).textContent", selector)

    def errors(self) -> list[str]:
        """What the console has complained about since the page was opened, or since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def dark(self, wanted: bool) -> None:
        """Prefer dark or light pages."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if wanted else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


@contextlib.contextmanager
def browsing(width: int = 1200, height: int = 900) -> Iterator[Browser]:
    """A browser with an empty page."""
    from selenium import webdriver
    from selenium.common.exceptions import SessionNotCreatedException
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for option in (*_OPTIONS, f"--window-size={width},{height}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver: Any = None
    for left in (2, 1, 0):  # chromedriver gives up after a minute, which a very busy machine may need for a start
        try:
            driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
            break
        except SessionNotCreatedException:
            if not left:
                raise
    try:
        yield Browser(driver)
    finally:
        driver.quit()
