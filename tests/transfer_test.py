"""Schedules of one model used for another: what compile takes, what it reports, what --require-tuned refuses, what transferring is worth,
what is shipped."""
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import support  # first: it says where the others are
from support import Case, hone, small_network

import model_files

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "make_shipped_records.py"
RECORDS = ROOT / "data" / "records"


class Transfer(Case):
    def setUp(self):
        super().setUp()
        self.db = self.folder / "trials.db"
        self.small = self.save(small_network(24), "small.onnx")
        self.large = self.save(small_network(40), "large.onnx")
        self.library = self.folder / "model.so"
        self.common = ("--db", self.db, "--threads", "1", "--no-shipped")

    def compile(self, model, *options):
        report = self.succeed_json("compile", model, "-o", self.library, *self.common, *options)
        return {kernel["name"]: kernel for kernel in report["kernels"]}

    def tune(self, model):
        """Until every kernel has a record: how much a slow machine measures in a few seconds, nobody knows."""
        for _ in range(10):
            self.succeed("tune", model, "-o", self.library, "--budget", "4s", *self.common)
            done = hone("compile", model, "-o", self.library, "--require-tuned", *self.common)
            if done.returncode == 0:
                return
        self.fail(done.stderr)

    def check_library(self, model, size):
        x = np.random.default_rng(1).standard_normal((1, 3, size, size)).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        self.succeed("run", self.library, "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder)
        expected = support.reference(model, {"x": x})["y"]
        self.assertLessEqual(support.relative_error(np.load(self.folder / "y.npy"), expected), 1e-4)

    def test_from_one_size_to_another(self):
        self.tune(self.small)
        own = self.compile(self.small, "--require-tuned")
        self.assertEqual({kernel["source"] for kernel in own.values()}, {"stored"})

        # Another size: most of its kernels are new.
        known = self.compile(self.large)
        self.check_library(self.large, 40)
        self.assertEqual(known["classify"]["source"], "stored")  # the same in both
        self.assertNotEqual(known["conv1"]["source"], "stored")
        for kernel in known.values():
            self.assertEqual(kernel["source"] in ("transferred", "stored"), bool(kernel["from"]), kernel)
        for kernel in self.compile(self.large, "--transfer", "off").values():
            self.assertNotEqual(kernel["source"], "transferred")
        # Both models are called "test".
        for kernel in self.compile(self.large, "--exclude-model", "test").values():
            self.assertIn(kernel["source"], ("default", "predicted"))
        text = self.succeed("compile", self.large, "-o", self.library, *self.common)
        self.assertIn(f"schedules of {len(known)} kernels: ", text)
        self.library.unlink()
        line = self.refuse("have no record of their own", "compile", self.large, "-o", self.library, "--require-tuned", *self.common)
        self.assertIn("tune the model", line)

        self.tune(self.large)
        self.check_library(self.large, 40)
        report = self.succeed_json("transfer", "--to", self.large, "--from", "test", "--measure", "2", *self.common)
        self.assertEqual(report["model"], "test")
        self.assertEqual(report["untuned"], 0)
        self.assertGreater(report["full_trials"], 0)
        source, = report["sources"]
        self.assertEqual(source["source"], "test")
        self.assertGreater(source["records"], 0)
        for sums in (source, *source["classes"]):
            self.assertGreaterEqual(sums["records"], sums["invalid"])
        self.assertEqual(sum(sums["tasks"] for sums in source["classes"]), source["tasks"])
        text = self.succeed("transfer", "--to", self.large, "--from", self.small, *self.common)
        self.assertIn("of the speed-up", text)
        self.assertIn("score", text)
        self.refuse("no records of other tasks from 'nothing'", "transfer", "--to", self.large, "--from", "nothing", *self.common)
        self.succeed("transfer", "--to", self.large, "--from", self.db, *self.common)

    def test_what_is_shipped_is_the_fastest_of_each_kernel(self):
        records = self.folder / "records"
        self.tune(self.small)
        self.tune(self.large)
        subprocess.run([sys.executable, SCRIPT, "--hone", support.HONE, "--db", self.db, "--models", self.small, self.large,
                        "--budget", "3s", "--threads", "1", "--output", records], check=True, capture_output=True)
        path, = records.glob("*.jsonl")
        shipped = [json.loads(line) for line in path.read_text().splitlines()]
        best = {entry["task"]: entry["best_seconds"] for entry in self.succeed_json("db", "best", "--db", self.db)}
        self.assertEqual({task: min(r["seconds"] for r in shipped if r["task"] == task) for task in best}, best)
        for record in shipped:
            self.assertTrue(record["shape"].startswith(record["kernel"] + " "), record["shape"])
        before = path.read_bytes()
        subprocess.run([sys.executable, SCRIPT, "--hone", support.HONE, "--db", self.db, "--no-tuning", "--output", records], check=True,
                       capture_output=True)
        self.assertEqual(path.read_bytes(), before)
        self.refuse("nothing", "db", "ship", self.folder, "--db", self.folder / "nothing.db")

        # They are found beside the program. Nothing is known otherwise: there is no database.
        program, beside = self.installed()
        sources = self.sources_of(program)
        self.assertEqual(sources & {"stored", "transferred"}, set())
        records.rename(beside / "records")
        self.assertEqual(self.sources_of(program), {"shipped"})
        self.assertEqual(self.sources_of(program, "--no-shipped"), sources)
        self.assertEqual(self.sources_of(program, "--exclude-model", "test"), sources)
        (beside / "records" / path.name).write_text("{}\n")
        done = subprocess.run([program, "compile", self.small, "-o", self.library], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{path.name} line 1: field task", done.stderr)

    def test_records_that_come_with_hone_apply(self):
        """As if they had been measured here: kernels have the same keys as then, and their schedules can be replayed."""
        host = next(device for device in self.succeed_json("devices") if device["name"] == "host")
        source = RECORDS / f"{'avx512' if host['key'].startswith('avx512') else 'avx2'}.jsonl"
        lines = [json.loads(line) for line in source.read_text().splitlines()]
        own = [line | {"device": host["key"], "threads": 1} for line in lines if line["threads"] == 2]
        name = host["key"].partition("-")[0]
        program, beside = self.installed()
        (beside / "records").mkdir()
        (beside / "records" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in own))
        done = subprocess.run([program, "compile", model_files.filled("resnet18"), "-o", self.library, "--threads", "1", "--json"], check=True,
                              capture_output=True, text=True)
        kernels = json.loads(done.stdout)["kernels"]
        known = {line["task"] for line in lines}
        shipped = [kernel for kernel in kernels if kernel["key"] in known]
        self.assertGreater(len(shipped), 0.6 * len(kernels), "a change of tasks' keys leaves the records behind: make them anew")
        for kernel in shipped:
            self.assertEqual((kernel["source"], kernel["stale_records"]), ("shipped", 0), kernel)

    def installed(self):
        """A copy of the program, and the folder in which it looks for what comes with it."""
        program, beside = self.folder / "bin" / "hone", self.folder / "share" / "hone"
        program.parent.mkdir()
        shutil.copy(support.HONE, program)
        beside.mkdir(parents=True)
        return program, beside

    def sources_of(self, program, *options):
        done = subprocess.run([program, "compile", self.small, "-o", self.library, "--threads", "1", "--json", *options], check=True,
                              capture_output=True, text=True)
        return {kernel["source"] for kernel in json.loads(done.stdout)["kernels"]}

    def test_options_are_checked(self):
        self.refuse("transfer 'some', expected pool, one or off", "compile", self.small, "-o", self.library, "--transfer", "some")
        self.refuse("--measure", "transfer", "--to", self.small, "--measure", "-1")
        self.refuse("a database is needed", "transfer", "--to", self.small, "--no-db")


if __name__ == "__main__":
    support.main()
