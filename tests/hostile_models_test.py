"""Models that ask for too much: of time, of memory, of patience. Each is done in time near to its size or refused in one line,
and every command ends when it is told to. Times here are bounds for a busy machine; what grew faster took hours."""
import os
import random
import signal
import subprocess
import time
import unittest

import numpy as np

import support
from support import Case, TensorProto, helper, make_model, value

MANY = 50_000
SECONDS = 300  # for what takes some seconds


def chain(count, node, shape=(4,), constants=()):
    """node(i): operator, further operands, attributes of node i."""
    nodes = []
    for i in range(count):
        operator, operands, attributes = node(i)
        nodes.append(helper.make_node(operator, [f"x{i}", *operands], [f"x{i + 1}"], **attributes))
    return make_model(nodes, [value("x0", shape)], [value(f"x{count}", shape)], constants)


class ManyNodes(Case):
    def show(self, model):
        return self.succeed_json("show", self.save(model), "--no-db", timeout=SECONDS)

    def test_a_chain(self):
        shown = self.show(chain(MANY, lambda i: (("Relu", "Sigmoid")[i % 2], [], {})))
        self.assertEqual(shown["nodes"], MANY)

    def test_a_chain_of_sums_that_all_become_one(self):
        count = 20_000
        constants = {f"c{i}": np.float32(i % 3) for i in range(count)}
        shown = self.show(chain(count, lambda i: ("Add", [f"c{i}"], {}), constants=constants))
        self.assertEqual(shown["nodes"], 1)

    def test_side_by_side(self):
        nodes = [helper.make_node("Relu", [f"x{i}"], [f"y{i}"]) for i in range(10_000)]
        shown = self.show(make_model(nodes, [value(f"x{i}", (4,)) for i in range(10_000)],
                                     [value(f"y{i}", (4,)) for i in range(10_000)]))
        self.assertEqual((shown["tasks"], shown["distinct_tasks"]), (10_000, 1))

    def test_a_loop_of_10000_turns(self):
        body = helper.make_graph([helper.make_node("Sin", ["a"], ["r"]), helper.make_node("Identity", ["c"], ["go"])], "body",
                                 [value("i", (), TensorProto.INT64), value("c", (), TensorProto.BOOL), value("a", (4,))],
                                 [value("go", (), TensorProto.BOOL), value("r", (4,))])
        model = make_model([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [value("x", (4,))], [value("y", (4,))],
                           {"n": np.int64(10_000)})
        self.assertLess(self.show(model)["nodes"], 20)

    def test_many_results_that_are_one_value(self):
        nodes = [helper.make_node("Relu", ["x"], ["r"])]
        nodes += [helper.make_node("Identity", ["r"], [f"y{i}"]) for i in range(5_000)]
        shown = self.show(make_model(nodes, [value("x", (4,))], [value(f"y{i}", (4,)) for i in range(5_000)]))
        self.assertEqual(shown["tasks"], 5_000)

    def test_a_concatenation_of_4000_operands(self):
        model = make_model([helper.make_node("Concat", ["x"] * 4_000, ["y"], axis=0)], [value("x", (2, 3))], [value("y", (8_000, 3))])
        self.assertEqual(self.show(model)["tasks"], 4_000)


class Doubling(Case):
    """Every node reads the one before twice: written out as a tree, n of them are 2 to the n operators."""

    def compare(self, model, x):
        path = self.save(model)
        np.save(self.folder / "x0.npy", x)
        self.succeed("run", path, "--input", f"x0={self.folder / 'x0.npy'}", "--output-dir", self.folder, timeout=SECONDS)
        for name, expected in support.reference(path, {"x0": x}).items():
            np.testing.assert_allclose(np.load(self.folder / f"{name}.npy"), expected, rtol=1e-4, atol=1e-6)

    def test_sums(self):
        nodes = [helper.make_node("Add", [f"x{i}", f"x{i}"], [f"x{i + 1}"]) for i in range(40)]
        self.compare(make_model(nodes, [value("x0", (8, 5))], [value("x40", (8, 5))]), np.random.default_rng(1).random((8, 5), np.float32))

    def test_gates(self):
        nodes = []
        for i in range(30):
            nodes += [helper.make_node("Sigmoid", [f"x{i}"], [f"g{i}"]), helper.make_node("Mul", [f"x{i}", f"g{i}"], [f"x{i + 1}"])]
        x = np.random.default_rng(2).standard_normal((8, 5)).astype(np.float32) * 30
        self.compare(make_model(nodes, [value("x0", (8, 5))], [value("x30", (8, 5))]), x)

    def test_behind_a_product(self):
        nodes = [helper.make_node("MatMul", ["x0", "w"], ["a0"])]
        for i in range(20):
            nodes.append(helper.make_node("Mul", [f"a{i}", f"a{i}"], [f"s{i}"]))
            nodes.append(helper.make_node("Tanh", [f"s{i}"], [f"a{i + 1}"]))
        rng = np.random.default_rng(3)
        self.compare(make_model(nodes, [value("x0", (4, 6))], [value("a20", (4, 7))], {"w": rng.standard_normal((6, 7)).astype(np.float32)}),
                     rng.standard_normal((4, 6)).astype(np.float32))


class Interrupted(Case):
    """SIGINT and SIGTERM at any moment: an end within a second, and nothing left behind. On a busy machine a second is longer."""

    PATIENCE = 20

    def setUp(self):
        super().setUp()
        # In the background of a shell, programs begin with SIGINT ignored, and would miss one that comes before they listen.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        # Thousands of kernels that differ: minutes for each command.
        nodes = [helper.make_node("LeakyRelu", ["x"], [f"y{i}"], alpha=0.1 + i * 1e-5) for i in range(3_000)]
        nodes.append(helper.make_node("Concat", [f"y{i}" for i in range(3_000)], ["y"], axis=0))
        self.model = self.save(make_model(nodes, [value("x", (4, 5))], [value("y", (12_000, 5))]))
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir()

    def test_every_command_ends(self):
        library = self.folder / "late.so"
        commands = {
            "show": ["show", self.model],
            "explain": ["explain", self.model, "--task", "2"],
            "compile": ["compile", self.model, "-o", library],
            "verify": ["verify", self.model],
            "run": ["run", self.model],
            "bench": ["bench", self.model],
            "tune": ["tune", self.model, "-o", library, "--budget", "1h", "--db", self.folder / "tuned.db"],
            "transfer": ["transfer", "--to", self.model],
            "dataset": ["dataset", "make", self.model, "--db", self.folder / "made.db"],
            "devices": ["devices", "--measure", "--db", self.folder / "limits.db"],
        }
        interrupted = set()
        rng = random.Random(5)
        for name, arguments in commands.items():
            for how in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(command=name, how=how.name):
                    process = subprocess.Popen([support.HONE, *map(str, arguments)], env={**os.environ, "TMPDIR": str(self.scratch)},
                                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                    self.addCleanup(process.kill)
                    # Once there are measurements, tune writes a library of them.
                    time.sleep(rng.uniform(0.05, 0.3 if name == "tune" else 1.2))
                    process.send_signal(how)
                    start = time.monotonic()
                    _, errors = process.communicate(timeout=self.PATIENCE)
                    # -how: before it listened; 0 and 2: on a fast machine it was done.
                    self.assertIn(process.returncode, (128 + how, -how, 0, 2), errors)
                    self.assertLess(time.monotonic() - start, self.PATIENCE)
                    if process.returncode == 128 + how:
                        interrupted.add((name, how))
                        self.assertIn("interrupted", errors.splitlines()[-1])
                        self.assertFalse(library.exists())
                    self.assertEqual([path.name for path in self.scratch.iterdir()], [])
                    library.unlink(missing_ok=True)
        self.assertGreater(len(interrupted), len(commands) // 2, interrupted)


if __name__ == "__main__":
    support.main()
