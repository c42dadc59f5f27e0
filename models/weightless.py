"""Building an ONNX graph without its large weights: they are inputs, and the metadata say how fill_weights.py makes them."""
import json
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import fill_weights

OPSET = 17
STORED = 1024  # tensors of fewer elements are stored in the graph


class Graph:
    """A graph that grows node by node; values are names."""

    def __init__(self, name):
        self.name = name
        self.nodes, self.inputs, self.outputs, self.constants, self.table = [], [], [], {}, {}

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, name, shape):
        self.node("Identity", [value], name=name)
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def node(self, op, inputs, name=None, **attributes):
        """The value of a new node; named after the place where it stands, or `name`."""
        name = name or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, array, name=None):
        name = name or f"constant_{len(self.constants)}"
        self.constants.setdefault(name, numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, name, shape, std, mean=0.0):
        """A tensor of normal numbers, in the graph if it is small."""
        entry = {"dist": "normal", "dtype": "float32", "shape": list(shape), "mean": mean, "std": float(f"{std:.6g}")}
        if math.prod(shape) < STORED:
            return self.constant(fill_weights.weight(entry, name), name)
        self.table[name] = entry
        return name

    def literal(self, name, array):
        """A large constant that is not random."""
        import base64
        import zlib

        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()
        self.table[name] = {"dist": "literal", "dtype": array.dtype.name, "shape": list(array.shape), "data": packed}
        return name

    def model(self):
        weights = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(entry["dtype"])), entry["shape"])
                   for name, entry in self.table.items()]
        graph = helper.make_graph(self.nodes, self.name, self.inputs + weights, self.outputs, list(self.constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="make_graphs.py")
        helper.set_model_props(model, {"weights": json.dumps(self.table, sort_keys=True)})
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, check_type=True) and model


def weights_of(model):
    return fill_weights.weights_table(model)


def parameters(model):
    """Number of floating-point constants."""
    stored = sum(math.prod(tensor.dims) for tensor in model.graph.initializer if tensor.data_type == TensorProto.FLOAT)
    return stored + sum(math.prod(entry["shape"]) for entry in weights_of(model).values() if entry["dtype"] == "float32")


def flops(model):
    """Of convolutions and matrix products, a multiply and an add counted separately."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in [*graph.value_info, *graph.input, *graph.output]}
    shapes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    total = 0
    for node in graph.node:
        if node.op_type == "Conv":
            total += 2 * math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:])
        elif node.op_type in ("MatMul", "Gemm"):
            transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            total += 2 * math.prod(shapes[node.output[0]]) * shapes[node.input[1]][-1 if transposed else -2]
    return total
