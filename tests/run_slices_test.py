"""Slice with begins and ends that only the run knows, compared with ONNX Runtime: one library, all numbers and
sizes."""
import numpy as np
from onnx import TensorProto, helper

import support
from loops_test import FLOAT, INT, body_of, node
from support import hone, make_model, value
from varying_loops_test import Ranged, axes_of


class Places(Ranged):
    rng = np.random.default_rng(3)
    table = rng.standard_normal((20, 4)).astype(np.float32)

    def made(self, nodes, inputs, outputs, constants=(), options=()):
        """inputs: by name a shape of floats, or the number of integers."""
        infos = [value(name, what) if isinstance(what, tuple) else value(name, (what,), INT) for name, what in inputs.items()]
        model = make_model(nodes, infos, [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs], constants)
        path, library = self.save(model), self.folder / "model.so"
        self.succeed("compile", path, "-o", library, "--no-db", *options)
        return path, library

    def with_offset(self):
        """Positions of the tokens from `offset` on, as decoders with a past have them: as many as there are tokens."""
        nodes = [node("Shape", ["tokens"], ["n"], start=1, end=2), node("Add", ["offset", "n"], ["end"]),
                 node("Slice", ["table", "offset", "end", "first"], ["positions"]), node("Add", ["tokens", "positions"], ["y"])]
        return self.made(nodes, {"tokens": ("batch", "seq", 4), "offset": 1}, ["y"], {"table": self.table, "first": axes_of(0)},
                         ["--shape", "batch=1..2", "--shape", "seq=1..8"])

    def feeds(self, tokens, offset):
        return {"tokens": self.rng.standard_normal((2, tokens, 4)).astype(np.float32), "offset": axes_of(offset)}

    def test_as_many_as_another_input_has(self):
        made = self.with_offset()
        self.compare_all(made, [self.feeds(n, o) for n, o in ((1, 0), (8, 12), (1, 19), (5, 3), (3, -9), (8, -20), (2, -4))])

    def test_less_than_it_takes_is_one_error(self):
        _, library = self.with_offset()
        for tokens, offset in ((1, 20), (3, 18), (8, 13), (1, -1), (3, -2), (2, -21), (1, 1 << 62)):
            with self.subTest(tokens=tokens, offset=offset):
                arguments = []
                for name, array in self.feeds(tokens, offset).items():
                    np.save(self.folder / f"{name}.npy", array)
                    arguments += ["--input", f"{name}={self.folder / name}.npy"]
                done = hone("run", library, *arguments)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
                self.assertIn("node 'Slice_positions' (Slice): its begin along axis 0, which the run computed, does not leave", done.stderr)

    def test_bags_of_rows(self):
        """An EmbeddingBag as PyTorch's exporter writes it: a loop over its bags, which begin where a list says that
        follows from the sizes."""
        mean = graph_of([node("Slice", ["rows", "begin", "end"], ["bag"]), node("ReduceMean", ["bag"], ["mean"], axes=[0])], "mean")
        none = graph_of([node("Identity", ["zeros"], ["empty"])], "empty")
        nodes = [node("Reshape", ["i", "one_vector"], ["at"]), node("Add", ["at", "one"], ["next"]), node("Add", ["at", "two"], ["after"]),
                 node("Slice", ["begins", "at", "next"], ["begin"]), node("Slice", ["begins", "next", "after"], ["end"]),
                 node("Equal", ["begin", "end"], ["is_empty"]), node("If", ["is_empty"], ["row"], then_branch=none, else_branch=mean)]
        loop = node("Loop", ["bags", ""], ["y"], body=body_of(nodes, {}, ["row"]))
        before = [node("Shape", ["ids"], ["bags_vector"], start=0, end=1), node("Squeeze", ["bags_vector"], ["bags"]),
                  node("Shape", ["ids"], ["each_vector"], start=1, end=2), node("Squeeze", ["each_vector"], ["each"]), node("Mul", ["bags", "each"], ["all"]),
                  node("Range", ["nothing", "all", "each"], ["list"]), node("Reshape", ["all", "one_vector"], ["last"]),
                  node("Concat", ["list", "last"], ["begins"], axis=0), node("Reshape", ["ids", "flat"], ["places"]),
                  node("Cast", ["places"], ["integers"], to=TensorProto.INT64), node("Gather", ["table", "integers"], ["rows"])]
        constants = {"table": self.table, "nothing": np.int64(0), "flat": axes_of(-1), "one_vector": axes_of(1), "one": axes_of(1), "two": axes_of(2),
                     "zeros": np.zeros((1, 4), np.float32)}
        made = self.made([*before, loop], {"ids": ("batch", "seq")}, ["y"], constants, ["--shape", "batch=1..6", "--shape", "seq=1..9"])
        self.compare_all(made, [{"ids": self.rng.integers(0, 20, shape).astype(np.float32)} for shape in ((6, 9), (1, 1), (3, 5), (5, 1), (1, 9))])

    def test_windows_of_a_loop(self):
        nodes = [node("Mul", ["i", "two"], ["place"]), node("Unsqueeze", ["place", "first"], ["begin"]), node("Add", ["begin", "three"], ["end"]),
                 node("Slice", ["x", "begin", "end", "first"], ["window"]), node("ReduceMax", ["window"], ["row"], axes=[0], keepdims=0)]
        constants = {"two": np.int64(2), "three": axes_of(3), "first": axes_of(0)}
        loop = node("Loop", ["n", ""], ["y"], body=body_of(nodes, {}, ["row"], constants))
        made = self.ranged([loop], {"x": ("rows", 4), "n": INT}, ["y"], {}, ["--shape", "rows=3..9", "--max-turns", 4])
        self.compare_all(made, [{"x": self.rng.standard_normal((r, 4)).astype(np.float32), "n": np.int64(n)} for r, n in ((9, 4), (3, 1), (7, 3), (8, 2))])

    def test_what_a_run_does_not_use_ends_none(self):
        """Both branches are computed, and all turns of a loop that may end early: there, too little behind a begin is no
        error."""
        turn = [node("Add", ["at", "two"], ["end"]), node("Slice", ["x", "at", "end"], ["window"]), node("ReduceSum", ["window", "first"], ["row"], keepdims=0),
                node("Add", ["end", "two"], ["next"]), node("LessOrEqual", ["next", "limit"], ["fits"]), node("Squeeze", ["fits"], ["on"])]
        info = lambda name, kind, shape: helper.make_tensor_value_info(name, kind, shape)
        body = helper.make_graph(turn, "body", [info("i", INT, []), info("go", TensorProto.BOOL, []), info("at", INT, [1])],
                                 [info("on", TensorProto.BOOL, []), info("end", INT, [1]), info("row", FLOAT, None)])
        constants = {"two": axes_of(2), "first": axes_of(0), "turns": np.int64(6), "yes": np.bool_(True)}
        made = self.made([node("Loop", ["turns", "yes", "begin"], ["last", "y"], body=body)], {"x": (7, 4), "begin": 1, "limit": 1}, ["y"], constants)
        self.compare_all(made, [{"x": self.table[:7], "begin": axes_of(b), "limit": axes_of(n)} for b, n in ((0, 7), (1, 7), (4, 7), (5, 7), (0, 2))])
        net = {name: self.rng.standard_normal(shape).astype(np.float32) for name, shape in (("w", (1, 16, 4)), ("r", (1, 16, 4)))}
        sliced = graph_of([node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=4), node("Squeeze", ["h", "first"], ["state"]),
                           node("Add", ["begin", "two"], ["end"]), node("Slice", ["table", "begin", "end"], ["part"]),
                           node("ReduceSum", ["part", "first"], ["sum"], keepdims=1), node("Add", ["state", "sum"], ["a"])], "a")
        plain = graph_of([node("ReduceSum", ["x", "first"], ["b"], keepdims=0)], "b")
        nodes = [node("Squeeze", ["begin"], ["number"]), node("Less", ["number", "three"], ["near"]),
                 node("If", ["near"], ["y"], then_branch=sliced, else_branch=plain)]
        constants = net | {"two": axes_of(2), "first": axes_of(0), "three": np.int64(3), "table": self.table[:5]}
        made = self.made(nodes, {"x": ("n", 1, 4), "begin": 1}, ["y"], constants, ["--shape", "n=1..4"])
        self.compare_all(made, [{"x": self.rng.standard_normal((n, 1, 4)).astype(np.float32), "begin": axes_of(b)} for n in (1, 4) for b in (0, 2, 4, 9)])

    def test_branches_in_branches_beside_ranges(self):
        """Both are computed, as they become other operators at other sizes: a begin counts if both conditions take it."""
        net = {name: self.rng.standard_normal(shape).astype(np.float32) for name, shape in (("w", (1, 16, 4)), ("r", (1, 16, 4)))}
        lstm = lambda name: [node("LSTM", ["x", "w", "r"], ["", f"{name}_h"], hidden_size=4), node("Squeeze", [f"{name}_h", "first"], [name])]
        sliced = graph_of([*lstm("state"), node("Add", ["begin", "two"], ["end"]), node("Slice", ["table", "begin", "end"], ["part"]),
                           node("ReduceSum", ["part", "first"], ["sum"], keepdims=1), node("Add", ["state", "sum"], ["a"])], "a")
        plain = graph_of([node("ReduceSum", ["x", "first"], ["b"], keepdims=0)], "b")
        inside = graph_of([node("If", ["near"], ["c"], then_branch=sliced, else_branch=plain), *lstm("other"), node("Add", ["c", "other"], ["d"])], "d")
        outside = graph_of([node("ReduceMax", ["x"], ["e"], axes=[0], keepdims=0)], "e")
        nodes = [node("Squeeze", ["begin"], ["number"]), node("Less", ["number", "hundred"], ["near"]), node("Squeeze", ["switch"], ["position"]),
                 node("Greater", ["position", "nought"], ["on"]), node("If", ["on"], ["y"], then_branch=inside, else_branch=outside)]
        constants = net | {"two": axes_of(2), "first": axes_of(0), "hundred": np.int64(100), "nought": np.int64(0), "table": self.table[:5]}
        made = self.made(nodes, {"x": ("n", 1, 4), "begin": 1, "switch": 1}, ["y"], constants, ["--shape", "n=1..4"])
        x = lambda n: self.rng.standard_normal((n, 1, 4)).astype(np.float32)
        self.compare_all(made, [{"x": x(n), "begin": axes_of(b), "switch": axes_of(s)} for n in (1, 4) for b, s in ((0, 1), (0, 0), (9, 0), (200, 1), (200, 0))])

    def test_a_loop_that_is_not_used_may_take_too_many_turns(self):
        """An outer loop that may end early has eight turns, in each of which is one whose number of turns is an input."""
        inner = body_of([node("Add", ["t", "x"], ["more"])], {"t": "more"}, prefix="inner_")
        info = lambda name, kind, shape: helper.make_tensor_value_info(name, kind, shape)
        turn = [node("Mul", ["at", "many"], ["turns"]), node("Loop", ["turns", "", "s"], ["next_s"], body=inner), node("Add", ["at", "one"], ["next"]),
                node("Less", ["next", "limit"], ["on"])]
        body = helper.make_graph(turn, "body", [info("i", INT, []), info("go", TensorProto.BOOL, []), info("s", FLOAT, [4]), info("at", INT, [])],
                                 [info("on", TensorProto.BOOL, []), info("next_s", FLOAT, [4]), info("next", INT, [])])
        infos = [value("x", (4,)), value("begin", (), INT), value("limit", (), INT)]
        constants = {"many": np.int64(5), "one": np.int64(1), "rounds": np.int64(8), "yes": np.bool_(True)}
        nodes = [node("Loop", ["rounds", "yes", "x", "begin"], ["y", "end"], body=body)]
        path, library = self.save(make_model(nodes, infos, [info("y", FLOAT, None)], constants)), self.folder / "model.so"
        self.succeed("compile", path, "-o", library, "--no-db", "--max-turns", 20)
        self.compare_all((path, library), [{"x": self.table[0], "begin": np.int64(b), "limit": np.int64(n)} for b, n in ((0, 2), (0, 5), (3, 1))])

    def test_a_list_that_the_sizes_choose_is_refused(self):
        """Two lists of the same elements at the largest sizes are not the same list."""
        branch = lambda name: graph_of([node("Identity", [name], [f"{name}_out"])], f"{name}_out")
        nodes = [node("Shape", ["x"], ["rows_vector"], start=0, end=1), node("Squeeze", ["rows_vector"], ["rows"]),
                 node("Shape", ["x"], ["columns_vector"], start=1, end=2), node("Squeeze", ["columns_vector"], ["columns"]),
                 node("Range", ["none", "rows", "one"], ["places"]), node("Mul", ["places", "columns"], ["by_columns"]), node("Mul", ["places", "rows"], ["by_rows"]),
                 node("Greater", ["columns", "four"], ["wide"]), node("If", ["wide"], ["chosen"], then_branch=branch("by_columns"), else_branch=branch("by_rows"))]
        turn = [node("Gather", ["chosen", "i"], ["number"]), node("Cast", ["number"], ["row"], to=FLOAT)]
        nodes.append(node("Loop", ["rows", ""], ["y"], body=body_of(turn, {}, ["row"])))
        model = make_model(nodes, [value("x", ("a", "b"))], [helper.make_tensor_value_info("y", FLOAT, None)],
                           {"none": np.int64(0), "one": np.int64(1), "four": np.int64(4)})
        self.refuse("its operand 'chosen' has other elements at other sizes", "compile", self.save(model), "-o", self.folder / "x.so", "--no-db",
                    "--shape", "a=1..5", "--shape", "b=1..5")

    def test_verify_compares_what_a_run_reads(self):
        """Of two values that are joined, each is gathered at the places that it has: what lies beyond them is not
        computed."""
        nodes = [node("Concat", ["past", "x"], ["joined"], axis=0), node("Gather", ["joined", "s"], ["y"])]
        ranges = ["--shape", "n=1..5", "--shape", "p=1..8"]
        path, library = self.made(nodes, {"x": ("n", 4), "past": ("p", 4), "s": 1}, ["y"], {}, ranges)
        self.compare_all((path, library), [{"x": self.table[:n], "past": self.table[9:9 + p], "s": axes_of(p)} for n, p in ((5, 8), (1, 1), (3, 7))])
        self.succeed("verify", path, "--no-db", *ranges)

    def test_steps_beside_ranges(self):
        for step in (2, 3, 5):
            nodes = [node("Slice", ["x", "s", "e", "first", "step"], ["y"])]
            made = self.made(nodes, {"x": ("n", 4), "s": 1, "e": 1}, ["y"], {"first": axes_of(0), "step": axes_of(step)}, ["--shape", "n=1..8"])
            for n in (1, 4, 7, 8):
                x = self.rng.standard_normal((n, 4)).astype(np.float32)
                self.compare_all(made, [{"x": x, "s": axes_of(s), "e": axes_of(e)} for s, e in ((0, 8), (-3, 7), (2, 3), (5, 1))])

    def test_backwards(self):
        """Steps below 0, where a run says where the elements begin, or end."""
        for step in (-1, -2, -3):
            for extent, options in ((8, []), ("n", ["--shape", "n=1..8"])):
                constants = {"first": axes_of(0), "step": axes_of(step), "last": axes_of(-1)}
                nodes = [node("Slice", ["x", "s", "e", "first", "step"], ["y"]), node("Slice", ["x", "last", "e", "first", "step"], ["z"])]
                made = self.made(nodes, {"x": (extent, 4), "s": 1, "e": 1}, ["y", "z"], constants, options)
                for n in (1, 4, 7, 8) if options else (8,):
                    x = self.rng.standard_normal((n, 4)).astype(np.float32)
                    self.compare_all(made, [{"x": x, "s": axes_of(s), "e": axes_of(e)} for s, e in ((7, 0), (-1, -9), (6, 2), (2, 6), (90, -90), (-90, -90))])

    def test_from_the_end_of_what_data_decide(self):
        """Of the places that are not zero: the last ones, forwards and backwards, and single ones by their place from the end."""
        names = ["last", "back", "one", "two", "number"]
        nodes = [node("NonZero", ["x"], ["at"]), node("Squeeze", ["at", "first"], ["list"]), node("Slice", ["list", "minus_three", "end"], ["last"]),
                 node("Slice", ["list", "minus_one", "minus_end", "first", "minus_two"], ["back"]), node("GatherND", ["at", "tuple"], ["one"]),
                 node("Gather", ["list", "minus_two"], ["two"]), node("GatherND", ["list", "minus_one"], ["number"]),
                 *(node("Cast", [name], [f"{name}_y"], to=FLOAT) for name in names)]
        constants = {"minus_three": axes_of(-3), "minus_one": axes_of(-1), "minus_two": axes_of(-2), "end": axes_of(1 << 40), "minus_end": axes_of(-1 << 40),
                     "first": axes_of(0), "tuple": np.int64([[0, -1]])}
        for extent, options in ((9, []), ("n", ["--shape", "n=4..9"])):
            made = self.made(nodes, {"x": (extent,)}, [f"{name}_y" for name in names], constants, options)
            self.compare_all(made, [{"x": np.float32(x)} for x in ([1, 0, 2, 0, 3, 0, 4, 0, 5], [0, 0, 0, 0, 0, 1, 0, 1, 0], [1] * 9)])

    def test_spans_from_around_a_loop_or_branch(self):
        """Begin and end are computed before the loop, or the branch, that holds the Slice: each run takes as many elements."""
        turn = [node("Slice", ["x", "begin", "end"], ["part"]), node("ReduceMax", ["part"], ["m"], axes=[0], keepdims=0), node("Add", ["s", "m"], ["t"]),
                node("Add", ["part", "s"], ["rows"])]
        nodes = [node("Add", ["begin", "three"], ["end"]), node("Squeeze", ["n"], ["turns"]),
                 node("Loop", ["turns", "", "start"], ["y", "z"], body=body_of(turn, {"s": "t"}, ["rows"]))]
        constants = {"three": axes_of(3)}
        made = self.made(nodes, {"x": ("rows", 4), "n": 1, "begin": 1, "start": (4,)}, ["y", "z"], constants, ["--shape", "rows=3..9", "--max-turns", 4])
        x = lambda n: self.rng.standard_normal((n, 4)).astype(np.float32)
        self.compare_all(made, [{"x": x(r), "n": axes_of(n), "begin": axes_of(b), "start": self.table[0]} for r, n, b in ((9, 4, 6), (3, 1, 0), (7, 3, 2))])
        net = {name: self.rng.standard_normal(shape).astype(np.float32) for name, shape in (("w", (1, 16, 4)), ("r", (1, 16, 4)))}
        sliced = graph_of([node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=4), node("Squeeze", ["h", "first"], ["state"]),
                           node("Slice", ["table", "begin", "end"], ["part"]), node("Add", ["state", "part"], ["a"])], "a")
        plain = graph_of([node("Slice", ["table", "begin", "end"], ["b"])], "b")
        nodes = [node("Add", ["begin", "three"], ["end"]), node("Squeeze", ["begin"], ["number"]), node("Less", ["number", "four"], ["near"]),
                 node("If", ["near"], ["y"], then_branch=sliced, else_branch=plain)]
        constants |= net | {"first": axes_of(0), "four": np.int64(4), "table": self.table[:8]}
        for extent, options in ((2, []), ("n", ["--shape", "n=1..4"])):
            made = self.made(nodes, {"x": (extent, 1, 4), "begin": 1}, ["y"], constants, options)
            self.compare_all(made, [{"x": x(4 * n).reshape(n, 4, 4)[:, :1], "begin": axes_of(b)} for n in ((1, 4) if options else (2,)) for b in (0, 3, 5)])

    def test_a_step_of_0_is_refused(self):
        model = make_model([node("Slice", ["x", "s", "e", "first", "step"], ["y"])], [value("x", (8,)), value("s", (1,), INT), value("e", (1,), INT)],
                           [helper.make_tensor_value_info("y", FLOAT, None)], {"first": axes_of(0), "step": axes_of(0)})
        self.refuse("a step of 0", "compile", self.save(model), "-o", self.folder / "x.so", "--no-db")


