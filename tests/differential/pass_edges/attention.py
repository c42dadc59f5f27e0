"""fuse_attention: softmax(Q K scale + mask) V in the forms in which models write it."""
import numpy as np

from pass_edges.edge import Family, Impossible


def _mask_numbers(m, shape, dtype):
    hidden = m.pick([-1e38, -np.inf, -1e9, -10000.0]) if dtype != np.float16 else -30000.0
    kind = m.pick([0, 0, 1, 2, 3])
    keep = m.rng.random(shape) < 0.7
    if kind == 0 and len(shape) > 1:  # a triangle
        keep = np.broadcast_to(np.tri(shape[-2], shape[-1], m.pick([0, 0, 1, -1, shape[-1] - shape[-2]]), dtype=bool), shape)
    if len(shape) and shape[-1]:
        keep = keep.copy()
        # No query without a key. Of half numbers never: beside -30000 they are multiples of 16, which is rounding alone.
        if dtype == np.float16 or m.almost(True, False):
            keep[..., 0] = True
    numbers = np.where(keep, 0, hidden)
    if kind == 3:
        numbers = np.where(keep, m.rng.uniform(-1, 1, shape), hidden)
    return numbers.astype(dtype)


def _masked(m, scores):
    """By an addition or a Where."""
    shape, dtype = scores.shape, scores.array.dtype
    rank = len(shape)
    form = m.almost(m.pick([shape, shape[-2:], (1,) * (rank - 2) + shape[-2:], (*shape[:-2], 1, shape[-1]), (shape[-1],)]), (2, *shape), m.broadcastable(shape))
    if m.half() or m.opset < 9:
        numbers = _mask_numbers(m, form, dtype)
        return m.add(scores, m.graph.constant(numbers) if m.half() else m.variable(numbers))
    keep = _mask_numbers(m, form, np.float32) >= -5
    hidden = m.graph.constant(np.asarray(m.almost(m.pick([-np.inf, -3.4e38 if dtype != np.float16 else -65504]), -1e9 if dtype != np.float16 else -1e4, -5.0), dtype))
    if m.half():
        return m.node("Where", m.constant(keep) if m.half() else m.variable(keep), scores, hidden)
    return m.node("Where", m.constant(~keep) if m.half() else m.variable(~keep), hidden, scores)


def attention(m):
    m.graph.special = True  # masks are as large as numbers get
    rank = m.pick([2, 3, 4, 4])
    batch = tuple(m.between(1, 3) for _ in range(rank - 2))
    queries, keys, depth, width = m.pick([1, 2, 4, 5, 8]), m.pick([1, 2, 4, 5, 8, 9]), m.between(1, 8), m.between(1, 8)
    if m.chance(0.3):
        keys = queries
    dtype = m.pick([np.float32] * 5 + [np.float64, np.float16])
    q = m.source((*batch, queries, depth), dtype)
    if m.chance(0.3):
        q = m.times(q, m.pick([0.5, 0.125]))
    other = m.almost(batch, (1,) * len(batch), ())
    if m.half():
        order = list(range(len(other))) + [len(other) + 1, len(other)]
        k = m.transpose(m.source((*other, keys, depth), dtype), order)
    else:
        k = m.source((*other, depth, keys), dtype)
    scores = m.node("MatMul", q, k)
    steps = ["scale"] * m.pick([0, 1, 1, 1, 2]) + ["mask"] * m.pick([0, 1, 1, 2])
    if m.almost(False, True):
        m.rng.shuffle(steps)
    for step in steps:
        scores = _masked(m, scores) if step == "mask" else m.times(scores, m.pick([0.5, 0.3535, 2, m.almost(0.25, 0, -1)]))
    attributes = {}
    if m.opset < 13 or m.half():
        axis = m.almost(len(scores.shape) - 1, len(scores.shape) - 2)
        attributes["axis"] = axis - len(scores.shape) if m.half() and m.opset >= 11 else axis
    weights = m.node("Softmax", scores, **attributes)
    if m.chance(0.2):
        weights = m.nodes("Dropout", weights)[0]
    if len(weights.shape) < 2:
        raise Impossible("no matrix")
    v = m.source((*m.almost(batch, (1,) * len(batch), ()), keys, width), dtype)
    y = m.node("MatMul", *m.almost((weights, v), (weights, v)))
    if len(y.shape) == 4 and m.half():
        y = m.transpose(y, [0, 2, 1, 3])
        m.node("Reshape", y, m.integers([y.shape[0], y.shape[1], -1]))
    elif m.chance(0.3):
        m.activation(y)


FAMILY = Family("attention", ("fuse_attention",), [attention], odd=0,
                rules=("fuse_attention.triangle_instead_of_mask", "fuse_attention.triangle_beside_mask"))
