"""Loops beside ranges of sizes, and loops whose carried values grow, compared with ONNX Runtime: one library, all sizes and turns."""
import numpy as np
from onnx import TensorProto, helper

import support
from loops_test import BOOL, FLOAT, INT, Compared, RandomLoops, body_of, graph, node
from support import make_model, value


def axes_of(*numbers):
    return np.int64(numbers)


class Ranged(Compared):
    def ranged(self, nodes, inputs, outputs, constants=(), options=()):
        """Compiles a model of these inputs, by name their shapes with names of extents, or their types."""
        infos = [value(name, what, FLOAT) if isinstance(what, tuple) else value(name, (), what) for name, what in inputs.items()]
        model = make_model(nodes, infos, [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs], constants)
        path, library = self.save(model), self.folder / "model.so"
        self.succeed("compile", path, "-o", library, "--no-db", "--threads", 2, *options)
        return path, library

    def compare_at(self, path, library, feeds):
        feeds = {name: np.asarray(array) for name, array in feeds.items()}
        expected, found = support.reference(path, feeds), self.outputs(library, feeds)
        for name, wanted in expected.items():
            with self.subTest(name):
                if wanted.size == 0:  # of rows that are not there, ONNX Runtime does not know the other extents
                    self.assertEqual(found[name].size, 0)
                    continue
                self.assertEqual((found[name].shape, found[name].dtype), (wanted.shape, wanted.dtype))
                np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-4, err_msg=name)

    def compare_all(self, made, list_of_feeds):
        for feeds in list_of_feeds:
            with self.subTest(**{name: np.shape(array) or array for name, array in feeds.items()}):
                self.compare_at(*made, feeds)


