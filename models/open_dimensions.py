#!/usr/bin/env python3
"""The same model with open dimensions, as exporters write it with dynamic axes.

    open_dimensions.py MODEL.onnx OUT.onnx [--sides]

MODEL.onnx is a model of this folder with its weights (fill_weights.py). The first dimension of all inputs becomes `batch`, and the number of
tokens of a text model `seq`; with --sides, those of images become `height` and `width`. Targets of Reshape that the exporter wrote for one size
follow the sizes by Shape and Concat. Whether a network takes other sides is not checked: one with layers for its own sides does not.
"""
import argparse

import numpy as np
from onnx import TensorProto, helper, numpy_helper, shape_inference

import with_sequence
from open_sequence import Opener


def depending_on_inputs(graph):
    """The names of the values that follow from an input."""
    constant = {tensor.name for tensor in graph.initializer}
    found = {value.name for value in graph.input} - constant
    for node in graph.node:
        if any(name in found for name in node.input):
            found.update(node.output)
    return found


def extents(model):
    """{name: extents} of the values whose shapes are known before anything is opened."""
    graph = shape_inference.infer_shapes(model, data_prop=True).graph
    return {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in [*graph.value_info, *graph.input]}


class Targets:
    """Replaces targets of Reshape by what follows the batch and, of maps, the sides."""

    def __init__(self, model, sides):
        self.graph, self.sides, self.before = model.graph, sides, {}
        self.shapes = extents(model) if sides else {}
        self.arrays = with_sequence.constants(self.graph)
        self.given = depending_on_inputs(self.graph)

    def constant(self, array, name):
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array, np.int64), name))
        return name

    def piece(self, value, first, end, name):
        """Nodes for extents first <= d < end of a value."""
        ends = [self.constant([first], f"{name}/first"), self.constant([end], f"{name}/end")]
        return [helper.make_node("Shape", [value], [f"{name}/shape"], name=f"{name}/shape"),
                helper.make_node("Slice", [f"{name}/shape", *ends], [name], name=name)]

    def replace(self, node, source, index):
        """The nodes that compute the target of a Reshape; none if it stays."""
        target = list(self.arrays[node.input[1]][0]) if node.input[1] in self.arrays else []
        if len(target) < 2 or target[0] != 1 or node.input[0] not in self.given:
            return []
        name = f"open/target{index}"
        made, parts, rest = self.piece(source, 0, 1, f"{name}/batch"), [f"{name}/batch"], target[1:]
        before = self.shapes.get(node.input[0], [])
        is_map = self.sides and len(before) == 4 and len(rest) >= 3 and rest[-2:] == before[2:]
        if is_map:
            made += self.piece(node.input[0], 2, 4, f"{name}/sides")
            rest = rest[:-2]
        parts.append(self.constant(rest, f"{name}/rest"))
        if is_map:
            parts.append(f"{name}/sides")
        made.append(helper.make_node("Concat", parts, [name], name=name, axis=0))
        node.input[1] = name
        return made

    def run(self):
        source = next(value.name for value in self.graph.input if value.name in self.given)
        made = {index: self.replace(node, source, index) for index, node in enumerate(self.graph.node) if node.op_type == "Reshape"}
        for index in sorted(made, reverse=True):
            for node in reversed(made[index]):
                self.graph.node.insert(index, node)


def is_text(graph):
    return any(value.type.tensor_type.elem_type == TensorProto.INT64 for value in graph.input)


def open_dimensions(model, sides=False):
    """Changes the model; raises ValueError where that is not possible."""
    graph = model.graph
    if is_text(graph):
        Opener(model, "seq").run()
    Targets(model, sides).run()
    constants = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in constants:
            continue
        dims[0].dim_param = "batch"
        if sides and len(dims) == 4:
            dims[2].dim_param, dims[3].dim_param = "height", "width"
    del graph.value_info[:]
    for value in graph.output:  # their extents follow
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--sides", action="store_true")
    options = parser.parse_args()
    with_sequence.change_file("open_dimensions.py", options.model, lambda model: open_dimensions(model, options.sides), options.out)


if __name__ == "__main__":
    main()
