"""recognize_patterns: normalisations along rows, their scales and biases, and Softmax, of reductions and elementwise operators."""
import numpy as np

from pass_edges.edge import Family, Impossible


def _data(m):
    return m.source(tuple(m.extent() for _ in range(m.between(1, 4))), m.pick([np.float32, np.float32, np.float64]))


def _last_axes(m, rank):
    count = m.pick([1, 1, 1, m.between(1, rank)])
    axes = list(range(rank - count, rank))
    other = sorted({m.below(rank) for _ in range(m.between(1, 2))})
    if m.chance(0.2):
        m.rng.shuffle(axes)
    return m.almost([int(a) for a in axes], other)


def _root(m, x):
    return m.node("Sqrt", x) if m.half() else m.power(x, 0.5)


def _over_root(m, d, x):
    """d / sqrt(x)"""
    form = m.below(4)
    if form == 0:
        return m.node("Div", d, _root(m, x))
    if form == 1:
        return m.mul(d, m.node("Reciprocal", _root(m, x)))
    if form == 2:
        return m.mul(d, m.power(x, m.almost(-0.5, -0.25)))
    root = _root(m, x)
    return m.mul(d, m.node("Div", m.uniform(m.almost(1, 2), root), root))


def _scaled(m, x, axes):
    """Times a scale and plus a bias, which have the shape of a row, or of less, or of more."""
    row = x.shape[min(axes):]
    shape = lambda: m.almost(m.pick([row, row, (1,) * (len(x.shape) - len(row)) + row, row[-1:], ()]), m.broadcastable(x.shape), (1, *x.shape), x.shape)
    if m.chance(0.7):
        x = m.mul(x, m.weight(shape(), x.array.dtype))
    if m.chance(0.6):
        x = m.add(x, m.weight(shape(), x.array.dtype))
    if m.chance(0.2):  # a second one of either
        x = m.mul(x, m.weight(shape(), x.array.dtype)) if m.half() else m.add(x, m.weight(shape(), x.array.dtype))
    return x


def _mean_of_squares(m, d, axes):
    square = m.square(d)
    return m.reduce(m.almost("ReduceMean", "ReduceSum", "ReduceMax"), square, axes, m.almost(1, 0) if len(axes) == len(d.shape) else 1)


def root_mean_square(m):
    x = _data(m)
    axes = _last_axes(m, len(x.shape))
    spread = m.plus(_mean_of_squares(m, m.almost(x, lambda: m.node("Abs", x)), axes), m.pick([1e-5, 1e-3, 0.05, m.almost(0.01, 0.2, 1)]))
    _scaled(m, _over_root(m, x, spread), axes)


def layer(m):
    x = _data(m)
    axes = _last_axes(m, len(x.shape))
    centred = lambda: m.node("Sub", x, m.reduce("ReduceMean", x, m.almost(axes, [0]), 1))
    d = centred()
    again = d if m.half() else centred()
    spread = m.plus(_mean_of_squares(m, again, axes), m.pick([1e-5, 1e-3, 0.05, m.almost(0.01, 0.2)]))
    _scaled(m, _over_root(m, d, spread), axes)


def scaled(m):
    """An operator that normalises, with or without a scale and a bias of its own."""
    name = m.pick(["LayerNormalization", "RMSNormalization"])
    if m.opset < (17 if name[0] == "L" else 23):
        raise Impossible(name)
    x = m.source(tuple(m.extent() for _ in range(m.between(1, 4))))
    axis = m.below(len(x.shape))
    row = x.shape[axis:]
    operands = [m.weight(row) if m.chance(0.4) else m.constant(np.ones(m.pick([row, (1,) * len(row)]), np.float32))]
    if name[0] == "L" and m.chance(0.3):
        operands.append(m.weight(row) if m.half() else m.constant(np.zeros(row, np.float32)))
    attributes = {"stash_type": 1} if m.half() else {}
    if axis < len(x.shape) - 1 or m.half():
        attributes["axis"] = axis - (len(x.shape) if m.half() else 0)
    if m.half():
        attributes["epsilon"] = m.pick([1e-5, 1e-3, 0.1])
    wanted = m.almost(1, 3) if name[0] == "L" else 1
    y = m.nodes(name, x, *operands, results=wanted, **attributes)[0]
    m.share(y)
    _scaled(m, y, [axis])


def softmax(m):
    m.odd = False  # Softmax subtracts the maximum: it has numbers where a sum of powers without that is infinite
    x = _data(m)
    axis = m.below(len(x.shape))
    other = m.below(len(x.shape))
    if m.half():
        x = m.node("Sub", x, m.reduce(m.almost("ReduceMax", "ReduceMin", "ReduceMean"), x, [m.almost(axis, other)], 1))
    power = m.node("Exp", x)
    total = m.reduce(m.almost("ReduceSum", "ReduceMean", "ReduceMax"), power, m.almost([axis], [axis, other] if other != axis else [axis]), 1)
    y = m.node("Div", *m.almost((power, total), (total, power)))
    if m.chance(0.3):
        m.node("Log", y)


def log_softmax(m):
    x = _data(m)
    rank = len(x.shape)
    attributes = {"axis": m.between(-rank if m.opset >= 11 else 0, rank - 1)} if m.chance(0.8) else {}
    m.node(m.almost("Log", "Exp"), m.node("Softmax", x, **attributes))


FAMILY = Family("norms", ("recognize_patterns",), [root_mean_square, layer, scaled, softmax, log_softmax])
