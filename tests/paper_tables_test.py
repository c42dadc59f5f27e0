"""Tables of the MetaTune and Fasor papers by small models and a small data set: what is there is not made again; and what is counted."""
import argparse
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import support

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"

import fasor_ablations  # noqa: E402
import metatune_tables  # noqa: E402


class PaperTables(support.Case):
    def run_script(self, script, *arguments, code=0):
        done = subprocess.run([sys.executable, BENCHMARKS / script, *map(str, arguments)], capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def product(self, rows):
        return self.save(support.make_model([support.helper.make_node("MatMul", ["x", "w"], ["y"])], [support.value("x", (rows, 64))],
                                            [support.value("y", (rows, 48))], {"w": np.ones((64, 48), np.float32)}), f"product_{rows}.onnx")

    def net(self):
        path = self.folder / "tiny.onnx"
        subprocess.run([os.environ["HONE_NET_FILES"], "--usable", path], check=True)
        return path

    def test_errors_after_samples(self):
        db, figures = self.folder / "data.db", self.folder / "errors.json"
        self.succeed("dataset", "make", self.product(32), self.product(48), "--db", db, "--schedules", 30, "--round", 30, "--threads", 1, "--budget", "20s")
        command = ("metatune_tables.py", "errors", "--hone", support.HONE, "--db", db, "--output", figures, "--device", "host/1", "--seeds", 1,
                   "--contenders", "xgb=gbdt:trees=20", f"net={self.net()}", "--samples", 0, "--seed", 5)
        printed = self.run_script(*command)
        self.assertIn("MSE, 0 samples", printed)
        self.assertIn("0.1134 / 0.4733", printed)
        found = json.loads(figures.read_text())
        self.assertIsNone(found["xgb"]["0"]["5"])  # without a sample trees know nothing
        self.assertTrue(all(0 < error < 1 for error in found["net"]["0"]["5"]))
        self.run_script(*command[:-4], "--contenders", "xgb=gbdt:trees=20", "--samples", 0, 10, "--seed", 5)
        more = json.loads(figures.read_text())
        self.assertEqual(more["net"], found["net"])
        self.assertEqual(len(more["xgb"]["10"]["5"]), 2)
        refused = self.run_script(*command[:-4], "--samples", 20, "--seed", 5, code=1)
        self.assertIn("expected at least 48 for 20 samples", refused)

    def test_rates(self):
        printed = self.run_script("metatune_tables.py", "rates", "--hone", support.HONE, "--table", self.folder / "rates.jsonl", "--seeds", 1, "--seconds", 0.5,
                                  "--trials", 0, "--rounds", 0, "--models", self.product(32), "--adapt", "head",
                                  "--contenders", "xgb=gbdt", f"meta-BO={self.net()}/bayes")
        self.assertIn(": GFLOP/s", printed)
        self.assertIn("| meta-BO ", printed)
        lines = [json.loads(line) for line in (self.folder / "rates.jsonl").read_text().splitlines()]
        self.assertIn("annealing", next(line for line in lines if line.get("contender") == "xgb")["arguments"])

    def test_ablations(self):
        store = self.folder / "store.db"
        self.succeed("tune", self.product(48), "-o", self.folder / "model.so", "--budget", "2s", "--threads", 1, "--db", store, "--no-shipped")
        before = store.read_bytes()
        printed = self.run_script("fasor_ablations.py", "--hone", support.HONE, "--table", self.folder / "fasor.jsonl", "--net", self.net(), "--store", store,
                                  "--tasks", self.product(32), "--seconds", 0.5, "--trials", 5, "--limit", 20, "--rounds", 1, "--movable", "", "--cost", "analytic",
                                  "--only", "ansor", "fasor")
        self.assertEqual(store.read_bytes(), before)
        lines = [json.loads(line) for line in (self.folder / "fasor.jsonl").read_text().splitlines()]
        for line in lines[1:3]:
            self.assertGreaterEqual(line["trials"], 5)
            self.assertLess(line["trials"], 500)
            self.assertGreater(line["curve"][-1][0], 0)
        for name in ("ansor", "fasor"):
            self.assertIn(f"| {name} ", printed)
        self.assertIn("required", self.run_script("fasor_ablations.py", "--hone", support.HONE, "--net", self.net(), code=2))
        self.assertIn("no file", self.run_script("fasor_ablations.py", "--hone", support.HONE, "--table", "x.jsonl", "--net", "nothing.onnx", code=2))


class Counting(unittest.TestCase):
    def test_errors_of_rates(self):
        lines = [{"measured": [1.0, 2.0, 4.0, 4.0], "predicted": [2.0, 2.0, 4.0, 0.5]}]
        mse, best = metatune_tables.errors_of(lines)
        self.assertAlmostEqual(mse, (0.75**2 + 0.25**2 + 0.125**2 + 0.75**2) / 4)
        self.assertAlmostEqual(best, 0.75**2)  # of the fastest alone

    def test_contenders(self):
        self.assertEqual(metatune_tables.parse_contenders(["xgb=gbdt", "a=x/meta.onnx", "b=x/meta.onnx/bayes:kappa=1", "RL=gbdt/ppo"]),
                         [("xgb", "gbdt", ""), ("a", "x/meta.onnx", ""), ("b", "x/meta.onnx", "bayes:kappa=1"), ("RL", "gbdt", "ppo")])
        with self.assertRaises(SystemExit):
            metatune_tables.parse_contenders(["gbdt"])

    def test_ablations_leave_one_part_out(self):
        options = argparse.Namespace(cost="analytic", search="dqn", net="net.onnx", adapt="head", movable="7", counts=[5, 6, 7, 8], random=7, store=None,
                                     only=fasor_ablations.NAMES)
        found = {contender.name: contender.arguments for contender in fasor_ablations.contenders(options)}
        whole = found["fasor"]
        changes = {name: [(a, b) for a, b in zip(whole, arguments, strict=True) if a != b] for name, arguments in found.items() if name.startswith("fasor")}
        self.assertEqual(changes, {
            "fasor": [], "fasor without TL": [("head", "scratch")], "fasor without S": [("pool", "off")], "fasor without RL": [("dqn", "annealing")],
            "fasor without R": [("dqn", "dqn:phi2=0")], "fasor, n_p = 5": [("7", 5)], "fasor, n_p = 6": [("7", 6)], "fasor, n_p = 8": [("7", 8)],
            "fasor, random n_p = 7": [("7", "random:7")]})
        self.assertNotIn("--movable", found["ansor"])

    def test_seconds_by_what_they_went_to(self):
        lines = [{"contender": name, "report": {"spent": {"measuring": measuring, "compiling": 3.0, "choosing": 1.0}}} for name, measuring in (("a", 8.0), ("a", 4.0), ("b", 3.0))]
        text = " ".join(fasor_ablations.parts(lines, ["a", "b"]).split())
        self.assertIn("| a | 6.00 | 3.00 | 1.00 | 0.00 | 0.00 | 0.00 | 0.00 | 60.0 % | 0.0 % | 0.0 % |", text)
        self.assertIn("| 42.9 % | 50.0 % | 0.0 % |", text)
        self.assertIn("does not say", fasor_ablations.parts([{"contender": "a", "report": {}}], ["a"]))


if __name__ == "__main__":
    support.main()
