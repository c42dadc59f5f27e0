"""The curves of searches guided by several cost models: tiny tasks, tiny budgets; and what is counted of a run."""
import json
import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import support

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))
import guide_curves  # noqa: E402
import tuning_curves  # noqa: E402


class GuideCurves(support.Case):
    def compare(self, script, *arguments, code=0):
        done = subprocess.run([sys.executable, BENCHMARKS / script, "--hone", support.HONE, "--budget", "5", *map(str, arguments)],
                              capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def check(self, printed, report, tasks, contenders):
        self.assertEqual(list(report["curves"]), tasks)
        self.assertEqual(report["contenders"], contenders)
        for task in tasks:
            ends = []
            for name in contenders:
                (curve,) = report["curves"][task][name]
                for before, after in zip(curve, curve[1:]):
                    self.assertLess(before[0], after[0])
                    self.assertLessEqual(before[1], after[1])
                    self.assertGreaterEqual(before[2], after[2])
                ends += [curve[-1][2]]
                self.assertIn(f"| {task} | {name} |", printed)
            self.assertLessEqual(report["best_known"][task], min(ends))
        for name in contenders:
            self.assertIn(f"| mean, relative to {contenders[0]} | {name} |", printed)

    def test_models_as_guides(self):
        model = self.save(support.small_network())
        net = self.folder / "tiny.onnx"
        subprocess.run([os.environ["HONE_NET_FILES"], "--usable", net], check=True)
        drawing, results = self.folder / "curves.svg", self.folder / "curves.json"
        printed = self.compare("guide_curves.py", "--costs", "analytic", net, f"{net}+head", "--tasks", model, "matmul_128x768x768", "--goals", 0.5, 0.95,
                               "--output", drawing, "--json", results)
        report = json.loads(results.read_text())
        self.check(printed, report, ["model", "matmul_128x768x768"], ["analytic", "tiny", "tiny+head"])
        self.assertIn("| s to 0.5 | trials to 0.5 | s to 0.95 |", printed)
        self.assertIn("| s to analytic's end | trials to analytic's end |", printed)
        root = ElementTree.fromstring(drawing.read_text())
        self.assertEqual(len([path for path in root.iter("{http://www.w3.org/2000/svg}path") if path.get("fill") == "none"]), 2 * 2 * 3)

    def test_few_decisions(self):
        model, results = self.save(support.small_network()), self.folder / "curves.json"
        printed = self.compare("subspace_curves.py", "--movable", "all", "2", "learned:2", "random:2", "--powers-of-two", "--tasks",
                               "depthwise_56x56x144", "--sensitivity-models", model, "--sensitivity-tasks", 2, "--sensitivity-budget", 5, "--json", results)
        self.check(printed, json.loads(results.read_text()), ["depthwise_56x56x144"],
                   ["all", "2", "learned_2", "random_2", "powers of two"])
        self.assertIn("expected none of --tasks", self.compare("subspace_curves.py", "--tasks", model, "--sensitivity-models", model, code=1))

    def test_searches(self):
        page, results = self.folder / "curves.html", self.folder / "curves.json"
        printed = self.compare("search_curves.py", "--search", "random", "mixed", "--tasks", "depthwise_56x56x144", "--output", page, "--json", results)
        self.check(printed, json.loads(results.read_text()), ["depthwise_56x56x144"], ["random", "mixed"])
        self.assertIn("</svg>", page.read_text())
        self.assertIn("| depthwise_56x56x144 | random |", page.read_text())

    def test_compiling_while_measuring(self):
        results = self.folder / "curves.json"
        printed = self.compare("search_curves.py", "--search", "mixed", "--overlap", "yes", "no", "--tasks", "depthwise_56x56x144", "--json", results)
        self.check(printed, json.loads(results.read_text()), ["depthwise_56x56x144"], ["mixed overlap=yes", "mixed overlap=no"])

    def test_refuses(self):
        self.assertIn("nothing.onnx", self.compare("guide_curves.py", "--costs", "nothing.onnx", code=1))
        self.assertIn("expected one of analytic", self.compare("guide_curves.py", "--costs", "oracle", code=1))
        self.assertIn("'nothing' is none of", self.compare("guide_curves.py", "--tasks", "nothing", code=1))
        self.assertIn("given twice", self.compare("guide_curves.py", "--costs", "gbdt", "gbdt", code=1))


class Counting(unittest.TestCase):
    def test_a_model_is_the_sum_of_its_kernels(self):
        trials = [("a", 0.5, 4.0), ("b", 1.0, 2.0), ("a", 1.5, 5.0), ("a", 2.0, 1.0), ("elsewhere", 2.5, 1.0), ("b", 3.0, 2.5)]
        kernels = {"a": (2, 9.0), "b": (1, 9.0), "never": (3, 0.5)}
        curve = tuning_curves.best_so_far(trials, kernels)
        self.assertEqual(curve, [(1, 0.5, 11.5), (4, 2.0, 5.5), (6, 3.0, 5.5)])
        self.assertEqual(tuning_curves.first_good(curve, 11.5), (1, 0.5))
        self.assertEqual(tuning_curves.first_good(curve, 6), (4, 2.0))
        self.assertIsNone(tuning_curves.first_good(curve, 5))
        self.assertEqual(tuning_curves.best_so_far([], {"a": (1, 1.0)}), [])

    def test_a_curve_ends_at_what_its_library_takes(self):
        self.assertEqual(tuning_curves.scaled([(2, 1.0, 12.0), (4, 2.0, 8.0)], 8.0, 4.0), [(2, 1.0, 6.0), (4, 2.0, 4.0)])

    def test_where_a_run_was_told_to_begin_can_be_left_out(self):
        trials = [("a", 0.5, 1.0), ("b", 1.0, 1.0), ("a", 1.5, 3.0), ("a", 2.0, 2.0), ("b", 3.0, 2.0)]
        left = tuning_curves.without_starts(trials)
        self.assertEqual(left, trials[2:])
        self.assertEqual(tuning_curves.best_so_far(left, {"a": (1, 9.0), "b": (1, 9.0)}), [(1, 1.5, 5.0), (2, 2.0, 4.0), (3, 3.0, 4.0)])

    def test_trials_of_one_second_are_spread_over_it_in_order(self):
        self.assertEqual(tuning_curves.spread([100, 100, 101, 101, 103], 100.5), [0.0, 0.25, 0.5, 1.0, 2.5])
        self.assertEqual(tuning_curves.spread([], 100.5), [])
        moments = tuning_curves.spread([7] * 5 + [8] * 5, 7.9)
        self.assertEqual(moments, sorted(moments))

    def test_a_run_that_does_not_reach_the_goal_counts_with_all_of_it(self):
        runs = [[(1, 0.5, 2.0), (9, 3.0, 1.0)], [(1, 0.5, 4.0), (20, 6.0, 2.0)], []]
        row = tuning_curves.summarise(runs, 1.0, [0.5, 1.0], 10, 4.0)
        self.assertEqual(row["goals"][0], {"reached": 2, "trials": 1, "seconds": 6.0})
        self.assertEqual(row["goals"][1], {"reached": 1, "trials": 9, "seconds": 10})
        self.assertEqual(row["goals"][2], {"reached": 2, "trials": 1, "seconds": 0.5})
        self.assertEqual(tuning_curves.median_end(runs), 2.0)
        self.assertEqual((row["runs"], row["trials"], row["share"]), (3, 9, 0.5))

    def test_names_are_as_short_as_they_differ(self):
        both, = guide_curves.contenders(["trees.model,net.onnx+head"], "mixed")
        self.assertEqual((both.name, both.arguments), ("trees,net+head",
                         ["--search", "mixed", "--cost", "trees.model", "--guide", "net.onnx", "--adapt", "head"]))
        found = guide_curves.contenders(["analytic", "a/net.onnx", "a/net.onnx+head", "b/my.model", "c/my.model"], "random")
        self.assertEqual([contender.name for contender in found], ["analytic", "net", "net+head", "b/my.model", "c/my.model"])
        self.assertEqual(found[2].arguments, ["--search", "random", "--cost", "a/net.onnx", "--adapt", "head"])
        self.assertEqual(found[0].arguments, ["--search", "random", "--cost", "analytic"])


if __name__ == "__main__":
    support.main()
