"""Functions that a model brings along, in files that the onnx package writes: defaults of attributes, overloads, opsets of their own, graphs
inside, calls within calls. Compared with ONNX's reference evaluator or ONNX Runtime."""
import numpy as np
import onnx
from onnx import TensorProto, helper

import support
from support import Case

DOMAIN = "mine"
FLOAT = TensorProto.FLOAT


def refer(node, **names):
    """The node with attributes that are handed on: name of its attribute, then (name of the function's, type)."""
    for name, (outer, kind) in names.items():
        attribute = node.attribute.add()
        attribute.name, attribute.ref_attr_name, attribute.type = name, outer, kind
    return node


def function(name, inputs, outputs, nodes, attributes=(), defaults=(), opset=17, overload=""):
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    made = helper.make_function(DOMAIN, name, inputs, outputs, nodes, opsets, list(attributes), [helper.make_attribute(*pair) for pair in defaults])
    made.overload = overload
    return made


def model_of(nodes, functions, inputs, outputs, opset=17):
    values = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    results = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", values, results), opset_imports=opsets, functions=functions)
    model.ir_version = 10
    return model


def call(name, inputs, outputs, **attributes):
    return helper.make_node(name, inputs, outputs, domain=DOMAIN, **attributes)


LEAK = function("leak", ["x"], ["y"], [refer(helper.make_node("LeakyRelu", ["x"], ["y"]), alpha=("slope", onnx.AttributeProto.FLOAT))],
                defaults=[("slope", 0.25)])


class ModelFunctions(Case):
    def results(self, model, feeds):
        return list(self.outputs(self.save(model), feeds).values())

    def test_defaults_and_what_is_handed_on(self):
        outer = function("outer", ["x"], ["y"], [refer(call("leak", ["x"], ["y"]), slope=("a", onnx.AttributeProto.FLOAT))], attributes=["a"])
        nodes = [call("leak", ["x"], ["p"]), call("leak", ["x"], ["q"], slope=0.5), call("outer", ["x"], ["r"]), call("outer", ["x"], ["s"], a=2.0)]
        found = self.results(model_of(nodes, [LEAK, outer], {"x": (FLOAT, [2])}, "pqrs"), {"x": np.float32([-8, 8])})
        self.assertEqual([list(x) for x in found], [[-2, 8], [-4, 8], [-2, 8], [-16, 8]])

    def test_overloads_are_functions_of_their_own(self):
        one = function("f", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], overload="negative")
        two = function("f", ["x"], ["y"], [helper.make_node("Exp", ["x"], ["y"])], overload="power")
        nodes = [call("f", ["x"], ["p"], overload="negative"), call("f", ["x"], ["q"], overload="power")]
        found = self.results(model_of(nodes, [one, two], {"x": (FLOAT, [1])}, "pq"), {"x": np.float32([0])})
        self.assertEqual([list(x) for x in found], [[0], [1]])
        nodes[0].overload = "other"
        self.refuse("mine.f (node 'p')", "show", self.save(model_of(nodes, [one, two], {"x": (FLOAT, [1])}, "pq")))

    def test_loops_and_branches_inside(self):
        """Powers of x by a Loop whose body calls a function, which has an If in it."""
        branch = lambda name, op: helper.make_graph([helper.make_node(op, ["a", "b"], ["t"])], name, [], [helper.make_tensor_value_info("t", FLOAT, None)])
        combine = function("combine", ["c", "a", "b"], ["y"],
                           [helper.make_node("If", ["c"], ["y"], then_branch=branch("t", "Mul"), else_branch=branch("e", "Add"))])
        body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), call("combine", ["choice", "x", "state"], ["next"])], "body",
                                 [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                                  helper.make_tensor_value_info("state", FLOAT, [2])],
                                 [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("next", FLOAT, [2])])
        repeat = function("repeat", ["choice", "x", "go"], ["y"],
                          [helper.make_node("Constant", [], ["n"], value_int=3), helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)])
        model = model_of([call("repeat", ["t", "x"], ["y"])], [combine, repeat], {"t": (TensorProto.BOOL, []), "x": (FLOAT, [2])}, "y")
        x = np.float32([2, 3])
        self.assertEqual(list(self.results(model, {"t": np.asarray(True), "x": x})[0]), [16, 81])
        self.assertEqual(list(self.results(model, {"t": np.asarray(False), "x": x})[0]), [8, 12])

    def test_opsets_of_their_own(self):
        """Softmax of opset 11 goes over all dimensions from the axis on, that of opset 13 along one; ReduceSum's axes became an operand."""
        old = function("old", ["x"], ["y"], [helper.make_node("Softmax", ["x"], ["t"], axis=1), helper.make_node("ReduceSum", ["t"], ["y"], axes=[2])], opset=11)
        nodes = [call("old", ["x"], ["p"]), helper.make_node("Softmax", ["x"], ["q"], axis=1)]
        x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
        p, q = self.results(model_of(nodes, [old], {"x": (FLOAT, [2, 3, 4])}, "pq", opset=18), {"x": x})
        power = np.exp(x)
        np.testing.assert_allclose(p, (power / power.sum((1, 2), keepdims=True)).sum(2, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(q, power / power.sum(1, keepdims=True), rtol=1e-5)

    def test_what_cannot_be_is_refused_in_one_line(self):
        neg = helper.make_node("Neg", ["x"], ["y"])
        cycle = [function("f", ["x"], ["y"], [call("g", ["x"], ["y"])]), function("g", ["x"], ["y"], [call("f", ["x"], ["y"])])]
        branch = helper.make_graph([call("f", ["x"], ["t"])], "branch", [], [helper.make_tensor_value_info("t", FLOAT, None)])
        inside = [helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0), helper.make_node("Cast", ["m"], ["c"], to=TensorProto.BOOL),
                  helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
        for functions, message in (([function("f", ["x"], ["y"], inside)], "a function that calls itself (mine.f -> mine.f)"),
                                   (cycle, "a function that calls itself (mine.f -> mine.g -> mine.f)"),
                                   ([function("f", [], ["y"], [neg])], "1 operands and 1 results, the function has 0 and 1"),
                                   ([function("f", ["x"], ["z"], [neg])], "the function's output 'z' is computed by no node"),
                                   ([function("f", ["z"], ["y"], [neg])], "reads 'x', which nothing in the function defines"),
                                   ([], "mine.f (node 'y')")):
            with self.subTest(message):
                self.refuse(message, "run", self.save(model_of([call("f", ["x"], ["y"])], functions, {"x": (FLOAT, [2])}, "y")))


if __name__ == "__main__":
    support.main()
