"""What the generators of kinds of models see, and random graphs inside of nodes: bodies of functions, loops and branches."""
import numpy as np
from onnx import helper, numpy_helper

import movement
import operators
from kinds.graph import KindGraph, KindValue
from maker import Maker

# Makers of nodes of any operators, mostly pointwise, which stand between the nodes that a kind is about.
PLAIN = [(operators.unary, 4), (operators.binary, 5), (operators.variadic, 1), (operators.where, 1), (operators.clip, 1), (operators.cast, 1),
         (operators.reduction, 2), (operators.softmax, 1), (operators.matmul, 1), (operators.gemm, 1), (movement.reshape, 1),
         (movement.transpose, 2), (movement.concat, 1), (movement.slice_, 1), (movement.gather, 1), (movement.squeeze, 1), (movement.expand, 1)]


class KindMaker(Maker):
    """depth: how many graphs this one is inside of."""

    def __init__(self, prefix, opset, rng, feeds=1, imports=(), depth=0):
        super().__init__(prefix, opset, rng)
        self.graph, self.depth, self.shapes_vary = KindGraph(prefix, opset, rng, feeds, imports), depth, False

    def extent(self):
        return 0 if self.chance(0.01) else self.pick([1, 2, 3, 3, 4, 5, 7, 8])

    def shape(self, most=3):
        return super().shape(most)

    def float_type(self):
        """No half type: between operators Hone does not round to it, as oracles do (half_types_test.py)."""
        return np.float32 if self.chance(0.8) else np.float64

    def grow(self, templates, wanted):
        """Adds at least that many nodes, if that can be."""
        weights = np.asarray([weight for _, weight in templates], np.float64)
        for _ in range(wanted * 4):
            if len(self.graph.nodes) >= wanted:
                break
            templates[self.rng.choice(len(templates), p=weights / weights.sum())][0](self)

    def node(self, op_type, *operands, **attributes):
        """The first result, or None."""
        found = self.graph.add(op_type, list(operands), **attributes)
        return found[0] if found else None

    def integers(self, values):
        return self.graph.constant(np.asarray(values, np.int64))

    def number(self, x, like):
        return self.graph.constant(np.asarray(x, like.array.dtype))

    def floats(self, dtype=np.float32, least_rank=0):
        """Values that are there."""
        return [v for v in self.graph.values.values() if v.array.dtype == dtype and v.kind != "constant" and len(v.shape) >= least_rank and v.array.size]

    # ---- graphs inside of nodes ----

    def inside(self, parameters, captured=(), prefix=None):
        """A maker of a graph that has these values by names of its own, and those of this one that it captures."""
        inner = Inside(self.graph.fresh() + "b_" if prefix is None else prefix, self.opset, self.rng, imports=self.graph.imports, depth=self.depth + 1)
        inner.graph.functions = self.graph.functions
        for value in captured:
            inner.graph.values[value.name] = KindValue(value.name, value.array, value.exact, "outer", value.rounds, arrays=(value.array,))
        inner.parameters = [inner.parameter(array, exact) for array, exact in parameters]
        inner.captured, inner.shapes_vary = list(captured), self.shapes_vary
        return inner


class Inside(KindMaker):
    """A graph inside of a node. Whatever its nodes need that is not there is constant."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        given, self.graph.is_inside = self.graph.given, True
        self.graph.given = lambda array, exact, constant: given(array, exact, True)

    def parameter(self, array, exact):
        """Its numbers may be any others: no node may need that they are positive."""
        value = self.graph.given_each([array], exact)
        value.kind = "outer"
        return value

    def like(self, value, target):
        """A value that was made here, of the type and shape of `target`: `value`, or what follows from it."""
        made = [v for v in self.graph.values.values() if v.kind == "result" and (v.shape, v.array.dtype) == (target.shape, target.array.dtype)]
        if made and self.chance(0.7):
            return made[-1]
        if value.shape == target.shape:
            return self.converted(value, target.array.dtype)
        if target.array.dtype.kind != "f":
            value = self.safe_integers(value)
            value = value and self.node("Cast", value, to=1)
            if value is None:
                return None
        as_float = value if value.array.dtype == np.float32 else self.node("Cast", value, to=1)
        if as_float is None or value.array.size == 0:
            return None
        axes = list(range(len(value.shape)))
        total = self.node("ReduceMax", as_float, self.integers(axes), keepdims=0) if self.opset >= 18 else self.node("ReduceMax", as_float, keepdims=0)
        whole = total and self.node("Expand", total, self.integers(target.shape))
        return whole and self.node("Cast", whole, to=helper.np_dtype_to_tensor_dtype(target.array.dtype))

    def converted(self, value, dtype):
        value = value if np.dtype(dtype).kind == "f" else self.safe_integers(value)
        return value and self.node("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def safe_integers(self, value):
        """What may become any integer: no number that jumps where `value` is rounded, and none beyond a type."""
        return self.node("IsNaN", value) if value.is_float and not value.exact else self.node("Cast", value, to=9)

    def constants_as_nodes(self):
        return [helper.make_node("Constant", [], [v.name], value=numpy_helper.from_array(v.array, v.name)) for v in self.graph.constants()]

    def to_graph(self, name, inputs, outputs):
        """A GraphProto; inputs and outputs as (name, array, its shape or None)."""
        infos = [[helper.make_tensor_value_info(text, helper.np_dtype_to_tensor_dtype(array.dtype), shape) for text, array, shape in values]
                 for values in (inputs, outputs)]
        nodes, constants = list(self.graph.nodes), []
        if self.chance(0.5):
            nodes = self.constants_as_nodes() + nodes
        else:
            constants = [numpy_helper.from_array(v.array, v.name) for v in self.graph.constants()]
        return helper.make_graph(nodes, name, *infos, constants)

    def results(self):
        return [v for v in self.graph.values.values() if v.kind == "result"]
