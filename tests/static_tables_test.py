"""The benchmarks of scores of machine code without a timing: the commands that build a network in each way, the tables, lines for an import, what is
read of `hone eval`, and errors of options."""
import argparse
import contextlib
import io
import json
import math
import subprocess
import sys
import types
from pathlib import Path
from unittest import mock

import support

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"

sys.modules.setdefault("hone", types.ModuleType("hone"))  # the package, which only measurements call
import static_devices  # noqa: E402
import tuna_tables  # noqa: E402


def network(name, latency, seconds):
    return {"network": name, "latency": latency, "seconds": seconds}


LINES = [network("a", {"tuna": 2e-3, "full": 1e-3, tuna_tables.RIVAL: 4e-3}, {"tuna": 36.0, "full": 360.0}),
         network("b", {"tuna": 8e-3, "full": 8e-3, tuna_tables.RIVAL: 2e-3}, {"tuna": 72.0, "full": 360.0})]


class TunaTables(support.Case):
    def run_script(self, *arguments, code=0):
        done = subprocess.run([sys.executable, BENCHMARKS / "tuna_tables.py", "--hone", support.HONE, *map(str, arguments)], capture_output=True, text=True,
                              timeout=100)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_networks_that_were_timed_are_only_printed(self):
        score, table = self.folder / "static.model", self.folder / "tuna.jsonl"
        score.write_text("")
        text = "".join(json.dumps(line) + "\n" for line in LINES)
        table.write_text(text)
        printed = self.run_script("--score", score, "--table", table, "--models", "a", "b", "--price", 3)
        self.assertEqual(table.read_text(), text)
        latency, seconds, dollars, paper = printed.rstrip().split("\n\n")
        rows = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in latency.splitlines()}
        self.assertEqual(rows["ms"], ["a", "b", "speed / full"])
        self.assertEqual(rows["tuna"], ["2.00", "8.00", f"{math.sqrt(0.5):.3f}"])  # geometric means of 1/2 and 1, and of 1/4 and 4
        self.assertEqual(rows[tuna_tables.RIVAL], ["4.00", "2.00", "1.000"])
        rows = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in seconds.splitlines()}
        self.assertEqual((rows["tuna"], rows["full"]), (["36.0", "72.0", "0.150"], ["360.0", "360.0", "1.000"]))
        self.assertNotIn(tuna_tables.RIVAL, seconds + dollars)
        rows = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in dollars.splitlines()}
        self.assertEqual((rows["tuna"], rows["full"]), (["0.0300", "0.0600"], ["0.3000", "0.3000"]))
        self.assertEqual(paper, tuna_tables.PAPER)

    def test_options(self):
        self.assertIn("the following arguments are required: --score, --table", self.run_script(code=2))
        self.assertIn("--score: no file", self.run_script("--score", self.folder / "nothing.model", "--table", self.folder / "tuna.jsonl", code=2))

    def test_ways(self):
        commands = []

        def run_hone(_, *arguments):
            commands.append([str(argument) for argument in arguments])
            for option in ("-o", "--db"):
                if option in arguments:
                    Path(arguments[arguments.index(option) + 1]).touch()

        clock = iter([0, 1, 10, 12, 20, 50, 60, 61, 70, 71])  # tuna takes 30 s
        options = argparse.Namespace(hone="hone", score="s.model", cost="auto", seed=3, threads=1, partial=20.0, full=300.0)
        with mock.patch.object(tuna_tables, "run_hone", run_hone), mock.patch.object(tuna_tables.time, "perf_counter", lambda: next(clock)):
            found = tuna_tables.ways(options, "model.onnx", self.folder)
        self.assertEqual({way: seconds for way, (_, seconds) in found.items()}, {"compile": 1, "refined": 2, "tuna": 30, "partial": 1, "full": 1})
        self.assertEqual(len({library for library, _ in found.values()}), 5)
        compiled, refined, tuna, partial, full = commands
        self.assertEqual([command[:2] for command in commands], [["compile", "model.onnx"]] * 2 + [["tune", "model.onnx"]] * 3)
        self.assertEqual(refined[refined.index("--refine") + 1], "s.model:candidates=8,weight=0.5")
        self.assertNotIn("--refine", compiled)
        self.assertEqual([tuna[tuna.index(option) + 1] for option in ("--mode", "--search", "--guide")], ["efficient", "es", "s.model"])
        for command in (compiled, refined, tuna):
            self.assertIn("--no-db", command)
        self.assertEqual([command[command.index("--budget") + 1] for command in (partial, full)], ["20.0s", "300.0s"])
        self.assertNotEqual(partial[partial.index("--db") + 1], full[full.index("--db") + 1])


