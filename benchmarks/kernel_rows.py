"""The rows of the kernels table: every distinct operator of models/ by class, attention blocks of given lengths, and what the models have
seldom or not at all (kernel_singles.py).

A row is a kind of operator with its parameters, the models that have it and how often. Shapes come from the weightless graphs.
"""
import dataclasses
import json
import math

import kernel_singles
import model_files

DENSE_MODELS = ("resnet18", "resnet50", "vgg16", "googlenet", "inception_v3", "squeezenet1_1", "alexnet", "bert_base_s128", "gpt2_s128")
DEPTHWISE_MODELS = ("mobilenet_v2", "mnasnet1_0", "efficientnet_b0")
ATTENTION_TOKENS = (128, 256, 512)
MANY_TOKENS = (1024, 4096)  # whose scores fit no second-level cache
CLASSES = ("dense", "depthwise", "attention", "memory", "convolutions", "operators")
CLASS_OF = {"operator": "operators", "conv": "dense", "gemm": "dense", "bmm": "dense", "depthwise": "depthwise", "block": "depthwise", "attention": "attention"}
CONVOLUTIONS = ("conv", "depthwise", "transposed")
WITH_REORDERS = (*CONVOLUTIONS, "block", "pool")  # kinds whose models begin and end with another order of the data
# Rows that --hard gives more time, and what is hard about each.
HARD = {
    "conv 512x14x14 -> 512x7x7 3x3 s2 relu": "close to the peak, but oneDNN leaves out the products with the padding's zeros",
    "conv 256x14x14 -> 512x7x7 3x3 s2 relu": "the same, with half as many channels to sum over",
    "conv 256x56x56 -> 128x56x56 1x1 relu": "0.95 of the best rival after 3 s: the data are three times the second-level cache",
    "gemm 1x1000x4096 bias": "one row: reading weights is all of the time, and few points of the space do it at full bandwidth",
    "gemm 1x4096x9216 bias relu": "the same, of 151 MB of weights from memory",
    "conv 384x13x13 -> 64x13x13 1x1 relu": "with two threads: 20 us and less, 169 pixels, which no register tile divides",
    "conv 384x13x13 -> 48x13x13 1x1 relu": "the same",
    "conv 48x13x13 -> 192x13x13 1x1 relu": "the same, with short sums",
    "conv 256x13x13 -> 48x13x13 1x1 relu": "the same",
    "conv 832x7x7 -> 128x7x7 1x1 relu": "the same, 49 pixels and 0.4 MB of weights to share",
}
ACTIVATIONS = {"Relu": "relu", "Clip": "clip", "Sigmoid": "silu"}


@dataclasses.dataclass
class Row:
    kind: str
    parameters: dict
    models: dict = dataclasses.field(default_factory=dict)  # name -> how often
    of_class: str = ""  # default: that of its kind

    @property
    def key(self):
        return f"{self.kind} {json.dumps(self.parameters, sort_keys=True)}"

    @property
    def class_name(self):
        return self.of_class or CLASS_OF.get(self.kind, "memory")

    @property
    def name(self):
        return f"{self.kind} {describe(self.kind, self.parameters)}"

    @property
    def winograd(self):
        """Whether it is one of the 3x3 convolutions that have a target of their own."""
        p = self.parameters
        return (self.kind == "conv" and p["weights"][2:] == [3, 3] and p["strides"] == [1, 1] and p["dilations"] == [1, 1]
                and p["groups"] == 1 and min(p["weights"][:2]) >= 64)

    @property
    def flops(self):
        return flops(self.kind, self.parameters)

    @property
    def weight_bytes(self):
        p = self.parameters
        parts = p["parts"] if self.kind == "block" else [p]
        if self.kind == "gemm":
            return 4 * p["k"] * p["n"]
        return sum(4 * math.prod(part["weights"]) for part in parts if "weights" in part)

    @property
    def activation_bytes(self):
        """What is read and written beside weights."""
        p = self.parameters
        if self.kind == "block":
            return 4 * (math.prod(p["parts"][0]["src"]) + math.prod(p["parts"][-1]["dst"]))
        if self.kind in ("gemm", "bmm"):
            moving = p["m"] * p["k"] + p["m"] * p["n"] + (p["k"] * p["n"] if self.kind == "bmm" else 0)
            return 4 * p.get("batch", 1) * moving
        if self.kind == "attention":
            return 4 * 4 * p["tokens"] * p["heads"] * p["size"]
        if "dst" in p:
            return 4 * (p.get("count", 1) * math.prod(p["src"]) + math.prod(p["dst"]))
        return 4 * math.prod(p["shape"]) * (3 if self.kind in ("add", "mul") else 2)


