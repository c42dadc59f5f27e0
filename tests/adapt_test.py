#!/usr/bin/env python3
"""hone adapt: representative kernels are measured, the guide is corrected by them and judged by kernels that it has not seen, and tune takes
the file."""
import os

from dataset_test import model
from support import main, Case


class Adapt(Case):
    def setUp(self):
        super().setUp()
        self.models = [self.folder / "first.onnx", self.folder / "second.onnx"]
        model(self.models[0], "first", 16)
        model(self.models[1], "second", 32)
        self.output = self.folder / "mine.model"

    def adapt(self, *more):
        return ["adapt", *self.models, "--threads", "1", "--tasks", "3", "--schedules", "12", "--budget", "60s", "-o", self.output, *more]

    def test_trees(self):
        db = self.folder / "few.db"
        report = self.succeed_json(*self.adapt("--db", db))
        self.assertEqual(len(report["tasks"]), 3)
        self.assertEqual(sum(task["stands_for"] for task in report["tasks"]), report["all_tasks"])
        self.assertTrue(report["device"].endswith("/1"))
        for task in report["tasks"]:
            self.assertTrue(task["judged"] and task["schedules"] >= 8, task)
        for when in ("before", "after"):
            mean = sum(task[when]["pair_accuracy"] for task in report["tasks"]) / 3
            self.assertAlmostEqual(report[when]["pair_accuracy"], mean, delta=1e-9)
        self.assertEqual(report["gained"], report["after"]["pair_accuracy"] > report["before"]["pair_accuracy"])
        text = self.output.read_text()
        self.assertIn("\ncard from ", text)
        self.assertIn("\ncard tasks 3\n", text)

        # What was measured is enough for the second time, and the result is the same.
        again = self.succeed_json(*self.adapt("--db", db))
        self.assertEqual((again["records"], again["after"]), (0, report["after"]))
        self.assertEqual(self.output.read_text(), text)
        self.assertIn("as the other tasks correct it", self.succeed(*self.adapt("--db", db)))
        library = self.folder / "first.so"
        tuned = self.succeed_json("tune", self.models[0], "-o", library, "--no-db", "--threads", "1", "--budget", "3s", "--guide", self.output)
        self.assertGreater(tuned["trials"], 0)

    def test_a_policy_is_trained_on_what_was_measured(self):
        db, state = self.folder / "few.db", self.folder / "moves.state"
        self.succeed("dataset", "make", *self.models, "--db", db, "--threads", "1", "--schedules", "10", "--budget", "60s")
        train = ["policy", "train", "--db", db, "--device", "host/1", "--cost", "analytic", "--epochs", "2", "-o", state]
        self.assertIn("2 epochs over", self.succeed(*train))
        first = state.read_text()
        self.assertRegex(first, r"\Ahone policy state 2\nhash [0-9a-f]{16}\nstrategy dqn\ninstructions ")
        self.assertRegex(first, "agent dqn view 1 cpu moves [1-9]")
        self.succeed(*train)
        self.assertEqual(state.read_text(), first)
        further = self.folder / "further.state"
        self.succeed(*train[:-1], further, "--from", state)
        self.assertNotEqual(further.read_text(), first)
        self.refuse("is the same file as", *train, "--from", state)
        self.refuse("learns nothing", *train, "--search", "annealing")
        self.refuse("third", *train, "--exclude-model", "third")
        self.refuse("nowhere.state", *train, "--from", self.folder / "nowhere.state")
        self.refuse("no task", "policy", "train", "--db", db, "--device", "host/7", "-o", state)
        before = state.read_text()
        tune = ["tune", self.models[0], "-o", self.folder / "first.so", "--no-db", "--threads", "1", "--search", "dqn", "--mode", "efficient"]
        tune.append("--policy-state")
        other = self.folder / "other.state"
        if os.uname().machine == "x86_64":
            bits = 256 if "with 512 bits" in before else 512
            self.succeed(*tune, other, "--device", f"x86-64-avx{2 if bits == 256 else 512}")
            self.refuse(f"trained for x86_64 with {bits} bits", *train, "--from", other)
            self.assertEqual(state.read_text(), before)
        self.succeed(*tune, state)
        self.assertNotEqual(state.read_text(), before, "it goes on learning")
        recalled = self.folder / "recalled.state"
        self.succeed(*train[:-2], "-o", recalled, "--search", "mixed:recall=1")
        self.assertRegex(recalled.read_text(), r"\Ahone policy state 2\nhash [0-9a-f]{16}\nstrategy mixed\n")

    def test_bad_input_overwrites_nothing(self):
        self.output.write_text("mine")
        for message, more in (("--tasks 1, expected 2 or more", ["--tasks", "1"]), ("expected FILE.model or FILE.onnx", ["--from", "trees.txt"]),
                              ("missing.model", ["--from", self.folder / "missing.model"]), ("missing.onnx", ["--from", "missing.onnx", "-o", "a.onnx"]),
                              ("expected a name ending in .model", ["-o", self.folder / "mine.txt"]), ("there is no folder", ["-o", self.folder / "none/a.model"])):
            done = self.adapt(*more)
            if "-o" in more:  # given once
                at = done.index("-o")
                del done[at:at + 2]
            if "--tasks" in more:
                at = done.index("--tasks")
                del done[at:at + 2]
            self.refuse(message, *done)
        torn = self.folder / "torn.model"
        torn.write_text("hone trees\n")
        self.refuse("torn.model", *self.adapt("--from", torn))
        self.assertEqual(self.output.read_text(), "mine")


if __name__ == "__main__":
    main()
