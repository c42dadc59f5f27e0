"""Loop, Scan and If whose number of turns or condition only the run knows, as the run repeats or skips their steps, compared with ONNX
Runtime."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

import support
from support import Case, hone, make_model, value

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
KINDS = {np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT, np.dtype(np.bool_): BOOL}


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


def graph(name, inputs, outputs, nodes, constants=(), shape=None):
    """Numbers of turns and conditions are scalars; floats have this shape, or any. Without one, ONNX Runtime forgets the shape of rows where
    there are none."""
    info = lambda names: [helper.make_tensor_value_info(text, kind, shape if kind == FLOAT else []) for text, kind in names.items()]
    initializers = [numpy_helper.from_array(np.asarray(array), text) for text, array in dict(constants).items()]
    return helper.make_graph(nodes, name, info(inputs), info(outputs), initializers)


def body_of(nodes, carried, rows=(), constants=(), condition=None, prefix="", shape=None):
    """A Loop's body: `carried` is {name in: name out}, `rows` are stacked. Without a condition it hands on what it gets. The number of the
    turn is `i` behind the prefix, which differs from those of loops around it."""
    nodes, turn, go, on = list(nodes), f"{prefix}i", f"{prefix}go", f"{prefix}on"
    if condition is None:
        nodes.append(node("Identity", [go], [on]))
    inputs = {turn: INT, go: BOOL} | dict.fromkeys(carried, FLOAT)
    outputs = {condition or on: BOOL} | dict.fromkeys(carried.values(), FLOAT) | dict.fromkeys(rows, FLOAT)
    return graph("body", inputs, outputs, nodes, constants, shape)


class Compared(Case):
    def model(self, nodes, feeds, outputs, constants=(), opset=17):
        infos = [value(name, array.shape, KINDS[array.dtype]) for name, array in feeds.items()]
        return make_model(nodes, infos, [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()], constants, opset)

    def compare_at(self, path, library, feeds):
        feeds = {name: np.asarray(array) for name, array in feeds.items()}
        expected = support.reference(path, feeds)
        found = self.outputs(library, feeds)
        for name, wanted in expected.items():
            with self.subTest(name):
                self.assertEqual((found[name].shape, found[name].dtype), (wanted.shape, wanted.dtype))
                np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5, err_msg=name)

    def compare(self, nodes, list_of_feeds, outputs, constants=(), options=()):
        """One library, all feeds."""
        path = self.save(self.model(nodes, list_of_feeds[0], outputs, constants))
        library = self.folder / "model.so"
        self.succeed("compile", path, "-o", library, "--no-db", *options)
        for feeds in list_of_feeds:
            with self.subTest(**{name: array for name, array in feeds.items() if array.size == 1}):
                self.compare_at(path, library, feeds)
        return path


class Loops(Compared):
    x = np.float32([[1, -2, 3], [0.5, 0.25, -1]])

    def test_turns_that_an_input_gives(self):
        body = body_of([node("Cast", ["i"], ["f"], to=FLOAT), node("Add", ["s", "f"], ["t"]), node("Tanh", ["t"], ["u"]), node("Neg", ["u"], ["row"])],
                       {"s": "u"}, ["row"], shape=self.x.shape)
        nodes = [node("Loop", ["n", "", "x"], ["last", "rows"], body=body), node("ReduceSum", ["rows", "first"], ["sum"], keepdims=0),
                 node("Add", ["last", "last"], ["twice"])]
        feeds = [{"x": self.x, "n": np.int64(n)} for n in (3, 0, 1, 40, -2)]
        self.compare(nodes, feeds, {"twice": FLOAT, "rows": FLOAT, "sum": FLOAT}, {"first": np.int64([0])}, ["--max-turns", 50])

    def test_values_that_a_body_swaps_and_hands_on(self):
        body = body_of([node("Add", ["a", "c"], ["d"]), node("Identity", ["b"], ["a1"]), node("Identity", ["a"], ["b1"]), node("Identity", ["k"], ["k1"])],
                       {"a": "a1", "b": "b1", "c": "d", "k": "k1"})
        nodes = [node("Loop", ["n", "", "x", "y", "x", "y"], ["p", "q", "r", "s"], body=body)]
        feeds = [{"x": self.x, "y": 2 - self.x, "n": np.int64(n)} for n in (0, 1, 4, 7)]
        self.compare(nodes, feeds, dict.fromkeys("pqrs", FLOAT))

    def test_a_condition_that_data_decides(self):
        """Newton's square root, until it is exact enough; the bound of the turns is larger than any number of them."""
        nodes = [node("Div", ["x", "s"], ["d"]), node("Add", ["s", "d"], ["e"]), node("Mul", ["e", "half"], ["t"]), node("Sub", ["t", "s"], ["m"]),
                 node("Abs", ["m"], ["n"]), node("ReduceMax", ["n"], ["o"], keepdims=0), node("Greater", ["o", "eps"], ["on"])]
        constants = {"half": np.float32(0.5), "eps": np.float32(1e-3)}
        feeds = [{"x": np.float32(x)} for x in ([2, 9, 100], [1, 1, 1], [1e4, 3, 7])]
        for turns in (np.int64(2**63 - 1), np.int64(12), None):
            with self.subTest(turns=turns):
                given = "" if turns is None else "turns"
                loop = node("Loop", [given, "", "x"], ["root", "all"], body=body_of(nodes, {"s": "t"}, ["o"], constants, "on"))
                self.compare([loop], feeds, {"root": FLOAT, "all": FLOAT}, {} if turns is None else {"turns": turns})

    def test_a_loop_without_end_is_an_error(self):
        body = body_of([node("Add", ["s", "one"], ["t"]), node("Greater", ["t", "zero"], ["on"])], {"s": "t"}, (),
                       {"one": np.float32(1), "zero": np.float32(0)}, "on")
        path = self.save(self.model([node("Loop", ["", "", "x"], ["y"], body=body)], {"x": np.float32(1)}, {"y": FLOAT}))
        np.save(self.folder / "x.npy", np.float32(1))
        line = self.refuse("node 'Loop_y' (Loop) goes on after 25 turns", "run", path, "--max-turns", 25, "--input", f"x={self.folder / 'x.npy'}")
        self.assertIn("--max-turns", line)
        self.assertIn(f"cannot run {path}: ", line)  # not the library that it was compiled to for this run

    def test_loops_in_loops_and_branches(self):
        inner = body_of([node("Mul", ["t", "scale"], ["u"]), node("Add", ["u", "outer"], ["v"])], {"t": "v"}, ["u"], {"scale": np.float32(0.5)},
                        prefix="inner_")
        branch = lambda name, op, operands: graph(name, {}, {f"{name}_y": FLOAT}, [node(op, operands, [f"{name}_y"])])
        nodes = [node("Identity", ["s"], ["outer"]), node("Loop", ["i", "", "s"], ["w", "stack"], body=inner), node("ReduceSum", ["stack"], ["sum"], keepdims=0),
                 node("Greater", ["sum", "zero"], ["positive"]),
                 node("If", ["positive"], ["next"], then_branch=branch("then", "Tanh", ["w"]), else_branch=branch("else", "Add", ["w", "one"]))]
        body = body_of(nodes, {"s": "next"}, ["sum"], {"zero": np.float32(0), "one": np.float32(1)})
        then = graph("then_branch", {}, {"p": FLOAT, "q": FLOAT}, [node("Loop", ["n", "", "x"], ["p", "q"], body=body)])
        other = graph("else_branch", {}, {"r": FLOAT, "o": FLOAT}, [node("Neg", ["x"], ["r"])], {"o": np.zeros(2, np.float32)})
        nodes = [node("If", ["c"], ["last", "sums"], then_branch=then, else_branch=other)]
        feeds = [{"x": self.x, "n": np.int64(n), "c": np.bool_(c)} for n, c in ((3, True), (0, True), (2, False), (6, True))]
        self.compare(nodes, feeds, {"last": FLOAT, "sums": FLOAT}, options=["--max-turns", 10])

    def test_many_known_turns(self):
        """Too many to unroll: a Loop and a Scan of rows, forwards and backwards, along other axes."""
        body = body_of([node("Gather", ["data", "i"], ["row"]), node("Add", ["s", "row"], ["t"]), node("MatMul", ["t", "w"], ["u"]), node("Tanh", ["u"], ["v"])],
                       {"s": "v"}, ["u"])
        inner = graph("body", {"a": FLOAT, "r": FLOAT, "q": FLOAT}, {"b": FLOAT, "m": FLOAT, "k": FLOAT},
                      [node("Mul", ["a", "half"], ["h"]), node("Add", ["h", "r"], ["b"]), node("Sub", ["b", "q"], ["m"]), node("Neg", ["m"], ["k"])],
                      {"half": np.float32(0.5)})
        nodes = [node("Loop", ["turns", "", "x"], ["last", "rows"], body=body), node("Transpose", ["data"], ["columns"], perm=[1, 0]),
                 node("Scan", ["x", "data", "columns"], ["state", "down", "across"], body=inner, num_scan_inputs=2, scan_input_axes=[0, 1],
                      scan_input_directions=[0, 1], scan_output_axes=[0, 1], scan_output_directions=[1, 0])]
        rng = np.random.default_rng(1)
        feeds = [{"x": rng.standard_normal(4).astype(np.float32), "data": rng.standard_normal((150, 4)).astype(np.float32)}]
        path = self.compare(nodes, feeds, dict.fromkeys(("last", "rows", "state", "down", "across"), FLOAT),
                            {"turns": np.int64(150), "w": rng.standard_normal((4, 4)).astype(np.float32)})
        self.assertLess(self.succeed_json("show", path)["nodes"], 40)

    def test_a_shape_that_changes_is_refused(self):
        body = body_of([node("Concat", ["s", "s"], ["t"], axis=0)], {"s": "t"})
        path = self.save(self.model([node("Loop", ["n", "", "x"], ["y"], body=body)], {"x": self.x, "n": np.int64(1)}, {"y": FLOAT}))
        line = self.refuse("node 'Loop_y' (Loop)", "show", path)
        self.assertIn("the carried value 's' grows from [2, 3]", line)

    def test_results_that_the_body_does_not_make_are_refused(self):
        loop = node("Loop", ["n", "", "x"], ["y", "rows"], body=body_of([node("Tanh", ["s"], ["u"])], {"s": "u"}))
        for turns in (3, 100):
            path = self.save(self.model([loop], {"x": self.x}, {"y": FLOAT, "rows": FLOAT}, {"n": np.int64(turns)}))
            self.refuse("node 'Loop_y' (Loop): 2 results, expected 1 at most", "show", path)

    def test_profile_and_verify(self):
        body = body_of([node("MatMul", ["s", "w"], ["t"]), node("Tanh", ["t"], ["u"]), node("Identity", ["u"], ["row"])], {"s": "u"}, ["row"])
        feeds = {"x": np.ones((4, 8), np.float32), "n": np.int64(5)}
        path = self.save(self.model([node("Loop", ["n", "", "x"], ["y", "rows"], body=body), node("Neg", ["y"], ["z"])], feeds, {"z": FLOAT, "rows": FLOAT},
                                    {"w": np.eye(8, dtype=np.float32) / 2}))
        for name, array in feeds.items():
            np.save(self.folder / f"{name}.npy", array)
        inputs = [text for name in feeds for text in ("--input", f"{name}={self.folder / name}.npy")]
        shown = self.succeed_json("run", path, *inputs, "--profile", "--max-turns", 6)
        seconds = {kernel["name"]: kernel["seconds"] for kernel in shown["profile"]}
        self.assertGreater(max(time for name, time in seconds.items() if name.startswith("Loop_y/MatMul_t")), 0)
        self.succeed("verify", path, "--no-db", "--max-turns", 6)


