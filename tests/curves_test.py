"""The drawing of latency over the seconds of tuning: a tiny model, a tiny budget, one round."""
import contextlib
import json
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import support

CURVES = Path(__file__).resolve().parent.parent / "benchmarks" / "curves.py"

sys.path.insert(0, str(CURVES.parent))
import curves  # noqa: E402
import drawing  # noqa: E402
from tuning_curves import spread  # noqa: E402


class Curves(support.Case):
    def curves(self, *arguments):
        done = subprocess.run([sys.executable, CURVES, "--output", self.folder / "out", *map(str, arguments)], capture_output=True, text=True,
                              timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_tiny_model(self):
        model = self.save(support.small_network())
        printed = self.curves("--hone", support.HONE, "--models", model, "--budget", 3, "--threads", 1, "--rounds", 1, "--no-openvino",
                              "--cost", "analytic", "--keep", self.folder / "kept")
        self.assertIn("ONNX Runtime", printed)
        result = json.loads((self.folder / "out" / "model.json").read_text())
        curve = result["curve"]
        self.assertEqual((curve[0]["seconds"], curve[0]["trials"]), (0, 0))
        self.assertGreater(curve[-1]["trials"], 0)
        with contextlib.closing(sqlite3.connect(self.folder / "kept" / "model.db")) as kept:
            self.assertGreaterEqual(kept.execute("SELECT count(*) FROM trial").fetchone()[0], curve[-1]["trials"])
        self.assertEqual(sorted(point["seconds"] for point in curve), [point["seconds"] for point in curve])
        self.assertTrue(all(point["latency"] > 0 for point in curve))
        self.assertEqual(set(result["samples"]), {f"hone {i}" for i in range(len(curve))} | {"onnxruntime"})
        drawing = self.folder / "out" / "model.svg"
        first = drawing.read_text()
        self.assertLess(len(first), 100_000)
        root = ElementTree.fromstring(first)
        self.assertEqual(len(root.findall("{*}circle")), len(curve))
        drawing.unlink()
        self.curves("--redraw")
        self.assertEqual(drawing.read_text(), first)

    def test_moments_and_trials(self):
        self.assertEqual(curves.moments(60)[:2], [0, 1])
        self.assertEqual(curves.moments(60)[-1], 60)
        self.assertEqual(curves.moments(0.5), [0, 0.5])
        # Two trials of one stored second lie apart in it; what was stored in the first second is not before the start.
        self.assertEqual(spread([99, 101, 101, 102], 99.5), [0, 1.5, 2.0, 2.5])
        self.assertEqual(drawing.ticks(0.3, 5.2), [1, 2, 3, 4, 5])


if __name__ == "__main__":
    support.main()
