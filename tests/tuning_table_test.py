"""Strategies and guides at equal trials and equal seconds: tiny tasks and times, a script that is interrupted and goes on; and what is counted."""
import argparse
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import support

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"

import best_known  # noqa: E402
import guide_curves  # noqa: E402
import search_curves  # noqa: E402
import tuning_table  # noqa: E402


def options(**more):
    return argparse.Namespace(**({"trials": 4, "seconds": 10.0, "first_seed": 1, "seeds": 2, "rounds": 1} | more))


def run(task, contender, seed, curve, trials=9):
    return {"task": task, "contender": contender, "seed": seed, "curve": curve, "trials": trials, "arguments": [], "seconds": 10, "start": 0}


class TuningTable(support.Case):
    def table(self, script, *arguments, code=0):
        done = subprocess.run([sys.executable, BENCHMARKS / script, "--hone", support.HONE, "--table", self.folder / "runs.jsonl", *map(str, arguments)],
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def lines(self):
        return [json.loads(line) for line in (self.folder / "runs.jsonl").read_text().splitlines()]

    def product(self):
        return self.save(support.make_model([support.helper.make_node("MatMul", ["x", "w"], ["y"])], [support.value("x", (32, 64))],
                                            [support.value("y", (32, 48))], {"w": support.np.ones((64, 48), support.np.float32)}), "product.onnx")

    def test_strategies_and_going_on(self):
        command = ("search_curves.py", "--tasks", self.product(), "--seconds", 0.6, "--limit", 30, "--rounds", 1, "--strategies", "default", "random", "--trials", 10)
        first = self.table(*command)
        self.assertIn("speed at equal trials", first)
        settings, random, default, turns = self.lines()  # the first seed begins with the second
        self.assertEqual(settings["settings"]["trials"], 10)
        for line in (default, random):
            self.assertGreaterEqual(line["trials"], 10)
            self.assertEqual([point[2] for point in line["curve"]], sorted((point[2] for point in line["curve"]), reverse=True))
        self.assertEqual(set(turns["turns"]), {"default", "random", tuning_table.START})
        # What is there is not run again; a line that was cut off, and its contender alone, is.
        self.assertEqual(self.table(*command), first)
        self.assertEqual(self.lines(), [settings, random, default, turns])
        path = self.folder / "runs.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in (settings, random)) + json.dumps(default)[:40])
        self.table(*command)
        again = self.lines()
        self.assertEqual(again[:2], [settings, random])
        self.assertEqual([line.get("contender") for line in again[1:]], ["random", "default", None])
        self.assertNotEqual(again[2]["start"], default["start"])
        self.assertIn("use another file", self.table(*command, "--threads", 2, code=1))

    def test_few_decisions(self):
        model = self.save(support.small_network())
        command = ("subspace_curves.py", "--tasks", self.product(), "--movable", "all", "1", "--powers-of-two", "--seconds", 0.6, "--trials", 0, "--rounds", 1,
                   "--sensitivity-models", model, "--sensitivity-tasks", 2, "--sensitivity-budget", 5)
        printed = self.table(*command)
        for name in ("all", "1", "powers of two"):
            self.assertIn(f"| {name} ", printed)
        runs = {line["contender"]: line["arguments"] for line in self.lines() if "contender" in line}
        self.assertEqual(runs["powers of two"][-4:], ["--movable", "all", "--tiles", "powers-of-two"])
        measured = self.folder / "runs.sensitivity.db"
        before = measured.stat().st_mtime_ns
        self.assertEqual(self.table(*command), printed)  # neither run nor measured again
        self.assertEqual(measured.stat().st_mtime_ns, before)

    def test_families_as_guides(self):
        nets = self.folder / "nets"
        nets.mkdir()
        subprocess.run([os.environ["HONE_NET_FILES"], "--usable", nets / "small_7.onnx"], check=True)  # so that nothing is trained
        printed = self.table("guide_curves.py", "--tasks", self.product(), "--budget", 0.7, "--rounds", 0, "--trials", 0, "--families", "small", "--sizes", 7,
                             "--adapts", "none", "head", "--train-db", "none.db", "--nets", nets, "--costs", "analytic")
        for name in ("analytic", "analytic,small_7+none", "analytic,small_7+head"):
            self.assertIn(f"| {name} ", printed)

    def test_refuses(self):
        self.assertIn("--train-db and --nets are required", self.table("guide_curves.py", "--families", "small", code=2))
        self.assertIn("given twice", self.table("search_curves.py", "--search", "random", "random", code=2))


class Counting(unittest.TestCase):
    def setUp(self):
        self.runs = tuning_table.Runs.__new__(tuning_table.Runs)
        self.runs.found, self.runs.timed = {}, {}
        for seed in (1, 2):
            for line in (run("t", "a", seed, [[1, 1.0, 8.0], [6, 4.0, 4.0]]), run("t", "b", seed, [[2, 0.5, 6.0], [3, 2.0, 4.0], [5, 9.0, 2.0 * seed]])):
                self.runs.found[line["task"], line["contender"], seed] = line

    def test_equal_trials_and_seconds(self):
        found = tuning_table.summary(self.runs, ["t"], ["a", "b"], options())
        for got, expected in ((found["b"]["speed at equal trials"], [2, 2]), (found["b"]["speed at equal seconds"], [2, 1]),
                              (found["a"]["of the best at equal seconds"], [0.5, 1]), (found["b"]["of the best at equal seconds"], [1, 1]),
                              (found["b"]["seconds to a's end"], [0.5, 0.5]), (found["a"]["seconds to a's end"], [1, 1]),
                              (found["b"]["trials to a's end"], [0.5, 0.5]), (found["a"]["trials to a's end"], [1, 1])):
            for one, other in zip(got, expected, strict=True):
                self.assertAlmostEqual(one, other)
        self.assertIn("| b | 2.000 (2.000 to 2.000) | ", " ".join(tuning_table.table(found).split()))

    def test_times_of_turns_count_where_there_are_any(self):
        self.runs.timed["t", 1] = {"a": {"trials": 4.0, "seconds": 3.0}, "b": {"trials": 4.0, "seconds": 1.0}, "": {"": 6.0}}
        found = tuning_table.summary(self.runs, ["t"], ["a", "b"], options(seeds=1))
        self.assertAlmostEqual(found["b"]["speed at equal seconds"][0], 3)
        self.assertAlmostEqual(found["b"]["over the default schedule"][0], 6)

    def test_what_is_never_reached_counts_with_all_of_it(self):
        self.assertEqual(tuning_table.needed(self.runs, "t", "a", "b", 1, options()), (9 / 5, 10 / 9))

    def test_before_the_first_trial_there_is_nothing(self):
        self.assertIsNone(tuning_table.at([[2, 0.5, 6.0]], "trials", 1))
        self.assertEqual(tuning_table.at([[2, 0.5, 6.0], [3, 2.0, 4.0]], "seconds", 1), 6.0)
        self.assertEqual(tuning_table.spread([None]), "-")

    def test_what_is_compared(self):
        self.assertEqual(search_curves.contender("default", "auto", argparse.Namespace(overlap=["auto"], cost="x")).arguments, ["--cost", "x", "--overlap", "auto"])
        self.assertFalse(search_curves.contender("random", "auto", argparse.Namespace(overlap=["auto"], cost="x")).told)
        self.assertEqual(len(search_curves.STRATEGIES), 10)
        self.assertEqual(len(best_known.KERNELS), 10)
        scratch, = guide_curves.contenders(["analytic,a/net.onnx+scratch"], "mixed")
        self.assertEqual(scratch.arguments[-4:], ["--guide", "a/net.onnx", "--adapt", "scratch"])


if __name__ == "__main__":
    support.main()
