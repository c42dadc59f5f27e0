"""A small graph that grows node by node: an oracle computes each node alone as it is added, so every value has a known shape and an
expected content, and what the oracle refuses is never added."""
import dataclasses

import numpy as np
import onnx
from onnx import helper, numpy_helper

import attribute_coverage
from oracle import run_alone

# The order of the comparisons decides what they make of a NaN, and of zeros with two signs.
COMPARING = {"ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool", "ArgMax", "ArgMin", "TopK", "Hardmax", "Unique", "NonMaxSuppression", "RoiAlign"}
OF_ANY_SIGN = COMPARING | {"Max", "Min", "Clip", "Relu", "Sign"}
# Data decides the shape of their results, or terms cancel until rounding is all that is left.
NOT_READ = {"Compress", "NonZero", "Unique", "NonMaxSuppression", "DFT", "STFT"}
LARGEST = 1e4  # values beyond have lost their digits to what cancels
MOST_ELEMENTS = 4000


@dataclasses.dataclass
class Value:
    """exact: no rounding took place, so that what jumps (floor, less, argmax) may read it. rounds: rounding decides it, by 1.

    signed: the sign of a zero is defined. last: no template gives it to another node.
    """

    name: str
    array: np.ndarray
    exact: bool
    kind: str  # input, constant, result
    rounds: bool = False
    signed: bool = True
    last: bool = False

    @property
    def shape(self):
        return self.array.shape

    @property
    def is_float(self):
        return self.array.dtype in (np.float32, np.float64, np.float16)


def value_info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def names_read(node):
    """What a node reads, also within its graphs."""
    names = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            made = {value.name for value in [*attribute.g.input, *attribute.g.initializer]}
            for inner in attribute.g.node:
                names |= names_read(inner) - made
                made |= set(inner.output)
    return names - {""}


class Subgraph:
    """Names start with `prefix`. Results may become inputs, with their expected content, when it is minimised.

    special: NaN, infinity and numbers of any size may occur; signs: zeros of exact values must have the right sign.
    """

    def __init__(self, prefix, opset, rng, special=False, signs=False):
        self.prefix, self.opset, self.rng, self.special, self.signs = prefix, opset, rng, special, signs
        self.imports = {"": opset}
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

    def add(self, op_type, operands, results=1, exact=False, rounds=False, reads=(), **attributes):
        """A node on operands (None: left out); its results, or None if it cannot be had or has nothing to compare.

        rounds: results are integers that rounding decides, so that they may differ by 1; reads: values that its graphs read.
        """
        names = [f"{self.prefix}v{len(self.values) + i}" for i in range(results)]
        node = helper.make_node(op_type, [operand.name if operand else "" for operand in operands], names,
                                name=f"{self.prefix}n{len(self.nodes)}")
        for key, value in attributes.items():
            empty = isinstance(value, list) and not value
            node.attribute.append(helper.make_attribute(key, value, attr_type=onnx.AttributeProto.INTS if empty else None))
        distinct = {operand.name: operand for operand in [*operands, *reads] if operand}
        if op_type in COMPARING and any(v.is_float and np.isnan(v.array).any() for v in distinct.values()):
            return None
        arrays = run_alone(node, list(distinct.values()), self.opset)
        if arrays is None or any(not isinstance(array, np.ndarray) or not self._fits(array) for array in arrays):
            return None
        signed = op_type not in OF_ANY_SIGN and all(operand.signed for operand in distinct.values())
        found = [Value(name, array, exact and all(operand.exact for operand in distinct.values()), "result", rounds, signed, op_type in NOT_READ)
                 for name, array in zip(names, arrays)]
        for value in found:
            self.values[value.name] = value
        self.nodes.append(node)
        attribute_coverage.note(node)
        return found

    def _fits(self, array):
        if array.size > MOST_ELEMENTS or array.ndim > 6:
            return False
        if array.dtype in (np.float32, np.float64, np.float16):
            limit = 100 if array.dtype == np.float16 else LARGEST
            return self.special or bool((np.abs(array.astype(np.float64)) < limit).all())
        return array.dtype != object

    def used_functions(self):
        return []

    def input_info(self, value):
        return value_info(value.name, value.array)

    def output_info(self, value):
        return value_info(value.name, value.array)

    # ---- after it is made ----

    def choose_outputs(self, rng):
        """Results that nobody reads, and some others."""
        read = {name for node in self.nodes for name in names_read(node)}
        results = [value.name for value in self.values.values() if value.kind == "result"]
        self.outputs = [name for name in results if name not in read or rng.random() < 0.15]

    def inputs(self):
        read = {name for node in self.nodes for name in names_read(node)}
        return [value for value in self.values.values() if value.kind == "input" and value.name in read]

    def constants(self):
        read = {name for node in self.nodes for name in names_read(node)}
        return [value for value in self.values.values() if value.kind == "constant" and value.name in read]

    def without_nodes(self):
        return Subgraph(self.prefix, self.opset, self.rng, self.special, self.signs)

    def restricted(self, nodes, outputs):
        """The same with these nodes only: what others computed becomes an input. Without nodes that no output needs."""
        wanted, kept = set(outputs), []
        for node in reversed(nodes):
            if wanted & set(node.output):
                kept.insert(0, node)
                wanted |= names_read(node)
        made = {name for node in kept for name in node.output}
        copy = self.without_nodes()
        copy.nodes, copy.outputs = kept, list(outputs)
        for name, value in self.values.items():
            kind = "input" if value.kind == "result" and name not in made else value.kind
            copy.values[name] = dataclasses.replace(value, kind=kind)
        return copy


def merged_model(subgraphs, opset, ir_version=8):
    nodes = [node for subgraph in subgraphs for node in subgraph.nodes]
    inputs = [subgraph.input_info(v) for subgraph in subgraphs for v in subgraph.inputs()]
    constants = [numpy_helper.from_array(v.array, v.name) for subgraph in subgraphs for v in subgraph.constants()]
    outputs = [subgraph.output_info(subgraph.values[name]) for subgraph in subgraphs for name in subgraph.outputs]
    functions = [function for subgraph in subgraphs for function in subgraph.used_functions()]
    graph = helper.make_graph(nodes, "differential", inputs, outputs, constants)
    imports = {domain: version for subgraph in subgraphs for domain, version in subgraph.imports.items()} | {"": opset}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*pair) for pair in imports.items()], functions=functions)
    model.ir_version = ir_version
    return model


def text_of(subgraph, opset, ir_version=8):
    return onnx.printer.to_text(merged_model([subgraph], opset, ir_version))
