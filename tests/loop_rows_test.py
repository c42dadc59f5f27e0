"""What loops stack of rows whose shape data decide, and what they carry of shapes that change, compared with ONNX Runtime: rows that differ
in a run are one error that names the node and both shapes."""
import numpy as np
from onnx import TensorProto, helper

import support
from loops_test import BOOL, FLOAT, INT, Compared, graph, node
from support import hone, make_model, value

FIRST, LAST = np.int64([0]), np.int64([-1])


def info(name, kind, scalar=False):
    return helper.make_tensor_value_info(name, kind, [] if scalar else None)


def body(nodes, carried=(), rows=(), kinds=(), prefix=""):
    """A Loop's body of values of any shape, floats unless `kinds` says otherwise."""
    kinds, carried = dict(kinds), dict(carried)
    turn, go, on = (f"{prefix}{name}" for name in ("i", "go", "on"))
    infos = lambda names: [info(name, kinds.get(name, FLOAT)) for name in names]
    return helper.make_graph([*nodes, node("Identity", [go], [on])], "body", [info(turn, INT, True), info(go, BOOL, True), *infos(carried)],
                             [info(on, BOOL, True), *infos(carried.values()), *infos(rows)])


class Compiled(Compared):
    def library(self, nodes, inputs, outputs, constants=(), options=()):
        infos = [value(name, shape, kind) for name, (shape, kind) in inputs.items()]
        path = self.save(make_model(nodes, infos, [info(name, kind) for name, kind in outputs.items()], constants))
        library = self.folder / "model.so"
        self.succeed("compile", path, "-o", library, "--no-db", "--no-check", *options)
        return path, library


