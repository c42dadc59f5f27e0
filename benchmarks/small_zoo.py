"""Models with random weights that run in 1 to 50 us on one core: MODELS has functions that return a model; inputs() makes its inputs."""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import trees

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))
import decoder  # noqa: E402


class Net:
    """A model that grows node by node; values are names."""

    def __init__(self, opset=17):
        self.opset, self.nodes, self.inputs, self.constants = opset, [], [], []
        self.rng = np.random.default_rng(0)

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"constant_{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, *shape, fan):
        return self.constant((self.rng.standard_normal(shape) * fan**-0.5).astype(np.float32))

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"{op.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    def dense(self, x, inputs, outputs, activation=None):
        x = self.node("Gemm", x, self.weight(outputs, inputs, fan=inputs), self.weight(outputs, fan=inputs), transB=1)
        return self.node(activation, x) if activation else x

    def layers(self, x, sizes, activation="Relu"):
        """Dense layers; the last one has no activation."""
        for i, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
            x = self.dense(x, inputs, outputs, activation if i + 2 < len(sizes) else None)
        return x

    def conv(self, x, inputs, outputs, kernel, group=1, **attributes):
        fan = inputs // group * int(np.prod(kernel))
        weight = self.weight(outputs, inputs // group, *kernel, fan=fan)
        return self.node("Relu", self.node("Conv", x, weight, self.weight(outputs, fan=fan), group=group, **attributes))

    def norm(self, x, channels):
        """A batch normalisation with statistics."""
        positive = [self.constant(self.rng.uniform(0.5, 1.5, channels).astype(np.float32)) for _ in range(2)]
        shifts = [self.weight(channels, fan=channels) for _ in range(2)]
        return self.node("BatchNormalization", x, positive[0], shifts[0], shifts[1], positive[1])

    def model(self, name, *outputs):
        values = [helper.make_empty_tensor_value_info(value) for value in outputs]
        graph = helper.make_graph(self.nodes, name, self.inputs, values, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made, strict_mode=True)


def nothing():
    """What a call costs: one sum of 16 numbers."""
    net = Net()
    return net.model("nothing", net.node("Add", net.input("x", [16]), net.input("y", [16])))


def classifier():
    """A perceptron for tables of numbers."""
    net = Net()
    return net.model("classifier", net.node("Softmax", net.layers(net.input("x", [1, 64]), [64, 128, 64, 10])))


def digits():
    """A perceptron for 28x28 images."""
    net = Net()
    x = net.node("Flatten", net.input("x", [1, 1, 28, 28]))
    return net.model("digits", net.node("Softmax", net.layers(x, [784, 256, 128, 10])))


def lenet():
    net = Net()
    x = net.input("x", [1, 1, 28, 28])
    for inputs, outputs, pads in ((1, 6, [2] * 4), (6, 16, [0] * 4)):
        x = net.conv(x, inputs, outputs, (5, 5), pads=pads)
        x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    return net.model("lenet", net.layers(net.node("Flatten", x), [400, 120, 84, 10]))


def keywords():
    """The depthwise separable net of MLPerf Tiny for spoken words, on 49x10 coefficients."""
    net = Net()
    x = net.conv(net.input("x", [1, 1, 49, 10]), 1, 64, (10, 4), strides=[2, 2], pads=[4, 1, 5, 1])
    for _ in range(4):
        x = net.conv(x, 64, 64, (3, 3), group=64, pads=[1] * 4)
        x = net.conv(x, 64, 64, (1, 1))
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model("keywords", net.node("Softmax", net.dense(x, 64, 12)))


def recurrent_step(op, gates, layers, inputs, hidden):
    """One time step of several layers, with their states in and out, and a dense layer behind."""
    net, outputs = Net(), []
    x, width = net.input("x", [1, 1, inputs]), inputs
    for i in range(layers):
        shapes = ((1, gates * hidden, width), (1, gates * hidden, hidden), (1, 2 * gates * hidden))
        weights = [net.weight(*shape, fan=hidden) for shape in shapes]
        states = [net.input(f"{name}{i}", [1, 1, hidden]) for name in ("h", "c")[:2 if op == "LSTM" else 1]]
        more = {} if op == "LSTM" else {"linear_before_reset": 1}
        y, *after = net.node(op, x, *weights, "", *states, outputs=1 + len(states), hidden_size=hidden, **more)
        outputs += after
        x, width = net.node("Squeeze", y, net.constant(np.array([1], np.int64))), hidden
    x = net.node("Reshape", x, net.constant(np.array([1, hidden], np.int64)))
    return net.model(op.lower(), net.dense(x, hidden, 32), *outputs)


def anomalies():
    """The autoencoder of MLPerf Tiny for the sound of machines."""
    net = Net()
    x, sizes = net.input("x", [1, 640]), [640, 128, 128, 128, 128, 8, 128, 128, 128, 128]
    for inputs, outputs in zip(sizes, sizes[1:]):
        product = net.node("MatMul", x, net.weight(inputs, outputs, fan=inputs))
        x = net.node("Relu", net.norm(net.node("Add", product, net.weight(outputs, fan=inputs)), outputs))
    return net.model("anomalies", net.dense(x, 128, 640))


def policy():
    """A duelling Q-network for a state of few numbers: values, and the best action."""
    net = Net()
    x = net.layers(net.input("state", [1, 8]), [8, 256, 256])
    x = net.node("Relu", x)
    value, advantage = net.layers(x, [256, 128, 1]), net.layers(x, [256, 128, 4])
    mean = net.node("ReduceMean", advantage, axes=[1], keepdims=1)
    values = net.node("Add", value, net.node("Sub", advantage, mean))
    return net.model("policy", values, net.node("ArgMax", values, axis=1, keepdims=0))


def recommender():
    """Two towers: embeddings of a user and of 16 items, with numbers beside; the scores of the items."""
    net, sides = Net(), []
    for name, rows, count, numbers in (("user", 1, 20000, 8), ("item", 16, 5000, 12)):
        ids = net.input(f"{name}_id", [rows], TensorProto.INT64)
        embedding = net.node("Gather", net.weight(count, 32, fan=32), ids)
        x = net.node("Concat", embedding, net.input(f"{name}_numbers", [rows, numbers]), axis=1)
        x = net.layers(x, [32 + numbers, 64, 32])
        sides.append(net.node("Div", x, net.node("ReduceL2", x, axes=[1], keepdims=1)))
    product = net.node("MatMul", sides[0], net.node("Transpose", sides[1], perm=[1, 0]))
    return net.model("recommender", net.node("Sigmoid", net.node("Mul", product, net.constant(np.float32(4)))))


def activity():
    """Convolutions in time over 128 samples of nine sensors."""
    net = Net()
    x = net.input("x", [1, 9, 128])
    x = net.conv(net.conv(x, 9, 32, (3,)), 32, 32, (3,))
    x = net.node("Flatten", net.node("MaxPool", x, kernel_shape=[2], strides=[2]))
    return net.model("activity", net.node("Softmax", net.layers(x, [32 * 62, 64, 6])))


def boosting():
    """100 trees of 31 leaves."""
    import argparse

    return trees.Ensemble(argparse.Namespace(trees=100, leaves=31, depth=0, features=32, targets=1)).model(1)


MODELS = {
    "nothing": nothing, "classifier": classifier, "digits": digits, "lenet": lenet, "keywords": keywords,
    "lstm_step": lambda: recurrent_step("LSTM", 4, 2, 64, 128), "gru_step": lambda: recurrent_step("GRU", 3, 1, 40, 96),
    "decoder_step": lambda: decoder.decoder(width=128, heads=4, shared=1, tokens=1, past=63, vocabulary=1000),
    "boosting": boosting, "anomalies": anomalies, "policy": policy, "recommender": recommender, "activity": activity}


def inputs(model):
    """{name: array}"""
    rng, made = np.random.default_rng(1), {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value for dim in tensor.shape.dim]
        made[value.name] = (rng.integers(0, 100, shape) if tensor.elem_type == TensorProto.INT64
                            else rng.standard_normal(shape).astype(np.float32))
    return made
