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

        # What was measured serves the next compilation, and kernels are compared with the device's description.
        again = self.succeed_json("compile", model, "-o", library, "--device", "opencl-pocl", "--db", db)
        self.assertIn("stored", {kernel["source"] for kernel in again["kernels"]})
        described = next(device for device in self.succeed_json("devices") if device["name"] == "opencl")
        bench = self.succeed_json("bench", library, "--repeat", "3")
        self.assertEqual(bench["peak_flops"], described["flops"])
        for kernel in again["kernels"] + bench["kernels"]:
            self.assertIn(kernel["limit"], ("compute", "L2", "memory"), kernel["name"])
            self.assertGreater(kernel["limit_seconds"], 0)

    def test_a_data_set_of_a_gpu_is_made_and_trained_on(self):
        model, db, trained = self.save(small_network()), self.folder / "data.db", self.folder / "gpu.model"
        device = ("--device", "opencl-pocl")
        make = ("dataset", "make", model, "--db", db, *device, "--schedules", "12", "--round", "12", "--budget", "90s")
        made = self.succeed_json(*make, timeout=300)
        self.assertGreater(made["records"], made["failed"])
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as connection:
            records = connection.execute("SELECT threads, verified FROM trial WHERE outcome = 'ok'").fetchall()
        self.assertEqual(set(records), {(1, 1)})
        stat = self.succeed_json("dataset", "stat", "--db", db)
        self.assertEqual(stat["outcomes"]["ok"], len(records))
        self.assertRegex(" ".join(stat["devices"]), r"^opencl-pocl-\S+$")

        self.succeed("train", "--db", db, *device, "-o", trained)
        self.assertTrue(trained.read_text().startswith("hone cost model 2\nkind gpu\n"))
        analytic, trees = (self.succeed_json("eval", "--db", db, *device, "--cost", cost) for cost in ("analytic", trained))
        self.assertEqual(analytic["all"]["trials"], trees["all"]["trials"])
        self.assertGreater(trees["all"]["pair_accuracy"], analytic["all"]["pair_accuracy"])  # of what it was trained on
        split = self.folder / "split.json"
        self.succeed("dataset", "split", "--db", db, "-o", split, "--by", "task", "--fraction", "0.5")
        self.assertGreater(self.succeed_json("eval", "--db", db, *device, "--split-file", split, "--cost", "gpu")["all"]["tasks"], 0)
        self.refuse("expected a CPU: --cost combined knows no others", "train", "--db", db, *device, "-o", trained, "--cost", "combined")
        self.refuse("expected a CPU: a neural net knows no others", "train", "--db", db, *device, "-o", "x.onnx", "--cost", "small")
        self.refuse("knows CPUs only", "eval", "--db", db, *device, "--cost", "combined")

    def test_another_network_borrows_what_was_tuned(self):
        """Schedules of one network serve another one: compiled and tuned, verified, reported, and compared by `hone transfer`."""
        small, large = self.save(small_network(24), "small.onnx"), self.save(small_network(40), "large.onnx")
        db, library = self.folder / "trials.db", self.folder / "model.so"
        common = ("--device", "opencl-pocl", "--db", db, "--no-shipped")
        self.succeed_json("tune", small, "-o", library, "--budget", "20s", *common, timeout=300)
        known = {kernel["name"]: kernel for kernel in self.succeed_json("compile", large, "-o", library, *common)["kernels"]}
        self.assertEqual(known["classify"]["source"], "stored")  # the same in both
        borrowed = [kernel for kernel in known.values() if kernel["source"] == "transferred"]
        self.assertTrue(borrowed, known)
        for kernel in borrowed:
            self.assertIn("of test", kernel["from"])
            self.assertRegex(kernel["steps"], r"bind\(.*thread\)")
        without = self.succeed_json("compile", large, "-o", self.folder / "without.so", *common, "--transfer", "off")["kernels"]
        self.assertNotIn("transferred", {kernel["source"] for kernel in without})
        verified = self.succeed_json("verify", large, *common)
        self.assertEqual((verified["divergences"], verified["missing"]), ([], []))
        report = self.succeed_json("explain", large, "--task", borrowed[0]["key"], *common, "--measure")
        self.assertEqual((report["source"], report["steps"]), ("transferred", borrowed[0]["steps"]))
        self.assertTrue(report["measured"]["verified"], report["measured"])

        x = np.random.default_rng(1).standard_normal((1, 3, 40, 40)).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        self.succeed("run", library, "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder)
        self.assertLess(relative_error(np.load(self.folder / "y.npy"), reference(large, {"x": x})["y"]), 1e-4)

        # Both networks are called "test": the one that comes next has a name of its own in the store.
        self.succeed_json("tune", large, "-o", library, "--budget", "20s", *common, timeout=300)
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as connection:
            self.assertEqual(connection.execute("SELECT count(*) FROM trial WHERE outcome = 'ok' AND NOT verified").fetchone(), (0,))
        gains = self.succeed_json("transfer", "--to", large, "--from", "test", "--measure", "2", *common, timeout=300)
        source, = gains["sources"]
        self.assertEqual(source["source"], "test")
        self.assertGreater(source["records"], 0)

    def test_a_network_is_verified_task_by_task(self):
        report = self.succeed_json("verify", self.save(small_network()), "--device", "opencl-pocl", "--no-db")
        self.assertEqual((report["divergences"], report["missing"]), ([], []))
        self.assertEqual(report["compared"], report["tasks"])


if __name__ == "__main__":
    main()
