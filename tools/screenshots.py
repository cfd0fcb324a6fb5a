"""Pictures of pages for the documentation: `python tools/screenshots.py PAGE.html PICTURE.webp [options]`.

Chromium draws them, by Selenium; both are in the extra `test` and on the path.
"""

import argparse
import base64
import shutil
import time
from pathlib import Path

from selenium import webdriver

PHONE = 500


def main() -> None:
    """Draw one part of one page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=1350)
    parser.add_argument("--at", default="body", help="the element at the top of the picture, a CSS selector")
    parser.add_argument("--type", default="", help="what to search for on the page")
    parser.add_argument("--press", default="", help="the button to press first, a CSS selector")
    asked = parser.parse_args()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as driver:
        asked.picture.write_bytes(picture_of(driver, asked))


def picture_of(driver: webdriver.Chrome, asked: argparse.Namespace) -> bytes:
    """The picture as WebP."""
    size = {"width": asked.width, "height": asked.height, "deviceScaleFactor": 1, "mobile": asked.width < PHONE}
    theme = {"name": "prefers-color-scheme", "value": "dark" if asked.dark else "light"}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
    driver.get(asked.page.resolve().as_uri())
    time.sleep(1.5)
    if asked.press:
        driver.execute_script("document.querySelector(arguments[0]).click()", asked.press)
    if asked.type:
        driver.find_element("id", "search").send_keys(asked.type)
    driver.execute_script("document.querySelector(arguments[0]).scrollIntoView()", asked.at)
    time.sleep(1.5)
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 70})
    return base64.b64decode(taken["data"])


if __name__ == "__main__":
    main()
