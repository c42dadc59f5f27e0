"""How much the roles of decisions matter is measured and stored, and tune moves only those that matter most."""
import contextlib
import json
import sqlite3
import subprocess

import support


class Sensitivity(support.Case):
    def setUp(self):
        super().setUp()
        self.model = self.save(support.small_network())
        self.db = self.folder / "own.db"

    def run_hone(self, *arguments, code=0, threads="1"):
        done = subprocess.run([support.HONE, *map(str, arguments), "--db", self.db, "--threads", threads, "--no-shipped", "--cost", "analytic"],
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def tune(self, movable, *more, code=0):
        return self.run_hone("tune", self.model, "-o", self.folder / "model.so", "--budget", "3s", "--movable", movable, *more, code=code)

    def stored_roles(self):
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            return {row[0] for row in db.execute("SELECT role FROM sensitivity WHERE threads = 1 AND gain >= 0 AND loss >= 0")}

    def test_measured_then_used(self):
        self.assertIn("nothing is stored of", self.tune("3", code=2))
        report = json.loads(self.run_hone("sensitivity", self.model, "--tasks", "2", "--budget", "20s", "--json"))
        self.assertEqual(report["tasks"], 2)
        self.assertGreater(report["measured"], 0)
        roles = [role["role"] for role in report["roles"]]
        self.assertEqual(len(set(roles)), len(roles))
        self.assertEqual(sorted((role["score"] for role in report["roles"]), reverse=True), [role["score"] for role in report["roles"]])
        self.assertEqual(self.stored_roles(), set(roles))
        table = self.run_hone("sensitivity", self.model, "--tasks", "1", "--budget", "20s")
        self.assertIn("alone gains", table)
        # A task that is measured again may start from another kernel, with roles that the first call did not meet.
        known = len(self.stored_roles())
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            self.assertEqual(db.execute("SELECT count(*) FROM sensitivity WHERE memory NOT BETWEEN 0 AND 1").fetchone(), (0,))
        for movable in ("2", "learned:2", "scores:2"):
            self.assertGreater(json.loads(self.tune(movable, "--json"))["trials"], 0)
        self.assertIn(f"expected at most the {known} that were measured", self.tune(str(known + 1), code=2))
        # For another number of threads nothing is stored.
        self.assertIn("with 2 threads", self.run_hone("tune", self.model, "-o", self.folder / "model.so", "--movable", "2", code=2, threads="2"))

    def test_without_measuring(self):
        for arguments in (("random:2",), ("predicted:2",), ("scores:2",), ("all", "--tiles", "powers-of-two")):
            self.assertGreater(json.loads(self.tune(*arguments, "--json"))["trials"], 0)

    def test_bad_input(self):
        for movable, message in (("roles:none_such", "--movable roles:none_such: no decision of these kernels has the role 'none_such', expected some of "),
                                 ("roles:column+none_such", "has the role 'none_such', expected some of "),
                                 ("7", "--movable 7 needs to know"),
                                 ("some", "--movable: search strategy 'mixed': movable: unknown choice 'some'"),
                                 ("0", "found '0', expected an integer from 1 to 99"), ("random:x", "number of roles")):
            error = self.tune(movable, code=2)
            self.assertIn(message, error)
            self.assertEqual(len(error.strip().splitlines()), 1, error)
        self.assertIn("--tiles: unknown value 'odd'", self.tune("all", "--tiles", "odd", code=2))
        self.assertIn("--tiles: search strategy 'mixed': option 'powers_of_two' is there twice",
                      self.tune("all", "--tiles", "powers-of-two", "--search", "mixed:powers_of_two=0", code=2))
        self.assertFalse((self.folder / "model.so").exists())
        self.assertFalse(self.db.exists())
        done = subprocess.run([support.HONE, "sensitivity", self.model, "--no-db"], capture_output=True, text=True)
        self.assertIn("a database is needed", done.stderr)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    support.main()
