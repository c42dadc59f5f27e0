"""fold_batch_norm, fold_scales, interleave_last: BatchNormalization, scales and shifts per channel, before and behind products; elementwise
operators behind a ConvTranspose."""
import numpy as np

from pass_edges.edge import Family, Impossible


def _image(m, channels, spatial=None, dtype=np.float32):
    spatial = spatial or m.pick([1, 2, 2, 2, 3])
    return m.source((m.between(1, 2), channels, *(m.between(3, 6) for _ in range(spatial))), dtype)


def _window(m, spatial):
    kernel = [m.between(1, 3) for _ in range(spatial)]
    attributes = {"kernel_shape": kernel} if m.chance(0.8) else {}
    if m.chance(0.3):
        attributes["strides"] = [m.between(1, 2) for _ in range(spatial)]
    kind = m.below(6)
    if kind == 0:
        attributes["auto_pad"] = m.pick(["VALID", "SAME_UPPER", "SAME_LOWER"])
    elif kind < 3:
        attributes["pads"] = [m.below(k) for k in kernel] * 2
    return kernel, attributes


def _bias(m, shape, dtype):
    if m.half():
        return []
    return [m.weight(shape, dtype) if m.almost(True, False) else m.variable(m.content(shape, dtype))]


def convolution(m, x=None, channels=None):
    """A Conv with constant weights; its result and that of other readers of the weights."""
    channels = channels or m.pick([1, 2, 4, 6])
    group = m.pick([1, 1, 1, channels, 2 if channels % 2 == 0 else 1])
    outputs = group * m.between(1, 3)
    x = x or _image(m, channels)
    kernel, attributes = _window(m, len(x.shape) - 2)
    weight = m.weight((outputs, channels // group, *kernel), x.array.dtype)
    y = m.node("Conv", x, weight, *_bias(m, (outputs,), x.array.dtype), **attributes, **({"group": group} if group > 1 or m.half() else {}))
    if m.almost(False, True):  # the weights have another reader
        m.node("Relu", weight)
    return y


def gemm(m, x=None):
    dtype = np.float32 if x is None else x.array.dtype
    trans_a = m.almost(0, 1)
    x = x or m.source((m.between(1, 5), m.between(1, 6)), dtype)
    depth, rows = (x.shape[0], x.shape[1]) if trans_a else (x.shape[1], x.shape[0])
    columns, trans_b = m.between(1, 6), m.below(2)
    weight = m.weight((columns, depth) if trans_b else (depth, columns), dtype)
    bias = [] if m.opset >= 11 and m.half() else [m.weight(m.almost((columns,), (1, columns), (rows, 1), ()), dtype)]
    attributes = {"transA": trans_a} if trans_a else {}
    if trans_b or m.half():
        attributes["transB"] = trans_b
    if m.half():
        attributes["alpha"] = m.pick([0.5, 2.0, 1.0])
    if m.chance(0.3):
        attributes["beta"] = m.almost(1.0, 0.5, 2.0)
    return m.node("Gemm", x, weight, *bias, **attributes)


def matmul(m, x=None):
    x = x or m.source(tuple(m.between(1, 5) for _ in range(m.pick([2, 2, 3, 4]))))
    weight = m.weight(m.almost((x.shape[-1], m.between(1, 6)), (x.shape[-1],), (1, x.shape[-1], 3)), x.array.dtype)
    return m.node("MatMul", x, weight)


def _product(m):
    return m.pick([convolution, convolution, gemm, matmul])(m)


def _batch_norm(m, x):
    if len(x.shape) < 2:
        raise Impossible("no channels")
    channels, dtype = x.shape[1], x.array.dtype
    parameters = [m.weight((channels,), dtype, positive=i == 3) for i in range(4)]
    attributes = {"epsilon": m.pick([1e-5, 1e-3, 0.1])} if m.half() else {}
    if m.half():
        attributes["momentum"] = 0.8
    if 14 <= m.opset and m.chance(0.3):
        attributes["training_mode"] = 0
    if m.opset < 9 and m.half():
        attributes["spatial"] = 1
    return m.node("BatchNormalization", x, *parameters, **attributes)


def batch_norm(m):
    dtype = m.pick([np.float32, np.float32, np.float64])
    kind = m.below(4)
    if kind == 0:
        x = m.source(tuple(m.between(1, 5) for _ in range(m.between(2, 5))), dtype)
    elif kind == 1:
        x = m.activation(_product(m))
    else:
        x = _product(m)
    y = _batch_norm(m, x)
    if m.half():
        y = m.activation(y)
    if m.chance(0.2):
        _batch_norm(m, y)


def _scale_or_shift(m, x, axis):
    name = m.pick(["Mul", "Mul", "Add", "Div", "Sub"])
    other = m.per_channel(x, axis)
    if name == "Div" and other.kind == "constant":
        low = np.abs(other.array).min() if other.array.size else 1
        other = m.constant(np.where(np.abs(other.array) < 0.1, 0.5, other.array).astype(x.array.dtype)) if low < 0.1 and m.almost(True, False) else other
    reverses = m.half() if name in ("Mul", "Add") else m.almost(False, True)
    return m.node(name, *([other, x] if reverses else [x, other]))


def _channel_axis(x, product):
    return 1 if product is convolution else len(x.shape) - 1


def behind(m):
    make = m.pick([convolution, convolution, gemm, matmul])
    y = make(m)
    if not y.shape:
        raise Impossible("a scalar")
    for _ in range(m.between(1, 3)):
        y = _scale_or_shift(m, y, m.almost(_channel_axis(y, make), 0))
    if m.half():
        m.activation(y)


def before(m):
    make = m.pick([convolution, convolution, gemm, matmul])
    channels = m.pick([1, 2, 4, 6])
    if make is convolution:
        x = _image(m, channels)
    else:
        x = m.source((m.between(1, 5), channels) if make is gemm or m.half() else (m.between(1, 3), m.between(1, 5), channels))
    for _ in range(m.between(1, 2)):
        x = _scale_or_shift(m, x, m.almost(_channel_axis(x, make), 0))
    y = make(m, x, x.shape[1]) if make is convolution and x.shape[1] == channels else make(m, x)
    if m.half():
        _scale_or_shift(m, y, _channel_axis(y, make))


def transposed_convolution(m):
    """Its result is interleaved from parts; what follows may work on the parts."""
    spatial = m.pick([1, 2, 2])
    channels, outputs, group = m.pick([2, 4]), m.between(1, 3), m.pick([1, 1, 2])
    x = _image(m, channels, spatial)
    kernel = [m.between(1, 4) for _ in range(spatial)]
    attributes = {"kernel_shape": kernel, "strides": [m.between(1, 3) for _ in range(spatial)]}
    if m.half():
        attributes["pads"] = [m.below(k) // 2 for k in kernel] * 2
    if m.chance(0.3):
        attributes["output_padding"] = [m.below(s) for s in attributes["strides"]]
    if m.chance(0.2):
        attributes["dilations"] = [m.between(1, 2) for _ in range(spatial)]
    y = m.node("ConvTranspose", x, m.weight((channels, outputs, *kernel)), *_bias(m, (outputs * group,), np.float32), group=group, **attributes)
    for _ in range(m.between(1, 3)):
        kind = m.below(5)
        if kind == 0:
            y = _batch_norm(m, y)
        elif kind == 1:
            y = _scale_or_shift(m, y, 1)
        elif kind == 2:
            y = m.node("PRelu", y, m.weight(m.almost((y.shape[1], *[1] * spatial), (1,), (*[1] * spatial, 1), y.shape[1:])))
        elif kind == 3:
            y = m.either_way(m.pick(["Add", "Mul"]), y, m.weight(m.broadcastable(y.shape)))
        else:
            y = m.activation(y)


FAMILY = Family("affine", ("interleave_last", "fold_batch_norm", "fold_scales"),
                [batch_norm, batch_norm, behind, behind, before, before, transposed_convolution, transposed_convolution])
