"""What transferring is worth, measured, tabled and drawn: two tiny models, each in a database of its own; and what
a mean counts."""
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import support

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "transfer.py"

sys.path.insert(0, str(SCRIPT.parent))
import best_known  # noqa: E402
import kernel_rows  # noqa: E402
import transfer  # noqa: E402
import transfer_figures  # noqa: E402
import transfer_matrix  # noqa: E402
import transfer_time  # noqa: E402


def source(name, default, transferred, best, time_share, score=0.0):
    """As `hone transfer --json` has it."""
    sums = {"tasks": 1, "used": 1, "records": 2, "invalid": 0, "default_seconds": default, "transfer_seconds": transferred, "best_seconds": best,
            "speedup_share": (default - transferred) / (default - best) if default > best else None}
    return {**sums, "source": name, "score": score, "seconds": 1.0, "time_share": time_share, "classes": [{**sums, "kernel": "conv2d<relu>"}]}


def result(name, *entries):
    return {"model": name, "threads": 1, "kernels": 1, "untuned": 0, "full_trials": 5, "full_seconds": 10.0, "entries": list(entries)}


class TransferFigures(support.Case):
    def run_script(self, *arguments, code=0):
        done = subprocess.run([sys.executable, SCRIPT, "--output", self.folder / "out", *map(str, arguments)], capture_output=True, text=True,
                              timeout=100)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def tuned(self, name, size):
        network = support.small_network(size)
        network.graph.name = name
        model, db = self.save(network, f"{name}.onnx"), self.folder / f"{name}.db"
        self.succeed("tune", model, "-o", self.folder / "model.so", "--budget", "5s", "--threads", 1, "--no-shipped", "--db", db)
        return model, db

    def test_tiny_models(self):
        (_, other), (model, own) = self.tuned("other", 20), self.tuned("target", 28)
        before = {path: path.read_bytes() for path in (other, own)}
        printed = self.run_script("--hone", support.HONE, "--db", own, other, "--models", model, "--threads", 1, "--cost", "analytic", "--measure", 0, 2,
                                  "--search-times", "1s", "--records-of", "host", "--full-time", "50s", "--repeats", 2)
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        found = json.loads((self.folder / "out" / "target.json").read_text())
        self.assertEqual(found["full_seconds"], 50)
        entries = found["entries"]
        self.assertEqual({len(entry["runs"]) for entry in entries}, {2})
        self.assertEqual([(entry["way"], entry["measure"], entry["source"]) for entry in entries],
                         [("one", 0, "other"), ("pool", 0, "pool"), ("records of host", 0, "host.db"), ("pool", 2, "pool"), ("one", 2, "other"),
                          ("records of host", 2, "host.db"), ("pool", "1s", "pool"), ("one", "1s", "other"), ("records of host", "1s", "host.db"),
                          ("paper", transfer.ALL, "other")])
        for entry in entries:
            self.assertGreater(entry["records"], 0)
            self.assertLessEqual(transfer_figures.of_the_best(entry), 1)
            self.assertGreater(entry["time_share"], 0)
            self.assertIn(transfer_figures.label(entry), printed)
            self.assertGreater(entry["full_then_seconds"], 0)
            self.assertIn("full_needs_seconds", entry)
        self.check_matrix(model, other)
        drawing = self.folder / "out" / "transfer.svg"
        first = drawing.read_text()
        self.assertLess(len(first), 100_000)
        ElementTree.fromstring(first)
        drawing.unlink()
        self.assertEqual(self.run_script("--redraw"), printed)
        self.assertEqual(drawing.read_text(), first)

    def check_matrix(self, model, db):
        command = [sys.executable, SCRIPT.parent / "transfer_matrix.py", "--hone", support.HONE, "--db", db, "--to", model, "--output", self.folder / "out"]
        done = subprocess.run([*command, "--from", "other"], capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = self.folder / "out" / "target_from_other.json"
        found = json.loads(path.read_text())
        self.assertEqual({len(row["seconds"]) for row in found["rows"]}, {len(found["schedules"])})
        for row in found["rows"]:
            for seconds, known in zip(row["seconds"], found["schedules"], strict=True):
                self.assertEqual(seconds is None, row["class"] != known["class"])
            self.assertIn(f"| {row['kernel']} ", done.stdout)
        self.assertTrue(any(seconds is not None and seconds > 0 for row in found["rows"] for seconds in row["seconds"]))
        ElementTree.fromstring(path.with_suffix(".svg").read_text())
        again = subprocess.run([*command, "--from", "other"], capture_output=True, text=True, timeout=100)
        self.assertEqual((again.stdout, again.stderr), (done.stdout, ""))  # nothing was measured again
        missing = subprocess.run([*command, "--from", "nothing"], capture_output=True, text=True, timeout=100)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("no records of 'nothing'", missing.stderr)

    def test_invalid_pairs_are_crossed(self):
        rows = [{"kernel": "a", "key": "1", "class": "c", "times": 2, "default_seconds": 2e-6, "seconds": [1e-6, -1, None], "reasons": {"1": "no stage"}}]
        result = {"to": "x", "from": "y", "threads": 1, "schedules": [{"key": str(i), "class": "c", "seconds": 1} for i in range(3)], "rows": rows}
        self.assertIn("| a | c | 2 | 1 | 2.0 | 1.0 | 2.00 | 1 |", " ".join(transfer_matrix.table(result).split()))
        root = ElementTree.fromstring(transfer_matrix.svg(result))
        self.assertEqual([len([part for part in root.findall(f"{{*}}{kind}") if part.find("{*}title") is not None]) for kind in ("rect", "path")], [1, 1])

    def test_full_tuning_in_the_same_time(self):
        self.assertEqual(transfer_time.without_pauses([1, 2, 100, 101]), [0, 1, 16, 17])
        curve = [(1, 0.0, 8.0), (2, 5.0, 6.0), (3, 20.0, 4.0)]  # ends at 4, which is timed as 2
        entry = {"best_seconds": 2.0, "transfer_seconds": 3.0, "seconds": 2.0}
        found = entry | transfer_time.compared(entry, curve)
        self.assertEqual((found["full_needs_seconds"], found["full_then_seconds"]), (5.0, 4.0))
        self.assertEqual(transfer_time.times_as_long(found), 2.5)
        best = entry | {"transfer_seconds": 1.5}
        self.assertIsNone((best | transfer_time.compared(best, curve))["full_needs_seconds"])
        self.assertEqual(transfer_time.compared(entry, []), {})
        whole = result("a", entry | found | {"way": "pool", "measure": 10, "rank": 1})
        self.assertEqual(transfer_figures.full_tuning(whole, whole["entries"][0]), ["2.5x", "1.333"])
        self.assertEqual(transfer_figures.full_means([whole], whole["entries"]), ["2.5x", "1.333"])

    def test_kernels_against_the_best_known(self):
        (_, other), found = self.tuned("other", 20), self.folder / "found.json"
        done = subprocess.run([sys.executable, SCRIPT.parent / "best_known.py", "--hone", support.HONE, "--db", self.folder / "best.db", "--sources", other,
                               "--only", "^gemm", "--seconds", "4", "--measure", "0", "2", "--cost", "analytic", "--json", found],
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        (name, counts), = json.loads(found.read_text()).items()
        self.assertEqual(list(counts), ["0", "2"])
        for default, transferred, best in counts.values():
            self.assertLessEqual(best, transferred)
            self.assertLessEqual(best, default)
        self.assertIn(f"| {name} |", done.stdout)
        self.assertIn("| geometric mean", done.stdout)
        self.assertLessEqual(set(best_known.KERNELS), {row.name for row in kernel_rows.rows()})

    def test_sources_of_the_ranking(self):
        sources = [source(name, 2, 1, 1, 0.1, score) for name, score in (("net", 0.9), ("", 0.8), ("first", 0.7), ("second", 0.6), ("pool", 0))]
        found = transfer.of_ranking({"model": "net", "sources": sources}, transfer.WAYS)
        self.assertEqual([(entry["way"], entry["source"], entry["rank"]) for entry in found],
                         [("sizes", "net", 1), ("one", "first", 1), ("one", "second", 2), ("pool", "pool", 1)])
        self.assertEqual([entry["way"] for entry in transfer.of_ranking({"model": "net", "sources": sources}, ["pool"])], ["pool"])

    def test_further_choices(self):
        options = type("Options", (), {"measure": [0, 10], "search_times": [], "ways": ["one", "paper"]})
        known = [transfer.entry(way, 0, source(name, 2, 1, 1, 0.1), rank) for way, name, rank in (("pool", "pool", 1), ("one", "a", 1), ("one", "b", 2))]
        self.assertEqual(list(transfer.further_runs(options, known, {})),
                         [(10, False, [("one", 1, "a"), ("one", 2, "b")]), (transfer.ALL, True, [("paper", 1, "a"), ("paper", 2, "b")])])

    def test_repeats_are_averaged(self):
        found = transfer.average([source("pool", 4, 3, 2, 0.01), source("pool", 6, 3, 2, 0.03)])
        self.assertEqual((found["default_seconds"], found["transfer_seconds"], found["time_share"]), (5, 3, 0.02))
        self.assertEqual([found["speedup_share"], found["classes"][0]["speedup_share"]], [2 / 3, 2 / 3])
        self.assertEqual([run["speedup_share"] for run in found["runs"]], [0.5, 0.75])
        self.assertIsNone(transfer.average([source("pool", 3, 3, 3, None)])["speedup_share"])

    def test_means_and_marks(self):
        entry = transfer.entry
        results = [result("a", entry("pool", 10, source("pool", 4, 3, 2, 0.01)), entry("one", 10, source("b", 4, 5, 2, 0.03)),
                          entry("one", 0, source("c", 4, 4, 2, 0.03), rank=2)),
                   result("b", entry("pool", 10, source("/folder/pool", 8, 2, 2, 0.02)), entry("one", 10, source("a", 3, 3, 3, None)))]
        self.assertEqual(results[1]["entries"][0]["source"], "pool")
        means = transfer_figures.means(results)
        self.assertEqual(list(means), ["pool, N = 10", "one, N = 10"])
        _, best, speedup, time = means["pool, N = 10"]
        self.assertAlmostEqual(best, (2 / 3) ** 0.5)
        self.assertEqual((speedup, time), (0.75, 0.015))
        self.assertEqual(means["one, N = 10"][2:], (-0.5, 0.03))  # nothing could be gained in the other model
        self.assertIn("| mean of 2 | pool, N = 10", transfer_figures.table(results))
        missed, reached = transfer_figures.verdicts(results)
        self.assertTrue(missed.startswith("MISSED   pool, N = 10: 0.816 of the best known"), missed)
        self.assertTrue(reached.startswith("reached  pool, N = 10: 75 % of the speed-up in 1.50 % of the time"), reached)
        root = ElementTree.fromstring(transfer_figures.svg(results))
        self.assertEqual(len([mark for mark in root.findall("{*}circle") if mark.find("{*}title") is not None]), 4)
        self.assertEqual(len([bar for bar in root.findall("{*}rect") if bar.find("{*}title") is not None]), 3)

    def test_what_is_missing_is_said(self):
        self.assertIn("--hone and --db are required", self.run_script(code=2))
        self.assertIn("no results in", self.run_script("--redraw", code=1))


if __name__ == "__main__":
    support.main()
