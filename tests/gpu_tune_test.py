"""Tuning for a GPU, which is PoCL's: kernels of OpenCL that a worker measures, and a library that computes what the model says."""
import sqlite3

import numpy as np

from support import Case, main, reference, relative_error, small_network


class TuningForGpus(Case):
    def test_a_network_is_tuned_and_right(self):
        model = self.save(small_network())
        db, library = self.folder / "trials.db", self.folder / "model.so"
        summary = self.succeed_json("tune", model, "-o", library, "--device", "opencl-pocl", "--budget", "30s", "--db", db, timeout=300)
        self.assertGreater(summary["trials"], 0)
        for kernel in summary["kernels"]:  # none is as it was on some CPU
            self.assertRegex(kernel["steps"], r"bind\(.*thread\)", kernel["name"])
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as connection:
            trials = connection.execute("SELECT outcome, verified FROM trial").fetchall()
        right = [verified for outcome, verified in trials if outcome == "ok"]
        self.assertTrue(right, trials)
        self.assertTrue(all(right), "a time was stored whose outputs nobody compared")
        self.assertLessEqual({outcome for outcome, _ in trials}, {"ok", "timeout"})  # a busy machine takes its time

        x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        self.succeed("run", library, "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder)
        self.assertLess(relative_error(np.load(self.folder / "y.npy"), reference(model, {"x": x})["y"]), 1e-4)

    def test_a_network_is_verified_task_by_task(self):
        report = self.succeed_json("verify", self.save(small_network()), "--device", "opencl-pocl", "--no-db")
        self.assertEqual((report["divergences"], report["missing"]), ([], []))
        self.assertEqual(report["compared"], report["tasks"])


if __name__ == "__main__":
    main()
