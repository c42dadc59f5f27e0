"""Random nodes of quantized values, with all of their attributes. See operators.py."""
import numpy as np

_CODES = {np.uint8: 2, np.int8: 3, np.uint16: 4, np.int16: 5, np.int32: 6}


def quantize(m):
    """By tensor, along an axis, or by blocks; then back."""
    if m.opset < 10:
        return None
    a = m.value(np.float32, exact=True)
    types = [np.uint8, np.int8] + [np.uint16, np.int16] * (m.opset >= 21)
    dtype = m.pick(types)
    shape, attributes = (), {}
    if m.opset >= 13 and a.shape and 0 not in a.shape and m.chance(0.5):
        axis = m.axis(a)
        attributes["axis"] = axis
        shape = (a.shape[axis],)
        if m.opset >= 21 and m.chance(0.4):
            block = m.pick([d for d in range(1, a.shape[axis] + 1) if a.shape[axis] % d == 0])
            attributes["block_size"] = block
            shape = list(a.shape)
            shape[axis] //= block
    scale = m.graph.constant(m.rng.choice(np.asarray([0.5, 0.25, 1.0], np.float32), shape))
    zero = m.graph.constant(m.rng.choice(np.asarray([0, 3, 100]), shape).astype(dtype)) if m.chance(0.8) else None
    own = dict(attributes)
    if m.opset >= 19 and m.chance(0.4):
        own["saturate"] = m.below(2)
    if m.opset >= 21 and m.chance(0.4) and (zero is not None or dtype != np.uint8):
        own["output_dtype"] = _CODES[dtype]
    if m.opset >= 23 and m.chance(0.3):
        own["precision"] = m.pick([0, 1])
    if zero is None and "output_dtype" not in own and dtype != np.uint8:
        zero = m.graph.constant(np.zeros(shape, dtype))
    parameters = [scale] + ([zero] if zero else [])
    found = m.graph.add("QuantizeLinear", [a, *parameters], exact=True, **own)
    if not found:
        return None
    if m.opset >= 23 and m.chance(0.3):
        attributes["output_dtype"] = m.pick([1, 10])
    return m.graph.add("DequantizeLinear", [found[0], *parameters], exact=True, **attributes)


def dynamic(m):
    return m.graph.add("DynamicQuantizeLinear", [m.value(np.float32, exact=True)], results=3, rounds=True) if m.opset >= 11 else None


def integer_product(m):
    if m.opset < 10:
        return None
    dtype = m.pick([np.uint8, np.int8])
    a = m.operand((m.extent(), m.pick([1, 2, 3, 4, 7, 16])), dtype)
    b = m.operand((a.shape[1], m.extent()), np.uint8)
    zeros = [m.graph.constant(np.asarray(m.below(5), x.array.dtype)) for x in (a, b)] if m.chance(0.6) else []
    return m.graph.add("MatMulInteger", [a, b, *zeros], exact=True)


def quantized_product(m):
    if m.opset < 10:
        return None
    depth, number = m.between(1, 8), lambda value, dtype: m.graph.constant(np.asarray(value, dtype))
    a = m.graph.given(m.rng.integers(0, 255, (m.between(1, 5), depth)).astype(np.uint8), True, False)
    b = m.graph.given(m.rng.integers(0, 60, (depth, m.between(1, 5))).astype(np.uint8), True, m.chance(0.7))
    operands = [a, number(0.25, np.float32), number(100, np.uint8), b, number(0.125, np.float32), number(10, np.uint8), number(1.5, np.float32), number(m.pick([0, 128]), np.uint8)]
    return m.graph.add("QLinearMatMul", operands, rounds=True)


TEMPLATES = [(quantize, 2), (dynamic, 1), (integer_product, 1), (quantized_product, 1)]