def conv_flops(p, transposed=False):
    return 2 * math.prod(p["src" if transposed else "dst"]) * math.prod(p["weights"][1:])


def inside(src, dst, taps, stride, dilation, pad):
    """Of the taps of all outputs along one axis, the share that are not in the padding."""
    positions = [out * stride + tap * dilation - pad for out in range(dst) for tap in range(taps)]
    return sum(0 <= position < src for position in positions) / len(positions)


def needed_share(key):
    """Of the products in a row's flops, those that are not with a padding's zeros or hidden by a causal mask: what a program that leaves those
    out still computes."""
    kind, _, text = key.partition(" ")
    p = json.loads(text)
    if kind == "attention" and p["causal"]:
        return (p["tokens"] + 1) / (2 * p["tokens"])
    if kind == "transposed":  # each input meets all taps, some of which lie beyond the output
        p = {**p, "src": p["dst"], "dst": p["src"]}
    parts = p["parts"] if kind == "block" else [p] if kind in CONVOLUTIONS else []
    if not parts:
        return 1.0
    axes = range(len(parts[0]["strides"]))
    needed = sum(conv_flops(c) * math.prod(inside(c["src"][2 + i], c["dst"][2 + i], c["weights"][2 + i], c["strides"][i], c["dilations"][i], c["pads"][i])
                                           for i in axes) for c in parts)
    return needed / sum(conv_flops(c) for c in parts)


def flops(kind, p):
    """Of the products, every tap counted; 0 for what memory limits."""
    if kind in CONVOLUTIONS:
        return conv_flops(p, kind == "transposed")
    if kind == "block":
        return sum(conv_flops(part) for part in p["parts"])
    if kind in ("gemm", "bmm"):
        return 2 * p.get("batch", 1) * p["m"] * p["n"] * p["k"]
    if kind == "attention":
        return 4 * p["heads"] * p["tokens"] ** 2 * p["size"]
    return 0


def extents(dims):
    return "x".join(str(d) for d in dims)


def describe_conv(p):
    parts = [f"{extents(p['src'][1:])} -> {extents(p['dst'][1:])} {extents(p['weights'][2:])}"]
    parts += [f"{letter}{extents(steps if len(set(steps)) > 1 else steps[:1])}"
              for letter, steps in (("s", p["strides"]), ("d", p["dilations"])) if max(steps) > 1]
    if p["groups"] not in (1, p["src"][1]):
        parts.append(f"g{p['groups']}")
    return " ".join(parts + ([p["activation"]] if p["activation"] else []))


def describe(kind, p):
    if kind in CONVOLUTIONS:
        return describe_conv(p)
    if kind == "block":
        return " + ".join(describe_conv(part) for part in p["parts"])
    if kind == "gemm":
        return f"{p['m']}x{p['n']}x{p['k']}" + (" bias" if p["bias"] else "") + (f" {p['activation']}" if p["activation"] else "")
    if kind == "bmm":
        return f"{p['batch']}x {p['m']}x{p['n']}x{p['k']}"
    if kind == "attention":
        return f"{p['tokens']} tokens, {p['heads']}x{p['size']}" + (", causal" if p["causal"] else "")
    if kind == "pool":
        return f"{p['operator']} {extents(p['src'][1:])} -> {extents(p['dst'][1:])}"
    if kind == "operator":
        how = [f"{name} {value}" for name, value in p["attributes"].items()]
        how += [f"by {np_type} {values}" for np_type, values in filter(None, p["constants"])]
        return f"{p['operator']} {extents(p['src'])} -> {extents(p['dst'])} {', '.join(how)}"
    if kind == "transpose":
        return f"{extents(p['shape'])} by {''.join(str(axis) for axis in p['perm'])}"
    return extents(p["shape"]) + (f" {p['activation']}" if p.get("activation") else "") + (f" {p['form']}" if "form" in p else "")