class Branches(Compared):
    rng = np.random.default_rng(3)
    w = (rng.standard_normal((96, 96)) / 10).astype(np.float32)

    def test_one_branch_is_taken(self):
        """Branches that are too much work to compute both; one of their results has another shape."""
        then = graph("then", {}, {"p": FLOAT, "q": FLOAT}, [node("MatMul", ["x", "w"], ["a"]), node("Tanh", ["a"], ["b"]), node("MatMul", ["b", "w"], ["p"]),
                                                            node("Slice", ["p", "zero", "two"], ["q"])])
        other = graph("else", {}, {"r": FLOAT, "s": FLOAT}, [node("MatMul", ["w", "x"], ["c"]), node("Neg", ["c"], ["r"]), node("Abs", ["x"], ["s"])])
        nodes = [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "t"], ["c0"]),
                 node("If", ["c0"], ["same", "either"], then_branch=then, else_branch=other), node("Add", ["same", "x"], ["y"])]
        x = self.rng.standard_normal((96, 96)).astype(np.float32)
        feeds = [{"x": x, "t": np.float32(x.sum() + step)} for step in (-1, 1)]
        path = self.compare(nodes, feeds, {"y": FLOAT, "either": FLOAT}, {"w": self.w, "zero": np.int64([0]), "two": np.int64([2])})
        self.succeed("verify", path, "--no-db")

    def test_a_branch_that_does_not_fit(self):
        """A model for two sampling rates, of which one fits the input's shape."""
        branch = lambda name, w: graph(name, {}, {f"{name}_y": FLOAT}, [node("MatMul", ["x", w], [f"{name}_a"]), node("Tanh", [f"{name}_a"], [f"{name}_y"])])
        nodes = [node("Equal", ["rate", "r16"], ["c"]), node("If", ["c"], ["y"], then_branch=branch("first", "w16"), else_branch=branch("second", "w8"))]
        constants = {"r16": np.int64(16000), "w16": self.w, "w8": self.w[:48]}
        path = self.save(self.model(nodes, {"x": np.zeros((4, 96), np.float32), "rate": np.int64(0)}, {"y": FLOAT}, constants))
        library = self.folder / "model.so"
        done = hone("compile", path, "-o", library, "--no-db")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("node 'If_y' (If): the else_branch does not fit and is left out; a run that would take it fails; input 'rate' decides it: "
                      "where all runs have one value, bind it (--bind rate=NUMBER): ", done.stderr)
        x = self.rng.standard_normal((4, 96)).astype(np.float32)
        found = self.outputs(library, {"x": x, "rate": np.asarray(16000)})
        np.testing.assert_allclose(found["y"], np.tanh(x @ self.w), rtol=1e-4, atol=1e-5)
        np.save(self.folder / "rate.npy", np.int64(8000))
        line = self.refuse("node 'If_y' (If): this run would take the else_branch, which was left out when the model was compiled, as it does not "
                           "fit; to take it, compile for shapes that fit it, with --bind rate=NUMBER: ",
                           "run", library, "--input", f"rate={self.folder / 'rate.npy'}")
        self.assertIn("node 'If_y/MatMul_second_a' (MatMul)", line)
        bound = hone("compile", path, "-o", library, "--no-db", "--bind", "rate=16000")
        self.assertEqual((bound.returncode, "left out" in bound.stderr), (0, False), bound.stderr)


