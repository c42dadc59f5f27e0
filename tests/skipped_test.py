"""Programs of tests none of which can run end as CTest wants it of a skipped one, and say why; others do not."""
import subprocess
import sys
import unittest
from pathlib import Path

import support
from support import SKIPPED, Case

PROGRAM = """
import unittest
import support

@unittest.skipIf({class_skipped}, "there is no board")
class Tests(unittest.TestCase):
    @unittest.skipIf({method_skipped}, "there is no browser")
    def test_first(self):
        pass

    def test_second(self):
        with self.subTest("part"):
            self.assertTrue({right})
            self.skipTest("no part")

support.main()
"""


class Skipped(Case):
    def run_program(self, class_skipped=False, method_skipped=False, right=True, *arguments):
        path = self.folder / "program.py"
        path.write_text(PROGRAM.format(class_skipped=class_skipped, method_skipped=method_skipped, right=right))
        done = subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True, env={"HONE": support.HONE, "PYTHONPATH": Path(__file__).parent})
        return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("skipped: ")]

    def test_no_test_ran(self):
        self.assertEqual(self.run_program(True), (SKIPPED, ["skipped: there is no board"]))
        self.assertEqual(self.run_program(False, True, True, "Tests.test_first"), (SKIPPED, ["skipped: there is no browser"]))

    def test_some_test_ran(self):
        self.assertEqual(self.run_program(), (0, []))
        self.assertEqual(self.run_program(False, True), (0, []))
        self.assertEqual(self.run_program(False, True, False), (1, []))

    def test_skips_that_the_module_asks_for(self):
        path = self.folder / "module.py"
        path.write_text("import unittest, support\ndef setUpModule():\n    raise unittest.SkipTest('no root')\n"
                        "class Tests(unittest.TestCase):\n    def test(self):\n        pass\nsupport.main()\n")
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, env={"HONE": support.HONE, "PYTHONPATH": Path(__file__).parent})
        self.assertEqual((done.returncode, done.stdout), (SKIPPED, "skipped: no root\n"))


if __name__ == "__main__":
    support.main()
