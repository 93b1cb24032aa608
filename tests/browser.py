"""Open a page in headless Chromium and say what happened; skips where there is no Chromium.

Spoken over a pipe (Chromium's DevTools protocol), so that no driver has to be installed.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60  # seconds until a silent browser counts as broken


@dataclass
class Visit:
    value: object = None  # of the expression
    errors: list = field(default_factory=list)  # what the console and the scripts complained about
    requests: list = field(default_factory=list)  # addresses asked for, the page itself aside
    downloads: dict = field(default_factory=dict)  # file name → content
    screenshot: bytes = b""


def visit(
    page,
    expression="null",
    *,
    width=1200,
    height=900,
    dark=False,
    shot=False,
    phone=False,
    media="",
):
    """Load ``page`` (text), evaluate ``expression`` (awaited), and collect complaints and requests.

    ``media`` "print" lays the page out as for paper.
    """
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium here")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        browser = Browser(program, folder)
        try:
            return browser.visit(path, expression, width, height, dark, shot, phone, media)
        finally:
            browser.close()


class Browser:
    def __init__(self, program, folder):
        self.folder, self.next_id, self.rest, self.events = folder, 0, b"", []
        theirs_in, self.to = os.pipe()
        self.out, theirs_out = os.pipe()
        arguments = (
            "--headless --no-sandbox --disable-gpu --remote-debugging-pipe --no-first-run "
            f"--disable-background-networking --user-data-dir={folder}/profile"
        )
        command = f'exec "$0" {arguments} 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, program],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.out)

    def _message(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.out], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.out, 1 << 20) if ready else b""
            if not piece:
                raise RuntimeError("Chromium said nothing more")
            self.rest += piece
        first, self.rest = self.rest.split(b"\0", 1)
        return json.loads(first)

    def ask(self, method, session=None, **params):
        self.next_id += 1
        request = {"id": self.next_id, "method": method, "params": params}
        if session:
            request["sessionId"] = session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data) :]
        while True:
            message = self._message()
            if message.get("id") == self.next_id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def wait_for(self, name):
        while not any(event.get("method") == name for event in self.events):
            self.events.append(self._message())

    def visit(self, path, expression, width, height, dark, shot, phone, media):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        s = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        saved = Path(self.folder) / "saved"
        self.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(saved))
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable", s)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.ask("Emulation.setDeviceMetricsOverride", s, **size)
        if phone:
            self.ask("Emulation.setTouchEmulationEnabled", s, enabled=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", s, media=media, features=[scheme])
        self.ask("Page.navigate", s, url=path.as_uri())
        self.wait_for("Page.loadEventFired")
        self.ask("Runtime.evaluate", s, expression="window.manyview?.ready", awaitPromise=True)
        answer = self.ask(
            "Runtime.evaluate", s, expression=expression, awaitPromise=True, returnByValue=True
        )
        found = Visit(answer["result"].get("value"))
        if shot:
            picture = self.ask("Page.captureScreenshot", s, captureBeyondViewport=True)
            found.screenshot = base64.b64decode(picture["data"])
        if "exceptionDetails" in answer:
            found.errors.append(json.dumps(answer["exceptionDetails"]))
        if saved.exists():
            found.downloads = {p.name: p.read_text() for p in saved.iterdir()}
        self._collect(found, path.as_uri())
        return found

    def _collect(self, found, own):
        for event in self.events:
            name, params = event.get("method"), event.get("params", {})
            if name == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.errors.append(params["entry"]["text"])
            elif name == "Runtime.exceptionThrown" or (
                name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning")
            ):
                found.errors.append(json.dumps(params))
            elif name == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if url != own and not url.startswith(("data:", "blob:")):
                    found.requests.append(url)
