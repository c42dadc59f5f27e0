"""Operators of com.microsoft on quantised numbers, compared with ONNX Runtime on random nodes, and models as ONNX Runtime's quantiser writes them."""
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.capi import _pybind_state
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

import support
from microsoft_operators_test import small_bert
from random_nodes import Nodes, RandomNodes
from support import Case

f32 = np.float32


# ---- bytes with scales and zero points ----


def limits(dtype):
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def data(n, dtype, *shape):
    low, high = limits(dtype)
    return n.rng.integers(low, high + 1, shape).astype(dtype)


def byte_type(n):
    return n.pick(np.uint8, np.int8)


def point(n, dtype):
    low, high = limits(dtype)
    return dtype(n.pick(low, 0, 3, 100, high))


def scale(n):
    """A power of 2, by which results are exact and halves are common."""
    return f32(n.pick(0.5, 0.25, 1.0, 2.0))


def parameters(n, dtype):
    return [scale(n), point(n, dtype)]


def of_operand(n, dtype):
    """Those of an operand, whose zero point is not always given; ONNX Runtime crashes without that of the result."""
    return [scale(n), None if n.chance(0.3) else point(n, dtype)]


def shape(n, least=1, most=5):
    return tuple(n.below(1, 6) for _ in range(n.below(least, most)))


def qlinear_binary(n):
    dtype, whole = byte_type(n), shape(n)
    other = tuple(1 if n.chance(0.3) else d for d in whole)[n.below(0, len(whole)):]
    a, b = data(n, dtype, *whole), data(n, dtype, *other)
    n.add(n.pick("QLinearAdd", "QLinearMul"), [a, *parameters(n, dtype), b, *parameters(n, dtype), *parameters(n, dtype)], constant=True)


def qlinear_activation(n):
    dtype = byte_type(n)
    operands = [data(n, dtype, *shape(n)), *of_operand(n, dtype), *parameters(n, dtype)]
    if n.chance():
        n.add("QLinearLeakyRelu", operands, constant=True, alpha=float(n.pick(0.25, 0.5)))
        return
    operands[1], operands[3] = f32(0.05), f32(1 / 256)
    n.add("QLinearSigmoid", operands, constant=True)


def qlinear_softmax(n):
    dtype, extents = byte_type(n), shape(n, 2)
    low, _ = limits(dtype)
    attributes = {"opset": n.pick(11, 13)}
    if n.chance(0.7):
        attributes["axis"] = n.below(-len(extents), len(extents))
    n.add("QLinearSoftmax", [data(n, dtype, *extents), f32(0.02), n.pick(None, dtype(3)), f32(1 / 256), dtype(low)], constant=True, **attributes)


def qlinear_where(n):
    dtype, whole = byte_type(n), shape(n, 2)
    given = lambda: [scale(n), dtype(n.pick(0, 3, 100))]
    n.add("QLinearWhere", [n.rng.random(whole) < 0.5, data(n, dtype, *whole), *given(), data(n, dtype, *whole[1:]), *given(), *given()], constant=True)


def qlinear_concat(n):
    dtype, whole = byte_type(n), list(shape(n))
    axis, parts = n.below(0, len(whole)), []
    for _ in range(n.below(1, 4)):
        whole[axis] = n.below(1, 4)
        parts += [data(n, dtype, *whole), scale(n), dtype(n.pick(0, 3, 100))]
    # The first operand, the result's scale, is an input of the model otherwise.
    names = [n.operand(array, True) for array in (scale(n), dtype(n.pick(0, 3, 100)))]
    names += [n.operand(array, i % 3 > 0) for i, array in enumerate(parts)]
    n.nodes.append(helper.make_node("QLinearConcat", names, [f"y{len(n.nodes)}"], name=f"QLinearConcat_{len(n.nodes)}", domain="com.microsoft", axis=axis))


