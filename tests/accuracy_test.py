"""--accuracy: what may be rounded, in the library and in what a database serves."""
import sqlite3

import numpy as np
from onnx import helper

from support import Case, main, make_model, relative_error, value

OUTPUTS, SUMMED = 768, 4096  # 12 MB of weights: reading them is most of the time


class Accuracy(Case):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(1)
        self.weights = (rng.standard_normal((SUMMED, OUTPUTS)) / 64).astype(np.float32)
        self.x = rng.standard_normal((1, SUMMED)).astype(np.float32)
        np.save(self.folder / "x.npy", self.x)
        node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
        self.model = self.save(make_model([node], [value("x", (1, SUMMED))], [value("y", (1, OUTPUTS))], {"w": self.weights}))
        self.db = ("--db", self.folder / "trials.db")
        self.library = self.folder / "model.so"

    def make(self, command, accuracy, *arguments):
        self.succeed(command, self.model, "-o", self.library, *self.db, "--no-shipped", "--threads", 1, "--accuracy", accuracy, *arguments)
        self.succeed("run", self.library, "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder)
        wanted = self.x.astype(np.float64) @ self.weights.astype(np.float64)
        return relative_error(np.load(self.folder / "y.npy"), wanted), self.library.stat().st_size

    def test_weights_of_16_bits_where_that_is_allowed(self):
        self.db = ("--no-db",)
        exact, whole = self.make("compile", "default")
        self.assertLess(exact, 1e-5)
        rounded, half = self.make("compile", "fast")
        self.assertLess(rounded, 1e-2)
        self.assertGreater(rounded, 1e-4, "nothing was rounded")
        self.assertLess(half, 0.6 * whole)

    def test_a_database_serves_nobody_what_rounds_more_than_was_asked_for(self):
        rounded, half = self.make("tune", "fast", "--budget", "6s")
        connection = sqlite3.connect(self.db[1])
        found = dict(connection.execute("SELECT algorithm, count(*) FROM trial WHERE verified = 1 GROUP BY algorithm"))
        connection.close()
        self.assertGreater(found.get("direct_bf16", 0), 0, found)
        self.assertGreater(found.get("direct", 0), 0, found)
        for accuracy in ("default", "strict"):
            error, whole = self.make("compile", accuracy)
            self.assertLess(error, 1e-5, accuracy)
            self.assertGreater(whole, SUMMED * OUTPUTS * 4)
        error, _ = self.make("tune", "default", "--budget", "3s")
        self.assertLess(error, 1e-5)

    def deep_model(self, layers):
        """Convolutions of 3x3 over 64 channels one after another, and its input in a file; what that is called, and the output."""
        channels, size = 64, 28
        rng = np.random.default_rng(2)
        weights, nodes = {}, []
        for layer in range(layers):
            weights[f"w{layer}"] = (rng.standard_normal((channels, channels, 3, 3)) / np.sqrt(4.5 * channels)).astype(np.float32)
            nodes.append(helper.make_node("Conv", [f"r{layer}", f"w{layer}"], [f"c{layer}"], name=f"conv{layer}", pads=[1, 1, 1, 1]))
            nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer + 1}"], name=f"relu{layer}"))
        shape = (1, channels, size, size)
        np.save(self.folder / "r0.npy", rng.standard_normal(shape).astype(np.float32))
        return self.save(make_model(nodes, [value("r0", shape)], [value(f"r{layers}", shape)], weights), "deep.onnx")

    def test_a_whole_model_keeps_within_a_thousandth_of_a_strict_build(self):
        """The same device on every machine, so that the same algorithms are predicted."""
        layers = 12
        model = self.deep_model(layers)
        found = {}
        for accuracy in ("strict", "default", "fast"):
            report = self.succeed_json("compile", model, "-o", self.library, "--no-db", "--threads", 1, "--device", "x86-64-avx2", "--accuracy", accuracy)
            steps = "".join(kernel["steps"] for kernel in report["kernels"])
            self.assertEqual("winograd(" in steps, accuracy != "strict", steps)
            self.succeed("run", self.library, "--input", f"r0={self.folder / 'r0.npy'}", "--output-dir", self.folder)
            found[accuracy] = np.load(self.folder / f"r{layers}.npy")
        self.assertGreater(np.abs(found["strict"]).max(), 0.1, "the signal is still there")
        for accuracy, most in (("default", 1e-3), ("fast", 3e-2)):
            error = relative_error(found[accuracy], found["strict"])
            self.assertGreater(error, 0, accuracy)
            self.assertLess(error, most, accuracy)
        # The same by the command: every tensor of what compile takes, against the ONNX file run naively.
        report = self.succeed_json("verify", model, "--no-db", "--threads", 1, "--device", "x86-64-avx2")
        self.assertEqual((report["tolerance"], report["divergences"]), (1e-3, []))
        self.assertLess(report["worst_error"], 1e-3)

    def test_bound_of_memory(self):
        """Winograd's weights are larger than a model's own: a bound between the two takes some of them, one below both is refused."""
        model = self.deep_model(4)
        usual = (model, "-o", self.library, "--threads", 1)
        whole, least = (self.succeed_json("compile", *usual, "--no-db", "--accuracy", accuracy)["memory_bytes"] for accuracy in ("default", "strict"))
        self.assertGreater(whole, least)
        bound = (whole + least) // 2
        for command in (("compile", "--no-db"), ("tune", *self.db, "--no-shipped", "--budget", "3s")):
            report = self.succeed_json(command[0], *usual, *command[1:], "--max-memory", bound)
            self.assertLessEqual(report["memory_bytes"], bound, command[0])
            self.refuse("memory", command[0], *usual, *command[1:], "--max-memory", least // 4)

    def test_run_and_bench_compile_as_it_says(self):
        run = ("--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder, "--threads", 1)
        wanted = self.x.astype(np.float64) @ self.weights.astype(np.float64)
        errors = {}
        for accuracy in ("strict", "default", "fast"):
            self.succeed("run", self.model, *run, "--accuracy", accuracy)
            errors[accuracy] = relative_error(np.load(self.folder / "y.npy"), wanted)
        self.assertLess(max(errors["strict"], errors["default"]), 1e-5)
        self.assertGreater(errors["fast"], 1e-4, "nothing was rounded")
        self.succeed("bench", self.model, "--repeat", 1, "--accuracy", "fast")
        self.succeed("compile", self.model, "-o", self.library, "--no-db")
        for command in ("run", "bench"):
            self.refuse("is a library already", command, self.library, "--accuracy", "fast")
            self.refuse("accuracy 'exact', expected strict, default or fast", command, self.model, "--accuracy", "exact")

    def test_unknown_level(self):
        self.refuse("accuracy 'exact', expected strict, default or fast", "compile", self.model, "-o", self.library, "--accuracy", "exact")


if __name__ == "__main__":
    main()
