"""Sequences and optional values as exporters write them, which are resolved while a model is imported, compared with ONNX Runtime."""
import numpy as np
from onnx import TensorProto, helper

import support
from support import Case, make_model, value

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
BOOL = TensorProto.BOOL


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


class Sequences(Case):
    def compare(self, nodes, feeds, outputs, constants=(), opset=17):
        kinds = {np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT, np.dtype(np.bool_): BOOL}
        model = make_model(nodes, [value(name, array.shape, kinds[array.dtype]) for name, array in feeds.items()],
                           [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()], constants, opset)
        path = self.save(model)
        outputs = self.outputs(path, feeds)
        for name, expected in support.reference(path, feeds).items():
            found = outputs[name]
            self.assertEqual((found.shape, found.dtype), (expected.shape, expected.dtype), name)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=name)

    def test_made_changed_and_joined(self):
        a, b = np.float32([[1, 2]]), np.float32([[3, 4]])
        nodes = [node("SequenceEmpty", [], ["s0"], dtype=FLOAT), node("SequenceInsert", ["s0", "a"], ["s1"]),
                 node("SequenceInsert", ["s1", "b", "zero"], ["s2"]), node("Neg", ["a"], ["n"]), node("SequenceInsert", ["s2", "n", "minus"], ["s3"]),
                 node("SequenceErase", ["s3", "zero"], ["s4"]), node("SequenceLength", ["s4"], ["count"]),
                 node("ConcatFromSequence", ["s3"], ["all"], axis=1), node("ConcatFromSequence", ["s4"], ["stack"], axis=-1, new_axis=1),
                 node("SequenceAt", ["s3", "minus"], ["last"])]
        self.compare(nodes, {"a": a, "b": b}, {"count": INT, "all": FLOAT, "stack": FLOAT, "last": FLOAT},
                     {"zero": np.asarray(0), "minus": np.asarray(-1)})

    def test_split(self):
        x = np.arange(15, dtype=np.float32).reshape(5, 3)
        nodes = []
        for name, operands, attributes in (("ones", [], {}), ("flat", [], {"keepdims": 0}), ("twos", ["two"], {}), ("list", ["lengths"], {"axis": 1})):
            nodes += [node("SplitToSequence", ["x", *operands], [f"{name}.s"], **attributes), node("SequenceAt", [f"{name}.s", "one"], [name])]
        self.compare(nodes, {"x": x}, dict.fromkeys(("ones", "flat", "twos", "list"), FLOAT),
                     {"two": np.asarray(2), "lengths": np.asarray([1, 2]), "one": np.asarray(1)})

    def test_loops(self):
        """Rows that a Loop appends to a sequence, as exporters write torch.stack of a list."""
        info = lambda name, kind: helper.make_tensor_value_info(name, kind, [])
        sequence = helper.make_tensor_sequence_value_info("rows", FLOAT, None)
        grown = helper.make_tensor_sequence_value_info("grown", FLOAT, None)
        body = helper.make_graph([node("Identity", ["go"], ["on"]), node("Gather", ["x", "i"], ["row"]), node("Mul", ["row", "row"], ["square"]),
                                  node("SequenceInsert", ["rows", "square"], ["grown"])], "body",
                                 [info("i", INT), info("go", BOOL), sequence], [info("on", BOOL), grown])
        nodes = [node("SequenceEmpty", [], ["none"]), node("Loop", ["n", "", "none"], ["list"], body=body),
                 node("ConcatFromSequence", ["list"], ["y"], axis=0, new_axis=1)]
        self.compare(nodes, {"x": np.float32([[1, 2], [3, 4], [5, 6]])}, {"y": FLOAT}, {"n": np.asarray(3)})

    def test_lists_that_a_loop_reads(self):
        """At the number of the turn, from outside; and an optional value. The number of turns is an input, so the run repeats the loop."""
        info = lambda name, kind, shape=(): helper.make_tensor_value_info(name, kind, shape)
        branch = lambda name, nodes, out: helper.make_graph(nodes, name, [], [info(out, FLOAT, None)])
        choice = node("If", ["has"], ["t"], then_branch=branch("then", [node("OptionalGetElement", ["maybe"], ["g"]), node("Add", ["u", "g"], ["a"])], "a"),
                      else_branch=branch("else", [node("Identity", ["u"], ["e"])], "e"))
        body = helper.make_graph([node("Identity", ["go"], ["on"]), node("SequenceAt", ["list", "i"], ["w"]), node("SequenceLength", ["uneven"], ["l"]),
                                  node("Cast", ["l"], ["f"], to=FLOAT), node("SequenceAt", ["uneven", "one"], ["b"]), node("Mul", ["s", "w"], ["m"]),
                                  node("Add", ["m", "f"], ["k"]), node("Add", ["k", "b"], ["u"]), node("OptionalHasElement", ["maybe"], ["has"]), choice],
                                 "body", [info("i", INT), info("go", BOOL), info("s", FLOAT, None)], [info("on", BOOL), info("t", FLOAT, None)])
        nodes = [node("SplitToSequence", ["x"], ["list"], axis=0, keepdims=0), node("SequenceConstruct", ["x", "y"], ["uneven"]),
                 node("Optional", ["y"], ["maybe"]), node("Loop", ["n", "", "y"], ["last"], body=body), node("SequenceAt", ["list", "n"], ["row"])]
        x = np.float32([[1, 2], [3, 4], [5, 6]])
        for turns in (2, 0):
            self.compare(nodes, {"x": x, "y": np.float32([0.5, -1]), "n": np.asarray(turns)}, {"last": FLOAT, "row": FLOAT}, {"one": np.asarray(1)})

    def test_a_position_that_a_run_computes(self):
        """One that the sequence does not have ends the run, as in ONNX Runtime."""
        nodes = [node("SequenceConstruct", ["x", "y"], ["s"]), node("SequenceAt", ["s", "i"], ["z"])]
        x, y = np.float32([1, 2]), np.float32([3, 4])
        for place in (0, 1, -1, -2):
            self.compare(nodes, {"x": x, "y": y, "i": np.asarray(place)}, {"z": FLOAT})
        for place in (2, -3):
            np.save(self.folder / "i.npy", np.asarray(place))
            self.refuse("node 'SequenceAt_z' (SequenceAt): the sequence has no tensor at this position in this run", "run",
                        self.folder / "model.onnx", "--input", f"i={self.folder / 'i.npy'}")

    def test_what_cannot_be_resolved_is_refused_in_one_line(self):
        made = node("SequenceConstruct", ["x", "x"], ["s"])
        for nodes, message in (([made], "the output 's' is a sequence, expected a tensor"),
                               ([node("Concat", ["x", "x"], ["z"], axis=0), node("SequenceConstruct", ["x", "z"], ["s"]),
                                 node("SequenceAt", ["s", "i"], ["y"])], "the position is computed at run time ('i')"),
                               ([made, node("Neg", ["s"], ["y"])], "operand 0 ('s') is a sequence, expected a tensor"),
                               ([made, node("SequenceInsert", ["s", "i"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=0)],
                                "a tensor of type i64 in a sequence of type f32")):
            with self.subTest(message):
                model = make_model(nodes, [value("x", (2,)), value("i", (), INT)], [helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, None)])
                self.refuse(message, "show", self.save(model))

    def test_a_sequence_of_the_callers_and_wrong_lengths_are_refused(self):
        output = [helper.make_tensor_value_info("y", FLOAT, None)]
        joined = node("ConcatFromSequence", ["s"], ["y"], axis=0)
        given = make_model([joined], [helper.make_tensor_sequence_value_info("s", FLOAT, None)], output)
        self.refuse("input 's' is a sequence, expected a tensor", "show", self.save(given))
        for split, message in ((0, "split is 0, expected 1 or more"), ([1, 9], "split is [1, 9], expected lengths from 0 to 5"),
                               ([1, 2], "split is [1, 2], expected lengths whose sum is 5")):
            model = make_model([node("SplitToSequence", ["x", "split"], ["s"]), joined], [value("x", (5,))], output, {"split": np.asarray(split)})
            self.refuse(f"node 'SplitToSequence_s' (SplitToSequence): {message}", "show", self.save(model))
        mixed = make_model([node("SequenceConstruct", ["x", "i"], ["s"]), joined], [value("x", (2,)), value("i", (2,), INT)], output)
        self.refuse("node 'SequenceConstruct_s' (SequenceConstruct): a tensor of type i64 in a sequence of type f32", "show", self.save(mixed))


if __name__ == "__main__":
    support.main()
