# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its DevTools protocol over two pipes: no package is needed."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time


def chromium():
    """The browser's path, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                None)


class Browser:
    """One page at a time. `errors` and `requests` grow as the page runs."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.commands = os.pipe()
        self.events, from_browser = os.pipe()

        def place_pipes():
            first = os.dup(to_browser), os.dup(from_browser)
            os.dup2(first[0], 3)
            os.dup2(first[1], 4)

        self.process = subprocess.Popen(
            [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}"],
            close_fds=False, preexec_fn=place_pipes, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.pending, self.last, self.session = b"", 0, None
        self.errors, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Network", "Log":
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.events)
        self.profile.cleanup()

    def _message(self, deadline):
        while b"\0" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.events], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self.events, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser ended")
            self.pending += chunk
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, timeout=60, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._note(answer)

    def _note(self, event):
        name, parameters = event.get("method"), event.get("params", {})
        if name == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith("data:"):
                self.requests.append(url)
        elif name == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif name == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result)
        return result["result"].get("value")

    def open(self, path, width=1280, height=900, scheme="light", timeout=60):
        """Opens a file and waits for its data-ready."""
        self.errors, self.requests = [], []
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        url = pathlib.Path(path).resolve().as_uri()
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + timeout
        while self.evaluate(f"location.href === {json.dumps(url)} &&"
                            " document.documentElement?.dataset.ready") in (None, False, "", 0):
            assert time.monotonic() < deadline and not self.errors, (path, self.errors)
            time.sleep(0.02)
        return url

    def processor_ms(self):
        """The time that the page's thread has taken so far; call it after Performance.enable."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    def press(self, key, code=None):
        names = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Tab": 9}
        for kind in "keyDown", "keyUp":
            text = key if len(key) == 1 and kind == "keyDown" else ""
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, text=text,
                      windowsVirtualKeyCode=names.get(key, ord(key[0])))

    def screenshot(self, path, whole=True):
        image = self.call("Page.captureScreenshot", captureBeyondViewport=whole,
                          **({"clip": self._whole()} if whole else {}))
        pathlib.Path(path).write_bytes(base64.b64decode(image["data"]))

    def _whole(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000),
                "scale": 1}
