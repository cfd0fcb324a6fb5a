"""A real browser for the pages, where there is one: Chromium without a window, by Selenium."""

import shutil

import pytest

from helpers_browser import wait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="session")
def chromium():
    """The browser; a test without it is skipped and says so."""
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (CHROMIUM and DRIVER):
        pytest.skip("no chromium and chromedriver on the path")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER)) as driver:
        driver.set_script_timeout(60)
        yield driver


@pytest.fixture
def browse(chromium, tmp_path):
    """Opens a page from disk, of a width and in a theme, and waits until it is drawn."""

    def browse(page, *, width=1280, theme="light"):
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        feature = {"name": "prefers-color-scheme", "value": theme}
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        for kind in ("browser", "performance"):
            chromium.get_log(kind)
        chromium.get(path.as_uri())
        wait(chromium, "return document.documentElement.dataset.ready")
        return chromium

    return browse