class LoopsBesideRanges(Ranged):
    rng = np.random.default_rng(5)
    w = (rng.standard_normal((4, 4)) / 2).astype(np.float32)

    def random(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def test_a_body_that_mixes_what_a_run_has(self):
        """The number of turns is an input, and so are batch and length: softmax, a mean and a product along the length in each turn."""
        nodes = [node("MatMul", ["s", "w"], ["a"]), node("Transpose", ["x"], ["xt"], perm=[0, 2, 1]), node("MatMul", ["a", "xt"], ["scores"]),
                 node("Softmax", ["scores"], ["p"], axis=-1), node("MatMul", ["p", "s"], ["m"]), node("ReduceMean", ["m"], ["mean"], axes=[1]),
                 node("Sub", ["m", "mean"], ["t"]), node("ReduceMax", ["t"], ["row"], axes=[1], keepdims=0)]
        loop = node("Loop", ["n", "", "x"], ["last", "rows"], body=body_of(nodes, {"s": "t"}, ["row"]))
        made = self.ranged([loop, node("ReduceSum", ["last", "one"], ["sum"])], {"x": ("batch", "seq", 4), "n": INT}, ["last", "rows", "sum"],
                           {"w": self.w, "one": axes_of(1)}, ["--shape", "batch=1..3", "--shape", "seq=1..9", "--max-turns", 6])
        self.compare_all(made, [{"x": self.random(b, s, 4), "n": np.int64(n)} for b, s, n in ((3, 9, 2), (1, 1, 3), (2, 5, 6), (3, 2, 0), (1, 8, 1))])
        self.succeed("verify", made[0], "--no-db", "--shape", "batch=1..3", "--shape", "seq=1..9", "--max-turns", 6)

    def test_as_many_turns_as_an_extent(self):
        """A recurrent net by hand: at small sizes it would be unrolled, and what it carries begins as zeros of the batch."""
        nodes = [node("Gather", ["x", "i"], ["row"], axis=1), node("MatMul", ["s", "w"], ["a"]), node("Add", ["a", "row"], ["b"]), node("Tanh", ["b"], ["t"]),
                 node("Neg", ["t"], ["k"])]
        zeros = [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "first"], ["batch"]), node("Gather", ["shape", "second"], ["n"]),
                 node("Concat", ["batch", "four"], ["of_state"], axis=0), node("ConstantOfShape", ["of_state"], ["zeros"])]
        loop = node("Loop", ["n", "", "zeros"], ["last", "rows"], body=body_of(nodes, {"s": "t"}, ["k"]))
        made = self.ranged([*zeros, loop, node("Transpose", ["rows"], ["by_batch"], perm=[1, 0, 2]), node("ReduceMean", ["by_batch"], ["mean"], axes=[1])],
                           {"x": ("batch", "seq", 4)}, ["last", "by_batch", "mean"],
                           {"w": self.w, "first": axes_of(0), "second": np.int64(1), "four": axes_of(4)}, ["--shape", "batch=1..3", "--shape", "seq=1..90"])
        self.compare_all(made, [{"x": self.random(b, s, 4)} for b, s in ((3, 90), (1, 1), (2, 40), (3, 7))])

    def test_scans_of_a_length_that_varies(self):
        """Forwards and backwards, what is scanned and what is stacked, along other axes."""
        body = graph("body", {"a": FLOAT, "r": FLOAT, "q": FLOAT}, {"b": FLOAT, "m": FLOAT, "k": FLOAT},
                     [node("Mul", ["a", "half"], ["h"]), node("Add", ["h", "r"], ["b"]), node("Sub", ["b", "q"], ["m"]), node("Neg", ["m"], ["k"])],
                     {"half": np.float32(0.5)})
        nodes = [node("Transpose", ["data"], ["columns"], perm=[1, 0, 2]),
                 node("Scan", ["x", "data", "columns"], ["state", "down", "across"], body=body, num_scan_inputs=2, scan_input_axes=[0, 1],
                      scan_input_directions=[0, 1], scan_output_axes=[0, 1], scan_output_directions=[1, 0])]
        made = self.ranged(nodes, {"x": ("batch", 4), "data": ("seq", "batch", 4)}, ["state", "down", "across"], {},
                           ["--shape", "batch=1..2", "--shape", "seq=1..80"])
        self.compare_all(made, [{"x": self.random(b, 4), "data": self.random(s, b, 4)} for b, s in ((2, 80), (1, 1), (2, 33), (1, 79))])

    def test_a_branch_of_varying_shapes(self):
        w = (self.rng.standard_normal((96, 96)) / 10).astype(np.float32)
        then = graph("then", {}, {"p": FLOAT}, [node("MatMul", ["x", "w"], ["a"]), node("Tanh", ["a"], ["b"]), node("MatMul", ["b", "w"], ["p"])])
        other = graph("else", {}, {"q": FLOAT}, [node("MatMul", ["x", "w"], ["c"]), node("Softmax", ["c"], ["d"], axis=0), node("MatMul", ["d", "w"], ["q"])])
        nodes = [node("If", ["c0"], ["y"], then_branch=then, else_branch=other), node("ReduceMean", ["y"], ["mean"], axes=[0])]
        made = self.ranged(nodes, {"x": ("rows", 96), "c0": BOOL}, ["y", "mean"], {"w": w}, ["--shape", "rows=1..64"])
        self.compare_all(made, [{"x": self.random(rows, 96), "c0": np.bool_(c)} for rows in (64, 1, 20) for c in (True, False)])

    def test_loops_inside_of_a_loop_whose_turns_are_an_extent(self):
        """Alone they would be unrolled. The inner loop stacks its rows, or appends them to a list, as exporters write torch.stack of a list."""
        info = lambda name, kind: helper.make_tensor_value_info(name, kind, None if kind == FLOAT else [])
        half = [helper.make_tensor("half", FLOAT, [], [0.5])]
        sequences = [helper.make_tensor_sequence_value_info(name, FLOAT, None) for name in ("parts", "more")]
        halves = [node("Identity", ["goj"], ["onj"]), node("Cast", ["j"], ["step"], to=FLOAT), node("Add", ["step", "half"], ["factor"]),
                  node("Mul", ["s", "factor"], ["p"])]
        stacks = helper.make_graph(halves, "stacks", [info("j", INT), info("goj", BOOL)], [info("onj", BOOL), info("p", FLOAT)], half)
        appends = helper.make_graph([*halves, node("SequenceInsert", ["parts", "p"], ["more"])], "appends",
                                    [info("j", INT), info("goj", BOOL), sequences[0]], [info("onj", BOOL), sequences[1]], half)
        rows = [node("Shape", ["s"], ["shape"]), node("Gather", ["shape", "zero"], ["rows"])]
        mean = node("ReduceMean", ["all"], ["t"], axes=[0], keepdims=0)
        bodies = {"rows": [*rows, node("Loop", ["rows", ""], ["all"], body=stacks), mean],
                  "a list": [*rows, node("SequenceEmpty", [], ["none"]), node("Loop", ["rows", "", "none"], ["list"], body=appends),
                             node("ConcatFromSequence", ["list"], ["all"], axis=0, new_axis=1), mean]}
        constants = {"zero": np.int64(0)}
        loop = lambda body: node("Loop", ["n", "", "x"], ["y"], body=body)
        feeds = [{"x": self.random(count, 4), "n": np.int64(n)} for count, n in ((8, 2), (1, 3), (5, 0), (7, 1))]
        for kind, nodes in bodies.items():
            with self.subTest(kind):
                made = self.ranged([loop(body_of(nodes, {"s": "t"}, (), constants))], {"x": ("rows", 4), "n": INT}, ["y"], {},
                                   ["--shape", "rows=1..8", "--max-turns", 4])
                self.compare_all(made, feeds)
        with self.subTest("three deep"):
            twice = body_of(bodies["rows"], {"s": "t"}, (), constants)
            outer = body_of([node("Loop", ["two", "", "v"], ["w"], body=twice)], {"v": "w"}, (), {"two": np.int64(2)}, prefix="o")
            made = self.ranged([loop(outer)], {"x": ("rows", 4), "n": INT}, ["y"], {}, ["--shape", "rows=1..8", "--max-turns", 4])
            self.compare_all(made, feeds)

    def test_a_loop_of_other_operators_at_other_sizes_is_refused(self):
        nodes = [node("Shape", ["s"], ["shape"]), node("Gather", ["shape", "zero"], ["rows"]), node("Greater", ["rows", "one"], ["several"]),
                 node("If", ["several"], ["t"], then_branch=graph("then", {}, {"p": FLOAT}, [node("Tanh", ["s"], ["o"]), node("Neg", ["o"], ["p"])]),
                      else_branch=graph("else", {}, {"q": FLOAT}, [node("Abs", ["s"], ["q"])]))]
        loop = node("Loop", ["n", "", "x"], ["y"], body=body_of(nodes, {"s": "t"}, (), {"zero": np.int64(0), "one": np.int64(1)}))
        infos = [value("x", ("rows", 4)), value("n", (), INT)]
        path = self.save(make_model([loop], infos, [helper.make_tensor_value_info("y", FLOAT, None)]))
        line = self.refuse("node 'Loop_y'", "compile", path, "-o", self.folder / "model.so", "--no-db", "--shape", "rows=1..8")
        self.assertIn("at rows=1", line)


