"""Models whose inputs vary: one library of a range, run at five sizes in it. Shapes are computed from shapes, as exporters write it."""
import numpy as np

import operators
from kinds.control import loop, scan
from kinds.decided import varies, varying
from kinds.kind import Kind
from kinds.maker import PLAIN, KindMaker

FEEDS = 5


class RangeMaker(KindMaker):
    """sizes: of each symbol, its extent at each feed, the largest one first; no two symbols have the same ones."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.sizes, self.shapes_vary = [], True
        for most in self.pick([[4], [9], [3, 12], [2, 7], [17]]):
            rest = [self.between(1, most) for _ in range(FEEDS - 2)]
            self.sizes.append([most, 1 if self.chance(0.6) else self.between(1, most), *rest])

    def varying_input(self, shape, dtype=np.float32):
        """Extents that are lists are those of a symbol."""
        arrays = [self.random(tuple(e[i] if isinstance(e, list) else e for e in shape), dtype, exact=self.chance(0.5)) for i in range(FEEDS)]
        return self.graph.given_each(arrays, np.dtype(dtype).kind != "f")

    def extent_of(self, x, axis):
        """As a vector of one element."""
        shape = self.node("Shape", x, exact=True)
        return shape and self.node("Gather", shape, self.integers([axis]), exact=True)

    def joined(self, *parts):
        """A shape of extents that are there and of numbers."""
        parts = [self.integers([part]) if isinstance(part, int) else part for part in parts]
        return None if None in parts else self.node("Concat", *parts, axis=0, exact=True)


def tensor(m):
    """An input that varies in one place or in several."""
    sizes = m.sizes
    first = m.pick(sizes)
    kind = m.below(4)
    if kind == 0:
        return m.varying_input((first, m.between(2, 6)))
    if kind == 1:
        return m.varying_input((first, m.pick(sizes), m.pick([4, 8])))
    if kind == 2:
        return m.varying_input((m.between(1, 3), first, m.between(2, 6)))
    return m.varying_input((first, m.pick([2, 4, 3])), m.pick([np.float32, np.float32, np.int64, np.float64]))


def some(m, least_rank=1, floats=True):
    return varying(m, least_rank, floats) or tensor(m)


def open_axis(m, x):
    """One that varies; any one of a value that happens to have one shape at all feeds."""
    return m.pick([d for d, extents in enumerate(zip(*[a.shape for a in x.arrays], strict=True)) if len(set(extents)) > 1] or list(range(len(x.shape))))


def fixed_axes(x):
    return [d for d, extents in enumerate(zip(*[a.shape for a in x.arrays], strict=True)) if len(set(extents)) == 1]


# ---- nodes ----


def pointwise(m):
    x = some(m, floats=False)
    kind = m.below(3)
    if kind == 0 and x.is_float:
        return m.node(m.pick(["Relu", "Tanh", "Sigmoid", "Abs", "Neg", "LeakyRelu", "Erf", "Softplus"]), x)
    same = [v for v in m.graph.values.values() if varies(v) and [a.shape for a in v.arrays] == [a.shape for a in x.arrays] and v.array.dtype == x.array.dtype]
    if kind == 1 or len(x.shape) - 1 not in fixed_axes(x):
        return m.node(m.pick(["Add", "Sub", "Mul", "Max", "Min"]), x, m.pick(same))
    return m.node(m.pick(["Add", "Sub", "Mul"]), x, m.operand(x.shape[-1:], x.array.dtype))


def linear(m):
    x = some(m)
    if len(x.shape) - 1 not in fixed_axes(x) or len(x.shape) < 2:
        return None
    y = m.node("MatMul", x, m.graph.constant(m.random((x.shape[-1], m.between(1, 9)), x.array.dtype)))
    return y and (m.node("Add", y, m.graph.constant(m.random(y.shape[-1:], y.array.dtype))) if m.chance(0.5) else y)


def attention(m):
    """Scores of all pairs along an extent that varies, with or without a causal mask."""
    x = some(m, 2)
    order = list(range(len(x.shape)))
    order[-1], order[-2] = order[-2], order[-1]
    keys = m.node("Transpose", x, perm=order)
    scores = keys and m.node("MatMul", x, keys)
    if scores is None:
        return None
    if m.chance(0.5):
        seen = causal(m, x)
        scores = seen and m.node("Where", seen, scores, m.number(-1e4, scores))
    shares = scores and m.node("Softmax", scores, axis=-1)
    return shares and m.node("MatMul", shares, x)


def causal(m, x):
    shape = m.node("Shape", x, exact=True)
    count = shape and m.node("Gather", shape, m.graph.constant(np.int64(len(x.shape) - 2)), exact=True)
    places = count and m.node("Range", m.graph.constant(np.int64(0)), count, m.graph.constant(np.int64(1)), exact=True)
    rows, columns = (places and m.node("Unsqueeze", places, m.integers([axis]), exact=True) for axis in (1, 0))
    return rows and columns and m.node("LessOrEqual", columns, rows, exact=True)


def reshaped(m):
    """Extents of the operand, others multiplied or divided, one left open."""
    x = some(m, 2, floats=False)
    kind, rank = m.below(4), len(x.shape)
    if kind == 0:
        return m.node("Reshape", x, m.integers([-1, *x.shape[-1:]] if rank - 1 in fixed_axes(x) else [-1]), exact=True)
    if kind == 1 and rank - 1 in fixed_axes(x):
        parts = [d for d in range(1, x.shape[-1] + 1) if x.shape[-1] % d == 0]
        heads = m.pick(parts)
        shape = m.joined(*[m.extent_of(x, d) for d in range(rank - 1)], heads, x.shape[-1] // heads)
        y = shape and m.node("Reshape", x, shape, exact=True)
        return y and m.node("Transpose", y, perm=[*range(rank - 2), rank - 1, rank - 2, rank], exact=True)
    if kind == 2:
        return m.node("Flatten", x, axis=m.between(0, rank), exact=True)
    return m.node("Reshape", x, m.integers([0] * (rank - 1) + [-1, 1][m.below(2):]), exact=True)


def moved(m):
    x = some(m, floats=False)
    kind, rank = m.below(5), len(x.shape)
    if kind == 0:
        return m.node("Transpose", x, perm=[int(d) for d in m.rng.permutation(rank)], exact=True)
    if kind == 1:
        return m.node("Unsqueeze", x, m.integers([m.below(rank + 1)]), exact=True)
    axis = open_axis(m, x)
    if kind == 2:
        start, end, step = m.pick([(0, -1, 1), (1, 2**31, 1), (-1, -2**31, -1), (0, 2**31, 2), (-1, 2**31, 1), (0, 3, 1)])
        return m.node("Slice", x, *[m.integers([n]) for n in (start, end, axis, step)], exact=True)
    if kind == 3:
        return m.node("Gather", x, m.graph.constant(np.int64(m.pick([0, -1]))), axis=axis, exact=True)
    same = [v for v in m.graph.values.values() if varies(v) and [a.shape for a in v.arrays] == [a.shape for a in x.arrays] and v.array.dtype == x.array.dtype]
    return m.node("Concat", x, m.pick(same), axis=m.below(rank), exact=True)


def expanded(m):
    """A row for each element of an extent, or as many zeros."""
    x = some(m)
    count = m.extent_of(x, open_axis(m, x))
    if m.chance(0.4):
        shape = count and m.joined(count, m.between(1, 4))
        zeros = shape and m.node("ConstantOfShape", shape, exact=True)
        return zeros and m.node("Add", zeros, m.operand(zeros.shape[-1:], np.float32))
    row = m.operand((1, m.between(1, 5)), np.float32)
    shape = count and m.joined(count, row.shape[-1])
    return shape and m.node("Expand", row, shape, exact=True)


def reduced(m):
    x = some(m, floats=False)
    axis, keep, name = m.below(len(x.shape)), m.below(2), m.pick(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd", "ReduceSumSquare"])
    kind = m.below(5)
    if not x.is_float and name == "ReduceMean":
        return None
    if kind == 0 and x.exact:
        return m.node(m.pick(["ArgMax", "ArgMin"]), x, axis=axis, keepdims=keep, exact=True)
    if kind == 1:
        return m.node(m.pick(["Softmax", "LogSoftmax"]), x, axis=axis) if x.is_float else None
    if kind == 2:
        return m.node("CumSum", x, m.graph.constant(np.int64(axis)), exclusive=m.below(2), reverse=m.below(2))
    exact = name in ("ReduceMax", "ReduceMin")
    if m.opset >= (13 if name == "ReduceSum" else 18):
        return m.node(name, x, m.integers([axis]), keepdims=keep, exact=exact)
    return m.node(name, x, axes=[axis], keepdims=keep, exact=exact)


def normalized(m):
    x = some(m, 2)
    if len(x.shape) - 1 not in fixed_axes(x) or x.array.dtype != np.float32 or m.opset < 17:
        return None
    return m.node("LayerNormalization", x, *[m.graph.constant(m.random(x.shape[-1:], np.float32)) for _ in range(m.between(1, 2))])


def image(m):
    """Windows over one or two extents, of which some vary."""
    spatial = m.between(1, 2)
    sizes = m.pick(m.sizes)
    if max(sizes) < 4:
        return None
    sides = [[s + 3 for s in sizes], m.between(4, 7)][:spatial] if m.chance(0.5) else [[s + 3 for s in sizes]] * spatial
    x = m.varying_input((m.between(1, 2), m.pick([1, 2, 4]), *sides))
    kernel = [m.between(1, 3) for _ in range(spatial)]
    window = {"kernel_shape": kernel, "pads": [m.below(k) for k in kernel] * 2}
    if m.chance(0.5):
        window["strides"] = [m.between(1, 2) for _ in range(spatial)]
    if m.chance(0.6):
        y = m.node("Conv", x, m.graph.constant(m.random((m.between(1, 4), x.shape[1], *kernel), np.float32)), **window)
    else:
        y = m.node(m.pick(["MaxPool", "AveragePool"]), x, **window)
    return y and (m.node(m.pick(["GlobalAveragePool", "GlobalMaxPool", "Relu"]), y))


def recurrent(m):
    """Over a sequence, or of a batch, that varies."""
    length, batch = (m.pick(m.sizes), m.between(1, 2)) if m.chance(0.5) else (m.between(1, 4), m.pick(m.sizes))
    x, hidden = m.varying_input((length, batch, m.between(1, 4))), m.between(1, 4)
    name, gates = m.pick([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    direction = m.pick(["forward", "reverse", "bidirectional"])
    count = 2 if direction == "bidirectional" else 1
    weights = [m.graph.constant(m.random((count, gates * hidden, n), np.float32)) for n in (x.shape[-1], hidden)]
    return m.graph.add(name, [x, *weights], results=2, hidden_size=hidden, direction=direction)


def plain(m):
    m.grow(PLAIN, len(m.graph.nodes) + 1)


TEMPLATES = [(pointwise, 6), (linear, 3), (attention, 1.5), (reshaped, 3), (moved, 4), (expanded, 2), (reduced, 5), (normalized, 1), (image, 1),
             (recurrent, 1), (plain, 2), (loop, 0.4), (scan, 0.4), (operators.matmul, 0.3)]


def make(prefix, opset, imports, rng):
    m = RangeMaker(prefix, opset, rng, FEEDS, imports)
    tensor(m)
    m.grow(TEMPLATES, m.between(2, 9))
    return m.graph


KIND = Kind("ranges", make, opsets=(13, 14, 15, 17, 18, 19, 20, 21, 22, 23), arguments=("--max-turns", "24"))