class Bags(Ranged):
    """Reductions of slices in a loop: as many blocks of elements as a slice has."""
    rng = np.random.default_rng(4)

    def bags(self, reductions, step=1, axis=0, between=(), extent="rows", before=()):
        """A loop over bags, from the numbers `begins` to `ends`, each of which it reduces in some ways."""
        turn = [node("Reshape", ["i", "one"], ["at"]), node("Gather", ["begins", "at"], ["begin"]), node("Gather", ["ends", "at"], ["end"]),
                node("Slice", ["x", "begin", "end", "axis", "step"], ["bag"]), *between]
        rows = []
        for k, (op, axes) in enumerate(reductions):
            takes = {"inputs": ["bag", f"axes_{k}"]} if op == "ReduceSum" else {"inputs": ["bag"], "axes": list(axes)}
            turn.append(node(op, takes.pop("inputs"), [f"row_{k}"], keepdims=k % 2, **takes))
            rows.append(f"row_{k}")
        constants = {"one": axes_of(1), "axis": axes_of(axis), "step": axes_of(step)} | {f"axes_{k}": axes_of(*axes) for k, (_, axes) in enumerate(reductions)}
        nodes = [*before, node("Shape", ["begins"], ["count_vector"]), node("Squeeze", ["count_vector"], ["count"]),
                 node("Loop", ["count", ""], rows, body=body_of(turn, {}, rows))]
        inputs = {"x": (extent, 5) if axis == 0 else (3, extent, 5)}
        infos = [value(name, shape) for name, shape in inputs.items()] + [value(name, ("bags",), INT) for name in ("begins", "ends")]
        model = make_model(nodes, infos, [helper.make_tensor_value_info(name, FLOAT, None) for name in rows], constants)
        path, library = self.save(model), self.folder / "model.so"
        self.succeed("compile", path, "-o", library, "--no-db", *(["--shape", "rows=1..300"] if extent == "rows" else []), "--shape", "bags=1..9")
        return path, library

    def feeds_of(self, rows, cuts, axis=0):
        begins, ends = zip(*cuts)
        shape = (rows, 5) if axis == 0 else (3, rows, 5)
        return {"x": self.rng.standard_normal(shape).astype(np.float32), "begins": axes_of(*begins), "ends": axes_of(*ends)}

    def test_bags_of_all_lengths(self):
        cuts = [(0, 1), (0, 63), (1, 65), (2, 67), (5, 133), (0, 300), (-200, -7), (299, 300), (100, 164)]
        made = self.bags([("ReduceSum", [0]), ("ReduceMean", [0]), ("ReduceMax", [0]), ("ReduceMin", [0]), ("ReduceMax", [0, 1]), ("ReduceMean", [1, 0])])
        self.compare_all(made, [self.feeds_of(300, cuts), self.feeds_of(1, [(0, 1)]), self.feeds_of(64, [(0, 64), (-64, 90)]), self.feeds_of(65, [(0, 65), (64, 65)])])

    def test_steps_and_other_axes(self):
        for step, cuts in ((3, [(0, 300), (7, 8), (1, 195)]), (-2, [(299, 0), (-1, -301), (5, 2)])):
            made = self.bags([("ReduceSum", [1]), ("ReduceMean", [1, 2])], step, axis=1, extent=300)
            self.compare_all(made, [self.feeds_of(300, cuts, axis=1)])

    def test_empty_bags(self):
        """A sum of nothing is 0."""
        made = self.bags([("ReduceSum", [0])])
        self.compare_all(made, [self.feeds_of(300, [(7, 7), (9, 2), (0, 300)])])

    def test_two_axes_of_which_one_is_of_known_length(self):
        turn = [node("Reshape", ["i", "one"], ["at"]), node("Gather", ["begins", "at"], ["begin"]), node("Gather", ["ends", "at"], ["end"]),
                node("Add", ["begin", "one"], ["next"]), node("Concat", ["begin", "begin"], ["from"], axis=0),
                node("Concat", ["end", "next"], ["to"], axis=0), node("Slice", ["x", "from", "to", "axes"], ["bag"]),
                node("ReduceMax", ["bag"], ["of_rows"], axes=[0], keepdims=0), node("ReduceSum", ["bag", "axes"], ["of_all"], keepdims=0)]
        nodes = [node("Shape", ["begins"], ["count_vector"]), node("Squeeze", ["count_vector"], ["count"]),
                 node("Loop", ["count", ""], ["of_rows", "of_all"], body=body_of(turn, {}, ["of_rows", "of_all"]))]
        infos = [value("x", (300, 300)), *(value(name, ("bags",), INT) for name in ("begins", "ends"))]
        model = make_model(nodes, infos, [helper.make_tensor_value_info(name, FLOAT, None) for name in ("of_rows", "of_all")],
                           {"one": axes_of(1), "axes": axes_of(0, 1)})
        path, library = self.save(model), self.folder / "model.so"
        self.succeed("compile", path, "-o", library, "--no-db", "--shape", "bags=1..9")
        feeds = {"x": self.rng.standard_normal((300, 300)).astype(np.float32), "begins": axes_of(0, 7, 100), "ends": axes_of(5, 290, 101)}
        self.compare_all((path, library), [feeds])

    def test_huge_steps_take_one_element(self):
        for step in (2**63 - 1, 400):
            made = self.bags([("ReduceSum", [0])], step, extent=300)
            self.compare_all(made, [self.feeds_of(300, [(0, 300), (7, 290), (299, 300)])])

    def test_a_bag_costs_its_own_length(self):
        """Of 100,000 rows, bags of one row take less than a twentieth of the time of bags of all: those looked at all rows took about as long."""
        made = self.bags([("ReduceSum", [0])], extent=100_000)
        times = []
        for last in (1, 100_000):
            feeds = self.feeds_of(100_000, [(0, last)] * 9)
            times.append(self.least_time(made[1], feeds))
        self.assertLess(20 * times[0], times[1])

    def least_time(self, library, feeds):
        """Returns the seconds of the shortest of some runs."""
        arguments = []
        for name, array in feeds.items():
            np.save(self.folder / f"{name}.npy", array)
            arguments += ["--input", f"{name}={self.folder / name}.npy"]
        return self.succeed_json("run", library, *arguments, "--repeat", 5, "--threads", 1)["min_seconds"]