class LoopRows(Compiled):
    # By row: two, one, two and one elements that are not 0; two each; none at first.
    mixed = np.float32([[1, 0, 2], [0, 0, 1], [1, 1, 0], [0, 1, 0]])
    alike = np.float32([[1, 0, 2], [0, 1, 1], [1, 1, 0], [0, 1, 1]])
    late = np.float32([[0, 0, 0], [0, 1, 1], [1, 1, 0], [0, 1, 1]])
    places = (node("Gather", ["x", "i"], ["row"]), node("NonZero", ["row"], ["found"]), node("Squeeze", ["found", "first"], ["z"]))

    def end(self, made, feeds, message):
        """The run ends with one line that holds the message, and ONNX Runtime refuses it, too."""
        path, library = made
        feeds = {name: np.asarray(array) for name, array in feeds.items()}
        with self.assertRaises(Exception):
            support.reference(path, feeds)
        arguments = []
        for name, array in feeds.items():
            np.save(self.folder / f"{name}.npy", array)
            arguments += ["--input", f"{name}={self.folder / name}.npy"]
        done = hone("run", library, *arguments)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn(message, done.stderr)

    def stacks(self, first, second, name="Loop_rows"):
        return f"node '{name}' ({name.split('_', maxsplit=1)[0]}) stacks rows of different shapes in this run: {first} and {second}"

    def loop(self, turns, go=""):
        return node("Loop", [turns, go], ["rows"], body=body(self.places, rows=["z"], kinds={"z": INT}))

    def test_turns_that_are_known(self):
        """Unrolled, and too many for that."""
        for turns in (4, 100):
            many = lambda x: np.tile(x, (25, 1))[:turns]
            made = self.library([self.loop("n")], {"x": ((turns, 3), FLOAT)}, {"rows": INT}, {"first": FIRST, "n": np.int64(turns)})
            for x in (self.alike, np.zeros((4, 3), np.float32)):
                self.compare_at(*made, {"x": many(x)})
            self.end(made, {"x": many(self.mixed)}, self.stacks([2], [1]))
            self.end(made, {"x": many(self.late)}, self.stacks([0], [2]))

    def test_turns_that_a_run_knows(self):
        made = self.library([self.loop("n")], {"x": ((4, 3), FLOAT), "n": ((), INT)}, {"rows": INT}, {"first": FIRST}, ["--max-turns", 6])
        for x, turns in ((self.alike, 4), (self.alike, 0), (self.mixed, 1), (self.late, 1)):
            self.compare_at(*made, {"x": x, "n": np.int64(turns)})
        self.end(made, {"x": self.mixed, "n": np.int64(2)}, self.stacks([2], [1]))
        self.end(made, {"x": self.late, "n": np.int64(4)}, self.stacks([0], [2]))

    def test_a_loop_that_may_end_early(self):
        """Turns that do not take place have no rows that could differ."""
        nodes = [*self.places, node("Gather", ["goes", "i"], ["on"])]
        loop = body([], rows=["z"], kinds={"z": INT})
        del loop.node[:]
        loop.node.extend(nodes)
        made = self.library([node("Cast", ["goes_code"], ["goes"], to=BOOL), node("Loop", ["n", "yes"], ["rows"], body=loop)],
                            {"x": ((4, 3), FLOAT), "goes_code": ((4,), INT)}, {"rows": INT},
                            {"first": FIRST, "n": np.int64(4), "yes": np.bool_(True)})
        x = np.concatenate([self.alike[:2], self.mixed[1:3]])
        self.compare_at(*made, {"x": x, "goes_code": np.int64([1, 0, 1, 1])})
        self.end(made, {"x": x, "goes_code": np.int64([1, 1, 1, 1])}, self.stacks([2], [1]))

    def test_what_else_decides_rows(self):
        """A mask, a computed end, and a branch."""
        branch = lambda name, op, operands: graph(name, {}, {f"{name}_z": FLOAT}, [node(op, operands, [f"{name}_z"])])
        kinds = {
            "Compress": [node("Gather", ["x", "i"], ["row"]), node("Greater", ["row", "zero"], ["mask"]),
                         helper.make_node("Compress", ["row", "mask"], ["z"], axis=0)],
            "Slice": [node("Gather", ["ends", "i"], ["one"]), node("Reshape", ["one", "last"], ["end"]), node("Slice", ["line", "first", "end"], ["z"])],
            "If": [node("Gather", ["ends", "i"], ["one"]), node("Equal", ["one", "two"], ["is_two"]),
                   node("If", ["is_two"], ["z"], then_branch=branch("then", "Slice", ["line", "first", "upto"]), else_branch=branch("else", "Neg", ["line"]))]}
        inputs = {"x": ((4, 3), FLOAT), "line": ((3,), FLOAT), "ends": ((4,), INT), "n": ((), INT)}
        constants = {"zero": np.float32(0), "first": FIRST, "last": LAST, "two": np.int64(2), "upto": np.int64([2])}
        feeds = {"line": np.float32([5, 6, 7]), "n": np.int64(4)}
        for kind, nodes in kinds.items():
            with self.subTest(kind):
                made = self.library([node("Loop", ["n", ""], ["rows"], body=body(nodes, rows=["z"]))], inputs, {"rows": FLOAT}, constants,
                                    ["--max-turns", 4])
                self.compare_at(*made, feeds | {"x": self.alike, "ends": np.int64([2, 2, 2, 2])})
                other = 1 if kind != "If" else 3
                self.end(made, feeds | {"x": self.mixed, "ends": np.int64([2, other, 2, 2])}, self.stacks([2], [other]))

    def test_rows_by_the_number_of_the_turn(self):
        """Where the turns are known, the model is refused; else a run of several turns ends with an error."""
        loop = node("Loop", ["n", ""], ["rows"], body=body([node("Range", ["zero", "i", "one"], ["z"])], rows=["z"], kinds={"z": INT}))
        constants = {"zero": np.int64(0), "one": np.int64(1)}
        known = self.save(make_model([loop], [value("x", (1,))], [info("rows", INT)], constants | {"n": np.int64(4)}), "known.onnx")
        self.refuse("node 'Loop_rows' (Loop): rows of different shapes: [0] and [1]", "show", known)
        made = self.library([loop], {"n": ((), INT)}, {"rows": INT}, constants, ["--max-turns", 4])
        for turns in (0, 1):
            self.compare_at(*made, {"n": np.int64(turns)})
        self.end(made, {"n": np.int64(3)}, self.stacks([0], [1]))

    def test_loops_in_loops(self):
        inner = body([node("Add", ["i", "j_i"], ["both"]), node("Gather", ["x", "both"], ["row"]), node("NonZero", ["row"], ["found"]),
                      node("Squeeze", ["found", "first"], ["z"])], rows=["z"], kinds={"z": INT}, prefix="j_")
        loop = node("Loop", ["n", ""], ["rows"], body=body([node("Loop", ["n", ""], ["stack"], body=inner)], rows=["stack"], kinds={"stack": INT}))
        outer = np.float32([[1, 0, 2], [0, 1, 1], [0, 0, 1], [0, 0, 1]])
        inputs, name = {"x": ((4, 3), FLOAT)}, "Loop_rows/Loop_stack"
        for constants in ({"n": np.int64(2)}, {}):
            with self.subTest(known=bool(constants)):
                made = self.library([loop], inputs if constants else inputs | {"n": ((), INT)}, {"rows": INT}, constants | {"first": FIRST},
                                    ["--max-turns", 3])
                turns = {} if constants else {"n": np.int64(2)}
                self.compare_at(*made, {"x": self.alike} | turns)
                self.end(made, {"x": self.mixed} | turns, self.stacks([2], [1], name))
                self.end(made, {"x": outer} | turns, self.stacks([2], [1], name))

    def test_scans(self):
        """Unrolled and repeated, along other axes and backwards. ONNX Runtime cannot stack empty rows along another axis."""
        scanned = helper.make_graph([node("NonZero", ["row"], ["found"]), node("Squeeze", ["found", "first"], ["z"])], "body", [info("row", FLOAT)],
                                    [info("z", INT)])
        for turns in (4, 80):
            many = lambda x: np.tile(x, (20, 1))[:turns]
            for axis, direction in ((0, 0), (1, 1)):
                with self.subTest(turns=turns, axis=axis):
                    scan = node("Scan", ["x"], ["rows"], body=scanned, num_scan_inputs=1, scan_output_axes=[axis], scan_output_directions=[direction])
                    made = self.library([scan], {"x": ((turns, 3), FLOAT)}, {"rows": INT}, {"first": FIRST})
                    self.compare_at(*made, {"x": many(self.alike)})
                    self.end(made, {"x": many(self.mixed)}, "node 'Scan_rows' (Scan) stacks rows of different shapes in this run: ")

    def test_a_scan_of_operands_of_different_lengths(self):
        added = helper.make_graph([node("Add", ["p", "q"], ["sum"])], "body", [info("p", FLOAT), info("q", FLOAT)], [info("sum", FLOAT)])
        nodes = [*(node("Cast", [f"{name}_code"], [f"{name}_mask"], to=BOOL) for name in "ab"),
                 *(helper.make_node("Compress", [name, f"{name}_mask"], [f"{name}_rows"], axis=0) for name in "ab"),
                 node("Scan", ["a_rows", "b_rows"], ["y"], body=added, num_scan_inputs=2)]
        made = self.library(nodes, {"a": ((4, 3), FLOAT), "b": ((4, 3), FLOAT), "a_code": ((4,), INT), "b_code": ((4,), INT)}, {"y": FLOAT})
        feeds = {"a": self.mixed, "b": self.alike, "a_code": np.int64([1, 0, 1, 0])}
        self.compare_at(*made, feeds | {"b_code": np.int64([0, 0, 1, 1])})
        self.end(made, feeds | {"b_code": np.int64([1, 0, 1, 1])},
                 "node 'Scan_y' (Scan): its scanned operands have different numbers of steps in this run: [2] and [3]")

    def test_updates_of_other_numbers_than_their_places(self):
        nodes = [node("NonZero", ["a"], ["found"]), node("Transpose", ["found"], ["places"]), node("Cast", ["code"], ["mask"], to=BOOL),
                 helper.make_node("Compress", ["b", "mask"], ["updates"], axis=0), node("ScatterND", ["c", "places", "updates"], ["y"])]
        made = self.library(nodes, dict.fromkeys("abc", ((4,), FLOAT)) | {"code": ((4,), INT)}, {"y": FLOAT})
        feeds = {"a": np.float32([0, 1, 0, 1]), "b": np.float32([5, 6, 7, 8]), "c": np.float32([1, 2, 3, 4])}
        self.compare_at(*made, feeds | {"code": np.int64([1, 0, 0, 1])})
        self.end(made, feeds | {"code": np.int64([1, 1, 0, 1])},
                 "node 'ScatterND_y' (ScatterND): its indices and its updates have different shapes in this run: [2] and [3]")

    def test_a_concat_of_what_data_decide(self):
        made = self.library([node("NonZero", ["a"], ["p"]), node("NonZero", ["b"], ["q"]), node("Concat", ["p", "q"], ["y"], axis=0)],
                            {"a": ((2, 3), FLOAT), "b": ((2, 3), FLOAT)}, {"y": INT})
        a = np.float32([[1, 1, 0], [0, 0, 0]])
        self.compare_at(*made, {"a": a, "b": np.float32([[0, 0, 1], [0, 0, 1]])})
        for b, shape in (([[1, 1, 1], [0, 0, 0]], [2, 3]), ([[0, 0, 0], [0, 0, 0]], [2, 0])):
            path, library = made
            np.save(self.folder / "a.npy", a)
            np.save(self.folder / "b.npy", np.float32(b))
            line = self.refuse("node 'Concat_y' (Concat): its operands have different shapes in this run, other than along axis 0: ", "run", library,
                               "--input", f"a={self.folder / 'a.npy'}", "--input", f"b={self.folder / 'b.npy'}")
            self.assertTrue(line.endswith(f"[2, 2] and {shape}"), line)