class Graph:
    """Nodes with the shapes and the constness of what they read."""

    def __init__(self, name):
        import onnx

        model = onnx.load(model_files.GRAPHS / model_files.entry(name)["file"])
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        self.nodes = model.graph.node
        weights = {p.key: p.value for p in model.metadata_props}.get("weights", "{}")
        described = json.loads(weights)
        self.constants = {t.name for t in model.graph.initializer} | set(described)
        self.constants |= {node.output[0] for node in self.nodes if node.op_type == "Constant"}
        self.shapes = {name: list(d["shape"]) for name, d in described.items()}
        self.shapes |= {t.name: list(t.dims) for t in model.graph.initializer}
        for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]:
            self.shapes.setdefault(value.name, [d.dim_value for d in value.type.tensor_type.shape.dim])
        self.readers = {}
        for node in self.nodes:
            for read in node.input:
                self.readers.setdefault(read, []).append(node)

    @staticmethod
    def attributes(node):
        import onnx

        return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}

    def activation_after(self, value):
        """(kind or None, name of the value after it)."""
        for reader in self.readers.get(value, []):
            if reader.op_type in ("Relu", "Clip"):
                return ACTIVATIONS[reader.op_type], reader.output[0]
            if reader.op_type == "Sigmoid":
                for other in self.readers.get(reader.output[0], []):
                    if other.op_type == "Mul" and value in other.input:
                        return "silu", other.output[0]
        return None, value

    def conv(self, node):
        """Parameters of a convolution, and the value after its activation."""
        attributes = self.attributes(node)
        activation, after = self.activation_after(node.output[0])
        return {"src": self.shapes[node.input[0]], "dst": self.shapes[node.output[0]], "weights": self.shapes[node.input[1]],
                "groups": attributes.get("group", 1), "strides": list(attributes.get("strides", [1, 1])),
                "dilations": list(attributes.get("dilations", [1, 1])), "pads": list(attributes.get("pads", [0, 0, 0, 0])),
                "bias": len(node.input) > 2, "activation": activation}, after

    def is_depthwise(self, p):
        return p["groups"] == p["src"][1] and p["groups"] > 1

    def product(self, node):
        """(kind, parameters) of a Gemm or MatMul; None where it is neither."""
        a, b = self.shapes[node.input[0]], self.shapes[node.input[1]]
        attributes = self.attributes(node)
        if attributes.get("transB", 0):
            b = b[::-1]
        if attributes.get("transA", 0):
            a = a[::-1]
        if not a or not b or min(*a, *b) < 1:
            return None
        after, bias = node.output[0], len(node.input) > 2
        if node.input[1] not in self.constants:
            return "bmm", {"batch": math.prod(a[:-2]), "m": a[-2], "n": b[-1], "k": a[-1]}
        for reader in self.readers.get(after, []):
            if reader.op_type == "Add" and any(i in self.constants for i in reader.input):
                bias, after = True, reader.output[0]
        activation, _ = self.activation_after(after)
        return "gemm", {"m": math.prod(a[:-1]), "n": b[-1], "k": a[-1], "bias": bias, "activation": activation if activation == "relu" else None}

    def dense(self):
        for node in self.nodes:
            if node.op_type == "Conv":
                parameters, _ = self.conv(node)
                if not self.is_depthwise(parameters):
                    yield "conv", parameters
            elif node.op_type in ("Gemm", "MatMul"):
                found = self.product(node)
                if found:
                    yield found

    def depthwise(self):
        for node in self.nodes:
            if node.op_type != "Conv":
                continue
            first, after = self.conv(node)
            if not self.is_depthwise(first):
                continue
            yield "depthwise", first
            for reader in self.readers.get(after, []):
                if reader.op_type == "Conv" and reader.input[0] == after:
                    second, _ = self.conv(reader)
                    if second["weights"][2:] == [1, 1] and second["groups"] == 1:
                        yield "block", {"parts": [first, second]}

    def memory(self):
        """Normalisation, softmax, GELU, pooling, elementwise operators and transposes."""
        for node in self.nodes:
            shape = self.shapes.get(node.output[0]) or []
            if not shape or min(shape) < 1:
                continue
            kind = node.op_type
            if kind == "LayerNormalization":
                yield "layernorm", {"shape": shape}
            elif kind == "Softmax":
                yield "softmax", {"shape": shape}
            elif kind == "Erf" or (kind == "Tanh" and len(shape) == 3):
                yield "gelu", {"shape": shape, "form": "erf" if kind == "Erf" else "tanh"}
            elif kind in ("MaxPool", "AveragePool", "GlobalAveragePool"):
                attributes = {name: value for name, value in self.attributes(node).items() if name != "auto_pad"}
                yield "pool", {"operator": kind, "src": self.shapes[node.input[0]], "dst": shape, "attributes": attributes}
            elif kind == "Add" and not any(i in self.constants for i in node.input) and all(self.shapes.get(i) == shape for i in node.input):
                activation, _ = self.activation_after(node.output[0])
                yield "add", {"shape": shape, "activation": activation}
            elif kind == "Sigmoid" and len(shape) == 4 and self.activation_after(node.input[0])[0] == "silu":
                yield "silu", {"shape": shape}
            elif kind == "Transpose":
                yield "transpose", {"shape": self.shapes[node.input[0]], "perm": list(self.attributes(node)["perm"])}


