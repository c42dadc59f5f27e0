"""A library of ranges through its C interface, and the commands that run it."""
import itertools

import numpy as np

import support
from support import Case, helper, make_model, value
from varying_library import Library

WIDTH = 8


def model():
    """y = relu(x w) * mask, with the batch and the sequence left open."""
    weights = np.random.default_rng(4).standard_normal((WIDTH, WIDTH)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
             helper.make_node("Relu", ["p"], ["r"], name="relu"),
             helper.make_node("Unsqueeze", ["mask", "last"], ["m"], name="column"),
             helper.make_node("Mul", ["r", "m"], ["y"], name="masked")]
    return make_model(nodes, [value("x", ("batch", "seq", WIDTH)), value("mask", ("batch", "seq"))],
                      [value("y", ("batch", "seq", WIDTH))], {"w": weights, "last": np.array([2])}), weights


class VaryingInterface(Case):
    def setUp(self):
        super().setUp()
        made, self.weights = model()
        self.path = self.save(made)
        self.library = self.folder / "model.so"
        self.report = self.succeed("compile", self.path, "-o", self.library, "--no-db", "--threads", 2, "--header",
                                   "--shape", "batch=1..4", "--shape", "seq=1..9")

    def expected(self, x, mask):
        return np.maximum(x @ self.weights, 0) * mask[..., None]

    def arrays(self, batch, seq):
        rng = np.random.default_rng(batch * 100 + seq)
        return rng.standard_normal((batch, seq, WIDTH)).astype(np.float32), rng.standard_normal((batch, seq)).astype(np.float32)

    def test_all_sizes_from_c(self):
        library = Library(self.library)
        self.addCleanup(library.close)
        self.assertEqual(library.api.hone_abi_version(), 6)
        self.assertEqual(library.api.hone_model_input_dim(library.model, 0, 1), b"seq")
        self.assertIsNone(library.api.hone_model_input_dim(library.model, 0, 2))
        self.assertEqual(library.shape("input_least_shape", 0), (1, 1, WIDTH))
        self.assertEqual(library.shape("output_shape", 0), (4, 9, WIDTH))
        sizes = list(itertools.product(range(1, 5), range(1, 10)))
        for batch, seq in [(4, 9), *np.random.default_rng(1).permutation(sizes)]:
            x, mask = self.arrays(batch, seq)
            self.assertEqual(library.set(0, x.shape), 0, library.error())
            self.assertEqual(library.set(1, mask.shape), 0, library.error())
            self.assertEqual(library.shape("output_shape", 0), (batch, seq, WIDTH))
            y = np.full(batch * seq * WIDTH + 10, 7.0, np.float32)  # more than the library may write
            self.assertEqual(library.run([x, mask], [y]), 0, library.error())
            found = y[:-10].reshape(batch, seq, WIDTH)
            self.assertLess(np.abs(found - self.expected(x, mask)).max(), 1e-4, (batch, seq))
            self.assertTrue((y[-10:] == 7).all())

    def test_bad_shapes_from_c(self):
        library = Library(self.library)
        self.addCleanup(library.close)
        for i, shape, message in [(0, (5, 2, 8), "input 'x': dimension 0 (batch) is 5, expected 1 to 4"),
                                  (0, (4, 10, 8), "input 'x': dimension 1 (seq) is 10, expected 1 to 9"),
                                  (0, (4, 9, 7), "input 'x': dimension 2 is 7, expected 8"),
                                  (1, (4,), "input 'mask': found a shape of rank 1, expected rank 2"),
                                  (2, (4,), "there is no input with this number")]:
            self.assertNotEqual(library.set(i, shape), 0)
            self.assertEqual(library.error(), message)
        self.assertEqual(library.shape("input_shape", 0), (4, 9, WIDTH))
        self.assertEqual(library.set(0, (2, 3, WIDTH)), 0)
        self.assertEqual(library.shape("input_shape", 1), (2, 3))  # it follows
        self.assertEqual(library.set(1, (2, 4)), 0)
        tie = "input 'mask': dimension 1 (seq) is 4, expected 3: seq is 3 by input 'x'"
        self.assertEqual(library.shape("output_shape", 0), tie)
        x, mask = self.arrays(2, 3)
        self.assertNotEqual(library.run([x, mask], [np.zeros((2, 3, WIDTH), np.float32)]), 0)
        self.assertEqual(library.error(), tie)

    def test_commands(self):
        self.assertIn("inputs that vary: x 1..4x1..9x8, mask 1..4x1..9; for other ranges change --shape batch=1..4 --shape seq=1..9\n", self.report)
        header = (self.folder / "model.h").read_text()
        self.assertIn("input 0: x f32[batch, seq, 8]\n *   input 1: mask f32[batch, seq]", header)
        self.assertIn(" *   batch: 1 to 4\n *   seq: 1 to 9\n", header)
        x, mask = self.arrays(3, 5)
        found = self.outputs(self.library, {"x": x, "mask": mask})["y"]
        self.assertLess(np.abs(found - self.expected(x, mask)).max(), 1e-4)
        self.assertEqual(self.succeed_json("run", self.library, "--shape", "batch=2")["outputs"][0]["shape"], [2, 9, WIDTH])
        np.save(self.folder / "large.npy", self.arrays(6, 5)[0])
        self.refuse(f"--input: {self.library}: input 'x': dimension 0 (batch) is 6, expected 1 to 4", "run", self.library,
                    "--input", f"x={self.folder / 'large.npy'}")
        few = ("--repeat", 2)
        self.assertGreater(self.succeed_json("bench", self.library, *few, "--shape", "batch=1", "--shape", "seq=4")["seconds"], 0)
        # What a kernel computes is known at the largest size only.
        small = self.succeed_json("bench", self.library, *few, "--shape", "batch=1")
        self.assertEqual({small["flops"]} | {kernel["flops"] for kernel in small["kernels"]}, {None})
        self.assertNotIn(None, [kernel["flops"] for kernel in self.succeed_json("bench", self.library, *few)["kernels"]])
        sizes = self.succeed_json("bench", self.library, *few, "--shape", "batch=1,2,4")["sizes"]
        self.assertEqual([size["size"] for size in sizes], ["batch=1", "batch=2", "batch=4"])
        self.refuse(f"--shape: {self.library}: input 'x': dimension 0 (batch) is 5, expected 1 to 4", "bench", self.library, "--shape", "batch=5")
        self.refuse("has no input 'rows', and no input that varies with it", "bench", self.library, "--shape", "rows=5")
        self.refuse("no input that varies with it; did you mean 'batch'?", "bench", self.library, "--shape", "bacth=1")

    def test_verify(self):
        report = self.succeed_json("verify", self.path, "--no-db", "--shape", "batch=1..4", "--shape", "seq=1..9")
        self.assertEqual(report["sizes"][:2], ["batch=4, seq=9", "batch=1, seq=1"])
        self.assertEqual(report["divergences"], [])


if __name__ == "__main__":
    support.main()