class CarriedShapes(Compiled):
    """Carried values whose shape changes."""

    x = np.float32([3, -1, 2, 5, -4, 1])

    def carry(self, nodes, list_of_feeds, constants=(), kinds=(), shape=(6,), turns=(3, 1, 0), initial="x"):
        made = self.library([node("Loop", ["n", "", initial], ["y"], body=body(nodes, {"s": "u"}, kinds=kinds))],
                            {"x": (shape, FLOAT), "n": ((), INT)}, {"y": dict(kinds).get("u", FLOAT)}, constants, ["--max-turns", 8])
        for feeds in list_of_feeds:
            for n in turns:
                with self.subTest(turns=n):
                    self.compare_at(*made, feeds | {"n": np.int64(n)})

    def test_values_that_shrink(self):
        self.carry([node("Slice", ["s", "one", "end"], ["u"])], [{"x": self.x}], {"one": np.int64([1]), "end": np.int64([2**40])})

    def test_values_of_another_size_after_the_first_turn(self):
        self.carry([node("Concat", ["s", "s"], ["a"], axis=0), node("TopK", ["a", "three"], ["u", "where"])], [{"x": self.x}],
                   {"three": np.int64([3])})

    def test_a_branch_that_appends(self):
        branch = lambda name, op, operands, **attributes: graph(name, {}, {f"{name}_z": FLOAT}, [node(op, operands, [f"{name}_z"], **attributes)])
        nodes = [node("ReduceSum", ["s"], ["sum"], keepdims=0), node("Less", ["sum", "limit"], ["more"]),
                 node("If", ["more"], ["u"], then_branch=branch("then", "Concat", ["s", "two"], axis=0), else_branch=branch("else", "Identity", ["s"]))]
        self.carry(nodes, [{"x": self.x}, {"x": 9 + self.x}], {"limit": np.float32(9), "two": np.float32([2])})

    def test_operators_on_rows_of_a_list(self):
        """Each row is computed by itself, however many there are, in the loop and behind it."""
        rng = np.random.default_rng(4)
        scale, weight, bias = (rng.standard_normal(shape).astype(np.float32) for shape in (3, (2, 3), 2))
        more = [node("LayerNormalization", ["s", "scale", "scale"], ["h"]), node("ReduceMean", ["h"], ["m"], axes=[0]),
                node("Concat", ["s", "m"], ["u"], axis=0)]
        nodes = [node("Loop", ["n", "", "x"], ["rows"], body=body(more, {"s": "u"})), node("LayerNormalization", ["rows", "scale"], ["norm"], axis=1),
                 node("Gemm", ["norm", "weight", "bias"], ["y"], transB=1)]
        made = self.library(nodes, {"x": ((2, 3), FLOAT), "n": ((), INT)}, {"norm": FLOAT, "y": FLOAT},
                            {"scale": scale, "weight": weight, "bias": bias}, ["--max-turns", 8])
        for turns in (8, 3, 0):
            self.compare_at(*made, {"x": rng.standard_normal((2, 3)).astype(np.float32), "n": np.int64(turns)})

    def test_a_list_by_the_number_of_the_turn(self):
        self.carry([node("Range", ["zero", "i", "one"], ["r"]), node("Cast", ["r"], ["f"], to=FLOAT), node("Concat", ["s", "f"], ["u"], axis=0)],
                   [{"x": self.x}], {"zero": np.int64(0), "one": np.int64(1)})

    def test_greedy_search(self):
        """Tokens that are appended, positions of all of them, and an end that a token decides; what is fixed stays so, so that Squeeze knows
        which dimensions have one element."""
        rng = np.random.default_rng(2)
        table, positions, out = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 4), (16, 4), (4, 7)))
        nodes = [node("Shape", ["s"], ["shape"]), node("Gather", ["shape", "at_1"], ["length"]), node("Range", ["at_0", "length", "at_1"], ["places"]),
                 node("Gather", ["positions", "places"], ["p"]), node("Gather", ["table", "s"], ["e"]), node("Add", ["e", "p"], ["h"]),
                 node("Transpose", ["h"], ["ht"], perm=[0, 2, 1]), node("MatMul", ["h", "ht"], ["scores"]), node("Softmax", ["scores"], ["w"], axis=-1),
                 node("MatMul", ["w", "h"], ["mixed"]), node("Gather", ["mixed", "last"], ["one"], axis=1), node("MatMul", ["one", "out"], ["logits"]),
                 node("ArgMax", ["logits"], ["next"], axis=-1, keepdims=0), node("Concat", ["s", "next"], ["u"], axis=1), node("Squeeze", ["next"], ["token"]),
                 node("Equal", ["token", "end"], ["is_end"]), node("Not", ["is_end"], ["goes"])]
        loop = body(nodes, {"s": "u"}, kinds={"s": INT, "u": INT})
        loop.node.pop()
        loop.output[0].name = "goes"
        constants = {"at_0": np.int64(0), "at_1": np.int64(1), "last": LAST, "end": np.int64(3), "table": table, "positions": positions, "out": out}
        made = self.library([node("Loop", ["n", "", "ids"], ["y"], body=loop)], {"ids": ((1, 2), INT), "n": ((), INT)}, {"y": INT}, constants,
                            ["--max-turns", 8])
        for ids in ([1, 2], [4, 5], [6, 0]):
            for turns in (8, 2, 0):
                self.compare_at(*made, {"ids": np.int64([ids]), "n": np.int64(turns)})


if __name__ == "__main__":
    support.main()
