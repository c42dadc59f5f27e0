"""Random convolutions and pools with all of their attributes, beside those of operators.py."""
import numpy as np

from operators import window


def _given(m, shape, dtype=np.float32, constant=0.9):
    return m.graph.given(m.random(shape, dtype), False, m.chance(constant))


def conv_transpose(m):
    """Padding by itself, and results of a given shape."""
    spatial = m.pick([1, 2, 2])
    a = m.image(np.float32, spatial)
    group = m.pick([1, a.shape[1]])
    kernel = [m.between(1, 3) for _ in range(spatial)]
    strides = [m.between(1, 3) for _ in range(spatial)]
    attributes = {"strides": strides, "group": group}
    if m.chance(0.5):
        attributes["kernel_shape"] = kernel
    kind = m.below(3)
    if kind == 0:
        attributes["auto_pad"] = m.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if any(k < s for k, s in zip(kernel, strides)):
            attributes["auto_pad"] = "VALID"
    elif kind == 1:
        attributes["output_shape"] = [(extent - 1) * s + k - m.below(k) for extent, s, k in zip(a.shape[2:], strides, kernel)]
    else:
        attributes["output_padding"] = [m.below(s) for s in strides]
        attributes["dilations"] = [m.between(1, 2) for _ in range(spatial)]
    weight = _given(m, (a.shape[1], m.between(1, 2), *kernel))
    return m.graph.add("ConvTranspose", [a, weight], **attributes)


def lp_pool(m):
    spatial = m.pick([1, 2])
    a = m.image(np.float32, spatial)
    if m.chance(0.3):
        return m.graph.add("GlobalLpPool", [a], **({"p": m.pick([1, 2, 3])} if m.chance(0.7) else {}))
    attributes = window(m, spatial, a.shape[2:], dilation=m.opset >= 18)
    if m.opset >= 18:
        attributes["ceil_mode"] = m.below(2)
    return m.graph.add("LpPool", [a], p=m.pick([1, 2, 3]), **attributes)


def max_pool_with_places(m):
    spatial = m.pick([1, 2, 2, 3])
    a = m.image(np.float32, spatial, exact=True)
    attributes = window(m, spatial, a.shape[2:])
    # Column-major places are the same in one dimension.
    attributes["storage_order"] = m.below(2)
    found = m.graph.add("MaxPool", [a], results=2, exact=True, **attributes)
    return found


def max_unpool(m):
    if m.opset < 9:
        return None
    spatial = m.pick([1, 2])
    a = m.image(np.float32, spatial, exact=True)
    kernel = [2] * spatial
    # Places count in the shape that the strides give: with elements that no window covers, it would be another.
    if any(extent % 2 for extent in a.shape[2:]):
        return None
    attributes = {"kernel_shape": kernel, "strides": kernel}
    found = m.graph.add("MaxPool", [a], results=2, exact=True, **attributes)
    if found is None:
        return None
    if m.chance(0.4):
        attributes["pads"] = [0] * (2 * spatial)
    operands = list(found)
    if m.chance(0.5):
        operands.append(m.graph.constant(np.asarray(a.shape, np.int64)))
    return m.graph.add("MaxUnpool", operands, exact=True, **attributes)


def col2im(m):
    if m.opset < 18:
        return None
    spatial = m.pick([1, 2, 2])
    image, block = [m.between(3, 6) for _ in range(spatial)], [m.between(1, 3) for _ in range(spatial)]
    strides, dilations, pads = [m.between(1, 2) for _ in block], [m.between(1, 2) if m.chance(0.3) else 1 for _ in block], [m.below(2) for _ in range(2 * spatial)]
    places = [(i + pads[d] + pads[spatial + d] - dilations[d] * (block[d] - 1) - 1) // strides[d] + 1 for d, i in enumerate(image)]
    if min(places) < 1:
        return None
    x = m.operand((m.between(1, 2), m.between(1, 2) * int(np.prod(block)), int(np.prod(places))), np.float32)
    shapes = [m.graph.constant(np.asarray(s, np.int64)) for s in (image, block)]
    return m.graph.add("Col2Im", [x, *shapes], strides=strides, dilations=dilations, pads=pads)


def conv_integer(m):
    if m.opset < 10:
        return None
    channels = m.pick([1, 2, 4])
    a = m.operand((m.between(1, 2), channels, m.between(3, 6), m.between(3, 6)), np.uint8)
    attributes = window(m, 2, a.shape[2:])
    group = m.pick([1, channels])
    weight = m.graph.given(m.random((2 * group, channels // group, *attributes["kernel_shape"]), m.pick([np.uint8, np.int8])), True, m.chance(0.8))
    zeros = []
    if m.chance(0.6):
        zeros = [m.graph.constant(np.asarray(m.below(5), np.uint8))]
        if m.chance(0.6):
            zeros.append(m.graph.constant(np.asarray(m.below(5), weight.array.dtype)))
    return m.graph.add("ConvInteger", [a, weight, *zeros], exact=True, group=group, **attributes)


def quantized_conv(m):
    if m.opset < 10:
        return None
    channels = m.pick([1, 2, 4])
    a = m.graph.given(m.rng.integers(0, 255, (m.between(1, 2), channels, m.between(3, 6), m.between(3, 6))).astype(np.uint8), True, False)
    attributes = window(m, 2, a.shape[2:])
    group = m.pick([1, channels])
    weight = m.graph.constant(m.rng.integers(-20, 20, (2 * group, channels // group, *attributes["kernel_shape"])).astype(np.int8))
    number = lambda value, dtype: m.graph.constant(np.asarray(value, dtype))
    weight_scale = number(0.125, np.float32) if m.chance(0.6) else m.graph.constant(np.full(2 * group, 0.25, np.float32))
    weight_zero = number(0, np.int8) if weight_scale.shape == () else m.graph.constant(np.zeros(2 * group, np.int8))
    operands = [a, number(0.25, np.float32), number(m.pick([0, 100]), np.uint8), weight, weight_scale, weight_zero, number(2.0, np.float32), number(m.pick([0, 128]), np.uint8)]
    if m.chance(0.5):
        operands.append(m.graph.constant(m.rng.integers(-50, 50, 2 * group).astype(np.int32)))
    return m.graph.add("QLinearConv", operands, group=group, rounds=True, **attributes)


TEMPLATES = [(conv_transpose, 1), (lp_pool, 1), (max_pool_with_places, 1), (max_unpool, 1), (col2im, 1), (conv_integer, 1), (quantized_conv, 1)]
