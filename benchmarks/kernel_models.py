"""A row of the kernels table as an ONNX model, and as a program for the library of rivals (rivals/rivals.h).

Both hold `copies` of the operator with weights of their own: one after another where the output can be the next input (a chain), else
side by side with inputs of their own. So the call is paid for once, and every copy reads weights that the one before did not.
"""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IR_VERSION = 9
OPSET = 20
FAST_FLOPS, FAST_BYTES = 1e11, 2e10  # of one core, roughly: they say how many copies fill a millisecond
CHAIN_SECONDS, BESIDE_SECONDS = 1.5e-3, 0.3e-3
MOST_WEIGHT_BYTES = 128 << 20
COLLAPSING = ("operator", "add", "silu", "gelu", "transpose", "pool", "bmm")  # a chain of them is less work, or has other shapes
CONV_FORMATS = ("any", "nhwc", "plain", "blocked")
LAST = ".last"  # behind the names of inputs and outputs with their channels last
DNNL_ACTIVATIONS = {"relu": {"kind": "relu"}, "clip": {"kind": "clip", "alpha": 0, "beta": 6}, "silu": {"kind": "silu", "alpha": 1}}


class Numbers:
    """Random values, made once: a slice of a pool for each tensor."""

    def __init__(self, count=1 << 22):
        self.pool = np.random.default_rng(7).standard_normal(count, dtype=np.float32)
        self.next = 0

    def array(self, shape, scale=1.0):
        count = math.prod(shape)
        self.next = (self.next + 4093) % (len(self.pool) // 2)
        return (np.resize(self.pool[self.next:], count) * np.float32(scale)).reshape(shape)


def chains(row):
    p = row.parameters
    if row.kind in COLLAPSING:
        return False
    if row.kind == "block":
        return p["parts"][0]["src"] == p["parts"][-1]["dst"]
    if row.kind == "gemm":
        return p["k"] == p["n"]
    return "src" not in p or p["src"] == p["dst"]


def copies_of(row):
    """How many copies make a model long enough to be timed, within reason."""
    each = max(row.flops / FAST_FLOPS, (row.activation_bytes + row.weight_bytes) / FAST_BYTES, 1e-7)
    wanted = math.ceil((CHAIN_SECONDS if chains(row) else BESIDE_SECONDS) / each)
    wanted = min(max(wanted, 4), 24) if chains(row) else min(max(wanted, 1), 16)
    return max(1, min(wanted, MOST_WEIGHT_BYTES // max(row.weight_bytes, 1)))


class Model:
    """The row's model: onnx, inputs {name: array}, and the tensors and operators of the rivals' program."""

    def __init__(self, row, copies):
        self.row, self.copies, self.chained = row, copies, chains(row)
        self.numbers = Numbers()
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], {}, {}
        self.tensors, self.arrays, self.ops = [], [], []
        self.variants = [{}]  # of the program's JSON: what to try, of which the fastest counts
        current = None
        for i in range(copies):
            if current is None or not self.chained:
                current = None
            current = getattr(self, row.kind)(row.parameters, current, f"_{i}")
            if not self.chained:
                self.outputs[current[0]] = current[1]
        self.outputs[current[0]] = current[1]

    def onnx(self):
        return self.with_ends(self.nodes, self.inputs, self.outputs)

    def channels_last(self):
        """The same model with the channels last in its inputs and outputs, and these inputs."""
        inputs = {name + LAST: np.ascontiguousarray(np.moveaxis(array, 1, -1)) for name, array in self.inputs.items()}
        outputs = {name + LAST: [shape[0], *shape[2:], shape[1]] for name, shape in self.outputs.items()}
        rank = {name: array.ndim for name, array in self.inputs.items()} | {name: len(shape) for name, shape in self.outputs.items()}
        before = [helper.make_node("Transpose", [name + LAST], [name], perm=[0, rank[name] - 1, *range(1, rank[name] - 1)]) for name in self.inputs]
        behind = [helper.make_node("Transpose", [name], [name + LAST], perm=[0, *range(2, rank[name]), 1]) for name in self.outputs]
        return self.with_ends([*before, *self.nodes, *behind], inputs, outputs), inputs

    def with_ends(self, nodes, inputs, outputs):
        graph = helper.make_graph(
            nodes, "kernel", [helper.make_tensor_value_info(name, TensorProto.FLOAT, a.shape) for name, a in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = IR_VERSION
        return model

    # Parts of models

    def node(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def tensor(self, name, array, constant):
        array = np.ascontiguousarray(array, dtype=np.float32)
        self.tensors.append({"name": name, "dims": list(array.shape), "constant": constant})
        self.arrays.append(array)
        return name

    def input(self, name, shape, scale=1.0):
        self.inputs[name] = self.numbers.array(shape, scale)
        return self.tensor(name, self.inputs[name], False)

    def constant(self, name, shape, scale=1.0, offset=0.0):
        array = self.numbers.array(shape, scale) + np.float32(offset)
        self.initializers.append(numpy_helper.from_array(array, name))
        return self.tensor(name, array, True)

    def onnx_constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def activate(self, kind, value):
        """ONNX's nodes for an activation that the rivals' programs fuse."""
        if kind == "relu":
            return self.node("Relu", [value], f"{value}.a")
        if kind == "clip":
            low, high = (self.onnx_constant(f"{value}.{bound}", np.float32(bound)) for bound in (0, 6))
            return self.node("Clip", [value, low, high], f"{value}.a")
        if kind == "silu":
            return self.node("Mul", [value, self.node("Sigmoid", [value], f"{value}.s")], f"{value}.a")
        return value

    def op(self, operator, activation=None, /, **fields):
        if activation:
            fields["activation"] = DNNL_ACTIVATIONS[activation]
        self.ops.append({"op": operator, **{name: value for name, value in fields.items() if value is not None}})

    # Kinds of rows: each adds one copy and returns its output's name and shape.

    def conv(self, p, current, at):
        x = current[0] if current else self.input(f"x{at}", p["src"])
        fan_in = math.prod(p["weights"][1:])
        w = self.constant(f"w{at}", p["weights"], math.sqrt((2 if p["activation"] else 1) / fan_in))
        b = self.constant(f"b{at}", p["weights"][:1], 0.1) if p["bias"] else None
        y = self.node("Conv", [x, w, *([b] if b else [])], f"y{at}", kernel_shape=p["weights"][2:], strides=p["strides"], pads=p["pads"],
                      dilations=p["dilations"], group=p["groups"])
        y = self.activate(p["activation"], y)
        dims, groups = p["weights"], p["groups"]
        self.op("conv", p["activation"], **{"in": x}, w=w, b=b, out=y, dims=p["dst"], strides=p["strides"],
                w_dims=dims if groups == 1 else [groups, dims[0] // groups, *dims[1:]], dilations=[d - 1 for d in p["dilations"]],
                pads=exact_pads(p["pads"], p["src"], p["dst"], [(k - 1) * d + 1 for k, d in zip(dims[2:], p["dilations"])], p["strides"]))
        self.variants = [{"format": format} for format in CONV_FORMATS]
        return y, p["dst"]

    depthwise = conv

    def transposed(self, p, current, at):
        x = current[0] if current else self.input(f"x{at}", p["src"])
        used = math.prod(p["weights"][2:]) / math.prod(p["strides"])  # taps that an output meets
        scale = math.sqrt((2 if p["activation"] else 1) / (p["weights"][0] * max(used, 1)))
        weights = self.numbers.array(p["weights"], scale)
        w = self.onnx_constant(f"w{at}", weights)
        self.tensor(w, weights.swapaxes(0, 1), True)  # outputs first, as oneDNN has it
        b = self.constant(f"b{at}", p["dst"][1:2], 0.1)
        windows = [(k - 1) * d + 1 for k, d in zip(p["weights"][2:], p["dilations"], strict=True)]
        pads = exact_pads(p["pads"], p["dst"], p["src"], windows, p["strides"])
        half = len(windows)
        more = [given - exact for given, exact in zip(p["pads"][half:], pads[half:], strict=True)]
        y = self.node("ConvTranspose", [x, w, b], f"y{at}", kernel_shape=p["weights"][2:], strides=p["strides"], pads=p["pads"],
                      dilations=p["dilations"], output_padding=more)
        y = self.activate(p["activation"], y)
        self.op("deconv", p["activation"], **{"in": x}, w=w, b=b, out=y, dims=p["dst"], strides=p["strides"],
                w_dims=self.tensors[-2]["dims"], dilations=[d - 1 for d in p["dilations"]], pads=pads)
        self.variants = [{"format": format, "activation": how} for how in ("fused", "apart")[:2 if p["activation"] else 1] for format in CONV_FORMATS]
        return y, p["dst"]

    def block(self, p, current, at):
        first = self.conv(p["parts"][0], current, f"{at}.0")
        return self.conv(p["parts"][1], first, f"{at}.1")

    def gemm(self, p, current, at):
        m, n, k = p["m"], p["n"], p["k"]
        x = current[0] if current else self.input(f"x{at}", [m, k])
        w = self.constant(f"w{at}", [k, n], 1 / math.sqrt(k))
        b = self.constant(f"b{at}", [n], 0.1) if p["bias"] else None
        y = self.node("Gemm", [x, w, b], f"y{at}") if b else self.node("MatMul", [x, w], f"y{at}")
        y = self.activate(p["activation"], y)
        self.op("gemm", p["activation"], **{"in": x}, w=w, bias=b, out=y, dims=[m, n], m=m, n=n, k=k)
        self.variants = [{"product": "matmul"}, {"product": "inner_product"}, {"product": "inner_product", "format": "any"}]
        return y, [m, n]

    def bmm(self, p, _, at):
        batch, m, n, k = p["batch"], p["m"], p["n"], p["k"]
        x, w = self.input(f"x{at}", [batch, m, k]), self.input(f"w{at}", [batch, k, n], 1 / math.sqrt(k))
        y = self.node("MatMul", [x, w], f"y{at}")
        self.op("gemm", **{"in": x}, w=w, out=y, dims=[batch, m, n], batch=batch, m=m, n=n, k=k)
        self.variants = [{"product": "matmul"}]
        return y, [batch, m, n]

    def attention(self, p, current, at):
        tokens, heads, size = p["tokens"], p["heads"], p["size"]
        hidden = heads * size
        q = current[0] if current else self.input(f"q{at}", [1, tokens, hidden])
        k, v = (self.input(f"{name}{at}", [1, tokens, hidden]) for name in "kv")
        if "mask" not in self.inputs and not any(t["name"] == "mask" for t in self.tensors):
            self.attention_mask(tokens, p["causal"])
        split, whole = (self.onnx_constant(f"{name}{at}", np.array(dims, np.int64))
                        for name, dims in (("split", [1, tokens, heads, size]), ("whole", [1, tokens, hidden])))
        parts = [self.node("Transpose", [self.node("Reshape", [x, split], f"{x}.r{at}")], f"{x}.t{at}", perm=perm)
                 for x, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3]))]
        scores = self.node("MatMul", parts[:2], f"s{at}")
        scores = self.node("Div", [scores, self.onnx_constant(f"root{at}", np.float32(math.sqrt(size)))], f"d{at}")
        scores = (self.node("Where", ["causal", scores, "lowest"], f"m{at}") if p["causal"]
                  else self.node("Add", [scores, "mask"], f"m{at}"))
        found = self.node("MatMul", [self.node("Softmax", [scores], f"p{at}", axis=-1), parts[2]], f"o{at}")
        y = self.node("Reshape", [self.node("Transpose", [found], f"o{at}.t", perm=[0, 2, 1, 3]), whole], f"y{at}")
        by_head, square = [1, heads, tokens, size], [1, heads, tokens, tokens]
        strides = [tokens * hidden, size, hidden, 1]
        self.op("matmul", a={"name": q, "dims": by_head, "strides": strides}, scale=1 / math.sqrt(size), mask="mask",
                b={"name": k, "dims": [1, heads, size, tokens], "strides": [tokens * hidden, size, 1, hidden]},
                c={"name": f"sc{at}", "dims": square, "whole": square})
        self.op("softmax", **{"in": f"sc{at}"}, out=f"sc{at}", axis=3)
        self.op("matmul", a={"name": f"sc{at}", "dims": square}, b={"name": v, "dims": by_head, "strides": strides},
                c={"name": y, "dims": by_head, "strides": strides, "whole": [1, tokens, hidden]})
        self.variants = [{"mask": "fused"}, {"mask": "apart"}]
        return y, [1, tokens, hidden]

    def attention_mask(self, tokens, causal):
        """As the models have it: an input that is added, or a constant triangle that selects."""
        if not causal:
            self.inputs["mask"] = np.zeros([1, 1, 1, tokens], np.float32)
            self.inputs["mask"][..., tokens - tokens // 8:] = -10000
            self.tensor("mask", self.inputs["mask"], False)
            return
        triangle = np.tril(np.ones([1, 1, tokens, tokens], bool))
        self.onnx_constant("causal", triangle)
        self.onnx_constant("lowest", np.float32(np.finfo(np.float32).min))
        self.tensor("mask", np.where(triangle, 0, -1e9), True)

    def layernorm(self, p, current, at):
        shape = p["shape"]
        x = current[0] if current else self.input(f"x{at}", shape)
        w, b = self.constant(f"w{at}", shape[-1:], 0.1, 1.0), self.constant(f"b{at}", shape[-1:], 0.1)
        y = self.node("LayerNormalization", [x, w, b], f"y{at}", axis=-1, epsilon=1e-5)
        self.op("layer_normalization", **{"in": x}, w=w, b=b, out=y, epsilon=1e-5)
        return y, shape

    def rmsnorm(self, p, current, at):
        """As exporters write it before opset 23; all engines know the pattern, and oneDNN 2 has no such primitive."""
        shape = p["shape"]
        x = current[0] if current else self.input(f"x{at}", shape)
        w = self.constant(f"w{at}", shape[-1:], 0.1, 1.0)
        two, epsilon = (self.onnx_constant(f"{name}{at}", np.float32(value)) for name, value in (("two", 2), ("epsilon", 1e-5)))
        axes = self.onnx_constant(f"axes{at}", np.array([-1], np.int64))
        mean = self.node("ReduceMean", [self.node("Pow", [x, two], f"s{at}"), axes], f"m{at}")
        root = self.node("Sqrt", [self.node("Add", [mean, epsilon], f"e{at}")], f"r{at}")
        y = self.node("Mul", [self.node("Div", [x, root], f"d{at}"), w], f"y{at}")
        self.variants = []
        return y, shape

    def softmax(self, p, current, at):
        x = current[0] if current else self.input(f"x{at}", p["shape"])
        y = self.node("Softmax", [x], f"y{at}", axis=-1)
        self.op("softmax", **{"in": x}, out=y, axis=len(p["shape"]) - 1)
        return y, p["shape"]

    def gelu(self, p, _, at):
        x = self.input(f"x{at}", p["shape"])
        y = self.node("Gelu", [x], f"y{at}", approximate="none" if p["form"] == "erf" else "tanh")
        self.op("eltwise", **{"in": x}, out=y)
        self.ops[-1]["activation"] = {"kind": f"gelu_{p['form']}"}
        return y, p["shape"]

    def silu(self, p, _, at):
        x = self.input(f"x{at}", p["shape"])
        y = self.node("Mul", [x, self.node("Sigmoid", [x], f"s{at}")], f"y{at}")
        self.op("eltwise", "silu", **{"in": x}, out=y)
        return y, p["shape"]

    def add(self, p, _, at):
        x, z = self.input(f"x{at}", p["shape"]), self.input(f"z{at}", p["shape"])
        y = self.activate(p["activation"], self.node("Add", [x, z], f"y{at}"))
        self.op("binary", p["activation"], kind="add", **{"in": x}, b=z, out=y)
        return y, p["shape"]

    def transpose(self, p, _, at):
        x = self.input(f"x{at}", p["shape"])
        y = self.node("Transpose", [x], f"y{at}", perm=p["perm"])
        self.op("transpose", **{"in": x}, perm=p["perm"], out=y)
        return y, [p["shape"][axis] for axis in p["perm"]]

    def pool(self, p, _, at):
        x = self.input(f"x{at}", p["src"])
        attributes = p["attributes"]
        y = self.node(p["operator"], [x], f"y{at}", **attributes)
        window = attributes.get("kernel_shape", p["src"][2:])
        strides = attributes.get("strides", [1] * len(window))
        kind = "max" if p["operator"] == "MaxPool" else "average" if attributes.get("count_include_pad", 0) else "average_inside"
        self.op("pool", **{"in": x}, kind=kind, kernel=window, strides=strides, out=y, dims=p["dst"],
                pads=exact_pads(attributes.get("pads", [0] * 2 * len(window)), p["src"], p["dst"], window, strides))
        self.variants = [{"format": format} for format in ("plain", "nhwc", "blocked")]
        return y, p["dst"]

    def operator(self, p, _, at):
        inputs = [self.input(f"x{at}.{i}", p["src"]) for i in range(p["count"])]
        inputs += [self.onnx_constant(f"c{at}.{i}", np.array(of[1], of[0])) if of else "" for i, of in enumerate(p["constants"])]
        y = self.node(p["operator"], inputs, f"y{at}", **p["attributes"])
        if p["operator"] == "ArgMax":
            y = self.node("Cast", [y], f"f{at}", to=TensorProto.FLOAT)
        if p["operator"] == "TopK":
            self.nodes[-1].output.append(f"i{at}")
        self.variants = []  # the library has none of them
        return y, p["dst"]


def exact_pads(pads, source, destination, window, strides):
    """Padding such that the windows end exactly where the last one does."""
    half = len(pads) // 2
    behind = [(to - 1) * stride + extent - size - before for to, stride, extent, size, before in
              zip(destination[2:], strides, window, source[2:], pads[:half])]
    return list(pads[:half]) + behind
