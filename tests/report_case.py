"""What tests of `hone report` share: two short runs of one model, and pages of them."""
import json
import re
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import support
from browser import Browser, find
from support import Case, hone, small_network


class Made(Case):
    """Two short runs of one model, the second of which knows what the first one found. `live` follows the first one."""

    def __init__(self, budgets, live):
        super().__init__()
        self.budgets, self.follow = budgets, live

    def runTest(self):
        self.db, self.model = self.folder / "trials.db", self.save(small_network())
        self.runs = [self.folder / "first.json", self.folder / "second.json"]
        common = ["tune", self.model, "-o", self.folder / "model.so", "--db", self.db, "--threads", "1"]
        arguments = [[*common, "--budget", f"{support.PATIENCE * budget}s", "--report", run]
                     for run, budget in zip(self.runs, self.budgets, strict=True)]
        if self.follow:
            self.run_followed(arguments[0])
        else:
            self.succeed(*arguments[0])
        self.succeed(*arguments[1])

    def run_followed(self, arguments):
        browser = Browser(find()) if find() else None
        with subprocess.Popen([support.HONE, *map(str, arguments), "--live", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                self.live = watch(process, process.stderr.readline(), browser, arguments)
                rest = process.stderr.read()
            finally:
                process.kill()
                if browser:
                    browser.close()
        self.assertEqual(process.returncode, 0, rest)


def watch(process, line, browser, arguments):
    """What the page of a run that goes on answers, by what it was asked; the run has printed this line."""
    match = re.fullmatch(r"live: (http://127\.0\.0\.1:(\d+))/([0-9a-f]{32})/\n", line)
    if not match:
        raise AssertionError(f"no address: {line}{process.stderr.read()}")
    server, port, token = match.groups()
    found = {"port": int(port), "address": line.split()[1]}
    for name, path in (("page", f"{token}/"), ("data", f"{token}/data.json"), ("wrong token", "0" * 32 + "/data.json"), ("no token", "data.json"),
                       ("another name", f"{token}/other")):
        found[name] = fetch(f"{server}/{path}")
    found["in use"] = hone(*arguments, "--live", port)
    end = time.monotonic() + 60  # until the first measurement is there
    while not json.loads(found["data"][1])["runs"][0]["trials"] and time.monotonic() < end:
        time.sleep(0.2)
        found["data"] = fetch(f"{server}/{token}/data.json")
    if browser:
        browser.open(found["address"])
        found["title"] = browser.evaluate("document.querySelector('h1').innerText")
        found["status"] = browser.evaluate("document.getElementById('status').innerText")
        browser.evaluate("""new Promise((done) => { const look = () => document.getElementById('status').innerText.startsWith("The run is finished")
            ? done(1) : setTimeout(look, 50); look(); })""")
        found["last"] = browser.evaluate("document.querySelector('#spent').innerText")
        found["complaints"] = [text for text in browser.complaints() if "data.json" not in text]
    return found


def fetch(address):
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


class Report(Case):
    """Tests of two runs, which are made once for all of a class."""
    budgets = (4, 2)  # seconds: enough to measure each kernel
    live = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = Made(cls.budgets, cls.live)
        cls.made.setUp()
        cls.addClassCleanup(cls.made.doCleanups)
        cls.made.runTest()

    def setUp(self):
        super().setUp()
        self.db, self.runs, self.model = self.made.db, self.made.runs, self.made.model

    def page(self, *sources, **options):
        path = self.folder / "report.html"
        self.assertRegex(self.succeed("report", *sources, "-o", path, **options), rf"^wrote {path}: \S+ bytes, \d+ kernels\n$")
        return path