def qlinear_pool(n):
    dtype, last, spatial = byte_type(n), n.chance(0.4), n.below(1, 3)
    extents = [n.below(1, 3), n.below(1, 5), *(n.below(4, 8) for _ in range(spatial))]
    if last:
        extents.append(extents.pop(1))
    operands = [data(n, dtype, *extents), *parameters(n, dtype), *parameters(n, dtype)]
    layout = {"channels_last": 1} if last else {}
    if n.chance(0.4):
        operands[2], operands[4] = dtype(3), dtype(100)
        n.add("QLinearGlobalAveragePool", operands, constant=True, **layout)
        return
    attributes = {"kernel_shape": [n.pick(1, 2) for _ in range(spatial)], "strides": [n.pick(1, 2) for _ in range(spatial)]}
    if n.chance() and min(attributes["kernel_shape"]) == 2:
        attributes |= {"pads": [1] * spatial + [n.below(0, 2) for _ in range(spatial)], "count_include_pad": n.below(0, 2)}
    elif n.chance(0.4):
        attributes["ceil_mode"] = 1
    n.add("QLinearAveragePool", operands, constant=True, **layout, **attributes)


def nhwc_max_pool(n):
    dtype = byte_type(n)
    n.add("NhwcMaxPool", [data(n, dtype, 2, 5, 6, 3)], kernel_shape=[2, 3], strides=[1, n.pick(1, 2)], pads=[n.below(0, 2), 1, 0, 1])


def qlinear_reduce_mean(n):
    """ONNX Runtime has no kernel."""
    dtype, whole = byte_type(n), shape(n, 2)
    axes = sorted(n.rng.permutation(len(whole))[:n.below(1, len(whole) + 1)].tolist())
    keep, x, zero, to = n.below(0, 2), data(n, dtype, *whole), n.pick(None, dtype(3)), n.pick(None, dtype(100))
    mean = (x.astype(np.float64) - int(zero or 0)).mean(tuple(axes), keepdims=bool(keep))
    y = np.clip(np.rint((mean * 2).astype(f32)) + int(to or 0), *limits(dtype)).astype(dtype)
    n.add("QLinearReduceMean", [x, f32(1), zero, f32(0.5), to], expected=[y], constant=True, axes=axes, keepdims=keep)


def quantize_linear(n):
    """Of com.microsoft's version: also types of 16 bits, without an opset that has them."""
    dtype = n.pick(np.uint8, np.int8, np.uint16, np.int16)
    x, axis = 300 * n.array(*shape(n, 2)), 0
    columns = () if n.chance() else (x.shape[axis],)
    given = [n.rng.choice(np.asarray([0.5, 0.25, 1.0], f32), columns), n.rng.choice(np.asarray([0, 3, 100]), columns).astype(dtype)]
    attributes = {"axis": axis} if columns else {}
    n.add("QuantizeLinear", [x, *given], constant=True, **attributes)
    n.add("DequantizeLinear", [data(n, dtype, *x.shape), *given], constant=True, **attributes)


# ---- products of bytes ----


