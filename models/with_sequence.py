#!/usr/bin/env python3
"""The same text model for another number of tokens.

    with_sequence.py MODEL.onnx TOKENS OUT.onnx

MODEL.onnx is a text model of this folder with its weights (fill_weights.py); it was exported for a fixed number of
tokens, which stands not only in its inputs but in constants: targets of Reshape, positions to look up, causal masks.
All of them are changed, everything else stays. What is no such model, or has too few positions, is refused.
"""
import sys

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper


def constants(graph):
    """Name -> (array, function that replaces it)."""
    found = {}
    for tensor in graph.initializer:
        found[tensor.name] = (numpy_helper.to_array(tensor), lambda array, t=tensor: t.CopyFrom(numpy_helper.from_array(array, t.name)))
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            value = node.attribute[0].t
            found[node.output[0]] = (numpy_helper.to_array(value), lambda array, t=value: t.CopyFrom(numpy_helper.from_array(array, t.name)))
    return found


def resized(use, of_input, array, old, new):
    """What the constant, used so (operator, place; of an input of the model), becomes; None: it stays."""
    # [batch, tokens, ...], and [-1, tokens] of the inputs; elsewhere a width may be as many.
    tokens_second = use == ("Reshape", 1) and array.ndim == 1 and array.size > 1 and array[1] == old
    if tokens_second and (array.size > 2 or of_input):
        return np.concatenate([array[:1], [new], array[2:]]).astype(array.dtype)
    if use == ("Gather", 1) and np.array_equal(array.reshape(-1), np.arange(old)):
        return np.arange(new, dtype=array.dtype).reshape(*array.shape[:-1], new)
    square = np.tril(np.ones((old, old), dtype=bool))
    if array.ndim >= 2 and array.shape[-2:] == (old, old) and np.array_equal(array.reshape(-1, old, old)[0].astype(bool), square):
        mask = np.tril(np.ones((new, new), dtype=bool))
        return np.broadcast_to(mask, (*array.shape[:-2], new, new)).astype(array.dtype)
    return None


def check_positions(graph, node, shape, tokens):
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
    if tokens > shape[axis]:
        raise ValueError(f"{graph.name} knows {shape[axis]} positions ({node.input[0]}), fewer than {tokens} tokens")


def tokens_of(graph):
    """The number of tokens that a text model was exported for; ValueError if it is none."""
    sizes = {dim.dim_value for value in graph.input if value.type.tensor_type.elem_type == onnx.TensorProto.INT64
             for dim in value.type.tensor_type.shape.dim[1:2]}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"{graph.name} has no inputs of a fixed number of tokens")
    return sizes.pop()


def with_sequence(model, tokens):
    """Changes the model; raises ValueError where that is not possible."""
    graph = model.graph
    old = tokens_of(graph)
    arrays = constants(graph)
    inputs = {value.name for value in graph.input}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name not in arrays:
                continue
            array, replace = arrays[name]
            changed = resized((node.op_type, place), node.input[0] in inputs, array, old, tokens)
            if changed is not None:
                replace(changed)
            elif array.ndim > 2 and array.shape[-2:] == (old, old):
                raise ValueError(f"{graph.name} has a constant for {old} tokens that is no causal mask: {name}")
            if changed is not None and node.op_type == "Gather" and node.input[0] in arrays:
                check_positions(graph, node, arrays[node.input[0]][0].shape, tokens)
    for value in [*graph.input, *graph.output]:
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            if place == 1 and dim.dim_value == old:
                dim.dim_value = tokens
    del graph.value_info[:]
    return model


def change_file(script, path, change, out):
    """Writes what `change` makes of a model's file, if it is valid; ends the program with an error that names the file, if not."""
    try:
        model = change(onnx.load(path))
        onnx.checker.check_model(onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True))
    except (OSError, ValueError, DecodeError, onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        sys.exit(f"{script}: {path}: {error}")
    onnx.save(model, out)


def main():
    if len(sys.argv) != 4 or not sys.argv[2].isdigit() or int(sys.argv[2]) < 1:
        sys.exit("usage: with_sequence.py MODEL.onnx TOKENS OUT.onnx")
    change_file("with_sequence.py", sys.argv[1], lambda model: with_sequence(model, int(sys.argv[2])), sys.argv[3])


if __name__ == "__main__":
    main()
