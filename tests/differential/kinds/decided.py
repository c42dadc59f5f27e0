"""Values whose extents data decides, differently in each run, and what reads them."""
import numpy as np

from kinds.graph import KindGraph
from kinds.kind import Kind
from kinds.maker import KindMaker
from maker import TEMPLATES as ALL_TEMPLATES

FEEDS = 3


def source(m, rank=None):
    """An input of exact numbers, some of them zeros and some equal."""
    shape = tuple(m.between(1, 5) for _ in range(rank or m.between(1, 3)))
    dtype = m.pick([np.float32, np.float32, np.float32, np.float64, np.int64, np.int32])
    arrays = [(m.rng.integers(-2, 3, shape) / (1 if np.dtype(dtype).kind == "i" else 2)).astype(dtype) for _ in range(FEEDS)]
    for array in arrays:
        array.flat[0] = 1
    return m.graph.given_each(arrays, True)


def places(m):
    return m.node("NonZero", m.pick([v for v in fixed(m) if v.shape] or [source(m)]), exact=True)


def compress(m):
    x = m.pick([v for v in fixed(m) if v.shape] or [source(m)])
    axis = m.axis(x) if m.chance(0.6) else None
    length = x.array.size if axis is None else x.shape[axis]
    kept = [m.rng.random(m.between(1, length)) < 0.6 for _ in range(FEEDS)]
    kept = [np.resize(keep, kept[0].shape) for keep in kept]
    for keep in kept:
        keep[m.below(len(keep))] = True
    return m.node("Compress", x, m.graph.given_each(kept, True), exact=True, **({} if axis is None else {"axis": axis}))


def unique(m):
    x = m.pick([v for v in fixed(m) if v.shape and v.exact] or [source(m)])
    attributes = {"axis": m.axis(x)} if m.chance(0.4) else {}
    if m.chance(0.5):
        attributes["sorted"] = m.below(2)
    return m.graph.add("Unique", [x], results=m.pick([1, 4]), exact=True, **attributes)


def boxes(m):
    count = m.between(2, 6)
    low = [m.rng.uniform(0, 1, (1, count, 2)) for _ in range(FEEDS)]
    corners = [np.concatenate([x, x + m.rng.uniform(0.1, 1, x.shape)], 2).astype(np.float32) for x in low]
    scores = [m.rng.permutation(count).astype(np.float32).reshape(1, 1, count) / 8 for _ in range(FEEDS)]
    number = lambda value, dtype: m.graph.constant(np.asarray([value], dtype))
    return m.node("NonMaxSuppression", m.graph.given_each(corners, True), m.graph.given_each(scores, True), number(m.between(1, 4), np.int64),
                  number(0.5, np.float32), number(m.pick([0.0, 0.2]), np.float32), exact=True)


def varies(value):
    return len({array.shape for array in value.arrays}) > 1


def fixed(m):
    return [v for v in m.graph.values.values() if not varies(v) and v.kind != "constant" and v.array.size]


def varying(m, least_rank=0, floats=False):
    found = [v for v in m.graph.values.values() if varies(v) and len(v.shape) >= least_rank and (v.is_float or not floats)]
    return m.pick(found[-4:]) if found else None


def is_broadcast(operands):
    """Whether an extent that varies meets a larger one where it is 1: Hone takes extents that may be equal to be so."""
    for x in operands:
        for y in operands:
            for i, array in enumerate(x.arrays):
                pairs = zip(reversed(list(zip(*[a.shape for a in x.arrays], strict=True))), reversed(y.arrays[i].shape), strict=False)
                if x is not y and array.ndim and any(len(set(extents)) > 1 and extents[i] == 1 < other for extents, other in pairs):
                    return True
    return False


def does_not_add_up(operands, axis):
    """Whether the lengths of a Split are not those of its operand in some run, which ONNX's reference evaluator lets pass."""
    x, lengths = operands
    return any(array.shape[axis] != sum(parts) for array, parts in zip(x.arrays, lengths.arrays, strict=True))


