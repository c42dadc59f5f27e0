"""Programs of tests none of which can run end as CTest wants it of a skipped one, and say why; others do not."""
import contextlib
import io
import subprocess
import sys
import unittest
from pathlib import Path

import support
from support import SKIPPED, Case


def tests(class_skipped=False, method_skipped=False, right=True, set_up_skipped=False):
    """Returns a class of two tests, which are skipped by one of the ways that there are, or not."""
    @unittest.skipIf(class_skipped, "there is no board")
    class Tests(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            if set_up_skipped:
                raise unittest.SkipTest("there is no server")

        @unittest.skipIf(method_skipped, "there is no browser")
        def test_first(self):
            pass

        def test_second(self):
            with self.subTest("part"):
                self.assertTrue(right)
                self.skipTest("no part")

    return Tests


class Skipped(Case):
    def outcome(self, *classes, only=None):
        """Returns the exit code of a program with these classes of tests, or the one test of their names, and what it says."""
        loader = unittest.defaultTestLoader
        suite = unittest.TestSuite([each(only) if only else loader.loadTestsFromTestCase(each) for each in classes])
        result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            return support.exit_code(result), printed.getvalue().splitlines()

    def test_no_test_ran(self):
        self.assertEqual(self.outcome(tests(class_skipped=True)), (SKIPPED, ["skipped: there is no board"]))
        self.assertEqual(self.outcome(tests(method_skipped=True), only="test_first"), (SKIPPED, ["skipped: there is no browser"]))
        self.assertEqual(self.outcome(tests(set_up_skipped=True)), (SKIPPED, ["skipped: there is no server"]))
        self.assertEqual(self.outcome(tests(set_up_skipped=True), tests(class_skipped=True)),
                         (SKIPPED, ["skipped: there is no server", "skipped: there is no board"]))

    def test_some_test_ran(self):
        self.assertEqual(self.outcome(tests()), (0, []))
        self.assertEqual(self.outcome(tests(method_skipped=True)), (0, []))
        self.assertEqual(self.outcome(tests(method_skipped=True, right=False)), (1, []))
        self.assertEqual(self.outcome(tests(set_up_skipped=True), tests()), (0, []))

    def test_one_test_ran_beside_a_class_that_was_skipped_as_a_whole(self):
        class Single(unittest.TestCase):
            def test(self):
                pass

        self.assertEqual(self.outcome(Single, tests(set_up_skipped=True)), (0, []))
        self.assertEqual(self.outcome(Single, tests(class_skipped=True)), (0, []))

    def test_skips_that_the_module_asks_for(self):
        path = self.folder / "module.py"
        path.write_text("import unittest, support\ndef setUpModule():\n    raise unittest.SkipTest('no root')\n"
                        "class Tests(unittest.TestCase):\n    def test(self):\n        pass\nsupport.main()\n")
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, env={"HONE": support.HONE, "PYTHONPATH": Path(__file__).parent})
        self.assertEqual((done.returncode, done.stdout), (SKIPPED, "skipped: no root\n"))


if __name__ == "__main__":
    support.main()
