"""Models of independent random nodes, whose results are compared with ONNX Runtime's (microsoft_operators_test.py, ml_operators_test.py)."""
import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

from support import Case


class Nodes:
    """Independent random nodes of one model."""

    def __init__(self, seed, ml_version=3, opset=17):
        self.opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", ml_version)]
        self.rng = np.random.default_rng(seed)
        self.nodes, self.feeds, self.constants, self.outputs, self.expected = [], {}, {}, [], {}
        self.defined = {}  # masks of results of which the other elements may be any number

    def chance(self, probability=0.5):
        return self.rng.random() < probability

    def pick(self, *items):
        return items[int(self.rng.integers(len(items)))]

    def below(self, low, high):
        return int(self.rng.integers(low, high))

    def array(self, *shape):
        return self.rng.uniform(-1, 1, shape).astype(np.float32)

    def operand(self, array, constant=None):
        """The name of an input or a constant with these values; None is an operand that is not given."""
        if array is None:
            return ""
        name = f"v{len(self.feeds) + len(self.constants)}"
        constant = self.chance() if constant is None else constant
        (self.constants if constant else self.feeds)[name] = array
        return name

    def add(self, op, arrays, results=1, expected=None, domain="com.microsoft", constant=None, **attributes):
        """A node; results may be a list of which are wanted. `expected` are its values where ONNX Runtime has no kernel; `constant`:
        whether operands but the first are."""
        wanted = [True] * results if isinstance(results, int) else results
        names = [self.operand(array, False if i == 0 else constant) for i, array in enumerate(arrays)]
        while names[-1] == "":
            names.pop()
        outputs = [f"y{len(self.nodes)}_{i}" if want else "" for i, want in enumerate(wanted)]
        self.nodes.append(helper.make_node(op, names, outputs, name=f"{op}_{len(self.nodes)}", domain=domain, **attributes))
        self.outputs += [name for name in outputs if name]
        for name, array in zip([name for name in outputs if name], expected or [], strict=expected is not None):
            self.expected[name] = array

    def model(self, nodes=None):
        nodes = self.nodes if nodes is None else nodes
        used = {name for node in nodes for name in node.input}
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                  for name, array in self.feeds.items() if name in used]
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items() if name in used]
        outputs = [helper.make_empty_tensor_value_info(name) for node in nodes for name in node.output if name]
        model = helper.make_model(helper.make_graph(nodes, "nodes", inputs, outputs, constants), opset_imports=self.opsets)
        model.ir_version = 8 if self.opsets[0].version == 17 else 10
        return model

    def run_reference(self):
        """The values of all outputs."""
        nodes = [node for node in self.nodes if not set(node.output) & set(self.expected)]
        if not nodes:
            return self.expected
        model = self.model(nodes)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        feeds = {value.name: self.feeds[value.name] for value in model.graph.input}
        names = [value.name for value in model.graph.output]
        return self.expected | dict(zip(names, session.run(names, feeds), strict=True))


class RandomNodes(Case):
    def compare(self, *makers, count=1, rtol=1e-4, atol=2e-5, ml_version=3, opset=17):
        nodes = Nodes(len(makers[0].__name__), ml_version, opset)
        for _ in range(count):
            for maker in makers:
                maker(nodes)
        expected = nodes.run_reference()
        outputs = self.outputs(self.save(nodes.model()), nodes.feeds)
        for node in nodes.nodes:
            for name in filter(None, node.output):
                found = outputs[name]
                with self.subTest(name, node=helper.printable_node(node)):
                    self.assertEqual((found.shape, found.dtype), (expected[name].shape, expected[name].dtype))
                    defined = nodes.defined.get(name, ...)
                    if expected[name].dtype.kind in "iub":
                        np.testing.assert_array_equal(found[defined], expected[name][defined])
                        continue
                    np.testing.assert_allclose(found[defined], expected[name][defined], rtol=rtol, atol=atol)
