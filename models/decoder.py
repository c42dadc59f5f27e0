#!/usr/bin/env python3
"""Write a small decoder in the style of Llama with random weights:

    decoder.py OUT.onnx [--layers 2] [--width 512] [--heads 8] [--shared 4] [--tokens 1] [--past 127] [--vocabulary 8000]

It has what PyTorch's exporter writes for such models: RMSNorm in parts, rotary positions, heads of keys and values that `--shared`
queries share, a causal mask, gated inner layers and a head. Keys and values of the past go in, those with the new tokens come out.
Needs only numpy and onnx. As a module: decoder(...) -> model; inputs(model) -> {name: array}.
"""
import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN = -1e4  # what is added to the score of a token that comes later


class Writer:
    """A graph that grows node by node; values are names."""

    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.constants = [], [], [], {}
        self.rng = np.random.default_rng(0)

    def node(self, op, inputs, outputs=1, **attributes):
        names = [f"{op.lower()}_{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, name, array):
        self.constants[name] = numpy_helper.from_array(np.asarray(array), name)
        return name

    def weight(self, name, *shape):
        scale = shape[0] ** -0.5 if len(shape) > 1 else 0.1
        shift = 0 if len(shape) > 1 else 1
        return self.constant(name, (self.rng.standard_normal(shape) * scale + shift).astype(np.float32))

    def shape(self, *dims):
        return self.constant(f"shape_{'_'.join(map(str, dims))}", np.array(dims, np.int64))

    def scalar(self, value):
        return self.constant(f"scalar_{value:g}", np.float32(value))

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, name, shape):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))


def norm(w, x, name, width):
    square = w.node("Pow", [x, w.scalar(2)])
    mean = w.node("ReduceMean", [square], axes=[-1], keepdims=1)
    root = w.node("Sqrt", [w.node("Add", [mean, w.scalar(1e-5)])])
    return w.node("Mul", [w.node("Div", [x, root]), w.weight(name, width)])


def rotated(w, x, size, sides):
    """Rotary positions: x cos + (-x2, x1) sin."""
    first, second = w.node("Split", [x, w.shape(size // 2, size // 2)], 2, axis=3)
    turned = w.node("Concat", [w.node("Neg", [second]), first], axis=3)
    return w.node("Add", [w.node("Mul", [x, sides[0]]), w.node("Mul", [turned, sides[1]])])


def attention(w, x, layer, sizes, sides, mask):
    width, heads, shared, tokens, past = sizes
    size, groups = width // heads, heads // shared
    parts = []
    for part, count in (("query", heads), ("key", groups), ("value", groups)):
        product = w.node("MatMul", [x, w.weight(f"{layer}.{part}", width, count * size)])
        parts.append(w.node("Transpose", [w.node("Reshape", [product, w.shape(1, tokens, count, size)])], perm=[0, 2, 1, 3]))
    query, key, value = rotated(w, parts[0], size, sides), rotated(w, parts[1], size, sides), parts[2]
    kept = []
    for part, new in (("key", key), ("value", value)):
        if past:
            new = w.node("Concat", [w.input(f"past.{layer}.{part}", [1, groups, past, size]), new], axis=2)
        w.output(new, f"present.{layer}.{part}", [1, groups, past + tokens, size])
        repeated = w.node("Expand", [w.node("Unsqueeze", [new, w.shape(2)]), w.shape(1, groups, shared, past + tokens, size)])
        kept.append(w.node("Reshape", [repeated, w.shape(1, heads, past + tokens, size)]))
    scores = w.node("MatMul", [query, w.node("Transpose", [kept[0]], perm=[0, 1, 3, 2])])
    scores = w.node("Add", [w.node("Mul", [scores, w.scalar(size ** -0.5)]), mask])
    mixed = w.node("MatMul", [w.node("Softmax", [scores], axis=-1), kept[1]])
    joined = w.node("Reshape", [w.node("Transpose", [mixed], perm=[0, 2, 1, 3]), w.shape(1, tokens, width)])
    return w.node("MatMul", [joined, w.weight(f"{layer}.out", width, width)])


def decoder(layers=2, width=512, heads=8, shared=4, tokens=1, past=127, vocabulary=8000):
    w, size, inner = Writer(), width // heads, 3 * width
    x = w.node("Gather", [w.weight("embeddings", vocabulary, width), w.input("input_ids", [1, tokens], TensorProto.INT64)])
    angles = np.arange(past, past + tokens)[:, None] / 10000 ** (np.arange(0, size, 2) / size)[None]
    angles = np.concatenate([angles, angles], axis=1).astype(np.float32)
    sides = [w.constant("cos", np.cos(angles)), w.constant("sin", np.sin(angles))]
    later = np.arange(past + tokens)[None] > np.arange(past, past + tokens)[:, None]
    mask = w.constant("mask", np.where(later, HIDDEN, 0).astype(np.float32))
    for i in range(layers):
        layer = f"layer.{i}"
        mixed = attention(w, norm(w, x, f"{layer}.norm_1", width), layer, (width, heads, shared, tokens, past), sides, mask)
        x = w.node("Add", [x, mixed])
        y = norm(w, x, f"{layer}.norm_2", width)
        gate = w.node("MatMul", [y, w.weight(f"{layer}.gate", width, inner)])
        gated = w.node("Mul", [gate, w.node("Sigmoid", [gate])])
        product = w.node("Mul", [gated, w.node("MatMul", [y, w.weight(f"{layer}.up", width, inner)])])
        x = w.node("Add", [x, w.node("MatMul", [product, w.weight(f"{layer}.down", inner, width)])])
    logits = w.node("MatMul", [norm(w, x, "norm", width), w.weight("head", width, vocabulary)])
    w.output(logits, "logits", [1, tokens, vocabulary])
    graph = helper.make_graph(w.nodes, "decoder", w.inputs, w.outputs, list(w.constants.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def inputs(model):
    rng, made = np.random.default_rng(1), {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        whole = value.type.tensor_type.elem_type == TensorProto.INT64
        made[value.name] = rng.integers(0, 100, shape) if whole else rng.standard_normal(shape).astype(np.float32)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    for name, default in (("layers", 2), ("width", 512), ("heads", 8), ("shared", 4), ("tokens", 1), ("past", 127), ("vocabulary", 8000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = vars(parser.parse_args())
    onnx.save(decoder(**{name: value for name, value in options.items() if name != "out"}), options["out"])


if __name__ == "__main__":
    main()
