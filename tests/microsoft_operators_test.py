"""Operators of com.microsoft, compared with ONNX Runtime on random nodes with all their operands, results and attributes; those that its
CPU provider lacks with their definitions in NumPy. A BERT as ONNX Runtime optimises it is compiled and right."""
import math
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import support
from random_nodes import Nodes, RandomNodes
from support import Case

DOMAIN = "com.microsoft"
MODELS = Path(__file__).resolve().parent.parent / "models"


def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


# ---- products and activations ----


def fused_conv(n):
    spatial, group = n.below(1, 4), n.pick(1, 2)
    channels, results = 2 * group, 4 * group
    kernel = [n.below(1, 4) for _ in range(spatial)]
    x = n.array(n.below(1, 3), channels, *(n.below(4, 7) for _ in range(spatial)))
    name, parameters = n.pick(("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.3, 0.4]), ("HardSigmoid", [0.3, 0.6]))
    attributes = {"activation": name, "group": group, "kernel_shape": kernel}
    if parameters:
        attributes["activation_params"] = parameters
    shape = [x.shape[0], results, *(extent - k + 1 for extent, k in zip(x.shape[2:], kernel, strict=True))]
    if n.chance():
        attributes["pads"] = [1] * (2 * spatial)
        shape[2:] = [extent + 2 for extent in shape[2:]]
    z = n.array(*shape) if spatial == 2 and n.chance() else None
    bias = n.array(results) if n.chance() or z is not None else None
    n.add("FusedConv", [x, n.array(results, channels // group, *kernel), bias, z], **attributes)


def nhwc_conv(n):
    x, w, bias = n.array(2, 5, 6, 3), n.array(4, 3, 2, 3), n.array(4) if n.chance() else None
    padded = np.pad(x, [(0, 0), (1, 0), (0, 2), (0, 0)])
    y = np.zeros((2, 4, 7, 4), np.float32)
    for i in range(4):
        for j in range(7):
            y[:, i, j] = np.einsum("nabc,mabc->nm", padded[:, i:i + 3, j:j + 2], w)
    n.add("NhwcConv", [x, w, bias], expected=[y if bias is None else y + bias], pads=[1, 0, 0, 2], kernel_shape=[3, 2])


def fused_gemm(n):
    m, k, size = n.below(1, 5), n.below(1, 6), n.below(1, 6)
    attributes = n.pick({"activation": "Relu"}, {"activation": "LeakyRelu", "activation_alpha": 0.3}, {"activation": "Elu", "activation_alpha": 0.7},
                        {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4}, {"activation": "Softplus"},
                        {"activation": "Sigmoid", "alpha": 0.5}, {"activation": "Tanh", "alpha": 2.0, "beta": 0.25})
    a, b = n.array(m, k), n.array(k, size)
    if n.chance():
        attributes, a = attributes | {"transA": 1}, np.ascontiguousarray(a.T)
    if n.chance():
        attributes, b = attributes | {"transB": 1}, np.ascontiguousarray(b.T)
    n.add("FusedGemm", [a, b, n.pick(None, n.array(size), n.array(m, size))], **attributes)


def fused_matmul(n):
    m, k, size, batch = n.below(1, 4), n.below(1, 5), n.below(1, 5), n.pick([], [3], [2, 3])
    a, b, attributes = n.array(*batch, m, k), n.array(*batch, k, size), {}
    for key, matrix in (("A", a), ("B", b)):
        if n.chance():
            attributes[f"trans{key}"], matrix = 1, np.swapaxes(matrix, -1, -2)
        if batch and n.chance(0.4):
            attributes[f"transBatch{key}"], matrix = 1, np.moveaxis(matrix, -2, 0)
        a, b = (matrix, b) if key == "A" else (a, matrix)
    if n.chance():
        attributes["alpha"] = 0.125
    n.add("FusedMatMul", [np.ascontiguousarray(a), np.ascontiguousarray(b)], **attributes)


def transpose_matmul(n):
    n.add("TransposeMatMul", [n.array(2, 5, 3), n.array(2, 4, 5)], transA=1, transB=1, alpha=0.5)


def activations(n):
    x, bias = 4 * n.array(2, 3, 8), n.array(8)
    n.add("Gelu", [x])
    n.add("BiasGelu", [x, bias])
    n.add("FastGelu", [x])
    n.add("FastGelu", [x, bias])
    n.add("QuickGelu", [x])
    n.add("QuickGelu", [x], alpha=float(n.pick(0.5, 1.0, 2.0)))
    biased = x + bias
    n.add("BiasSplitGelu", [x, bias], expected=[(biased[..., :4] * gelu(biased[..., 4:])).astype(np.float32)])
    skip = n.array(2, 3, 8)
    n.add("BiasAdd", [x, bias, skip], expected=[x + bias + skip])


# ---- normalisations ----


def skip_layer_norm(n):
    batch, length, size = n.below(1, 3), n.below(1, 5), n.pick(4, 8)
    skip = n.pick(n.array(batch, length, size), n.array(1, length, size), n.array(length, size))
    some = lambda: n.array(size) if n.chance() else None
    epsilon = {"epsilon": 0.01} if n.chance() else {}
    wanted = n.pick([True], [True, False, False, True])
    n.add("SkipLayerNormalization", [n.array(batch, length, size), skip, n.array(size), some(), some()], wanted, **epsilon)
    n.add("SkipSimplifiedLayerNormalization", [n.array(batch, length, size), skip, n.array(size), some()], wanted, **epsilon)


def simplified_layer_norm(n):
    n.add("SimplifiedLayerNormalization", [n.array(2, 3, 6), n.array(6)], domain="")
    n.add("SimplifiedLayerNormalization", [n.array(2, 3, 6), n.array(6)], n.pick(1, 2), domain="", axis=-1, epsilon=0.02, stash_type=1)


def embed_layer_norm(n):
    batch, length, size = n.below(1, 4), n.below(1, 6), 8
    ids = lambda most, rows=batch: n.rng.integers(0, most, (rows, length)).astype(np.int32)
    segments = n.chance()
    mask = (n.rng.random((batch, length)) < 0.7).astype(np.int32) if n.chance() else None
    places = ids(9, n.pick(1, batch)) if n.chance(0.4) else None
    attributes = {"epsilon": 0.001} if n.chance() else {}
    wanted = n.pick([True, True], [True, True, True])
    if n.chance():
        attributes["mask_index_type"] = 1
    n.add("EmbedLayerNormalization",
          [ids(12), ids(2) if segments else None, n.array(12, size), n.array(9, size), n.array(2, size) if segments else None, n.array(size),
           n.array(size), mask, places], wanted, **attributes)


def group_norm(n):
    groups, last, silu = n.pick(1, 2, 4), n.chance(), n.chance()
    x, scale, shift, skip, bias = n.array(2, 4, 5, 8), n.array(8), n.array(8), n.array(2, 1, 1, 8), n.array(8)

    def expected(y):
        rows = y.reshape(2, 20, groups, 8 // groups).astype(np.float64)
        rows = (rows - rows.mean((1, 3), keepdims=True)) / np.sqrt(rows.var((1, 3), keepdims=True) + 1e-3)
        y = rows.reshape(2, 4, 5, 8) * scale + shift
        return (y / (1 + np.exp(-y)) if silu else y).astype(np.float32)

    place = lambda y: y if last else np.ascontiguousarray(np.moveaxis(y, 3, 1))
    attributes = {"groups": groups, "activation": int(silu), "epsilon": 1e-3} | ({} if last else {"channels_last": 0})
    n.add("GroupNorm", [place(x), scale, shift], expected=[place(expected(x))], **attributes)
    flat = skip.reshape(2, 8) if n.chance() else place(skip)
    with_bias = last and n.chance()
    total = x + skip + (bias if with_bias else 0)
    n.add("SkipGroupNorm", [place(x), scale, shift, flat, bias if with_bias else None], 2,
          expected=[place(expected(total)), place(total)], **attributes)


# ---- attention ----


def masks(n, batch, queries, keys):
    """A mask of each form, all of whose rows leave some key."""
    kind = n.pick("none", "lengths", "raw", "by query")
    if kind == "none":
        return None
    if kind == "lengths":
        return n.rng.integers(1, keys + 1, batch).astype(np.int32)
    mask = (n.rng.random((batch, keys) if kind == "raw" else (batch, queries, keys)) < 0.6).astype(np.int32)
    mask[..., 0] = 1
    return mask


def attention(n):
    batch, length, heads, past = n.below(1, 3), n.below(1, 5), n.pick(1, 2), n.pick(0, 0, 2)
    size, width, given = 4 * heads, n.pick(4, 6) * heads, 5
    attributes = {"num_heads": heads}
    if past or width == size or n.chance():
        width = size
    else:
        attributes["qkv_hidden_sizes"] = [size, size, width]
    if n.chance(0.4):
        attributes["unidirectional"] = 1
    if n.chance(0.4):
        attributes["scale"] = 0.3
    if n.chance(0.4):
        attributes["mask_filter_value"] = -3.0
    mask = masks(n, batch, length, length + past)
    if mask is not None and mask.ndim == 1 and n.chance():
        mask = np.concatenate([mask, np.maximum(mask - 2, 0)]).astype(np.int32)
    bias = n.array(n.pick(1, batch), n.pick(1, heads), length, length) if not past and n.chance(0.4) else None
    n.add("Attention", [n.array(batch, length, given), n.array(given, 2 * size + width), n.array(2 * size + width), mask,
                        n.array(2, batch, heads, past, size // heads) if past else None, bias], 2 if past else n.pick(1, 2) if width == size else 1, **attributes)


def multi_head_attention(n):
    batch, length, keys, heads, past = n.below(1, 3), n.below(1, 5), n.below(1, 5), n.pick(1, 2), n.pick(0, 0, 2)
    size, kind = 4, n.pick("apart", "apart", "packed keys", "packed", "cross")
    past, width = (past, 4) if kind == "apart" and past else (0, n.pick(4, 6) if kind == "apart" else 4)
    if kind == "packed" or past:
        keys = length
    attributes = {"num_heads": heads}
    if n.chance(0.4):
        attributes["scale"] = 0.3
    if n.chance(0.4):
        attributes["mask_filter_value"] = -5.0
    if n.chance(0.3) and keys == length and kind != "cross":
        attributes["unidirectional"] = 1
    query, key, value = n.array(batch, length, heads * size), n.array(batch, keys, heads * size), n.array(batch, keys, heads * width)
    # ONNX Runtime's CPU provider takes no bias with keys by heads.
    bias = n.array(heads * (2 * size + width)) if kind != "cross" and n.chance() else None
    if kind == "cross":
        key, value = n.array(batch, heads, keys, size), n.array(batch, heads, keys, width)
    others = [bias, masks(n, batch, length, keys + past), n.array(n.pick(1, batch), n.pick(1, heads), length, keys + past) if n.chance(0.4) else None]
    if past:
        others += [n.array(batch, heads, past, size), n.array(batch, heads, past, width)]
    results = 3 if past else 1 if kind == "cross" else n.pick(1, 3)
    if kind in ("apart", "cross"):
        n.add("MultiHeadAttention", [query, key, value, *others], results, **attributes)
        return
    # It takes no packed operands: what it gives for them apart.
    apart = Nodes(0)
    apart.add("MultiHeadAttention", [query, key, value, *others], results, **attributes)
    values = apart.run_reference()
    split = [x.reshape(batch, x.shape[1], heads, 1, size) for x in (query, key, value)]
    operands = [np.concatenate(split, 3), None, None] if kind == "packed" else [query, np.concatenate(split[1:], 3), None]
    n.add("MultiHeadAttention", [*operands, *others], results, expected=[values[name] for name in apart.outputs], **attributes)


def rotary_embedding(n):
    batch, length, heads, size = n.below(1, 3), n.below(1, 5), n.pick(1, 2), 8
    turned = n.pick(0, 0, 4)
    x = n.array(batch, length, heads * size) if n.chance() else n.array(batch, heads, length, size)
    attributes = {"interleaved": n.below(0, 2)}
    if turned:
        attributes |= {"rotary_embedding_dim": turned, "num_heads": heads}
    elif n.chance():
        attributes["num_heads"] = heads
    places = np.array([n.below(0, 3)], np.int64) if n.chance() else n.rng.integers(0, 9, (batch, length)).astype(np.int64)
    angles = n.rng.uniform(-3, 3, (9, (turned or size) // 2)).astype(np.float32)
    n.add("RotaryEmbedding", [x, places, np.cos(angles), np.sin(angles)], **attributes)


def dynamic_quantize_lstm(n):
    direction = n.pick("forward", "reverse", "bidirectional")
    count, steps, batch, size, hidden = 2 if direction == "bidirectional" else 1, n.below(1, 4), n.below(1, 3), n.below(2, 5), n.below(2, 5)
    dtype = n.pick(np.int8, np.uint8)
    columns = (count, 4 * hidden) if n.chance() else (count,)
    weights = lambda rows: n.rng.integers(0 if dtype == np.uint8 else -100, 101, (count, rows, 4 * hidden)).astype(dtype)
    scales = lambda: n.rng.uniform(0.005, 0.01, columns).astype(np.float32)
    zeros = lambda: np.full(columns, n.below(40, 60) if dtype == np.uint8 else 0, dtype)  # ONNX Runtime wants one value
    some = lambda *shape: n.array(*shape) if n.chance() else None
    attributes = {"hidden_size": hidden, "direction": direction}
    if n.chance(0.3):
        attributes["input_forget"] = 1
    lengths = n.rng.integers(1, steps + 1, batch).astype(np.int32) if n.chance(0.3) else None
    x, others = n.array(steps, batch, size), [some(count, 8 * hidden), lengths, some(count, batch, hidden), some(count, batch, hidden), some(count, 3 * hidden)]
    n.add("DynamicQuantizeLSTM", [x, weights(size), weights(hidden), *others, scales(), zeros(), scales(), zeros()], n.pick(1, 3), constant=True,
          **attributes)


SMALLER = {768: 32, 3072: 64, 30522: 50, 12: 2, 64: 16, 128: 16}  # extents of bert_base


def small_bert(layers=2):
    """The first layers of models/bert_base_s128 with smaller extents and random weights."""
    rng = np.random.default_rng(3)
    graph = onnx.load(MODELS / "bert_base_s128.graph.onnx").graph
    last = f"/m/bert/encoder/layer.{layers - 1}/output/LayerNorm/LayerNormalization_output_0"
    nodes = [node for node in graph.node if "encoder" not in node.output[0] or int(node.output[0].split("layer.")[1].split("/")[0]) < layers]
    nodes = nodes[:next(i for i, node in enumerate(nodes) if last in node.output) + 1]
    read = {name for node in nodes for name in node.input}
    inputs, constants = [], []
    for value in [*graph.input, *graph.initializer]:
        if value.name not in read:
            continue
        dims = value.dims if isinstance(value, onnx.TensorProto) else [d.dim_value for d in value.type.tensor_type.shape.dim]
        shape = [SMALLER.get(d, d) for d in dims]
        if value.name in ("input_ids", "attention_mask", "token_type_ids"):
            inputs.append(helper.make_tensor_value_info(value.name, onnx.TensorProto.INT64, shape))
        elif "Gather" in value.name:
            constants.append(numpy_helper.from_array(np.arange(16).reshape(1, 16), value.name))
        else:
            constants.append(numpy_helper.from_array((rng.standard_normal(shape) / 4).astype(np.float32), value.name))
    for node in nodes:
        if node.op_type == "Constant" and node.attribute[0].t.data_type == onnx.TensorProto.INT64:
            array = numpy_helper.to_array(node.attribute[0].t)
            array = np.vectorize(lambda x: SMALLER.get(x, x))(array).astype(np.int64)
            node.attribute[0].t.CopyFrom(numpy_helper.from_array(array))
    outputs = [helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, (1, 16, 32))]
    model = helper.make_model(helper.make_graph(nodes, "bert", inputs, outputs, constants), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model, last


class OptimizedModels(Case):
    def test_a_bert_optimized_by_onnx_runtime(self):
        model, last = small_bert()
        path, optimized = self.save(model), self.folder / "optimized.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(optimized)
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        made = {node.op_type for node in onnx.load(optimized).graph.node if node.domain == DOMAIN}
        self.assertTrue({"FusedMatMul", "Gelu", "SkipLayerNormalization"} <= made, made)
        rng = np.random.default_rng(4)
        feeds = {"input_ids": rng.integers(0, 50, (1, 16)), "token_type_ids": rng.integers(0, 2, (1, 16)),
                 "attention_mask": np.asarray([[1] * 11 + [0] * 5])}
        expected = support.reference(path, feeds)[last]
        for form in (path, optimized):
            (found,) = self.outputs(form, feeds).values()
            self.assertLess(support.relative_error(found, expected), 2e-4)
        kernels = []
        for form in (path, optimized):
            shown = self.succeed_json("show", form)["kernels"]
            kernels.append(sorted((kernel["kernel"].replace("matmul", "gemm"), kernel["times"], kernel["flops"]) for kernel in shown))
        self.assertEqual(*kernels)


class MicrosoftOperators(RandomNodes):
    def test_products(self):
        self.compare(fused_conv, fused_gemm, fused_matmul, nhwc_conv, transpose_matmul, count=8)

    def test_activations(self):
        self.compare(activations, count=2)

    def test_normalisations(self):
        self.compare(skip_layer_norm, simplified_layer_norm, embed_layer_norm, group_norm, count=6)

    def test_attention(self):
        self.compare(attention, count=12)

    def test_multi_head_attention(self):
        self.compare(multi_head_attention, count=14)

    def test_rotary_embedding(self):
        self.compare(rotary_embedding, count=10)

    def test_quantised_lstm(self):
        self.compare(dynamic_quantize_lstm, count=8, atol=1e-3)  # a state at the edge of two bytes may become either

    def test_what_is_not_supported_is_named(self):
        nodes = Nodes(1)
        nodes.add("MultiHeadAttention", [nodes.array(1, 2, 4), nodes.array(1, 2, 4), nodes.array(1, 2, 4)], 4, num_heads=1)
        self.refuse("node 'MultiHeadAttention_0' (com.microsoft.MultiHeadAttention): the result qk", "show", self.save(nodes.model()))
        nodes = Nodes(1)
        nodes.add("MatMulBnb4", [nodes.array(1, 2, 4)])
        self.refuse("com.microsoft.MatMulBnb4 (node 'MatMulBnb4_0')", "show", self.save(nodes.model()))
        nodes = Nodes(1)
        nodes.add("ReorderInput", [nodes.array(1, 8, 4, 4)], domain="com.microsoft.nchwc")
        self.refuse("com.microsoft.nchwc.ReorderInput, in a memory order of one machine: let ONNX Runtime optimise at level extended", "show",
                    self.save(nodes.model()))


if __name__ == "__main__":
    support.main()
