"""The PostgreSQL store on a real server: its own tests, then tuning, export and merging by the tool."""
import os
import subprocess
import unittest

import support
from postgres_server import Server
from support import Case, small_network


class Postgres(Case):
    @classmethod
    def setUpClass(cls):
        if "HONE_POSTGRES_TEST" not in os.environ:
            raise RuntimeError("hone was built without PostgreSQL: run scripts/setup.sh or apt-get install libpq-dev")
        cls.server = Server()
        cls.enterClassContext(cls.server)

    def test_1_store(self):
        done = subprocess.run([os.environ["HONE_POSTGRES_TEST"]], env={**os.environ, "HONE_TEST_POSTGRES": self.server.uri}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"\[  PASSED  \] [1-9][0-9]* tests")

    def test_2_tool(self):
        model, uri = self.save(small_network()), self.server.create("tool")
        report = self.succeed_json("tune", model, "-o", self.folder / "model.so", "--db", uri, "--threads", "1", "--budget", "12s")
        self.assertGreater(report["trials"], 10)
        stat = self.succeed_json("db", "stat", "--db", uri, "--json")
        self.assertGreaterEqual(stat["trials"], report["trials"])
        compiled = self.succeed_json("compile", model, "-o", self.folder / "model.so", "--db", uri, "--threads", "1")
        self.assertTrue(any(kernel["source"] == "stored" for kernel in compiled["kernels"]), compiled["kernels"])

        local = self.folder / "local.db"
        self.succeed("db", "merge", uri, "--db", local)
        for db in (uri, local):
            self.succeed("db", "verify", "--db", db)
            self.succeed("db", "export", self.folder / "trials.jsonl", "--db", db)
            lines = (self.folder / "trials.jsonl").read_text().splitlines()
            self.assertEqual(len(lines), stat["trials"])
        self.succeed("db", "gc", "--keep", "1", "--db", uri)
        self.assertLess(self.succeed_json("db", "stat", "--db", uri, "--json")["trials"], stat["trials"])

    def test_3_server_gone(self):
        self.server.stop()
        done = subprocess.run([support.HONE, "db", "stat", "--db", self.server.uri], text=True, capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot connect to database", done.stderr)


if __name__ == "__main__":
    unittest.main()