class above:  # indices as the number of elements that they need
    def __init__(self, indices):
        self.arrays = [np.where(a < 0, a, a + 1) for a in indices.arrays]


def is_outside(operands, axis, least, most):
    """Whether numbers say what is not there in some run, which ONNX's reference evaluator lets pass; bounds are in extents of the axis."""
    x, numbers = operands
    return any(n.size and (n.min() < least * a.shape[axis] or n.max() > most * a.shape[axis]) for a, n in zip(x.arrays, numbers.arrays, strict=True))


class DecidedGraph(KindGraph):
    def add(self, op_type, operands, results=1, **options):
        tensors = [operand for operand in operands if operand]
        if op_type == "Split" and len(tensors) == 2 and does_not_add_up(tensors, options.get("axis", 0)):
            return None
        if op_type == "ReverseSequence" and is_outside(tensors, options.get("time_axis", 0), 0, 1):
            return None
        if op_type == "GatherElements" and is_outside([tensors[0], above(tensors[1])], options.get("axis", 0), -1, 1):
            return None
        is_pointwise = op_type not in NOT_POINTWISE and len(tensors) > 1
        return None if is_pointwise and is_broadcast(tensors) else super().add(op_type, operands, results, **options)


NOT_POINTWISE = {"Gather", "GatherND", "GatherElements", "Slice", "Reshape", "Concat", "Compress", "CumSum", "ScatterND", "MatMul", "Unsqueeze"}


def pointwise(m):
    x = varying(m)
    if x is None:
        return None
    kind = m.below(4)
    if kind == 0 and x.is_float:
        return m.node(m.pick(["Relu", "Tanh", "Sigmoid", "Abs", "LeakyRelu", "Exp"]), x)
    if kind == 1:
        return m.node("Cast", x, to=m.pick([1, 1, 11, 7, 6]) if x.exact else 1, exact=True)
    if kind == 2:
        others = [v for v in m.graph.values.values() if [a.shape for a in v.arrays] == [a.shape for a in x.arrays] and v.array.dtype == x.array.dtype]
        return m.node(m.pick(["Add", "Sub", "Mul", "Max"]), x, m.pick(others), exact=True)
    if x.array.dtype == np.bool_:
        return m.node("Not", x, exact=True)
    last = m.operand(x.shape[-1:], x.array.dtype) if x.shape and m.chance(0.5) else m.number(m.pick([1, 2, -1]), x)
    return m.node(m.pick(["Add", "Sub", "Mul", "Greater", "Less", "Equal"] if x.exact else ["Add", "Sub", "Mul"]), x, last, exact=True)


def moves(m):
    x = varying(m, 1)
    if x is None:
        return None
    rank, kind = len(x.shape), m.below(7)
    axis = m.below(rank)
    if kind == 0:
        return m.node("Transpose", x, perm=[int(d) for d in m.rng.permutation(rank)], exact=True)
    if kind == 1:
        bounds = m.pick([(0, 2, 1), (1, 2**31, 1), (-1, -2**31, -1), (0, -1, 1), (-2, 2**31, 1), (0, 2**31, 2)])
        start, end, step = bounds
        return m.node("Slice", x, m.integers([start]), m.integers([end]), m.integers([axis]), m.integers([step]), exact=True)
    if kind == 2:
        return m.node("Gather", x, m.integers(m.pick([[0], [0, 0], [-1]])), axis=axis, exact=True)
    if kind == 3:
        return m.node("Unsqueeze", x, m.integers([m.below(rank + 1)]), exact=True)
    if kind == 4:
        return m.node("Concat", *([x, m.pick([x, x, m.any_value(1)])] if m.chance(0.5) else [m.any_value(1), x]), axis=axis, exact=True)
    if kind == 5:
        return m.node("Reshape", x, m.integers(m.pick([[-1], [-1, 1], [1, -1], [0] * rank, [0] * (rank - 1) + [-1]])), exact=True)
    return m.node("Flatten", x, axis=m.between(0, rank), exact=True)


