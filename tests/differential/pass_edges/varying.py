"""All passes, on values whose shape the data decides: what moves, broadcasts and reads them must not take the largest shape for the actual one."""
import numpy as np

from pass_edges.edge import Family


def _chosen(m):
    """Rows that an input chooses, or places of elements that are not zero."""
    kind = m.below(4)
    dtype = m.pick([np.float32, np.float32, np.float64, np.int64])
    if kind == 0:
        data = m.random((m.between(1, 4), m.between(1, 4)), dtype, exact=True)
        data.flat[0] = 1
        places = m.node("NonZero", m.variable(data, True), exact=True)
        return m.node("Cast", places, to=1, exact=True) if m.half() else places
    x = m.variable(m.content((m.between(1, 5), *m.shape(most=2)), dtype, exact=True), True)
    keep = m.rng.random(m.between(1, x.shape[0])) < 0.6
    keep[m.below(len(keep))] = True
    keep = m.variable(keep, True)
    if kind == 1:
        return m.node("Compress", x, keep, exact=True)
    return m.node("Compress", x, keep, axis=0, exact=True)


def _scalar(m, x):
    """A constant of one element: larger ones would only fit the shape of this data."""
    return m.graph.constant(np.full(m.pick([(), (1,)]) if x.shape else (), m.pick([0, 1, 2]), x.array.dtype))


def _step(m, x):
    rank = len(x.shape)
    kind = m.below(10)
    floats = x.is_float
    if kind == 0:
        return m.node("Neg" if x.array.dtype != np.bool_ else "Not", x, exact=True)
    if kind == 1:
        return m.either_way(m.pick(["Add", "Mul"]), x, _scalar(m, x), exact=True)
    if kind == 2 and rank > 1:
        return m.transpose(x, m.permutation(rank))
    if kind == 3:
        return m.either_way("Sub", x, _scalar(m, x), exact=True)
    if kind == 4 and rank:
        return m.slice(x, [m.pick([0, 1])], [m.pick([2, 2**31])], [m.below(rank)])
    if kind == 5 and floats:
        return m.node(m.pick(["Relu", "Tanh", "Sigmoid", "Abs", "LeakyRelu"]), x)
    if kind == 6:
        return m.unsqueeze(x, [m.below(rank + 1)])
    if kind == 7 and rank:
        return m.node("Gather", x, m.constant(np.asarray(m.pick([[0], [0, 0]]), np.int64)), axis=rank - 1, exact=True)
    if kind == 8:
        is_finite = np.isfinite(x.array).all()  # others have no integer
        return m.node("Cast", x, to=m.pick([1, 11, 7] if is_finite else [1, 11]), exact=True)
    return m.node("Identity", x, exact=True)


def chain(m):
    x = _chosen(m)
    for _ in range(m.between(1, 5)):
        x = _step(m, x)
    if m.chance(0.3):
        m.node("Shape", x, exact=True)


def indices(m):
    """The usual use: places of what is not zero, from which elements are gathered."""
    x = m.variable(m.content((m.between(1, 4), m.between(1, 4)), exact=True), True)
    places = m.transpose(m.node("NonZero", m.node("Greater", x, m.constant(np.asarray(m.pick([-1, 0, 1]), np.float32)), exact=True), exact=True), [1, 0])
    y = m.node("GatherND", x, places, exact=True)
    _step(m, _step(m, y))


def meeting(m):
    """Two values with the same varying shape."""
    x = _chosen(m)
    y = _step(m, x)
    if y.shape == x.shape and y.array.dtype == x.array.dtype and x.array.dtype.kind in "fi":
        m.either_way(m.pick(["Add", "Mul", "Sub"]), x, y, exact=True)


FAMILY = Family("varying", (), [chain, chain, indices, meeting], opsets=(13, 14, 15, 17, 18, 20, 22))
