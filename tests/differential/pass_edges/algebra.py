"""simplify_algebra: chains of views, transposes, slices and casts; neutral constants, powers, quotients, constants that meet; transposes
at products and around elementwise operators; reshapes before elementwise operators."""
import numpy as np

from movement import factored
from pass_edges.edge import Family

_CODES = {np.float32: 1, np.uint8: 2, np.int8: 3, np.uint16: 4, np.int16: 5, np.int32: 6, np.int64: 7, np.bool_: 9, np.float16: 10, np.float64: 11,
          np.uint32: 12, np.uint64: 13}


def _end(m, x):
    """What reads the result, so that it need not be an output."""
    if x.is_float and m.half():
        m.activation(x)


def reshapes(m):
    x = m.source(dtype=m.dtype())
    for _ in range(m.between(2, 4)):
        x = m.reshape(x, factored(m, x.array.size)) if m.almost(True, False) else m.node("Neg", x)
    _end(m, x)


def transposes(m):
    x = m.source(tuple(m.extent() for _ in range(m.between(1, 5))), m.dtype())
    for _ in range(m.between(2, 3)):
        x = m.transpose(x, m.permutation(len(x.shape))) if m.almost(True, False) else m.node("Neg", x)
    _end(m, x)


def moves_nothing(m):
    shape = [m.almost(1, 2) if m.chance(0.6) else m.extent() for _ in range(m.between(2, 5))]
    x = m.source(shape, m.dtype())
    rank = len(shape)
    large = [d for d in range(rank) if shape[d] != 1]
    perm = m.permutation(rank)
    places = sorted(perm.index(d) for d in large)
    if m.almost(True, False):
        for place, d in zip(places, large):
            perm[place] = d
    _end(m, m.transpose(x, perm))


def gather_of_all(m):
    shape = [m.extent() for _ in range(m.between(1, 4))]
    axis = m.below(len(shape))
    x = m.source(shape, m.dtype())
    places = np.arange(shape[axis])
    if m.almost(False, True):
        places = m.pick([places[::-1], places[:max(len(places) - 1, 1)], np.zeros_like(places)])
    places = places.reshape(factored(m, places.size)).astype(m.pick([np.int64, np.int32]))
    _end(m, m.node("Gather", x, m.constant(places), axis=m.pick([axis, axis - len(shape)]), exact=True))


def slices(m):
    x = m.source(tuple(m.extent() for _ in range(m.between(1, 4))), exact=True)
    for _ in range(m.between(1, 3)):
        axes = [d for d in range(len(x.shape)) if m.half()] or [0]
        starts, ends, steps = [], [], []
        for d in axes:
            step = m.pick([1, 1, 1, 2, 3, -1, -2]) if m.opset >= 10 else 1
            low, high = sorted((m.below(x.shape[d] + 1), m.below(x.shape[d] + 1)))
            if m.chance(0.3):
                low, high = 0, m.pick([x.shape[d], 2**31 - 1, 2**63 - 1])
            if step < 0:
                low, high = min(high, x.shape[d]) - 1, m.pick([low - 1 if low else -2**31, -2**63])
            elif m.chance(0.3) and low:
                low -= x.shape[d]
            starts.append(low)
            ends.append(high)
            steps.append(step)
        axes = m.axes(axes, len(x.shape)) if m.opset >= 10 else axes
        x = m.slice(x, starts, ends, axes, steps if m.opset >= 10 and m.half() or any(s != 1 for s in steps) else None)
    _end(m, x)


