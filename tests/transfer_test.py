"""Schedules of one model used for another: what compile takes, what it reports, what --require-tuned refuses, what transferring is worth."""
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import support
from support import Case, small_network

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "make_shipped_records.py"


class Transfer(Case):
    def setUp(self):
        super().setUp()
        self.db = self.folder / "trials.db"
        self.small = self.save(small_network(24), "small.onnx")
        self.large = self.save(small_network(40), "large.onnx")
        self.library = self.folder / "model.so"

    def compile_json(self, model, *options):
        report = self.succeed_json("compile", model, "-o", self.library, "--db", self.db, "--threads", "1", "--no-shipped", *options)
        return {kernel["name"]: kernel for kernel in report["kernels"]}

    def tune(self, model, budget):
        self.succeed("tune", model, "-o", self.library, "--db", self.db, "--threads", "1", "--budget", budget, "--no-shipped")

    def test_from_one_size_to_another(self):
        self.tune(self.small, "5s")
        own = self.compile_json(self.small, "--require-tuned")
        self.assertEqual({kernel["source"] for kernel in own.values()}, {"stored"})

        # Another size: nothing is known of most of its kernels.
        known = self.compile_json(self.large)
        self.assertEqual(known["classifier"]["source"], "stored")  # the same in both
        for kernel in known.values():
            self.assertEqual(kernel["source"] == "transferred" or kernel["source"] == "stored", bool(kernel["from"]), kernel)
        for kernel in self.compile_json(self.large, "--transfer", "off").values():
            self.assertNotEqual(kernel["source"], "transferred")
        # Both models are called "test".
        for kernel in self.compile_json(self.large, "--exclude-model", "test").values():
            self.assertIn(kernel["source"], ("default", "predicted"))
        self.library.unlink()
        line = self.refuse("have no record of their own", "compile", self.large, "-o", self.library, "--db", self.db, "--threads", "1",
                           "--require-tuned", "--no-shipped")
        self.assertIn("tune the model", line)
        text = self.succeed("compile", self.large, "-o", self.library, "--db", self.db, "--threads", "1")
        self.assertIn("schedules of ", text)

        self.tune(self.large, "5s")
        report = self.succeed_json("transfer", "--to", self.large, "--from", "test", "--measure", "2", "--db", self.db, "--threads", "1",
                                   "--no-shipped")
        self.assertEqual(report["model"], "test")
        self.assertGreater(report["full_trials"], 0)
        source, = report["sources"]
        self.assertEqual(source["source"], "test")
        self.assertGreater(source["records"], 0)
        for sums in (source, *source["classes"]):
            self.assertGreaterEqual(sums["transfer_seconds"], sums["best_seconds"])
        text = self.succeed("transfer", "--to", self.large, "--from", self.small, "--db", self.db, "--threads", "1", "--no-shipped")
        self.assertIn("of the speed-up", text)
        self.refuse("no records of other tasks from 'nothing'", "transfer", "--to", self.large, "--from", "nothing", "--db", self.db,
                    "--threads", "1", "--no-shipped")

        # What is shipped is the fastest of each kernel, and reads back.
        subprocess.run([sys.executable, SCRIPT, "--db", self.db, "--output", self.folder / "records"], check=True, capture_output=True)
        path, = (self.folder / "records").glob("*.jsonl")
        records = [json.loads(line) for line in path.read_text().splitlines()]
        connection = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
        self.addCleanup(connection.close)
        best = dict(connection.execute("SELECT task.key, min(centre) FROM trial JOIN task ON task.id = trial.task WHERE verified = 1 "
                                       "GROUP BY task.key"))
        self.assertEqual({record["task"]: record["centre"] for record in records}, best)

    def test_modes_are_checked(self):
        self.refuse("transfer 'some', expected pool, one or off", "compile", self.small, "-o", self.library, "--transfer", "some")
        self.refuse("--measure", "transfer", "--to", self.small, "--measure", "-1")
        self.refuse("a database is needed", "transfer", "--to", self.small, "--no-db")


if __name__ == "__main__":
    support.main()