def weight_data(n, dtype, *extents):
    """Bytes of at most 6 bits and a sign: pairs of larger products saturate in ONNX Runtime's kernels for AVX2."""
    return (data(n, dtype, *extents) // 2).astype(dtype) if dtype == np.int8 else data(n, dtype, *extents)


def weights(n, *extents):
    """Bytes with one scale and zero point, or one for each column."""
    dtype = byte_type(n)
    columns = () if n.chance() else (extents[-1],)
    zeros = None if n.chance(0.3) else np.full(columns, n.pick(0, 7, 100), dtype)
    return weight_data(n, dtype, *extents), n.rng.choice(np.asarray([0.25, 0.5], f32), columns), zeros


def qgemm(n):
    rows, terms, columns = n.below(1, 5), n.below(1, 20), n.below(1, 6)
    b, b_scale, b_zero = weights(n, terms, columns)
    dtype, attributes = byte_type(n) if b.dtype == np.int8 else np.uint8, {}
    b_zero = np.zeros((), b.dtype) if b_zero is None else b_zero
    if b_zero.shape == () and b_scale.shape:
        b_zero = np.full(b_scale.shape, b_zero)
    if not b_scale.shape and b_zero.shape:
        b_zero = b_zero[0]
    if n.chance():
        b, attributes["transB"] = np.ascontiguousarray(b.T), 1
    a = data(n, dtype, rows, terms)
    if n.chance(0.3):
        a, attributes["transA"] = np.ascontiguousarray(a.T), 1
    if n.chance(0.3):
        attributes["alpha"] = 0.5
    added = None if n.chance(0.3) else n.rng.integers(-5000, 5000, n.pick((columns,), (1, columns), (rows, columns))).astype(np.int32)
    result = [np.asarray(16, f32), dtype(n.pick(0, 3, 100))] if n.chance(0.6) else []
    n.add("QGemm", [a, np.asarray(0.5, f32), dtype(n.pick(0, 3, 100)), b, b_scale, b_zero, added, *result], constant=True, **attributes)


def matmul_integer_to_float(n):
    batch, rows, terms, columns = n.pick((), (2,)), n.below(1, 5), n.below(1, 20), n.below(1, 6)
    b, b_scale, b_zero = weights(n, terms, columns)
    if b_scale.shape and b_zero is not None:
        b_zero = np.broadcast_to(b_zero, b_scale.shape).copy()
    elif b_zero is not None:
        b_zero = b_zero.ravel()[:1].reshape(())
    dtype = byte_type(n) if b.dtype == np.int8 else np.uint8
    zero = n.pick(None, dtype(3))
    n.add("MatMulIntegerToFloat", [data(n, dtype, *batch, rows, terms), b, f32(0.5), b_scale, zero, b_zero,
          n.array(columns) if n.chance() else None], constant=True)


def dynamic_quantize_matmul(n):
    batch, rows, terms, columns = n.pick((), (2,)), n.below(1, 5), n.below(1, 20), n.below(1, 6)
    b, b_scale, b_zero = weights(n, terms, columns)
    n.add("DynamicQuantizeMatMul", [n.array(*batch, rows, terms), b, b_scale, None if b_zero is None else np.broadcast_to(b_zero, b_scale.shape).copy(),
                                    n.array(columns) if n.chance() else None], constant=True)


def qlinear_conv(n):
    """com.microsoft's, whose channels may stand last in data and result."""
    dtype, last = byte_type(n), n.chance(0.7)
    x, w, b, w_scale = data(n, dtype, 2, 4, 6, 5), weight_data(n, np.int8, 6, 2, 3, 2), n.rng.integers(-900, 900, 6).astype(np.int32), f32(0.25)
    if last:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    n.add("QLinearConv", [x, f32(0.5), dtype(3), w, w_scale, np.int8(0), f32(16), dtype(100), b], constant=True, group=2, pads=[1, 0, 0, 1],
          channels_last=int(last))


def qattention(n):
    batch, length, heads, past = n.below(1, 3), n.below(1, 5), n.pick(1, 2), n.pick(0, 0, 2)
    size, given = 4, 6
    dtype = n.pick(np.uint8, np.int8)
    b = weight_data(n, dtype, given, 3 * heads * size)
    columns = () if n.chance() else (b.shape[1],)
    zeros = np.full(columns, 3, dtype)
    attributes = {"num_heads": heads} | ({"unidirectional": 1} if n.chance(0.4) else {})
    mask = n.rng.integers(1, length + past + 1, batch).astype(np.int32) if n.chance() else None
    n.add("QAttention", [data(n, np.uint8, batch, length, given), b, n.array(b.shape[1]), np.asarray(1 / 256, f32), np.full(columns, 1 / 64, f32), mask,
                         np.uint8(128), zeros, n.array(2, batch, heads, past, size) if past else None], 2 if past else 1, constant=True, **attributes)


# ---- blocks of few bits ----


def packed(numbers, bits):
    """Numbers along the last dimension, the first one of a byte in its lowest bits."""
    each = 8 // bits
    numbers = np.concatenate([numbers, np.zeros((*numbers.shape[:-1], -numbers.shape[-1] % each), np.uint8)], -1)
    apart = numbers.reshape(*numbers.shape[:-1], -1, each).astype(np.uint32)
    return sum(apart[..., i] << (bits * i) for i in range(each)).astype(np.uint8)


def matmul_nbits(n):
    bits, block = n.pick(4, 4, 8, 2), n.pick(16, 32)
    columns, terms = n.below(1, 9), n.below(1, 70)
    blocks = -(-terms // block)
    numbers = n.rng.integers(0, 2**bits, (columns, blocks, block)).astype(np.uint8)
    zeros = n.pick("none", "packed", "floats")
    zeros = {"none": None, "packed": packed(n.rng.integers(0, 2**bits, (columns, blocks)).astype(np.uint8), bits),
             "floats": n.rng.uniform(0, 2**bits, (columns, blocks)).astype(f32)}[zeros]
    scales = n.rng.uniform(0.01, 0.1, (columns, blocks)).astype(f32)
    groups = None
    if n.chance(0.2):
        groups = n.rng.permutation(np.arange(blocks * block) // block).astype(np.int32)
    bias = n.array(columns) if n.chance() else None
    shown = np.zeros((columns, blocks), f32) + 2 ** (bits - 1)
    if zeros is not None:
        shown = zeros if zeros.dtype == f32 else np.stack([zeros >> (bits * i) & (2**bits - 1) for i in range(8 // bits)], -1).reshape(columns, -1)[:, :blocks].astype(f32)
    of = np.arange(blocks * block) // block if groups is None else groups
    w = ((numbers.reshape(columns, -1) - shown[:, of]) * scales[:, of])[:, :terms]
    a = n.array(*n.pick((), (2,)), n.below(1, 4), terms)
    y = (a @ w.T + (0 if bias is None else bias)).astype(f32)
    n.add("MatMulNBits", [a, packed(numbers, bits), scales, zeros, groups, bias], expected=[y], constant=n.chance(0.7), K=terms, N=columns, bits=bits,
          block_size=block, **({"accuracy_level": n.pick(0, 1, 4)} if n.chance() else {}))


def matmul_nbits_of_onnxruntime(n):
    """What its CPU provider has a kernel for, on operands as its quantiser writes them."""
    bits, block = n.pick(4, 8), n.pick(16, 32, 128)
    columns, blocks = n.pick(8, 16), n.below(1, 4)
    terms = blocks * block
    numbers = n.rng.integers(0, 2**bits, (columns, blocks, block)).astype(np.uint8)
    zeros = packed(n.rng.integers(0, 2**bits, (columns, blocks)).astype(np.uint8), bits) if n.chance() else None
    n.add("MatMulNBits", [n.array(n.below(1, 4), terms), packed(numbers, bits), n.rng.uniform(0.001, 0.01, (columns, blocks)).astype(f32), zeros, None,
                          n.array(columns) if n.chance() else None], constant=True, K=terms, N=columns, bits=bits, block_size=block)


def gather_block_quantized(n):
    bits, block, rows = n.pick(4, 8), n.pick(16, 32), n.below(1, 7)
    blocks = n.below(1, 4)
    numbers = n.rng.integers(0, 2**bits, (rows, blocks * block)).astype(np.uint8)
    zeros = packed(n.rng.integers(0, 2**bits, (rows, blocks)).astype(np.uint8), bits) if n.chance() else None
    places = n.rng.integers(0, rows, n.pick((3,), (2, 2), ())).astype(n.pick(np.int32, np.int64))
    scales = n.rng.uniform(0.01, 0.1, (rows, blocks)).astype(f32)
    names = [n.operand(packed(numbers, bits), True), n.operand(places, False), n.operand(scales, True)]
    if zeros is not None:
        names.append(n.operand(zeros, True))
    n.nodes.append(helper.make_node("GatherBlockQuantized", names, [f"y{len(n.nodes)}"], name=f"GatherBlockQuantized_{len(n.nodes)}", domain="com.microsoft",
                                    bits=bits, block_size=block, gather_axis=0, quantize_axis=1))


# ---- attention with a cache ----


def grouped_attention(n):
    """A first text, or more of one after what the cache holds, whose room may be larger than the text. Texts of a batch end at different places."""
    batch, groups, size = n.below(1, 3), n.pick(1, 2), 16
    heads, first = groups * n.pick(1, 2, 3), n.chance(0.4)
    length = n.below(2, 6) if first else 1 if batch > 1 else n.pick(1, 3)
    before = 0 if first else n.below(1, 6)
    total = before + length
    room = n.pick(total, before if not first else 0, total + 3)  # of the cache that is given
    attributes = {"num_heads": heads, "kv_num_heads": groups}
    if n.chance(0.3):
        attributes["scale"] = 0.3
    if n.chance(0.3):
        attributes["local_window_size"] = n.below(1, 4)
    if n.chance(0.3):
        attributes["softcap"] = 2.0
    query, key, value = n.array(batch, length, heads * size), n.array(batch, length, groups * size), n.array(batch, length, groups * size)
    if n.chance(0.3):
        query, key, value = np.concatenate([query, key, value], 2), None, None
    past = [n.array(batch, groups, room, size) for _ in range(2)]
    counts, totals = n.rng.integers(1, total + 1, batch), np.asarray(total, np.int32)
    counts[n.below(0, batch)] = total
    lengths = (counts - 1).astype(np.int32)
    angles = n.rng.uniform(-3, 3, (16, size // 2)).astype(f32)
    others = [None, None, None]
    if n.chance(0.6):
        attributes |= {"do_rotary": 1, "rotary_interleaved": n.below(0, 2)}
        others[:2] = np.cos(angles), np.sin(angles)
        if n.chance(0.7):
            others[2] = n.below(0, 8) + np.arange(length) + np.zeros((batch, 1), np.int64) if first else n.rng.integers(0, 16, (batch, length))
    bias = n.array(n.pick(1, batch), n.pick(1, heads), length, total) if n.chance(0.3) else None
    sinks = n.array(heads) if n.chance(0.3) else None
    if sinks is None and n.chance(0.2):
        attributes["smooth_softmax"] = 1
    names = [n.operand(array, False) for array in (query, key, value, *past, lengths)] + [n.operand(totals, True)]
    names += [n.operand(array, True) for array in (*others, bias, sinks)]
    while names[-1] == "":
        names.pop()
    outputs = [f"y{len(n.nodes)}_{i}" for i in range(3)]
    if first:  # the results of padding, and what is behind the text in the cache, are any number
        n.defined[outputs[0]] = np.arange(length) < counts[:, None]
    held = np.arange(max(room, total)) < (total if first else counts[:, None])
    for name in outputs[1:]:
        n.defined[name] = np.broadcast_to(held[..., None, :], (batch, groups, max(room, total)))
    n.nodes.append(helper.make_node("GroupQueryAttention", names, outputs, name=f"GroupQueryAttention_{len(n.nodes)}", domain="com.microsoft", **attributes))


class QuantizedOperators(RandomNodes):
    def test_elementwise(self):
        self.compare(qlinear_binary, qlinear_activation, qlinear_where, qlinear_concat, quantize_linear, count=12)

    def test_sums(self):
        self.compare(qlinear_softmax, qlinear_pool, qlinear_reduce_mean, nhwc_max_pool, count=12)

    def test_products(self):
        self.compare(qgemm, matmul_integer_to_float, dynamic_quantize_matmul, qlinear_conv, qattention, count=10)

    def test_attention_with_a_cache(self):
        self.compare(grouped_attention, count=24)

    def cached_attention(self, length, past, total, **attributes):
        """The file of a model of two texts with two heads of 16 elements."""
        operands = ["q", "k", "v", "past_key", "past_value", "lengths", "total"]
        node = helper.make_node("GroupQueryAttention", operands, ["y", "keys", "values"], name="attention", domain="com.microsoft", num_heads=2, kv_num_heads=2,
                                **attributes)
        inputs = [support.value(name, (2, length, 32)) for name in "qkv"] + [support.value(name, (2, 2, past, 16)) for name in operands[3:5]]
        inputs.append(support.value("lengths", (2,), onnx.TensorProto.INT32))
        model = support.make_model([node], inputs, [support.value("y", (2, length, 32)), support.value("keys", (2, 2, max(past, total), 16))],
                                   {"total": np.asarray(total, np.int32)})
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return self.save(model)

    def test_lengths_that_do_not_fit_are_one_error(self):
        message = "seqlens_k + 1 of a sequence does not lie between"
        for length, past, total, attributes, fit, others in (
                (1, 4, 5, {}, [(4, 0), (2, 4)], [(9, 4), (4, 5), (-1, 4)]),
                (3, 4, 5, {}, [(4, 2)], [(4, 1), (5, 4)]),
                (3, 4, 3, {}, [(2, 0)], [(2, 3)]),
                (3, 4, 3, {"causal": 0}, [(2, 0)], [(3, 2)])):
            model = self.cached_attention(length, past, total, **attributes)
            zeros = {name: np.zeros((2, length, 32), f32) for name in "qkv"} | {name: np.zeros((2, 2, past, 16), f32) for name in ("past_key", "past_value")}
            for lengths in fit:
                self.outputs(model, zeros | {"lengths": np.asarray(lengths, np.int32)})
            for lengths in others:
                np.save(self.folder / "lengths.npy", np.asarray(lengths, np.int32))
                given = [f"{name}={self.folder / name}.npy" for name in (*zeros, "lengths")]
                with self.subTest(length=length, total=total, lengths=lengths, **attributes):
                    error = self.refuse(message, "run", model, *(word for one in given for word in ("--input", one)))
                    self.assertIn("attention", error)

    def test_blocks(self):
        self.compare(matmul_nbits, matmul_nbits_of_onnxruntime, gather_block_quantized, count=12)


# ---- models as the quantiser writes them ----


class Samples(CalibrationDataReader):
    """What the quantiser runs the model on, to find the ranges of its values."""

    def __init__(self, samples):
        self.left = iter(samples)

    def get_next(self):
        return next(self.left, None)


def small_images():
    """A network in the style of MobileNet, with all that the format QOperator has an operator for."""
    rng, nodes, constants = np.random.default_rng(5), [], {}

    def add(op, *operands, **attributes):
        nodes.append(helper.make_node(op, operands, [f"t{len(nodes)}"], name=f"{op}_{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    def constant(*extents):
        name = f"c{len(constants)}"
        constants[name] = (rng.standard_normal(extents) / np.sqrt(np.prod(extents[1:]))).astype(f32)
        return name

    x = add("Relu", add("Conv", "image", constant(8, 3, 3, 3), constant(8), pads=[1] * 4, strides=[2, 2]))
    y = add("LeakyRelu", add("Conv", x, constant(8, 1, 3, 3), constant(8), pads=[1] * 4, group=8), alpha=0.1)
    x = add("Add", add("Conv", y, constant(8, 8, 1, 1)), x)
    x = add("Concat", add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    gate = add("Sigmoid", add("Conv", add("GlobalAveragePool", x), constant(16, 16, 1, 1), constant(16)))
    x = add("Flatten", add("GlobalAveragePool", add("Mul", x, gate)))
    nodes.append(helper.make_node("Softmax", [add("Gemm", x, constant(10, 16), constant(10), transB=1)], ["y"], axis=-1))
    return support.make_model(nodes, [support.value("image", (1, 3, 16, 16))], [support.value("y", (1, 10))],
                              constants)


def with_blocks(model, bits, block, symmetric):
    """The model with MatMulNBits for each product by constant weights: what MatMulNBitsQuantizer makes, whose Python needs more packages."""
    kernel = {4: _pybind_state.quantize_matmul_4bits, 8: _pybind_state.quantize_matmul_8bits}[bits]
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        w = constants.get(node.input[1]) if node.op_type == "MatMul" else None
        if w is None or w.ndim != 2:
            continue
        (terms, columns), blocks = w.shape, -(-w.shape[0] // block)
        numbers, scales = np.zeros((columns, blocks, block * bits // 8), np.uint8), np.zeros((columns, blocks), f32)
        zeros = np.zeros((columns, -(-blocks * bits // 8)), np.uint8)
        kernel(numbers, np.pad(w, ((0, blocks * block - terms), (0, 0))), scales, zeros, block, columns, terms, symmetric)
        made = {"B": numbers, "scales": scales} | ({} if symmetric else {"zeros": zeros})
        model.graph.initializer.extend(numpy_helper.from_array(array, f"{node.output[0]}_{name}") for name, array in made.items())
        node.CopyFrom(helper.make_node("MatMulNBits", [node.input[0], *(f"{node.output[0]}_{name}" for name in made)], list(node.output), name=node.name,
                                       domain="com.microsoft", K=terms, N=columns, bits=bits, block_size=block))
    read = {name for node in model.graph.node for name in node.input}
    for tensor in [tensor for tensor in model.graph.initializer if tensor.name not in read]:
        model.graph.initializer.remove(tensor)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


class QuantizedModels(Case):
    """What Hone makes of the files is near to what ONNX Runtime makes of them: sums of floats may fall to either side of a half."""

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(6)
        self.images = [{"image": rng.standard_normal((1, 3, 16, 16)).astype(f32)} for _ in range(4)]
        mask = np.asarray([[1] * 11 + [0] * 5])
        self.texts = [{"input_ids": rng.integers(0, 50, (1, 16)), "token_type_ids": rng.integers(0, 2, (1, 16)), "attention_mask": mask} for _ in range(4)]

    def operators(self, path):
        return {node.op_type for node in onnx.load(path).graph.node}

    def expect_near(self, path, feeds, tolerance, has):
        self.assertLessEqual(set(has), self.operators(path))
        (expected,) = support.reference(path, feeds).values()
        (found,) = self.outputs(path, feeds).values()
        self.assertLess(support.relative_error(found, expected), tolerance)

    def quantize(self, model, samples, **options):
        path = self.folder / "quantized.onnx"
        quantize_static(self.save(model), path, Samples(samples), **options)
        return path

    def test_images_by_operators_of_bytes(self):
        path = self.quantize(small_images(), self.images, quant_format=QuantFormat.QOperator, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        self.expect_near(path, self.images[0], 0.02, ["QLinearConv", "QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearAveragePool", "QLinearSigmoid",
                                                      "QLinearLeakyRelu", "QLinearGlobalAveragePool", "QGemm", "QLinearSoftmax"])

    def test_images_by_pairs(self):
        path = self.quantize(small_images(), self.images, quant_format=QuantFormat.QDQ, per_channel=True)
        self.expect_near(path, self.images[0], 0.02, ["QuantizeLinear", "DequantizeLinear"])

    def test_images_with_16_bits(self):
        path = self.quantize(small_images(), self.images, quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt16,
                             extra_options={"UseQDQContribOps": True})
        self.assertIn("com.microsoft", {node.domain for node in onnx.load(path).graph.node if node.op_type == "QuantizeLinear"})
        self.expect_near(path, self.images[0], 1e-3, ["QuantizeLinear", "DequantizeLinear"])

    def test_a_text_by_operators_of_bytes(self):
        path = self.quantize(small_bert()[0], self.texts, quant_format=QuantFormat.QOperator)
        self.expect_near(path, self.texts[0], 0.1, ["QLinearMatMul", "QLinearAdd", "QLinearSoftmax"])

    def test_a_text_by_its_ranges_in_each_run(self):
        model, path = self.save(small_bert()[0]), self.folder / "quantized.onnx"
        quantize_dynamic(model, path)
        self.expect_near(path, self.texts[0], 0.02, ["MatMulInteger", "DynamicQuantizeLinear"])
        optimized = self.folder / "optimized.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(optimized)
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.expect_near(optimized, self.texts[0], 0.02, ["DynamicQuantizeMatMul"])

    def test_a_text_with_weights_of_few_bits(self):
        for bits in (4, 8):
            path = self.save(with_blocks(small_bert()[0], bits, 16, symmetric=bits == 8))
            self.expect_near(path, self.texts[0], 1e-4, ["MatMulNBits"])


if __name__ == "__main__":
    support.main()