class RandomLoops:
    """Loops of a few random nodes each, many of which are one model."""

    shape = (3, 3)

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.names = 0
        self.nodes, self.outputs = [], []

    def fresh(self, text):
        self.names += 1
        return f"{text}{self.names}"

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, values):
        return values[self.rng.integers(len(values))]

    def expression(self, nodes, values):
        """Adds a node on values of one shape."""
        op = self.pick(["Add", "Sub", "Mul", "Tanh", "Neg", "Sigmoid", "MatMul", "Transpose"])
        out = self.fresh("v")
        operands = [self.pick(values), "w"] if op == "MatMul" else [self.pick(values) for _ in range(2 if op in ("Add", "Sub", "Mul") else 1)]
        nodes.append(node(op, operands, [out]))
        return out

    def loop(self, nodes, outer, depth=0):
        """Adds a Loop that reads values around it, and returns its results: values of their shape, then what is stacked."""
        carried = {self.fresh("c"): None for _ in range(self.rng.integers(0, 4))}
        turn, go, on = self.fresh("i"), self.fresh("go"), self.fresh("on")
        inside, values = [], [*outer, *carried]
        as_float = self.fresh("f")
        inside.append(node("Cast", [turn], [as_float], to=FLOAT))
        values.append(self.fresh("v"))
        inside.append(node("Mul", [self.pick(outer), as_float], [values[-1]]))
        for _ in range(self.rng.integers(1, 5)):
            values.append(self.expression(inside, values))
        if depth < 2 and self.chance(0.25):
            values += self.loop(inside, values, depth + 1)[0]
        for name in carried:
            carried[name] = self.fresh("n")
            inside.append(node("Tanh" if self.chance(0.5) else "Identity", [self.pick(values)], [carried[name]]))
        rows = [self.fresh("r") for _ in range(self.rng.integers(0 if carried else 1, 3))]
        for row in rows:
            inside.append(node("Neg", [self.pick(values)], [row]))
        has_condition = self.chance(0.5)
        if has_condition:
            sum_, small = self.fresh("s"), self.fresh("b")
            inside += [node("ReduceSum", [self.pick(values)], [sum_], keepdims=0), node("Less", [sum_, self.pick(["low", "high"])], [small]),
                       node("Identity", [small], [on])]
        else:
            inside.append(node("Identity", [go], [on]))
        body = graph(self.fresh("body"), {turn: INT, go: BOOL} | dict.fromkeys(carried, FLOAT),
                     {on: BOOL} | dict.fromkeys(carried.values(), FLOAT) | dict.fromkeys(rows, FLOAT), inside, shape=self.shape)
        results, stacked = [self.fresh("o") for _ in carried], [self.fresh("k") for _ in rows]
        turns = self.pick(["n", "m", "few", "many"] if depth == 0 else ["m", "few"])
        first = self.pick(["", "yes", "c"])
        nodes.append(node("Loop", [turns, first, *(self.pick(outer) for _ in carried)], results + stacked, body=body))
        return results, stacked

    def model(self, loops):
        for _ in range(loops):
            results, stacked = self.loop(self.nodes, ["x", "y"])
            self.outputs += results + stacked
        rng = np.random.default_rng(7)
        constants = {"w": (rng.standard_normal((3, 3)) / 2).astype(np.float32), "low": np.float32(-1), "high": np.float32(4), "few": np.int64(3),
                     "many": np.int64(12), "yes": np.bool_(True), "end": np.int64([-1]), "begin": np.int64([-(2**31)]), "first": np.int64([0]),
                     "back": np.int64([-1])}
        infos = [value("x", self.shape), value("y", self.shape), value("n", (), INT), value("m", (), INT), value("c", (), BOOL)]
        return make_model(self.nodes, infos, [helper.make_tensor_value_info(name, FLOAT, None) for name in self.outputs], constants)


class Random(Compared):
    def test_100_random_loops(self):
        for seed in range(10):
            with self.subTest(seed=seed):
                path = self.save(RandomLoops(seed).model(10))
                library = self.folder / f"{seed}.so"
                self.succeed("compile", path, "-o", library, "--no-db", "--no-check", "--max-turns", 12)
                rng = np.random.default_rng(seed)
                for n, m, c in ((5, 2, True), (0, 3, True), (3, 1, False)):
                    feeds = {name: rng.standard_normal((3, 3)).astype(np.float32) for name in "xy"}
                    self.compare_at(path, library, feeds | {"n": np.int64(n), "m": np.int64(m), "c": np.bool_(c)})


if __name__ == "__main__":
    support.main()
