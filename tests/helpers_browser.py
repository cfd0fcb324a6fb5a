"""Asking a page in a browser."""

import json


def wait(driver, script):
    """Until `script` says yes; what it says then."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(driver, 20).until(lambda driver: driver.execute_script(script))


def text_of(driver, selector):
    """What stands in the first element of `selector`."""
    return driver.execute_script("return document.querySelector(arguments[0]).innerText", selector)


def click(driver, selector):
    """As a person does, where it can be seen."""
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def data_of(driver):
    """Every number of bytes that is marked as one, with its text: (bytes, text)."""
    pairs = driver.execute_script("return [...document.querySelectorAll('data')].map(e => [e.value, e.textContent])")
    return [(int(value), text) for value, text in pairs]


def requests_of(driver):
    """The addresses that the page asked for since it was opened, but for itself."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]
    return [address for address in asked if not address.endswith("/page.html")]


def violations_of(driver):
    """What axe finds wrong on the page as it is, each with an element."""
    from axe_selenium_python import Axe

    axe = Axe(driver)
    axe.inject()
    found = axe.run()["violations"]
    return [(each["id"], node["html"][:200]) for each in found for node in each["nodes"]]
