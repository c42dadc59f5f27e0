"""The PostgreSQL store on a real server: its own tests, then tuning, export and merging by the tool."""
import contextlib
import json
import os
import signal
import subprocess
import time
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

    def trials(self, uri):
        done = support.hone("db", "stat", "--db", uri, "--json")
        return json.loads(done.stdout)["trials"] if done.returncode == 0 else 0

    def test_3_server_that_says_nothing(self):
        """The search ends, and the library is made of what was found."""
        model, library, uri = self.save(small_network()), self.folder / "model.so", self.server.create("silent") + "&connect_timeout=2"
        process = subprocess.Popen([support.HONE, "tune", model, "-o", library, "--db", uri, "--threads", "1", "--budget", "60s"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        end = time.monotonic() + 40
        while self.trials(uri) == 0:
            self.assertLess(time.monotonic(), end, "nothing was stored")
            time.sleep(0.2)
        stopped = []
        try:
            for session in self.server.sessions("silent"):
                with contextlib.suppress(ProcessLookupError):  # that of the last question
                    os.kill(session, signal.SIGSTOP)
                    stopped.append(session)
            self.assertTrue(stopped)
            _, errors = process.communicate(timeout=55)
        finally:
            for session in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(session, signal.SIGCONT)
        self.assertEqual(process.returncode, 2, errors)
        self.assertIn("gave no answer within 12 s", errors)
        self.assertTrue(library.exists())

    def test_4_server_gone(self):
        self.server.stop()
        done = subprocess.run([support.HONE, "db", "stat", "--db", self.server.uri], text=True, capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot connect to database", done.stderr)


if __name__ == "__main__":
    unittest.main()
