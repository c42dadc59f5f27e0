#!/usr/bin/env python3
"""Write a model in half precision: in_half.py MODEL.onnx float16|bfloat16 OUT.onnx

Needs only numpy and onnx. All float32 tensors become ones of the type: inputs, weights, constants,
results and what Cast makes. Numbers beyond the type's range become its largest ones, because a mask
that hides a position by the lowest float32 would otherwise make infinities and from them NaN.

As a module: in_half(model, name) -> model; bits_of(array, name) -> its numbers as 16 bits;
rounded(array, name) -> the same numbers as float32.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895314e38}


def bits_of(values, name):
    """The numbers rounded to the nearest of the type, as 16 bits."""
    values = np.clip(values, -LARGEST[name], LARGEST[name])
    if name == "float16":
        return values.astype(np.float16).view(np.uint16)
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def rounded(values, name):
    bits = bits_of(values, name)
    if name == "float16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def convert_tensor(tensor, name):
    if tensor.data_type != TensorProto.FLOAT:
        return
    values = np.ascontiguousarray(numpy_helper.to_array(tensor))
    made = helper.make_tensor(tensor.name, TYPES[name], values.shape,
                              bits_of(values, name).tobytes(), raw=True)
    tensor.CopyFrom(made)


def convert_type(info, name):
    kind = info.type.tensor_type
    if kind.elem_type == TensorProto.FLOAT:
        kind.elem_type = TYPES[name]


def in_half(model, name):
    graph = model.graph
    for tensor in graph.initializer:
        convert_tensor(tensor, name)
    for info in [*graph.input, *graph.output, *graph.value_info]:
        convert_type(info, name)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                convert_tensor(attribute.t, name)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TYPES[name]
    return model


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in TYPES:
        sys.exit(__doc__)
    onnx.save(in_half(onnx.load(sys.argv[1]), sys.argv[2]), sys.argv[3])


if __name__ == "__main__":
    main()
