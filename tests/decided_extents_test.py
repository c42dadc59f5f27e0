"""Operands whose extents data decide, compared with ONNX Runtime: one element is repeated, and others that differ are an error."""
import numpy as np
from onnx import TensorProto, helper

import support
from loops_test import node
from support import hone
from varying_loops_test import Ranged, axes_of


class DecidedExtents(Ranged):
    rng = np.random.default_rng(7)

    def two_choices(self, options=(), rows=5, outputs=("sum", "products", "many")):
        """What two masks choose of rows, added, multiplied and expanded to each other."""
        nodes = [*(node("Cast", [f"{name}_code"], [f"{name}_mask"], to=TensorProto.BOOL) for name in "ab"),
                 *(helper.make_node("Compress", [of, f"{name}_mask"], [name], axis=0) for name, of in (("a", "x"), ("b", "z"))),
                 node("Add", ["a", "b"], ["sum"]), node("Unsqueeze", ["a", "last"], ["columns"]), node("Unsqueeze", ["b", "middle"], ["rows"]),
                 node("MatMul", ["columns", "rows"], ["products"]), node("Shape", ["b"], ["like"]), node("Expand", ["a", "like"], ["many"])]
        return self.ranged(nodes, {"a_code": (rows,), "b_code": (4,), "x": (rows, 3), "z": (4, 3)}, outputs,
                           {"last": axes_of(2), "middle": axes_of(1)}, options)

    def feeds(self, of_a, of_b, rows=5):
        feeds = {name: np.zeros(all_rows, np.float32) for name, all_rows in (("a_code", rows), ("b_code", 4))}
        for code, count in zip(feeds.values(), (of_a, of_b), strict=True):
            code[self.rng.permutation(len(code))[:count]] = 1
        return feeds | {name: self.rng.standard_normal((n, 3)).astype(np.float32) for name, n in (("x", rows), ("z", 4))}

    def test_one_element_is_repeated(self):
        self.compare_all(self.two_choices(), [self.feeds(*counts) for counts in ((1, 4), (5, 1), (3, 3), (1, 1), (2, 1), (1, 0), (0, 1))])

    def test_one_element_is_repeated_in_ranges(self):
        made = self.two_choices(["--shape", "n=2..6"], "n")
        self.compare_all(made, [self.feeds(*counts) for counts in ((1, 4, 6), (6, 1, 6), (1, 3, 2), (2, 1, 2), (3, 3, 4))])

    def test_others_are_one_error(self):
        self.fail_all(self.two_choices(), ((2, 3), (5, 4), (0, 2)))

    def test_an_expand_to_others_is_an_error(self):
        self.fail_all(self.two_choices(outputs=["many"]), ((2, 3), (5, 4), (4, 3)))

    def few_rows(self, rows, options=()):
        """Products, attention and a sum of the rows that a mask takes, and a product before it."""
        weights = {name: self.rng.standard_normal(shape).astype(np.float32) / 4 for name, shape in (("v", (16, 96)), ("w", (96, 16)))}
        nodes = [node("Cast", ["code"], ["mask"], to=TensorProto.BOOL), node("MatMul", ["x", "v"], ["early"]), node("Relu", ["early"], ["positive"]),
                 helper.make_node("Compress", ["positive", "mask"], ["taken"], axis=0), node("MatMul", ["taken", "w"], ["y"]),
                 node("Reshape", ["y", "heads"], ["by_head"]), node("Transpose", ["by_head"], ["queries"], perm=[1, 0, 2]),
                 node("Transpose", ["by_head"], ["keys"], perm=[1, 2, 0]), node("MatMul", ["queries", "keys"], ["scores"]),
                 node("Softmax", ["scores"], ["weights"], axis=-1), node("MatMul", ["weights", "queries"], ["mixed"]),
                 node("ReduceSum", ["mixed", "axis"], ["sum"], keepdims=0)]
        return self.ranged(nodes, {"code": (rows,), "x": (rows, 16)}, ["y", "mixed", "sum"],
                           {"heads": axes_of(0, 2, 8), "axis": axes_of(1)} | weights, options)

    def few(self, taken, rows):
        code = np.zeros(rows, np.float32)
        code[self.rng.permutation(rows)[:taken]] = 1
        return {"code": code, "x": self.rng.standard_normal((rows, 16)).astype(np.float32)}

    def test_few_of_many_rows(self):
        made = self.few_rows(400)
        self.compare_all(made, [self.few(taken, 400) for taken in (400, 3, 130, 1)])
        np.save(self.folder / "code.npy", self.few(7, 400)["code"])
        self.assertIn(" 0 beyond the tolerance", self.succeed("verify", made[0], "--no-db", "--input", f"code={self.folder / 'code.npy'}"))

    def test_few_of_many_rows_in_ranges(self):
        made = self.few_rows("n", ["--shape", "n=2..400"])
        self.compare_all(made, [self.few(*counts) for counts in ((400, 400), (2, 400), (60, 90), (1, 2), (90, 399))])
        self.succeed("verify", made[0], "--no-db", "--shape", "n=2..400")

    def fail_all(self, made, list_of_counts):
        for counts in list_of_counts:
            arguments = []
            for name, array in self.feeds(*counts).items():
                np.save(self.folder / f"{name}.npy", array)
                arguments += ["--input", f"{name}={self.folder / name}.npy"]
            done = hone("run", made[1], *arguments)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn("its operands have different numbers of elements in one dimension in this run", done.stderr)


if __name__ == "__main__":
    support.main()
