#!/usr/bin/env python3
"""Writes small.onnx, the model of the examples: two convolutions and a classifier with fixed random weights."""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(7)
weights = {
    "w1": rng.standard_normal((16, 1, 3, 3)) / 3, "b1": rng.standard_normal(16) / 8,
    "w2": rng.standard_normal((32, 16, 3, 3)) / 9, "b2": rng.standard_normal(32) / 8,
    "w3": rng.standard_normal((10, 32)) / 3, "b3": rng.standard_normal(10)}
nodes = [
    helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], name="edges", pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
    helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name="shapes", pads=[1, 1, 1, 1], strides=[2, 2]),
    helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
    helper.make_node("GlobalAveragePool", ["r2"], ["pooled"], name="pool"),
    helper.make_node("Flatten", ["pooled"], ["flat"], name="flat"),
    helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], name="classes", transB=1),
    helper.make_node("Softmax", ["logits"], ["scores"], name="scores")]
graph = helper.make_graph(
    nodes, "small", [helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 1, 32, 32))],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, (1, 10))],
    [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 8
onnx.checker.check_model(model)
onnx.save_model(model, Path(__file__).parent / "small.onnx")
