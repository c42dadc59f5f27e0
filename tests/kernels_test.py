"""The benchmark of kernels runs: a small convolution and a small product, one round, all rivals that are there."""
import csv
import json
import os
import re
import subprocess
import sys
import unittest
import unittest.mock
from pathlib import Path

import numpy as np
import support

KERNELS = Path(__file__).resolve().parent.parent / "benchmarks" / "kernels.py"
LIBRARY = os.environ.get("HONE_RIVALS", "")


class Benchmark(support.Case):
    def kernels(self, *arguments):
        done = subprocess.run([sys.executable, KERNELS, *map(str, arguments)], capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class SmallRows(Benchmark):
    """Shares of a run that other work would falsify: nothing else is to run meanwhile."""

    def test_small_rows(self):
        output = self.folder / "rows.jsonl"
        arguments = ["--hone", support.HONE, "--classes", "dense", "--models", "googlenet", "--only", "conv 480x14x14 -> 16x|gemm 1x1000x1024",
                     "--threads", 1, "--rounds", 1, "--output", output]
        arguments += ["--library", LIBRARY] if LIBRARY else []
        printed = self.kernels(*arguments)
        rows = [json.loads(line) for line in output.read_text().splitlines()]
        self.assertEqual(sorted(row["kind"] for row in rows), ["conv", "gemm"])
        for row in rows:
            self.assertEqual(row["failures"], {}, row["name"])
            expected = {"hone", "onnxruntime"} | ({"onednn"} if LIBRARY else set()) | ({"openblas"} if LIBRARY and row["kind"] == "gemm" else set())
            self.assertLessEqual(expected, set(row["engines"]))
            for name, engine in row["engines"].items():
                self.assertEqual(len(engine["rounds"]), 1, name)
                self.assertGreater(min(engine["rounds"][0]), 0, name)
                self.assertLess(engine["error"], 1e-3, name)
                self.assertTrue(0 < engine["share"] <= 1, name)
            # On one thread Hone's reorders are left out of each run, not estimated.
            self.assertEqual(row["engines"]["hone"]["share"], 1.0)
            self.assertIn(row["name"], printed)
            self.assertGreater(row["limit_seconds"], 0)
            self.assertIn(f"% of {row['limit']} ", next(line for line in printed.splitlines() if line.startswith(f"| {row['name']} ")))
        # What is stored is not measured again, and prints the same tables.
        before = output.read_text()
        self.assertEqual(self.kernels(*arguments), printed)
        self.assertEqual(output.read_text(), before)
        self.assertEqual(self.kernels("--report", output), printed)


class Kernels(Benchmark):
    def test_rounds_without_a_core_for_each_thread_are_measured_anew(self):
        import cores
        import interleaved

        class Engine:
            runs = 0

            def run(self):
                self.runs += 1

        def measured(good, limit):
            """What a turn saw in two rounds, where cores look so, one after the other, then always good."""
            answers = iter(good)
            engine = Engine()
            patience = cores.Patience(limit)
            patience.look = lambda threads: next(answers, near)
            with unittest.mock.patch.object(cores, "patience", patience):
                found = interleaved.measure({"one": engine}, 2, lambda run: (run(), engine.runs)[1], threads=2)
            return found["one"]

        near, bad = ({"good": good, "nearest_seconds": 80e-9} for good in (True, False))
        self.assertEqual(measured([], 1), [1, 2])
        self.assertEqual(measured([bad, near, bad], 1), [2, 3], "waits before the first round, which is measured twice")
        self.assertEqual(measured([near, bad, near], 1), [2, 3], "measures anew what ended on other cores")
        self.assertEqual(measured([bad] * 99, 0.0), [1, 2], "who waited in vain does so no more")
        patience = cores.Patience(hone=support.HONE)
        state = patience.look(1)
        self.assertEqual((state["good"], state["slowdown"]), (True, 1))
        patience.good(2)
        if patience.nearest:  # seen on cores that are apart
            patience.nearest *= 0.01
            self.assertFalse(patience.good(2), "the command knows how near they were")

    def test_every_row_has_a_name_of_its_own_and_numbers(self):
        import kernel_models
        import kernel_rows

        rows = kernel_rows.rows(models=["squeezenet1_1", "mobilenet_v2", "bert_base_s128"])
        self.assertEqual({row.class_name for row in rows}, set(kernel_rows.CLASSES) - {"convolutions", "operators"})
        rows += kernel_rows.rows(["convolutions", "operators"])
        self.assertEqual(len({row.name for row in rows}), len(rows))
        for row in rows:
            self.assertGreater(row.activation_bytes, 0, row.name)
            self.assertEqual(row.flops > 0, row.class_name not in ("memory", "operators"), row.name)
            self.assertGreaterEqual(kernel_models.copies_of(row), 1, row.name)

    def test_hard_rows_are_rows(self):
        import kernel_rows
        import kernels

        names = {row.name for row in kernel_rows.rows(["dense"])}
        self.assertEqual(set(kernel_rows.HARD) - names, set())

        def hard(*arguments):
            with unittest.mock.patch.object(sys, "argv", ["kernels.py", "--list", *arguments]):
                expression = kernels.parse_arguments().hard
            return {name for name in names if expression and re.search(expression, name)}

        self.assertEqual(hard("--hard", "--threads", "1"), set(kernel_rows.HARD))
        self.assertEqual(hard("--hard", "gemm 1x.*9216"), {"gemm 1x4096x9216 bias relu"})
        self.assertEqual(hard(), set())

    def test_models_of_single_operators(self):
        import kernel_models
        import kernel_rows
        import onnx

        for row in [*kernel_rows.rows(["convolutions", "operators"]), *kernel_rows.rows(["memory"], models=["llama"])]:
            model = kernel_models.Model(row, 2 if row.class_name == "operators" else 1)
            path = self.save(model.onnx())
            onnx.checker.check_model(str(path))
            found = support.reference(path, model.inputs)
            self.assertEqual({name: list(array.shape) for name, array in found.items()}, model.outputs, row.name)

    def test_models_with_the_channels_last(self):
        import kernel_models
        import kernel_rows
        import onnx

        for row in [row for row in kernel_rows.rows(["memory"], models=["squeezenet1_1"]) if row.kind == "pool"]:
            model = kernel_models.Model(row, 2)
            # Sums of integers are exact in any order.
            model.inputs = {name: np.rint(8 * array) for name, array in model.inputs.items()}
            plain = support.reference(self.save(model.onnx()), model.inputs)
            other, inputs = model.channels_last()
            path = self.save(other)
            onnx.checker.check_model(str(path))
            found = support.reference(path, inputs)
            self.assertEqual(set(found), {name + kernel_models.LAST for name in plain})
            for name, array in plain.items():
                np.testing.assert_array_equal(np.moveaxis(found[name + kernel_models.LAST], -1, 1), array)

    def test_rows_of_pools(self):
        output = self.folder / "rows.jsonl"
        self.kernels("--hone", support.HONE, "--classes", "memory", "--only", "pool MaxPool 256x27x27|GlobalAveragePool 1000", "--models", "squeezenet1_1",
                     "--threads", 1, 2, "--rounds", 1, "--rivals", "onnxruntime", "--patience", 1, "--output", output)
        rows = [json.loads(line) for line in output.read_text().splitlines()]
        self.assertGreaterEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(row["failures"], {}, row["name"])
            self.assertLess(row["engines"]["hone"]["error"], 1e-5, row["name"])

    def test_rows_of_single_operators(self):
        output = self.folder / "rows.jsonl"
        printed = self.kernels("--hone", support.HONE, "--classes", "operators", "--only", "CumSum 512x1024 -> 512x1024 by int64 1|TopK|ArgMax",
                               "--threads", 1, "--rounds", 1, "--rivals", "onnxruntime", "--output", output)
        rows = [json.loads(line) for line in output.read_text().splitlines()]
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertEqual((row["failures"], set(row["engines"])), ({}, {"hone", "onnxruntime"}), row["name"])
            self.assertLess(row["engines"]["hone"]["error"], 1e-3, row["name"])
            self.assertNotEqual(row["limit"], "", row["name"])
        self.assertIn("share of the limit where nothing is multiplied", printed)

    def test_rows_of_other_convolutions(self):
        output = self.folder / "rows.jsonl"
        arguments = ["--hone", support.HONE, "--classes", "convolutions", "--threads", 1, "--rounds", 1, "--output", output,
                     "--only", "1x1 g3|64x28x28 -> 128x28x28|64x1024|transposed 128x28x28"]
        printed = self.kernels(*arguments, *(["--library", LIBRARY] if LIBRARY else []))
        rows = [json.loads(line) for line in output.read_text().splitlines()]
        self.assertEqual(sorted(row["kind"] for row in rows), ["conv", "conv", "depthwise", "transposed"])
        for row in rows:
            self.assertEqual((row["class"], row["failures"], "hone" in row["engines"]), ("convolutions", {}, True), row["name"])
            self.assertEqual("onednn" in row["engines"], bool(LIBRARY), row["name"])
            for name, engine in row["engines"].items():
                self.assertLess(engine["error"], 1e-3, f"{name}: {row['name']}")
        self.assertIn("other convolutions", printed)

    def test_products_of_transposed_convolutions(self):
        import kernel_rows
        import kernel_singles

        # 2 taps of 2 at stride 2 meet no output twice; 3 taps padded by 1 of 2 inputs lose the first one's first.
        for taps, pad, products in ((2, 0, 4), (3, 1, 5)):
            row = kernel_rows.Row("transposed", kernel_singles.convolution("transposed", 3, 5, [2], [taps], stride=[2], pad=[pad]))
            self.assertEqual(row.parameters["dst"], [1, 5, 4])
            self.assertEqual(row.flops, 2 * 3 * 5 * 2 * taps)
            self.assertAlmostEqual(row.flops * kernel_rows.needed_share(row.key), 2 * 3 * 5 * products)

    def test_what_binds_a_row(self):
        import kernel_limit
        import kernel_report
        import kernel_rows

        levels = [{"level": level, "bytes": size, "shared_by": shared, "read_one": rate, "read_all": 2 * rate, "write_one": rate / 2,
                   "write_all": rate} for level, size, shared, rate in ((1, 1 << 15, 1, 200e9), (2, 1 << 20, 1, 100e9), (3, 1 << 25, 2, 50e9), (0, 0, 2, 20e9))]
        roofline = {"cores": 2, "flops_one": 100e9, "flops_all": 180e9, "levels": levels}

        def limit(size, flops=0.0, threads=1, copies=1, weight_bytes=0, peak=0.0, chain=True, kind="gemm", key="", row_flops=0.0):
            row = {"threads": threads, "bytes": size, "copies": copies, "weight_bytes": weight_bytes, "peak_flops": peak, "chain": chain, "kind": kind,
                   "key": key, "flops": row_flops}
            found = kernel_limit.limit(row, flops, roofline)
            return found["limit"], found["limit_seconds"]

        self.assertEqual(limit(1 << 15), ("L1", (1 << 15) / 200e9))
        self.assertEqual(limit(1 << 20), ("L2", (1 << 20) / 100e9))
        self.assertEqual(limit(1 << 21, threads=2), ("L2", (1 << 21) / 200e9), "the caches of both cores")
        self.assertEqual(limit(1 << 21), ("L3", (1 << 21) / 50e9))
        self.assertEqual(limit(1 << 26, threads=2), ("memory", (1 << 26) / 40e9))
        self.assertEqual(limit(1 << 20, copies=64, weight_bytes=1 << 20), ("memory", (1 << 20) / 20e9), "each copy reads weights of its own")
        self.assertEqual(limit(1 << 20, copies=8), ("L2", (1 << 20) / 100e9), "one copy's output is the next one's input")
        self.assertEqual(limit(1 << 20, copies=8, chain=False), ("L3", (1 << 20) / 50e9), "side by side, each with data of its own")
        self.assertEqual(limit(1 << 20, copies=8, chain=False, kind="pool"), ("L2", (1 << 20) / 100e9), "which a reorder has just made")
        self.assertEqual(limit(1 << 15, flops=1e9), ("compute", 1e9 / 100e9))
        self.assertEqual(limit(1 << 15, flops=1e9, threads=4), ("compute", 1e9 / 180e9))
        self.assertEqual(limit(1 << 15, flops=1e9, peak=50e9), ("compute", 1e9 / 50e9), "of AVX2, say")
        causal = kernel_rows.Row("attention", {"tokens": 4, "heads": 1, "size": 8, "causal": True})
        needed = causal.flops * 5 / 8
        self.assertEqual(limit(64, flops=causal.flops, key=causal.key, row_flops=causal.flops), ("compute", needed / 100e9), "without hidden keys")
        self.assertEqual(limit(64, flops=needed / 2, key=causal.key, row_flops=causal.flops), ("compute", needed / 2 / 100e9), "another algorithm's")
        self.assertEqual(kernel_limit.least_flops({"kernels": [{"least_flops": 10, "times": 4}, {"least_flops": 2, "times": 1}]}, 2), 21)
        row = {"key": "gemm {}", "engines": {"hone": {"rounds": [[2e-3], [4e-3]], "empty_call": 0.0, "share": 1.0}}, "copies": 2}
        self.assertEqual(kernel_report.of_limit(row), "-", "stored before there was a limit")
        self.assertEqual(kernel_report.of_limit({**row, "limit": "L2", "limit_seconds": 5e-4}), "50 % of L2")

    def test_no_estimate_is_below_what_the_machine_can_do(self):
        import kernel_report
        import kernel_rows

        conv = {"activation": "relu", "bias": True, "dilations": [1, 1], "dst": [1, 64, 7, 7], "groups": 1, "pads": [1, 1, 1, 1], "src": [1, 64, 14, 14],
                "strides": [2, 2], "weights": [64, 64, 3, 3]}
        padded = kernel_rows.Row("conv", conv).key
        self.assertAlmostEqual(kernel_rows.needed_share(padded), (20 / 21) ** 2)
        self.assertEqual(kernel_rows.needed_share(kernel_rows.Row("gemm", {"m": 1, "n": 8, "k": 8}).key), 1)
        for causal, share in ((False, 1), (True, 5 / 8)):
            row = kernel_rows.Row("attention", {"tokens": 4, "heads": 1, "size": 8, "causal": causal})
            self.assertEqual(kernel_rows.needed_share(row.key), share)
        block = kernel_rows.Row("block", {"parts": [conv, {**conv, "src": [1, 64, 9, 9], "dst": [1, 64, 9, 9], "pads": [0] * 4, "strides": [1, 1], "weights": [64, 64, 1, 1]}]})
        first, second = 49 * 64 * 64 * 9, 81 * 64 * 64
        self.assertAlmostEqual(kernel_rows.needed_share(block.key), (first * (20 / 21) ** 2 + second) / (first + second))

        def engine(seconds, share=1.0, empty_call=0.0):
            return {"rounds": [[seconds], [1.01 * seconds]], "share": share, "empty_call": empty_call, "error": 0.0}

        def row(hone, onednn, onnxruntime, limit="compute"):
            return {"key": "gemm {}", "kind": "gemm", "name": "a row", "threads": 1, "isa": "host", "class": "dense", "weights": "warm", "winograd": False, "copies": 1, "flops": 1,
                    "peak_flops": 1e9, "bytes": 1, "failures": {}, "limit": limit, "limit_seconds": 1e-3,
                    "engines": {"hone": hone, "onednn": onednn, "onnxruntime": onnxruntime}}

        # The estimate of a share is raised to the limit, that of a time less an empty call too.
        slow = engine(1.2e-3)
        for estimate in (engine(1.8e-3, share=0.5), engine(1.2e-3, empty_call=3e-4)):
            result = row(slow, slow, estimate)
            self.assertAlmostEqual(min(kernel_report.times(result, "onnxruntime")), 1e-3)
            ratio, _, best = kernel_report.ratios(result, "direct")
            self.assertEqual((round(ratio, 3), best), (0.833, "onnxruntime"))
            printed = kernel_report.table([result])
            self.assertIn(" 0.83* ", printed)
            self.assertIn(kernel_report.RAISED, printed)
            self.assertIn("0.83* (0.83) of ORT", kernel_report.line(result))
        # Not above what was measured without estimating, and never what was measured.
        result = row(engine(0.98e-3), slow, engine(1.8e-3, share=0.5))
        self.assertAlmostEqual(min(kernel_report.times(result, "onnxruntime")), 0.98e-3)
        result = row(slow, engine(0.95e-3), engine(1.8e-3, share=0.5))
        self.assertAlmostEqual(min(kernel_report.times(result, "onnxruntime")), 0.95e-3)
        self.assertAlmostEqual(min(kernel_report.times(result, "onednn")), 0.95e-3)
        # Caches may be closer than thought; old results have no limit.
        for plain in (row(slow, slow, engine(1.8e-3, share=0.5), limit="L2"), row(slow, slow, engine(2.2e-3, share=0.5))):
            self.assertEqual(kernel_report.mark(plain, "onnxruntime"), "")
            self.assertNotIn("*", kernel_report.table([plain]))
        del result["limit"], result["limit_seconds"]
        self.assertAlmostEqual(min(kernel_report.times(result, "onnxruntime")), 0.9e-3)

    def test_results_as_csv(self):
        def engine(seconds, share=1.0):
            return {"rounds": [[seconds], [1.5 * seconds]], "share": share, "empty_call": 0.0, "error": 2.5e-7}

        def write(name, *rows):
            path = self.folder / name
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            return path

        common = {"kind": "gemm", "class": "dense", "winograd": False, "models": {"alexnet": 2, "vgg16": 1}, "isa": "host", "weights": "cold", "copies": 2, "flops": 1,
                  "peak_flops": 1e9, "bytes": 1, "failures": {}, "limit": "compute", "limit_seconds": 1e-3, "seconds_to_tune": 20.0}
        old = {**common, "key": "gemm {}", "name": "gemm a", "threads": 1, "engines": {"hone": engine(9e-3)}}
        engines = {"hone": engine(2.5e-3), "onednn": engine(2.4e-3), "onnxruntime": engine(3e-3, 0.5), "onednn winograd": engine(2e-3)}
        new = {**old, "seconds_to_tune": 300.0, "engines": engines}
        two = {**common, "key": "gemm {}", "name": "gemm a", "threads": 2, "limit": "L3", "engines": {"hone": engine(4e-3), "openvino": engine(6e-3)}}
        failed = {**common, "key": "gemm {1}", "name": "gemm b", "threads": 1, "failures": {"hone": "no"}, "engines": {"onednn": engine(1e-3)}}
        table = self.folder / "table.csv"
        self.kernels("--report", write("old.jsonl", old, two, failed), write("new.jsonl", new), "--csv", table)
        with open(table, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["row"], row["threads"]) for row in rows], [("gemm a", "1"), ("gemm a", "2"), ("gemm b", "1")])
        expected = {"class": "dense", "models": "alexnet vgg16", "isa": "host", "weights": "cold", "hone_ms": "1.25", "hone_median_ms": "1.562", "percent_of_limit": "80",
                    "limit": "compute", "onednn": "0.96", "onednn winograd": "0.8", "openblas": "", "onnxruntime": "0.8", "openvino": "", "best_ratio": "0.8",
                    "best_ratio_median": "0.7", "best_rival": "onnxruntime", "raised": "onnxruntime", "error": "2e-07", "seconds_searched": "300"}
        self.assertEqual({**rows[0], **expected}, rows[0])
        expected = {"hone_ms": "2", "percent_of_limit": "50", "limit": "L3", "openvino": "1.5", "best_rival": "openvino", "raised": "", "seconds_searched": "20"}
        self.assertEqual({**rows[1], **expected}, rows[1])
        self.assertEqual([rows[2][name] for name in ("hone_ms", "percent_of_limit", "onednn", "best_ratio", "best_rival", "error")], [""] * 6)

    def test_a_row_that_does_not_exist_is_said(self):
        done = subprocess.run([sys.executable, KERNELS, "--hone", support.HONE, "--models", "alexnet", "--only", "no such row"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (2, "no row has that name\n"))


if __name__ == "__main__":
    unittest.main()
