#!/usr/bin/env python3
"""What `hone doctor` prints and returns on machines that lack something.

    HONE=build/dev/tools/hone/hone tests/doctor_test.py
"""
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

HONE = os.environ["HONE"]
LINE = re.compile(r"(ok|warning|missing) +(\S.*?)  +\S.*")


class Doctor(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="hone-test")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.environment = {**os.environ, "XDG_DATA_HOME": str(self.folder / "data")}

    def run_doctor(self, *options, **variables):
        return subprocess.run([HONE, "doctor", *options], capture_output=True, text=True, timeout=100, env=self.environment | variables)

    def check_lacks(self, names, **variables):
        """Exit code 2, one message with these names, and a cure for each of them."""
        done = self.run_doctor("--json", **variables)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stderr, f"hone: models cannot be tuned here, for lack of: {', '.join(names)}\n")
        report = json.loads(done.stdout)
        self.assertFalse(report["can_tune"])
        lacking = [finding for finding in report["findings"] if finding["needed"] and finding["state"] == "missing"]
        self.assertEqual([finding["name"] for finding in lacking], names)
        for finding in lacking:
            self.assertTrue(finding["found"] and finding["cure"], finding)

    def test_a_line_per_finding(self):
        done = self.run_doctor()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        report = json.loads(self.run_doctor("--json").stdout)
        self.assertTrue(report["can_tune"])
        shown = [LINE.fullmatch(line) for line in done.stdout.splitlines()]
        self.assertNotIn(None, shown, done.stdout)
        self.assertEqual([match[2] for match in shown], [finding["name"] for finding in report["findings"]])
        for match in shown:  # what is measured may be another state in the other run
            self.assertEqual(" -> " in match[0], match[1] != "ok", match[0])
        self.assertFalse((self.folder / "data").exists())

    def test_without_a_worker(self):
        self.check_lacks(["worker program", "measuring"], HONE_WORKER=str(self.folder / "hone-worker"))

    def test_without_a_linker(self):
        self.check_lacks(["linker"], PATH=str(self.folder))

    def test_without_places_to_write(self):
        file = self.folder / "file"
        file.touch()
        self.check_lacks(["temporary files", "database"], XDG_DATA_HOME=str(file), TMPDIR=str(file))
        self.assertEqual(self.run_doctor("--db", file / "hone.db").returncode, 2)
        self.assertEqual(self.run_doctor("--db", self.folder / "mine.db").returncode, 0)


if __name__ == "__main__":
    unittest.main()
