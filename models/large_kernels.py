#!/usr/bin/env python3
"""Kernels whose schedules have what those of the networks here seldom have: blocks, panels, keys in tiles.

    large_kernels.py FOLDER

writes one ONNX file each: products of two computed matrices (product_*) and of a computed one with weights (linear_*),
whose sums or operands do not fit into a core's cache, and attentions (attention_*), also with numbers of tokens that no
tile divides and of fewer queries than keys. A data set for cost models has use for them (docs/user/dataset.md).
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# (rows, terms, columns), and which operand is transposed.
PRODUCTS = (
    (256, 256, 256, ""), (512, 512, 512, ""), (768, 768, 768, ""), (1024, 1024, 1024, ""), (1536, 1536, 1536, ""),
    (1024, 512, 1024, "a"), (512, 1024, 1024, "b"), (196, 4096, 512, ""), (97, 2000, 1031, ""), (64, 3072, 3072, "b"),
)
LINEAR = ((128, 3072, 768), (128, 4096, 2048), (196, 4096, 512), (196, 16384, 512), (64, 2048, 4096), (49, 8192, 1000))
# (queries, keys, heads, channels of a head).
ATTENTIONS = (
    (256, 256, 12, 64), (512, 512, 12, 64), (509, 509, 12, 64), (1024, 1024, 12, 64), (1021, 1021, 12, 64), (2053, 2053, 4, 64),
    (77, 1500, 8, 64), (1500, 77, 8, 40), (1, 2049, 12, 64), (300, 300, 8, 32),
)


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def write(folder, name, nodes, inputs, output, constants=()):
    tensors = [numpy_helper.from_array(np.asarray(array), key) for key, array in constants]
    graph = helper.make_graph(nodes, name, inputs, [value("out", output)], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / f"{name}.onnx")


def product(folder, rows, terms, columns, transposed):
    nodes, operands = [], {"a": ("x", [rows, terms]), "b": ("y", [terms, columns])}
    for side, (name, shape) in operands.items():
        if side == transposed:
            operands[side] = (name + "t", shape[::-1])
            nodes.append(helper.make_node("Transpose", [name + "t"], [name], perm=[1, 0]))
    nodes.append(helper.make_node("MatMul", ["x", "y"], ["out"]))
    name = f"product_{rows}x{terms}x{columns}" + (f"_{transposed}" if transposed else "")
    write(folder, name, nodes, [value(*operand) for operand in operands.values()], [rows, columns])


def linear(folder, rows, terms, columns):
    weights = np.random.default_rng(1).random((terms, columns), dtype=np.float32) - 0.5
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["out"])]
    write(folder, f"linear_{rows}x{terms}x{columns}", nodes, [value("x", [rows, terms])], [rows, columns], [("w", weights)])


def attention(folder, queries, keys, heads, size):
    tokens = {"q": queries, "k": keys, "v": keys}
    nodes = []
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes.append(helper.make_node("Reshape", [name, "heads"], [name + "h"]))
        nodes.append(helper.make_node("Transpose", [name + "h"], [name + "t"], perm=order))
    for operator, inputs, output, attributes in (
        ("MatMul", ["qt", "kt"], "products", {}), ("Mul", ["products", "scale"], "scores", {}), ("Softmax", ["scores"], "shares", {"axis": -1}),
        ("MatMul", ["shares", "vt"], "mixed", {}), ("Transpose", ["mixed"], "joined", {"perm": [0, 2, 1, 3]}), ("Reshape", ["joined", "flat"], "out", {}),
    ):
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
    constants = [("heads", np.array([0, 0, heads, size])), ("flat", np.array([0, 0, heads * size])), ("scale", np.float32(size**-0.5))]
    inputs = [value(name, [1, count, heads * size]) for name, count in tokens.items()]
    write(folder, f"attention_{queries}x{keys}x{heads}x{size}", nodes, inputs, [1, queries, heads * size], constants)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kernels, make in ((PRODUCTS, product), (LINEAR, linear), (ATTENTIONS, attention)):
        for kernel in kernels:
            make(folder, *kernel)


if __name__ == "__main__":
    main()
