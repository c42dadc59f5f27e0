"""A small graph that grows node by node: ONNX Runtime computes each node alone as it is added, so every value has a known shape and an
expected content, and what ONNX Runtime refuses is never added."""
import dataclasses

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

LARGEST = 1e4  # values beyond have lost their digits to what cancels
MOST_ELEMENTS = 4000

onnxruntime.set_default_logger_severity(4)


@dataclasses.dataclass
class Value:
    """exact: no rounding took place, so that what jumps (floor, less, argmax) may read it."""

    name: str
    array: np.ndarray
    exact: bool
    kind: str  # input, constant, result

    @property
    def shape(self):
        return self.array.shape

    @property
    def is_float(self):
        return self.array.dtype in (np.float32, np.float64, np.float16)


def value_info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def run_alone(node, operands, opset):
    """The node's results, or None if ONNX Runtime does not take it."""
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    # Constants, so that operands which decide shapes are known.
    initializers = [numpy_helper.from_array(value.array, value.name) for value in operands if value.kind != "input"]
    inputs = [value_info(value.name, value.array) for value in operands if value.kind == "input"]
    graph = helper.make_graph([node], "alone", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {value.name: value.array for value in operands if value.kind == "input"})
    except Exception:  # its exceptions have no common base but this
        return None


class Subgraph:
    """Names start with `prefix`. `cut` values are results that became inputs, with their expected content (minimise)."""

    def __init__(self, prefix, opset, rng):
        self.prefix, self.opset, self.rng = prefix, opset, rng
        self.values = {}
        self.nodes = []
        self.outputs = []

    def fresh(self):
        return f"{self.prefix}v{len(self.values)}"

    def given(self, array, exact, constant):
        value = Value(self.fresh(), np.asarray(array), exact, "constant" if constant else "input")
        self.values[value.name] = value
        return value

    def constant(self, array):
        return self.given(array, True, True)

    def add(self, op_type, operands, results=1, exact=False, **attributes):
        """A node on operands (None: left out); its results, or None if it cannot be had or has nothing to compare."""
        names = [f"{self.prefix}v{len(self.values) + i}" for i in range(results)]
        node = helper.make_node(op_type, [operand.name if operand else "" for operand in operands], names,
                                name=f"{self.prefix}n{len(self.nodes)}", **attributes)
        distinct = {operand.name: operand for operand in operands if operand}
        arrays = run_alone(node, list(distinct.values()), self.opset)
        if arrays is None or any(not isinstance(array, np.ndarray) or not self._fits(array) for array in arrays):
            return None
        found = [Value(name, array, exact and all(operand.exact for operand in distinct.values()), "result")
                 for name, array in zip(names, arrays)]
        for value in found:
            self.values[value.name] = value
        self.nodes.append(node)
        return found

    @staticmethod
    def _fits(array):
        if array.size > MOST_ELEMENTS or array.ndim > 6:
            return False
        if array.dtype in (np.float32, np.float64, np.float16):
            limit = 100 if array.dtype == np.float16 else LARGEST
            return bool(np.isfinite(array).all()) and (array.size == 0 or np.abs(array.astype(np.float64)).max() < limit)
        return array.dtype != object

    # ---- after it is made ----

    def choose_outputs(self, rng):
        """Results that nobody reads, and some others."""
        read = {name for node in self.nodes for name in node.input}
        results = [value.name for value in self.values.values() if value.kind == "result"]
        self.outputs = [name for name in results if name not in read or rng.random() < 0.15]

    def inputs(self):
        read = {name for node in self.nodes for name in node.input}
        return [value for value in self.values.values() if value.kind == "input" and value.name in read]

    def constants(self):
        read = {name for node in self.nodes for name in node.input}
        return [value for value in self.values.values() if value.kind == "constant" and value.name in read]

    def restricted(self, nodes, outputs):
        """The same with these nodes only: what others computed becomes an input. Without nodes that no output needs."""
        wanted, kept = set(outputs), []
        for node in reversed(nodes):
            if wanted & set(node.output):
                kept.insert(0, node)
                wanted |= set(node.input)
        made = {name for node in kept for name in node.output}
        copy = Subgraph(self.prefix, self.opset, self.rng)
        copy.nodes, copy.outputs = kept, list(outputs)
        for name, value in self.values.items():
            kind = "input" if value.kind == "result" and name not in made else value.kind
            copy.values[name] = dataclasses.replace(value, kind=kind)
        return copy


def merged_model(subgraphs, opset):
    nodes = [node for subgraph in subgraphs for node in subgraph.nodes]
    inputs = [value_info(v.name, v.array) for subgraph in subgraphs for v in subgraph.inputs()]
    constants = [numpy_helper.from_array(v.array, v.name) for subgraph in subgraphs for v in subgraph.constants()]
    outputs = [value_info(name, subgraph.values[name].array) for subgraph in subgraphs for name in subgraph.outputs]
    graph = helper.make_graph(nodes, "differential", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


def text_of(subgraph, opset):
    return onnx.printer.to_text(merged_model([subgraph], opset))