def graph_of(nodes, output):
    return helper.make_graph(nodes, output, [], [helper.make_tensor_value_info(output, FLOAT, None)])


class RandomSlice:
    """A Slice of some axes of x, of whose numbers some are operands of the model, and an operator behind it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.computed, self.spans = [], {"flat": axes_of(-1)}, [], {}
        self.shape = [int(extent) for extent in self.rng.integers(1, 8, self.rng.integers(1, 5))]

    def chance(self, probability):
        return self.rng.random() < probability

    def number(self, name, known):
        """A vector of one element: a constant, or an operand of the model."""
        if known is not None:
            self.constants[name] = axes_of(known)
        else:
            self.computed.append(name)
        return name

    def cut(self, d):
        """Returns begin, end and step along an axis."""
        extent = self.shape[d]
        if self.chance(0.4):
            begin = self.number(f"s{d}", int(self.rng.integers(-extent, extent)))
            return begin, self.number(f"e{d}", None), self.step()
        begin, end = self.number(f"s{d}", None), f"e{d}"
        if self.chance(0.4):
            span = self.spans[begin] = int(self.rng.integers(1, extent + 1))
            self.nodes.append(node("Add", [begin, self.number(f"k{d}", span)], [end]))
        else:
            self.number(end, int(self.rng.integers(-extent, extent + 3)) if self.chance(0.3) else None)
        return begin, end, self.step()

    def step(self):
        return int(self.rng.choice([-3, -2, -1, 1, 1, 2, 3]))

    def model(self):
        axes = [int(d) for d in self.rng.permutation(len(self.shape))[:self.rng.integers(1, len(self.shape) + 1)]]
        cuts = [self.cut(d) for d in axes]
        self.axes = axes
        for i, name in enumerate(("starts", "ends")):
            self.nodes.append(node("Concat", [cut[i] for cut in cuts], [name], axis=0))
        self.constants |= {"axes": axes_of(*axes), "steps": axes_of(*(cut[2] for cut in cuts))}
        self.nodes.append(node("Slice", ["x", "starts", "ends", "axes", "steps"], ["part"]))
        behind = self.rng.integers(4)
        if behind == 0:
            self.nodes.append(node("Neg", ["part"], ["y"]))
        elif behind == 1:
            self.nodes.append(node("Transpose", ["part"], ["y"], perm=[int(d) for d in self.rng.permutation(len(self.shape))]))
        elif behind == 2:
            self.constants["sum_axes"] = axes_of(*range(len(self.shape)))
            self.nodes.append(node("ReduceSum", ["part", "sum_axes"], ["y"], keepdims=1))
        else:
            self.nodes.append(node("Reshape", ["part", "flat"], ["y"]))
        infos = [value("x", self.shape), *(value(name, (1,), INT) for name in self.computed)]
        return make_model(self.nodes, infos, [helper.make_tensor_value_info("y", FLOAT, None)], self.constants, opset=18)

    def feeds(self):
        """Numbers within and beyond the axes; a begin behind which a known number of elements follow leaves them."""
        made = {"x": self.rng.standard_normal(self.shape).astype(np.float32)}
        for name in self.computed:
            extent = self.shape[int(name[1:])]
            most = extent - self.spans[name] if name in self.spans else extent + 3
            least = 0 if name in self.spans else -extent - 3
            made[name] = axes_of(int(self.rng.integers(least, most + 1)))
        return made


class Random(Ranged):
    def test_25_random_slices(self):
        for seed in range(25):
            made = RandomSlice(seed)
            path, library = self.save(made.model()), self.folder / f"{seed}.so"
            self.succeed("compile", path, "-o", library, "--no-db")
            for _ in range(4):
                feeds = made.feeds()
                numbers = {name: array.tolist() for name, array in feeds.items() if name != "x"}
                with self.subTest(seed=seed, shape=made.shape, **numbers):
                    self.compare_at(path, library, feeds)


if __name__ == "__main__":
    support.main()
