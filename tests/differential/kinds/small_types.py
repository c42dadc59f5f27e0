"""Values of 8 bits and fewer among others: initializers, casts, quantizing by tensor, axis and block, and what moves elements."""
import ml_dtypes
import numpy as np
from onnx import helper

import movement
import operators
from kinds.kind import Kind
from kinds.maker import PLAIN, KindMaker

# Type, since which opset.
FLOATS = [(ml_dtypes.float8_e4m3fn, 19), (ml_dtypes.float8_e4m3fnuz, 19), (ml_dtypes.float8_e5m2, 19), (ml_dtypes.float8_e5m2fnuz, 19),
          (ml_dtypes.float4_e2m1fn, 23)]
INTEGERS = [(ml_dtypes.int4, 21), (ml_dtypes.uint4, 21), (ml_dtypes.int2, 25), (ml_dtypes.uint2, 25)]


def types(m, quantized=False):
    """Those of the opset; float4 is quantized since its own, too."""
    return [np.dtype(dtype) for dtype, since in FLOATS + INTEGERS if m.opset >= since]


def is_small(value):
    return value.array.dtype in [np.dtype(dtype) for dtype, _ in FLOATS + INTEGERS]


def is_integer(dtype):
    return dtype in [np.dtype(kind) for kind, _ in INTEGERS]


def code(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def numbers(m, shape, dtype):
    """Of the type: its small numbers."""
    low, high = (int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)) if is_integer(dtype) else (-6, 6)
    array = m.rng.integers(low, high + 1, shape)
    return np.asarray(array / (1 if is_integer(dtype) else 2)).astype(np.float32).astype(dtype)


def small(m, least_rank=0):
    found = [v for v in m.graph.values.values() if is_small(v) and len(v.shape) >= least_rank]
    if found and m.chance(0.7):
        return m.pick(found[-3:])
    shape = m.shape()
    while len(shape) < least_rank:
        shape += (m.extent(),)
    return m.graph.constant(numbers(m, shape, m.pick(types(m))))


def widen(m):
    """Of float8 to any float, of integers to any number."""
    x = small(m)
    wide = [np.float32, np.float32, np.float16, np.float64] + [np.int32, np.int64] * is_integer(x.array.dtype)
    return m.graph.add("Cast", [x], to=code(m.pick(wide)), exact=True)


def narrow(m):
    dtype = m.pick(types(m))
    x = m.value(m.pick([np.float32, np.float32, np.float16, np.float64]), exact=True)
    if is_integer(dtype):
        # Numbers beyond the type have no result that all agree on.
        low, high = (m.graph.constant(np.asarray(limit, x.array.dtype)) for limit in (ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max))
        x = m.node("Clip", x, low, high, exact=True)
    attributes = {"saturate": m.below(2)} if not is_integer(dtype) and m.chance(0.5) else {}
    return x and m.graph.add("Cast", [x], to=code(dtype), exact=True, **attributes)


def between(m):
    """From one small type to another one."""
    x, dtype = small(m), m.pick(types(m))
    return m.graph.add("Cast", [x], to=code(dtype), exact=True) if is_integer(dtype) == is_integer(x.array.dtype) and not is_integer(dtype) else None


def parameters(m, x, dtype):
    """(scale, zero point, attributes)"""
    shape, attributes = (), {}
    if x.shape and 0 not in x.shape and m.chance(0.6):
        axis = m.axis(x)
        attributes["axis"], shape = axis, (x.shape[axis],)
        if m.opset >= 21 and m.chance(0.5):
            attributes["block_size"] = block = m.pick([d for d in range(1, x.shape[axis] + 1) if x.shape[axis] % d == 0])
            shape = list(x.shape)
            shape[axis] //= block
    scale = m.graph.constant(m.rng.choice(np.asarray([0.25, 0.5, 1, 2], np.float32), shape))
    zero = numbers(m, shape, dtype) if is_integer(dtype) else np.zeros(shape, dtype)
    return scale, m.graph.constant(zero) if m.chance(0.7) else None, attributes


def quantize(m):
    x, dtype = m.value(np.float32, exact=True), m.pick(types(m))
    scale, zero, attributes = parameters(m, x, dtype)
    own = dict(attributes)
    if m.opset >= 21 and (zero is None or m.chance(0.3)):
        own["output_dtype"] = code(dtype)
    if "output_dtype" not in own and zero is None:
        return None
    if not is_integer(dtype) and m.chance(0.4):
        own["saturate"] = m.below(2)
    found = m.graph.add("QuantizeLinear", [x, scale, zero], exact=True, **own)
    if found and m.chance(0.7):
        return m.graph.add("DequantizeLinear", [found[0], scale, zero], exact=True, **attributes)
    return found


def dequantize(m):
    x = small(m)
    scale, zero, attributes = parameters(m, x, x.array.dtype)
    return m.graph.add("DequantizeLinear", [x, scale, zero], exact=True, **attributes)


def moved(template):
    """A node that moves elements, on a small value."""

    def add(m):
        x = small(m, 1)
        m.any_value = lambda least_rank=0: x
        try:
            return template(m)
        finally:
            del m.any_value

    return add


def chosen(m):
    x = small(m)
    return m.graph.add("Where", [m.operand(x.shape, np.bool_), x, m.graph.constant(numbers(m, x.shape, x.array.dtype))], exact=True)


MOVES = [movement.reshape, movement.transpose, movement.squeeze, movement.expand, movement.slice_, movement.gather]
TEMPLATES = [(widen, 4), (narrow, 4), (between, 1), (quantize, 4), (dequantize, 3), (chosen, 1), *[(moved(template), 0.6) for template in MOVES],
             (operators.matmul, 1), *[(template, weight / 5) for template, weight in PLAIN]]


def make(prefix, opset, imports, rng):
    m = KindMaker(prefix, opset, rng)
    m.grow(TEMPLATES, m.between(3, 10))
    read = {name for node in m.graph.nodes for name in node.input}
    for value in [v for v in m.graph.values.values() if is_small(v) and v.kind == "result" and v.name not in read]:
        m.graph.add("Cast", [value], to=1, exact=True)
    return m.graph


KIND = Kind("small_types", make, opsets=(19, 20, 21, 22, 23, 24, 25))
