"""A headless Chromium that reaches only the pages of a test and leaves nothing on the machine."""

import contextlib
import re
import shutil
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from tests.support.lab import until

CSP = re.compile(r"content.security.policy", re.IGNORECASE)
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Page:
    """The live page in a browser."""

    def __init__(self, driver):
        self.driver = driver
        self._logged = []

    def open(self, url, width=1280, height=800):
        self.size(width, height)
        # Tests beside this one add and remove interfaces. Then the browser gives up what it is loading.
        for _ in range(10):
            self.driver.get(url)
            self._logged = self._read_log()
            if not any("ERR_NETWORK_CHANGED" in entry["message"] for entry in self._logged):
                return

    def size(self, width, height):
        # The size of the viewport: phones have no window frame.
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, **features):
        """`prefers_color_scheme="dark"` and the like."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def text(self, selector):
        # The text in the document, whether visible or not, without waiting for an element: it may disappear
        # meanwhile.
        return self.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def texts(self, selector):
        return self.script(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
        )

    def wait(self, condition, seconds=30):
        found = until(condition, seconds)
        assert found, self.state()
        return found

    def live(self, seconds=30):
        self.wait(lambda: self.script("return document.body.dataset.live") == "live", seconds)

    def state(self):
        """For the message of a test that fails."""
        return {"live": self.script("return document.body.dataset.live"), "errors": self.errors()}

    def errors(self):
        """The errors that the browser has logged since the last call; of its warnings, only breaches of the
        Content Security Policy.
        """
        logged, self._logged = self._logged + self._read_log(), []
        # Tests beside this one add network interfaces.
        logged = [entry for entry in logged if "ERR_NETWORK_CHANGED" not in entry["message"]]
        return [entry for entry in logged if entry["level"] == "SEVERE" or CSP.search(entry["message"])]

    def _read_log(self):
        return self.driver.get_log("browser")

    def picture(self, path):
        self.driver.save_screenshot(str(path))


@contextlib.contextmanager
def chromium():
    """A browser with its own profile."""
    chrome = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    assert chrome and driver, "this test needs chromium and chromium-driver (make setup-dev)"
    profile = tempfile.mkdtemp(prefix="fairq-chromium-")
    try:
        options = webdriver.ChromeOptions()
        options.binary_location = chrome
        for option in (*OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            yield Page(browser)
        finally:
            browser.quit()
    finally:
        shutil.rmtree(profile, ignore_errors=True)