def reduces(m):
    x = varying(m, 1)
    if x is None:
        return None
    axis, keep = m.below(len(x.shape)), m.below(2)
    kind = m.below(4)
    if kind == 0 and x.exact and x.array.dtype != np.bool_:
        return m.node(m.pick(["ArgMax", "ArgMin"]), x, axis=axis, keepdims=keep, exact=True)
    if kind == 1 and x.is_float:
        return m.node("Softmax", x, axis=axis)
    if kind == 2 and x.array.dtype != np.bool_:
        return m.node("CumSum", x, m.graph.constant(np.int64(axis)), exclusive=m.below(2), reverse=m.below(2))
    name = m.pick(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd"])
    exact = name in ("ReduceMax", "ReduceMin")
    if m.opset >= (13 if name == "ReduceSum" else 18):
        return m.node(name, x, m.integers([axis]), keepdims=keep, exact=exact)
    return m.node(name, x, axes=[axis], keepdims=keep, exact=exact)


def shape_of(m):
    x = varying(m, 1)
    if x is None:
        return None
    shape = m.node(m.pick(["Shape", "Size"]), x, exact=True)
    if shape is None or m.chance(0.3):
        return shape
    code = m.node("Cast", shape, to=1, exact=True)
    return code and m.node("Mul", code, m.number(0.5, code), exact=True)


def products(m):
    x = varying(m, 1, floats=True)
    if x is None:
        return None
    if m.chance(0.4) and len(x.shape) == 2:
        other = m.node("Transpose", x, perm=[1, 0])
        return other and m.node("MatMul", *([x, other] if m.chance(0.5) else [other, x]))
    return m.node("MatMul", x, m.operand((x.shape[-1], m.extent()), x.array.dtype))


def gathers(m):
    """What lies at the places."""
    x = m.pick([v for v in fixed(m) if v.shape and v.exact] or [source(m)])
    found = m.node("NonZero", x, exact=True)
    at = found and m.node("Transpose", found, perm=[1, 0], exact=True)
    if at is None:
        return None
    y = m.node("GatherND", x, at, exact=True)
    if y is None or m.chance(0.5):
        return y
    updates = m.node("Neg", y, exact=True)
    return updates and m.node("ScatterND", x, at, updates, exact=True)


def any_operator(m):
    """One of those that the differential test of operators makes, on a value that varies where its rank and type allow it."""
    given = type(m).value

    def value(dtype, rank=None, least_rank=0, exact=False, positive=False, least_size=0):
        found = [v for v in m.graph.values.values() if varies(v) and v.array.dtype == dtype and len(v.shape) >= least_rank
                 and v.array.size >= least_size and (rank is None or len(v.shape) == rank) and m._serves(v, exact, positive)]
        return m.pick(found[-4:]) if found else given(m, dtype, rank, least_rank, exact, positive)

    m.value = value
    m.any_value = lambda least_rank=0: varying(m, least_rank) or value(np.float32, least_rank=least_rank)
    m.image = lambda dtype, spatial, exact=False: value(dtype, spatial + 2, exact=exact, least_size=1)
    try:
        template, _ = m.pick(ALL_TEMPLATES)
        return template(m)
    finally:
        del m.value, m.any_value, m.image


DECIDE = [(places, 2), (compress, 4), (unique, 2), (boxes, 1), (gathers, 2)]
READ = [(pointwise, 4), (moves, 6), (reduces, 3), (shape_of, 1), (products, 1), (compress, 0.5), (unique, 0.3), (any_operator, 6)]


def make(prefix, opset, imports, rng):
    m = KindMaker(prefix, opset, rng, FEEDS)
    m.graph = DecidedGraph(prefix, opset, rng, FEEDS, imports)
    source(m)
    for _ in range(m.between(1, 2)):
        m.grow(DECIDE, len(m.graph.nodes) + 1)
        m.grow(READ, len(m.graph.nodes) + m.between(1, 5))
    return m.graph


KIND = Kind("decided", make, opsets=(13, 14, 15, 17, 18, 19, 20, 21, 22, 23))