RECORD = {"task": "01", "device": "there", "threads": 2, "version": "0.2", "algorithm": "direct", "steps": "split(a)", "decisions": "1 2", "model": "net",
          "seconds": 3e-6, "kernel": "k"}


class StaticDevices(support.Case):
    def test_tasks_with_two_shipped_schedules(self):
        records = self.folder / "records.jsonl"
        records.write_text("".join(json.dumps(RECORD | {"task": task, "steps": steps}) + "\n" for task, steps in (("01", "a"), ("02", "b"), ("01", "c"))))
        found = static_devices.shipped(records)
        self.assertEqual({task: [record["steps"] for record in own] for task, own in found.items()}, {"01": ["a", "c"]})
        self.assertGreater(len(static_devices.shipped(static_devices.RECORDS / "avx2.jsonl")), 10)

    def test_lines_for_an_import(self):
        known = {"task": "01", "dag": "text", "device": "other", "threads": 1, "outcome": "ok", "centre": 9.0}
        line = json.loads(static_devices.line_of(known, RECORD, "here", 2e-6))
        self.assertEqual(line, {"task": "01", "dag": "text", "outcome": "ok", "device": "here", "threads": 2, "version": "0.2", "algorithm": "direct",
                                "steps": "split(a)", "decisions": "1 2", "model": "net", "accuracy": "strict", "times": [2e-6] * 3, "centre": 2e-6,
                                "low": 2e-6, "high": 2e-6})
        for algorithm in ("winograd4", "strassen"):
            line = json.loads(static_devices.line_of(known, RECORD | {"algorithm": algorithm}, "here", 2e-6))
            self.assertEqual(line["accuracy"], "default")

    def test_every_schedule_as_measured_there_and_here(self):
        records = self.folder / "records.jsonl"
        shipped = [RECORD | {"task": f"{key:016x}", "steps": f"{key} {i}", "seconds": 1e-6 * (i + 1)} for key in (1, 2, 3) for i in range(2)]
        records.write_text("".join(json.dumps(record) + "\n" for record in shipped))
        space = types.SimpleNamespace(locate=lambda steps: [int(steps.split()[1])],
                                      measure=lambda points: types.SimpleNamespace(seconds=[math.inf if point[0] else 5e-6 for point in points]))
        tasks = [types.SimpleNamespace(key=key, device="here", space=lambda: space) for key in (1, 3, 4)]
        options = argparse.Namespace(records=records)
        with mock.patch.object(static_devices.hone, "tasks", lambda path, threads: tasks, create=True), \
                mock.patch.object(static_devices, "texts", lambda *_: {f"{key:016x}": {"task": f"{key:016x}"} for key in (1, 2)}):
            lines, count = static_devices.measured(options, ["one.onnx", "two.onnx"], self.folder)
        self.assertEqual(count, 1)  # the third is not known, and the fourth not shipped; two models have the first
        found = {device: [(line["task"][-1], line["steps"], line["centre"]) for line in map(json.loads, own)] for device, own in lines.items()}
        self.assertEqual(found, {"there": [("1", "1 0", 1e-6)], "here": [("1", "1 0", 5e-6)]})  # without the one that failed here

    def test_what_hone_says_of_a_score(self):
        db = self.folder / "data.db"
        product = self.save(support.make_model([support.helper.make_node("MatMul", ["x", "w"], ["y"])], [support.value("x", (32, 64))],
                                               [support.value("y", (32, 48))], {"w": support.np.ones((64, 48), support.np.float32)}), "product.onnx")
        self.succeed("dataset", "make", product, "--db", db, "--schedules", 12, "--round", 12, "--threads", 1, "--budget", "20s")
        options = argparse.Namespace(hone=support.HONE, db=db, device="host/1")
        found = static_devices.judged(options, "analytic")
        self.assertEqual(len(found), len(static_devices.COLUMNS))
        self.assertTrue(all(0 <= float(value) <= 1 for value in found[:4]), found)
        (key, line), = static_devices.exported(options, db, self.folder).items()
        self.assertEqual(key, line["task"])
        # An import reads what line_of() writes.
        lines = self.folder / "lines.jsonl"
        lines.write_text(static_devices.line_of(line, line, line["device"], 7e-6) + "\n")
        other = self.folder / "other.db"
        self.succeed("db", "import", lines, "--db", other)
        (back,) = static_devices.exported(options, other, self.folder).values()
        self.assertEqual((back["task"], back["steps"], back["centre"]), (key, line["steps"], 7e-6))

    def test_options(self):
        for arguments, message in (((), "the following arguments are required: --hone, --db, --device"), (("--devices", "x"), "required")):
            said = io.StringIO()
            with mock.patch.object(sys, "argv", ["static_devices.py", *arguments]), contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
                static_devices.main()
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(message, said.getvalue())


if __name__ == "__main__":
    support.main()