def attention():
    for model, causal in (("bert_base_s128", False), ("gpt2_s128", True)):
        for tokens in ATTENTION_TOKENS + (() if causal else MANY_TOKENS):  # a triangle of many tokens takes engines minutes to load
            yield model, "attention", {"tokens": tokens, "heads": 12, "size": 64, "causal": causal}


def has_many_tokens(key):
    kind, _, text = key.partition(" ")
    return kind == "attention" and json.loads(text)["tokens"] in MANY_TOKENS


def rows(classes=CLASSES, models=None):
    """All rows of these classes, in the models' order, each once; with `models` only what they have."""
    found = {}

    def add(model, kind, parameters, of_class=""):
        row = Row(kind, parameters, of_class=of_class)
        row = found.setdefault(row.key, row)
        row.models[model] = row.models.get(model, 0) + 1

    for name in (*DENSE_MODELS, *DEPTHWISE_MODELS):
        if models and name not in models or not set(classes) & {"dense", "depthwise", "memory"}:
            continue
        graph = Graph(name)
        kinds = [("dense", graph.dense)] if name in DENSE_MODELS else []
        kinds += [("depthwise", graph.depthwise)] if name in DEPTHWISE_MODELS else []
        for class_name, operators in [*kinds, ("memory", graph.memory)]:
            if class_name in classes:
                for kind, parameters in operators():
                    add(name, kind, parameters)
    if "attention" in classes:
        for model, kind, parameters in attention():
            if not models or model in models:
                add(model, kind, parameters)
    for class_name, singles in (("memory", kernel_singles.normalizations), ("convolutions", kernel_singles.convolutions)):
        for network, kind, parameters in singles() if class_name in classes else ():
            if not models or network in models:
                add(network, kind, parameters, class_name)
    if "operators" in classes and not models:
        for kind, parameters in kernel_singles.operators():
            add("", kind, parameters)
    return sorted(found.values(), key=lambda row: CLASSES.index(row.class_name))
