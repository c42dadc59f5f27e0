"""Databases, records and addresses of databases from a hand that means no good: one message, nothing lost, no password shown."""
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import unittest
from pathlib import Path

import support
from db_test import trial
from support import Case, hone, relu_model, small_network

SECRET = "s3cret"


def trials(db):
    """So far; 0 while there is no database."""
    try:
        connection = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
        try:
            return connection.execute("SELECT count(*) FROM trial").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0


def tune_until_trials(case, db):
    """A process that tunes a small network to model.so and has stored some trials by now."""
    model, seconds = case.save(small_network(), "network.onnx"), 60 * support.PATIENCE
    process = subprocess.Popen([support.HONE, "tune", model, "-o", case.folder / "model.so", "--db", db, "--threads", "1",
                                "--budget", f"{seconds}s"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    case.addCleanup(process.kill)
    end = time.monotonic() + seconds
    while trials(db) < 3:
        case.assertIsNone(process.poll(), "hone ended early")
        case.assertLess(time.monotonic(), end)
        time.sleep(0.05)
    return process


def stop(process):
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100 * support.PATIENCE)


class Databases(Case):
    def setUp(self):
        super().setUp()
        self.model = self.save(relu_model())
        self.db = self.folder / "trials.db"
        lines = self.folder / "trials.jsonl"
        lines.write_text(trial(1, 1e-3) + "\n" + trial(2, 1e-3) + "\n")
        self.succeed("db", "import", lines, "--db", self.db)

    def change(self, sql, name="changed.db"):
        """A copy of the database after these statements."""
        path = self.folder / name
        shutil.copy(self.db, path)
        connection = sqlite3.connect(path)
        connection.executescript(sql)
        connection.close()
        return path

    def test_every_command_refuses_a_database_that_is_another(self):
        triggers = self.change("CREATE TRIGGER t AFTER INSERT ON trial BEGIN DELETE FROM trial; END")
        for command in (["db", "show"], ["db", "best"], ["db", "stat"], ["db", "export", "-"], ["db", "verify"], ["db", "gc"],
                        ["db", "import", self.folder / "trials.jsonl"], ["db", "merge", self.db],
                        ["compile", self.model, "-o", self.folder / "model.so"], ["devices"], ["show", self.model],
                        ["tune", self.model, "-o", self.folder / "model.so", "--budget", "2s"]):
            self.refuse("has a trigger 't', which is none of hone's", *command, "--db", triggers)

    def test_verify_names_every_record_that_makes_no_sense(self):
        bad = self.change("UPDATE trial SET centre = 1e-30 WHERE id = 1; UPDATE trial SET threads = 1000000 WHERE id = 2; "
                          "INSERT INTO choice VALUES ('00000000000000aa', 1, 2)")
        done = hone("db", "verify", "--db", bad)
        self.assertEqual(done.returncode, 2)
        for problem in ("trial 1: a successful record has the time 1e-30 s", "trial 2: a record has 65537 threads",
                        "the network 00000000000000aa has trial 2 in the place of trial 1"):
            self.assertIn(problem, done.stdout)
        self.refuse("trial 2: a record has 65537 threads", "db", "show", "--db", bad)

    def test_lines_with_false_claims_are_named_and_none_is_added(self):
        version = self.schedule_version()
        for changes, message in (({"centre": 1e-30}, "has the time 1e-30 s"), ({"threads": 100_000}, "has 100000 threads"),
                                 ({"version": version, "task_text": "no task"}, "its text is no task"),
                                 ({"version": version, "task_text": "", "algorithm": "strassen"}, "its algorithm is 'strassen'")):
            bad = self.folder / "bad.jsonl"
            bad.write_text(trial(3, 1e-3) + "\n\n" + trial(4, 1e-3, **changes) + "\n")
            self.assertIn(message, self.refuse(f"{bad} line 3: ", "db", "import", bad, "--db", self.db))
        self.assertEqual(len(self.succeed("db", "export", "-", "--db", self.db).splitlines()), 2)

    def schedule_version(self):
        """Of the trials that this program stores."""
        db = self.folder / "own.db"
        stop(tune_until_trials(self, db))
        connection = sqlite3.connect(db)
        self.addCleanup(connection.close)
        return connection.execute("SELECT version FROM trial").fetchone()[0]

    def test_what_does_not_look_like_a_database_leaves_all_as_it_is(self):
        os.mkfifo(self.folder / "pipe")
        for path in (self.folder / "pipe", "/dev/zero", "/dev/null"):
            self.refuse("is a device or a pipe, expected a file", "db", "stat", "--db", path)
            self.refuse("is a device or a pipe, expected a file", "compile", self.model, "-o", self.folder / "m.so", "--db", path)


class RemovedWhileTuning(Case):
    def setUp(self):
        super().setUp()
        self.db = self.folder / "trials.db"

    def expect_noticed(self, process, how):
        _, errors = process.communicate(timeout=100 * support.PATIENCE)
        self.assertEqual(process.returncode, 2, errors)
        message = f"database {self.db} was {how} by another program while it was in use; what is measured from then on is not kept"
        lines = [line for line in errors.splitlines() if message in line]
        self.assertEqual(lines, [f"hone: warning: nothing more is kept, and no more is searched: {message}", f"hone: {message}"])
        self.assertTrue((self.folder / "model.so").exists(), "what was measured makes the library")

    def test_a_removed_database_is_noticed(self):
        process = tune_until_trials(self, self.db)
        self.db.unlink()
        self.expect_noticed(process, "removed")

    def test_a_replaced_database_is_noticed_and_left_as_it_is(self):
        other = self.folder / "other.db"
        lines = self.folder / "trials.jsonl"
        lines.write_text(trial(1, 1e-3) + "\n")
        self.succeed("db", "import", lines, "--db", other)
        before = other.read_bytes()
        process = tune_until_trials(self, self.db)
        os.replace(other, self.db)
        self.expect_noticed(process, "replaced")
        self.assertEqual(self.db.read_bytes(), before)


class Addresses(Case):
    def test_a_misspelt_address_is_refused_and_its_password_is_not_shown(self):
        model = self.save(relu_model())
        addresses = [f"Postgres://me:{SECRET}@host/db", f"postgresq://me:{SECRET}@host/db", f"POSTGRESQL:/me:{SECRET}@host/db",
                     f" postgres://me:{SECRET}@host/db", f"host=db.example.org password={SECRET}", f"me:{SECRET}@host/db",
                     f"postgres://me:{SECRET[:2]}@{SECRET[2:]}@host/db", f"file:{SECRET}.db?mode=memory"]
        for address in addresses:
            for command in (["db", "stat"], ["tune", model, "-o", self.folder / "m.so"], ["compile", model, "-o", self.folder / "m.so"],
                            ["devices"], ["show", model, "--json"]):
                line = self.refuse("hone: --db: found ", *command, "--db", address, cwd=self.folder)
                self.assertNotIn(SECRET, line)
                self.assertNotIn(SECRET[2:], line)
        self.refuse("hone: other: found ", "db", "merge", addresses[0], "--db", self.folder / "a.db", cwd=self.folder)
        self.refuse("':memory:', which would keep nothing", "db", "stat", "--db", ":memory:")

    @unittest.skipUnless(Path("/proc/self/cmdline").exists(), "the list of processes is not in /proc")
    def test_the_list_of_processes_shows_no_password(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"postgres://me:{SECRET}@127.0.0.1:{server.getsockname()[1]}/db?connect_timeout=30&password={SECRET}"
            process = subprocess.Popen([support.HONE, "db", "stat", "--db", address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            server.settimeout(60)
            try:
                connection, _ = server.accept()
            except TimeoutError:
                self.skipTest("built without PostgreSQL")
            line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            self.assertIn(b"127.0.0.1", line)
            self.assertNotIn(SECRET.encode(), line)
            connection.close()
            _, errors = process.communicate(timeout=60 * support.PATIENCE)
            self.assertEqual(process.returncode, 2)
            self.assertNotIn(SECRET, errors)


if __name__ == "__main__":
    support.main()