def reshape_of_slice(m):
    step, parts = m.pick([1, 2, 4]), m.between(1, 4)
    shape = [m.between(1, 4), step * parts * m.almost(1, 2)]
    if m.half():
        shape.append(m.between(1, 4))
    if m.chance(0.3):
        shape.insert(0, m.between(1, 3))
    axis = m.almost(len(shape) - 2 if len(shape) > 2 else 1, 0)
    x = m.source(shape[:m.almost(4, 4)], exact=True)
    whole = shape[axis]
    start = m.almost(m.pick(list(range(0, whole, step))), m.below(whole))
    extent = min(whole - start, m.almost(step * m.between(1, parts), m.between(1, whole)))
    part = m.slice(x, [start], [start + extent], [axis])
    if m.almost(False, True) and m.opset >= 10:
        part = m.slice(x, [start], [start + extent], [axis], [m.pick([2, 1])])
    shape = list(part.shape)
    if shape[axis] % step == 0 and m.almost(True, False):
        shape[axis:axis + 1] = m.pick([[shape[axis] // step, step], [shape[axis] // step, step, 1], [1, shape[axis] // step, step]])
    else:
        shape = factored(m, part.array.size)
    _end(m, m.reshape(part, shape))


def casts(m):
    types = list(_CODES)
    first = m.pick(types)
    # Within the range of all types: what a conversion beyond it gives is not defined.
    x = m.variable(np.abs(m.random(m.shape(), first, exact=True)) if first != np.bool_ else m.random(m.shape(), first), True)
    for _ in range(m.between(2, 3)):
        x = m.node("Cast", x, to=_CODES[m.pick(types)], exact=True)
    if m.chance(0.3) and m.opset >= 15:
        m.node("CastLike", x, m.variable(np.zeros(1, m.pick(types)), True), exact=True)


def neutral(m):
    dtype = m.pick([np.float32, np.float32, np.float64, np.float16, np.int32, np.int64])
    if np.dtype(dtype).kind == "i":
        x = m.source(dtype=dtype, exact=True)
    else:
        x = m.source(dtype=dtype, exact=True)
    name = m.pick(["Add", "Sub", "Mul", "Div", "Pow"])
    number = m.almost(0 if name in ("Add", "Sub") else 1, 1 if name in ("Add", "Sub") else -1, 2)
    if name == "Pow":
        _end(m, m.power(x, number))
        return
    operands = [x, m.uniform(number, x)]
    if name in ("Add", "Mul") and m.half() or m.almost(False, True):
        operands.reverse()
    if name == "Div" and operands[0] is not x:
        return
    if name in ("Add", "Sub") and number == 0 and x.is_float and m.half():
        operands = [x if o is x else m.constant(-np.zeros(o.shape, dtype)) for o in operands]
    _end(m, m.node(name, *operands, exact=name != "Div"))


def negations(m):
    if m.chance(0.3):
        x = m.variable(m.random(m.shape(), np.bool_), True)
        for _ in range(m.between(2, 4)):
            x = m.node("Not", x, exact=True)
        return
    x = m.source(dtype=m.pick([np.float32, np.float64, np.int32, np.int64]), exact=True)
    for _ in range(m.between(2, 4)):
        x = m.node(m.almost("Neg", "Abs"), x, exact=True)
    _end(m, x)


def squares(m):
    x = m.source(dtype=m.pick([np.float32, np.float64, np.float16]))
    if m.almost(False, True):
        y = m.node("Pow", x, m.uniform(2, x))
    else:
        y = m.power(x, m.almost(2, 3, 1, 0, -1, 0.5))
    _end(m, y)


def quotients(m):
    x = m.source(dtype=m.pick([np.float32, np.float32, np.float64, np.float16, np.int32]))
    divisor = m.pick([2, 4, 8, -2] + [0.5, 0.25] * x.is_float) if m.almost(True, False) else m.pick([3, 5] + [0.0, 2.0**-14, 2.0**15, 2.0**-15] * x.is_float)
    _end(m, m.node("Div", x, m.uniform(divisor, x)))


def constants_meet(m):
    dtype = m.almost(m.dtype(), np.int32)
    x = m.source(dtype=dtype)
    name = m.pick(["Mul", "Add"])
    y = x
    for _ in range(m.between(2, 3)):
        other = m.uniform(m.pick([2, 3, -1]), y) if m.half() else m.constant(m.random(m.broadcastable(y.shape), dtype))
        y = m.either_way(m.almost(name, "Sub", "Add", "Mul"), y, other)
    _end(m, y)


def transpose_at_gemm(m):
    rows, depth, columns = m.between(1, 9), m.between(1, 9), m.between(1, 9)
    dtype = m.pick([np.float32, np.float32, np.float64])
    attributes = {}
    operands = []
    for name, shape in (("transA", (rows, depth)), ("transB", (depth, columns))):
        flips = m.half()
        stored = m.source(shape[::-1] if flips else shape, dtype)
        if m.chance(0.7):
            transposed = m.transpose(m.source(stored.shape[::-1], dtype), m.almost([1, 0], [1, 0]))
            stored = transposed
        if flips:
            attributes[name] = 1
        operands.append(stored)
    if m.half():
        operands.append(m.weight(m.broadcastable((rows, columns)), dtype))
    if m.half():
        attributes["alpha"] = m.pick([0.5, 2.0])
    if m.half():
        attributes["beta"] = m.pick([0.5, 2.0])
    if m.opset < 11 and len(operands) < 3:
        operands.append(m.weight((columns,), dtype))
    _end(m, m.node("Gemm", *operands, **attributes))


def around_elementwise(m):
    rank = m.between(2, 4)
    shape = tuple(m.extent() for _ in range(rank))
    perm = m.permutation(rank)
    back = [int(d) for d in np.argsort(perm)]
    y = m.transpose(m.source(shape), perm)
    for _ in range(m.between(0, 4)):
        kind = m.below(4)
        if kind == 0:  # meets another one
            y = m.either_way(m.pick(["Add", "Mul", "Max"]), y, m.transpose(m.source(shape), m.almost(perm, perm)) if m.almost(True, False) else m.source(y.shape))
        elif kind == 1 and m.opset >= 9:
            y = m.node("Where", m.constant(m.random(m.almost((), (1,), (1,) * rank, y.shape), np.bool_)), y, m.uniform(0.5, y))
        elif kind == 2:
            y = m.either_way("Mul", y, m.constant(m.random(m.almost((1,) * m.between(0, rank), y.shape[-1:], (1,) * (rank + 1)), np.float32)))
        else:
            y = m.activation(y)
    if len(y.shape) == rank:
        y = m.transpose(y, m.almost(back, perm))
    _end(m, y)


def reshape_before_elementwise(m):
    batch, rows, depth, columns = m.between(1, 3), m.between(1, 5), m.between(1, 5), m.pick([1, 2, 4, 6, 8])
    x = m.source((batch * rows, depth))
    kind = m.below(3)
    if kind == 0:
        y = m.node("MatMul", x, m.weight((depth, columns)))
    elif kind == 1:
        y = m.node("Gemm", x, m.weight((depth, columns)), m.weight((columns,)))
    else:
        y = m.activation(m.source((batch * rows, columns)))
    to = m.almost([batch, rows, columns], [batch * rows, columns], [batch, rows * columns], [1, batch, rows, columns], [batch, rows, columns // 2 or 1, 1 if columns == 1 else 2])
    if int(np.prod(to)) != y.array.size:
        to = [batch, rows, columns]
    y = m.reshape(y, to)
    for _ in range(m.between(1, 3)):
        form = m.below(5)
        if form == 0:
            other = m.weight(m.almost((columns,), (1, columns), tuple(y.shape[1:])))
        elif form == 1:
            other = m.source(y.shape)
        elif form == 2:
            other = m.reshape(m.node("MatMul", m.source((batch * rows, depth)), m.weight((depth, columns))), y.shape)
        elif form == 3:
            other = m.weight(m.broadcastable(y.shape))
        else:
            y = m.activation(y)
            continue
        y = m.either_way(m.pick(["Add", "Mul", "Sub"]), y, other)


FAMILY = Family("algebra", ("simplify_algebra",), signs=True, generators=
                [reshapes, transposes, moves_nothing, gather_of_all, slices, slices, reshape_of_slice, reshape_of_slice, casts, neutral, neutral,
                 negations, squares, quotients, constants_meet, constants_meet, transpose_at_gemm, around_elementwise, around_elementwise, reshape_before_elementwise])
