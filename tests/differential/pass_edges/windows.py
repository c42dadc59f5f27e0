"""merge_pads, groups_inner and flatten_to_conv: what stands before and behind windows."""
import numpy as np

from pass_edges.edge import Family, Impossible


def _image(m, channels, spatial):
    return m.source((m.between(1, 2), channels, *(m.between(3, 7) for _ in range(spatial))), m.pick([np.float32, np.float32, np.float32, np.float64]))


def padded(m):
    spatial, channels = m.pick([1, 2, 2, 3]), m.pick([1, 2, 4])
    x = _image(m, channels, spatial)
    pads = [0] * (2 * (spatial + 2))
    for d in range(spatial):
        pads[2 + d], pads[4 + spatial + d] = m.below(3), m.below(3)
    if m.almost(False, True):
        pads[m.below(len(pads))] += m.pick([1, -1, 2])
    mode = m.almost("constant", "edge", "reflect", *(["wrap"] if m.opset >= 19 else []))
    fill = m.almost(m.pick([None, 0, -0.0]), 1, -1, np.inf)
    if m.opset >= 18 and m.chance(0.3):
        axes = list(range(2, spatial + 2))
        short = [pads[a] for a in axes] + [pads[a + spatial + 2] for a in axes]
        operands = [m.integers(short), m.graph.constant(np.asarray(fill or 0, x.array.dtype)), m.integers(m.axes(axes, spatial + 2))]
        x = m.node("Pad", x, *operands, mode=mode, exact=True)
    else:
        x = m.pad(x, pads, mode, fill)
    kernel = [m.between(1, 3) for _ in range(spatial)]
    attributes = {"kernel_shape": kernel}
    if m.chance(0.4):
        attributes["strides"] = [m.between(1, 3) for _ in range(spatial)]
    if m.chance(0.3):
        attributes["pads"] = [m.below(k) for k in kernel] + [m.below(k) for k in kernel]
    elif m.almost(False, True):
        attributes["auto_pad"] = m.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    name = m.pick(["Conv", "Conv", "AveragePool", "AveragePool", m.almost("Conv", "MaxPool", "LpPool", "ConvTranspose")])
    if m.chance(0.2) and (name == "Conv" or name == "AveragePool" and m.opset >= 19):
        attributes["dilations"] = [m.between(1, 2) for _ in range(spatial)]
    if name == "AveragePool":
        if m.half():
            attributes["count_include_pad"] = m.below(2)
        if m.opset >= 10 and m.half():
            attributes["ceil_mode"] = m.almost(0, 1)
    if name in ("Conv", "ConvTranspose"):
        channels = x.shape[1]
        if channels == 0:
            raise Impossible("no channels")
        group = m.pick([1, channels])
        weight = (channels, 2, *kernel) if name == "ConvTranspose" else (2 * group, channels // group, *kernel)
        m.node(name, x, m.weight(weight, x.array.dtype), group=group, **attributes)
    else:
        m.node(name, x, **attributes)


def _conv(m, x, outputs, kernel, group=1, bias=None, **attributes):
    operands = [m.weight((outputs, x.shape[1] // group, *kernel), x.array.dtype)]
    if bias if bias is not None else m.half():
        operands.append(m.weight((outputs,), x.array.dtype))
    return m.node("Conv", x, *operands, group=group, **attributes)


def _shuffle(m, x, rows):
    """Channels as [rows, columns] become [columns, rows]."""
    n, channels, *spatial = x.shape
    if channels % rows:
        raise Impossible("channels")
    parts = [n, rows, channels // rows, *spatial]
    if not m.almost(True, False):
        parts = [n, channels, 1, *spatial]
    perm = list(range(len(parts)))
    perm[1], perm[2] = 2, 1
    y = m.node("Reshape", x, m.integers(parts), exact=True)
    y = m.transpose(y, m.almost(perm, m.permutation(len(perm))))
    return m.node("Reshape", y, m.integers([n, channels, *spatial]), exact=True)


def _channelwise(m, x):
    kind = m.below(4)
    if kind == 0:
        return m.activation(x)
    if kind == 1:
        return m.either_way(m.pick(["Mul", "Add"]), x, m.per_channel(x))
    if kind == 2:
        spatial = len(x.shape) - 2
        return _conv(m, x, x.shape[1], [3] * spatial, x.shape[1], pads=[1] * (2 * spatial))
    return m.node("Relu", x)


def groups(m):
    """Convolutions in many groups of few channels, with shuffles and convolutions around them."""
    spatial = m.pick([1, 2, 2])
    group, inputs, outputs = m.almost(m.pick([8, 16]), 4), m.between(1, 4), m.pick([1, 2, 3, 4, 8])
    channels = group * inputs
    x = m.source((m.between(1, 2), m.pick([3, 4, channels]), *(m.between(2, 5) for _ in range(spatial))))
    if x.shape[1] != channels or m.half():
        x = _conv(m, x, channels, [1] * spatial)
    for _ in range(m.below(2)):
        x = _channelwise(m, x)
    if m.half():
        x = _shuffle(m, x, m.pick([group, inputs, 2 if channels % 2 == 0 else 1]))
    if m.chance(0.7):
        size = m.pick([1, 3])
        x = _conv(m, x, group * outputs, [size] * spatial, group, pads=[size // 2] * (2 * spatial))
    for _ in range(m.below(3)):
        x = _channelwise(m, x)
    if m.half():
        x = _shuffle(m, x, m.pick([rows for rows in (group, outputs, inputs, 2) if x.shape[1] % rows == 0] or [1]))
    for _ in range(m.below(2)):
        x = _channelwise(m, x)
    if m.chance(0.7):
        _conv(m, x, m.between(1, 6), [1] * spatial)


def flattened(m):
    """Flatten and a product behind a value whose channels may be innermost."""
    x = m.source((m.between(1, 3), m.between(1, 4), m.between(1, 5), m.between(1, 5)))
    kind = m.below(4)
    if kind == 0:
        x = m.node(m.pick(["MaxPool", "AveragePool"]), x, kernel_shape=[1, 1])
    elif kind < 3:
        x = _conv(m, x, m.between(1, 5), m.almost([1, 1], [2, 1]))
    else:
        x = m.transpose(x, m.permutation(4))
    if m.half():
        x = m.activation(x)
    n = x.shape[0]
    depth = x.array.size // n if n else 1
    flat = m.node("Flatten", x, axis=m.almost(1, 2, 0)) if m.half() else m.node("Reshape", x, m.integers(m.almost([n, depth], [n, -1], [n * x.shape[1], -1])))
    if m.chance(0.2):
        flat = m.nodes("Dropout", flat)[0]
    depth, columns, dtype = flat.shape[1], m.between(1, 6), flat.array.dtype
    if m.half():
        y = m.node("MatMul", flat, m.weight((depth, columns), dtype))
    else:
        transposed = m.below(2)
        bias = [] if m.opset >= 11 and m.half() else [m.weight(m.almost(m.pick([(columns,), (1, columns)]), (n, 1), ()), dtype)]
        attributes = {"alpha": m.almost(1.0, 0.5)} if m.half() else {}
        y = m.node("Gemm", flat, m.weight((columns, depth) if transposed else (depth, columns), dtype), *bias, transB=transposed, **attributes)
    for _ in range(m.below(3)):
        y = m.activation(y)
    if m.half():
        m.node("Softmax", y, axis=1)


FAMILY = Family("windows", ("merge_pads", "groups_inner", "flatten_to_conv"), [padded, padded, groups, groups, flattened, flattened],
                rules=("merge_pads.Conv", "merge_pads.AveragePool", "flatten_to_conv.MatMul", "flatten_to_conv.Gemm", "flatten_to_conv.sink_view"))
