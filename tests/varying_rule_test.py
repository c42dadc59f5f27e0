"""Ranges that the rule for open dimensions gives: where they begin, and what a library of them computes."""
import numpy as np

from support import helper, hone, main, make_model, value
from varying_models import RangeCase


def two_inputs(kind, constant):
    """Elements of the last dimension of `x` that a constant chooses; `z` varies on its own."""
    nodes = [helper.make_node(kind, ["x", "c"], ["y"] + ["places"] * (kind == "TopK"), axis=1), helper.make_node("Neg", ["z"], ["w"])]
    return make_model(nodes, [value("x", ("batch", "seq")), value("z", ("batch", "other"))], [value("y", None), value("w", None)], {"c": np.int64(constant)})


class VaryingRule(RangeCase):
    def check(self, model, said, lengths):
        path = self.save(model)
        done = hone("compile", path, "-o", self.folder / "model.so", "--no-db", "--threads", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{said}, as the model is not valid at fewer", done.stderr)
        rng = np.random.default_rng(1)
        for batch, length, other in ((8, lengths[-1], 512), *((3, length, 1) for length in lengths)):
            inputs = {"x": rng.standard_normal((batch, length)).astype(np.float32), "z": rng.standard_normal((batch, other)).astype(np.float32)}
            self.expect_near(self.outputs(self.folder / "model.so", inputs, "--threads", 2), path, inputs)
        np.save(self.folder / "x.npy", np.zeros((3, lengths[0] - 1), np.float32))
        self.refuse(f"input 'x': dimension 1 (seq) is {lengths[0] - 1}, expected {lengths[0]} to {lengths[-1]}", "run", self.folder / "model.so",
                    "--input", f"x={self.folder / 'x.npy'}")

    def test_ranges_begin_with_what_constants_need(self):
        self.check(two_inputs("TopK", [3]), "seq is 3..512", (3, 4, 100, 512))
        self.check(two_inputs("TopK", [100]), "seq is 100..512", (100, 101, 512))
        self.check(two_inputs("Gather", [5, 0, -6]), "seq is 6..512", (6, 7, 512))


if __name__ == "__main__":
    main()
