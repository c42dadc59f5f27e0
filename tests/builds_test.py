"""The benchmark of models built in several ways: a tiny model, one round; and a DQN in the curves that goes on from what it has learned."""
import json
import subprocess
import sys
from pathlib import Path

import support

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


class Builds(support.Case):
    def script(self, name, *arguments, code=0):
        done = subprocess.run([sys.executable, BENCHMARKS / name, "--hone", support.HONE, *map(str, arguments)], capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_ways(self):
        model, table = self.save(support.small_network()), self.folder / "table.jsonl"
        cost = "--no-shipped --cost analytic"
        ways = [f"compile=compile --no-db {cost}", f"efficient=tune --no-db {cost} --mode efficient", f"measured=tune --db NEW {cost} --budget 3s"]
        shared = ["--models", model, "--ways", *ways, "--clock", "cpu", "--rounds", 1, "--table", table]
        printed = self.script("builds.py", *shared)
        line = json.loads(table.read_text())
        self.assertEqual(list(line["rounds"]), ["compile", "efficient", "measured"])
        self.assertTrue(all(found[0] > 0 for found in line["rounds"].values()))
        self.assertLessEqual(line["predicted"]["efficient"], line["predicted"]["compile"])  # it begins with what the other chooses
        self.assertIsNone(line["predicted"]["measured"])
        self.assertIn("| model   | compile   |", printed)
        self.assertEqual(self.script("builds.py", *shared), printed)  # nothing is done again

    def test_a_way_without_a_command(self):
        self.assertIn("expected NAME=COMMAND", self.script("builds.py", "--models", "resnet18", "--ways", "compile", code=2))

    def test_a_trained_policy(self):
        model, db, state = self.save(support.small_network()), self.folder / "known.db", self.folder / "moves.state"
        self.succeed("dataset", "make", model, "--db", db, "--schedules", 8, "--task-time", "5s", "--threads", 1)
        self.succeed("policy", "train", "--db", db, "--cost", "analytic", "--epochs", 1, "-o", state)
        before = state.read_bytes()
        table = self.folder / "runs.jsonl"
        self.script("search_curves.py", "--table", table, "--tasks", model, "--search", "dqn", "--policy-state", state, "--seconds", 3, "--trials", 0,
                    "--seeds", 1, "--rounds", 0, "--threads", 1)
        runs = [json.loads(line) for line in table.read_text().splitlines()]
        self.assertEqual({run["contender"] for run in runs if "contender" in run}, {"dqn", "dqn from moves"})
        self.assertEqual(state.read_bytes(), before)  # each run has a copy, which it writes
        self.assertEqual(len(list(table.with_suffix(".work").glob("*.state"))), 1)


if __name__ == "__main__":
    support.main()