class GrowingValues(Ranged):
    rng = np.random.default_rng(6)

    def random(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def test_a_cache_of_keys(self):
        """A step of attention in each turn, whose keys are one more than before; it ends when a condition says so."""
        weights = {name: (self.random(4, 4) / 2) for name in ("wq", "wk")}
        nodes = [node("MatMul", ["x", "wq"], ["q"]), node("MatMul", ["x", "wk"], ["k"]), node("Concat", ["keys", "k"], ["more"], axis=0),
                 node("Transpose", ["more"], ["kt"], perm=[1, 0]), node("MatMul", ["q", "kt"], ["scores"]), node("Softmax", ["scores"], ["p"], axis=-1),
                 node("MatMul", ["p", "more"], ["y"]), node("ReduceSum", ["y"], ["sum"], keepdims=0), node("Less", ["sum", "limit"], ["on"])]
        body = body_of(nodes, {"x": "y", "keys": "more"}, ["sum"], weights | {"limit": np.float32(3)}, "on")
        loop = node("Loop", ["n", "", "x0", "keys0"], ["last", "cache", "sums"], body=body)
        made = self.ranged([loop, node("ReduceMean", ["cache"], ["mean"], axes=[0]), node("Mul", ["cache", "cache"], ["square"])],
                           {"x0": (1, 4), "keys0": (2, 4), "n": INT}, ["last", "cache", "sums", "mean", "square"], {}, ["--max-turns", 12])
        self.compare_all(made, [{"x0": self.random(1, 4), "keys0": self.random(2, 4), "n": np.int64(n)} for n in (12, 0, 1, 5)])

    def test_a_list_that_begins_empty(self):
        nodes = [node("Mul", ["s", "half"], ["t"]), node("Unsqueeze", ["t", "zero"], ["u"]), node("Concat", ["list", "u", "u"], ["longer"], axis=0),
                 node("ReduceSum", ["longer", "zero"], ["sum"], keepdims=0)]
        body = body_of(nodes, {"s": "sum", "list": "longer"}, (), {"half": np.float32(0.5), "zero": axes_of(0)})
        loop = node("Loop", ["n", "", "x", "none"], ["last", "all"], body=body)
        made = self.ranged([loop], {"x": (3,), "n": INT}, ["last", "all"], {"none": np.zeros((0, 3), np.float32)}, ["--max-turns", 9])
        self.compare_all(made, [{"x": self.random(3), "n": np.int64(n)} for n in (9, 1, 4)])

    def test_growth_without_a_bound_is_refused(self):
        for kind, operands, message in (("by more each turn", ["s", "s"], "the carried value 's' grows from [2, 3], by [2, 0] elements in the first turn"),
                                        ("too large", ["s", "big"], "the carried value 's' grows from [2, 3] by [100000, 0] elements in a turn")):
            with self.subTest(kind):
                body = body_of([node("Concat", operands, ["t"], axis=0)], {"s": "t"}, (), {"big": np.zeros((100000, 3), np.float32)})
                infos = [value("x", (2, 3)), value("n", (), INT)]
                path = self.save(make_model([node("Loop", ["n", "", "x"], ["y"], body=body)], infos, [helper.make_tensor_value_info("y", FLOAT, None)]))
                line = self.refuse("node 'Loop_y' (Loop)", "show", path)
                self.assertIn(message, line)
                self.assertIn("--bind" if operands[1] == "s" else "--max-turns", line)


class RandomRanges(RandomLoops):
    """Values have a number of rows that varies, along which nodes mix."""

    shape = ("rows", 3)

    def expression(self, nodes, values):
        op = self.pick(["Add", "Sub", "Mul", "Tanh", "Neg", "Sigmoid", "MatMul", "Softmax", "Centred", "Cross", "Reversed"])
        if op not in ("Softmax", "Centred", "Cross", "Reversed"):
            return self.pointwise(nodes, values, op)
        x, out, a, b = self.pick(values), self.fresh("v"), self.fresh("a"), self.fresh("b")
        if op == "Softmax":
            nodes.append(node("Softmax", [x], [out], axis=0))
        elif op == "Centred":
            nodes += [node("ReduceMean", [x], [a], axes=[0]), node("Sub", [x, a], [out])]
        elif op == "Cross":
            nodes += [node("Transpose", [x], [a], perm=[1, 0]), node("MatMul", [a, self.pick(values)], [b]), node("MatMul", [x, b], [self.fresh("u")])]
            nodes.append(node("Tanh", [f"u{self.names}"], [out]))
        else:
            nodes.append(node("Slice", [x, "end", "begin", "first", "back"], [out]))
        return out

    def pointwise(self, nodes, values, op):
        out = self.fresh("v")
        operands = [self.pick(values), "w"] if op == "MatMul" else [self.pick(values) for _ in range(2 if op in ("Add", "Sub", "Mul") else 1)]
        nodes.append(node(op, operands, [out]))
        return out


class Random(Ranged):
    def test_100_random_loops_beside_a_range(self):
        for seed in range(10):
            with self.subTest(seed=seed):
                path, library = self.save(RandomRanges(seed).model(10)), self.folder / f"{seed}.so"
                self.succeed("compile", path, "-o", library, "--no-db", "--no-check", "--max-turns", 12, "--shape", "rows=1..6")
                rng = np.random.default_rng(seed)
                for rows, n, m, c in ((6, 5, 2, True), (1, 3, 1, True), (4, 0, 3, False)):
                    feeds = {name: rng.standard_normal((rows, 3)).astype(np.float32) for name in "xy"}
                    self.compare_at(path, library, feeds | {"n": np.int64(n), "m": np.int64(m), "c": np.bool_(c)})


if __name__ == "__main__":
    support.main()
