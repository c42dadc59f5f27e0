#!/usr/bin/env python3
"""The same text model for any number of tokens.

    open_sequence.py MODEL.onnx NAME OUT.onnx

As with_sequence.py, but the number of tokens becomes a dimension NAME that stays open, as exporters write it: targets
of Reshape follow it, positions come from Shape and Range, causal masks are cut from the largest one.
"""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import with_sequence


class Opener:
    """Replaces what has the number of tokens in it by nodes that follow the first input's second dimension."""

    def __init__(self, model, name):
        self.graph, self.name, self.nodes = model.graph, name, []
        self.old = with_sequence.tokens_of(self.graph)
        self.inputs = {value.name for value in self.graph.input}
        self.arrays = with_sequence.constants(self.graph)
        self.most = self.positions()

    def positions(self):
        """The number of rows of the table that positions look up."""
        most = [self.arrays[node.input[0]][0].shape[0] for node in self.graph.node
                if node.op_type == "Gather" and node.input[1] in self.arrays and node.input[0] in self.arrays
                and np.array_equal(self.arrays[node.input[1]][0].reshape(-1), np.arange(self.old))]
        return min(most, default=self.old)

    def constant(self, array, name):
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array), f"{self.name}/{name}"))
        return f"{self.name}/{name}"

    def add(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [f"{self.name}/{output}"], name=f"{self.name}/{output}", **attributes))
        return f"{self.name}/{output}"

    def tokens(self, rank):
        """The number of tokens, as a number or a list with it."""
        if not self.nodes:
            first = next(v.name for v in self.graph.input if v.type.tensor_type.elem_type == TensorProto.INT64)
            shape = self.add("Shape", [first], "shape")
            self.add("Gather", [shape, self.constant(np.int64(1), "one")], "scalar")
            self.add("Unsqueeze", [f"{self.name}/scalar", self.constant(np.array([0]), "first")], "list")
        return f"{self.name}/{'list' if rank else 'scalar'}"

    def replacement(self, node, place, index):
        """The name of what such an input becomes; None: it stays."""
        array, _ = self.arrays[node.input[place]]
        changed = with_sequence.resized((node.op_type, place), node.input[0] in self.inputs, array, self.old, self.old + 1)
        if changed is None:
            return None
        if node.op_type == "Reshape":
            target = [0 if extent == -1 else extent for extent in array]
            target[1] = -1
            return self.constant(np.array(target, np.int64), f"target{index}")
        if node.op_type == "Gather":
            zero = self.constant(np.int64(0), f"start{index}")
            places = self.add("Range", [zero, self.tokens(0), self.constant(np.int64(1), f"step{index}")], f"places{index}")
            axes = self.constant(np.arange(array.ndim - 1), f"axes{index}")
            return self.add("Unsqueeze", [places, axes], f"positions{index}") if array.ndim > 1 else places
        mask = with_sequence.resized((node.op_type, place), False, array, self.old, self.most)
        both = self.add("Concat", [self.tokens(1)] * 2, f"both{index}", axis=0)
        return self.add("Slice", [self.constant(mask, f"mask{index}"), self.constant(np.array([0, 0]), f"starts{index}"), both,
                                  self.constant(np.array([-2, -1]), f"mask_axes{index}")], f"seen{index}")

    def drop_unused(self):
        used = {name for node in self.graph.node for name in node.input}
        unused = {tensor.name for tensor in self.graph.initializer} - used
        for values in (self.graph.initializer, self.graph.input):  # old files list constants among the inputs, too
            kept = [one for one in values if one.name not in unused]
            del values[:]
            values.extend(kept)

    def run(self):
        index = 0
        for node in self.graph.node:
            for place, name in enumerate(node.input):
                made = self.replacement(node, place, index) if name in self.arrays else None
                if made is not None:
                    node.input[place] = made
                    index += 1
        for node in reversed(self.nodes):
            self.graph.node.insert(0, node)
        self.drop_unused()
        for value in [*self.graph.input, *self.graph.output]:
            for place, dim in enumerate(value.type.tensor_type.shape.dim):
                if place == 1 and dim.dim_value == self.old:
                    dim.dim_param = self.name
        del self.graph.value_info[:]


def open_sequence(model, name):
    """Changes the model; raises ValueError where that is not possible."""
    Opener(model, name).run()
    return model


def main():
    if len(sys.argv) != 4 or not sys.argv[2].isidentifier():
        sys.exit("usage: open_sequence.py MODEL.onnx NAME OUT.onnx")
    with_sequence.change_file("open_sequence.py", sys.argv[1], lambda model: open_sequence(model, sys.argv[2]), sys.argv[3])


if __name__ == "__main__":
    main()
