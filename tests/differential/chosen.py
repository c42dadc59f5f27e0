"""Random nodes that choose elements by their content, and losses. What decides how many there are is constant. See operators.py."""
import numpy as np


def compress(m):
    if m.opset < 9:
        return None
    a = m.any_value(least_rank=1)
    attributes = {"axis": m.axis(a) if m.opset >= 11 else m.below(len(a.shape))} if m.chance(0.6) else {}
    length = a.shape[attributes["axis"]] if attributes else a.array.size
    if length == 0:
        return None
    keep = m.rng.random(m.between(1, length)) < 0.6
    return m.graph.add("Compress", [a, m.graph.constant(keep)], exact=True, **attributes)


def non_zero(m):
    return m.graph.add("NonZero", [m.graph.constant(m.random((*m.shape(most=3), m.extent()), m.pick([np.float32, np.int64, np.bool_]), exact=True))], exact=True) if m.opset >= 9 else None


def unique(m):
    if m.opset < 11:
        return None
    a = m.graph.constant(m.random(tuple(m.between(1, 5) for _ in range(m.between(1, 3))), m.pick([np.float32, np.int64]), exact=True))
    attributes = {"axis": m.axis(a)} if m.chance(0.5) else {}
    if m.chance(0.6):
        attributes["sorted"] = m.below(2)
    return m.graph.add("Unique", [a], results=m.pick([1, 4]), exact=True, **attributes)


def non_max_suppression(m):
    if m.opset < 10:
        return None
    count = m.between(1, 6)
    low = m.rng.uniform(0, 1, (1, count, 2))
    boxes = np.concatenate([low, low + m.rng.uniform(0.1, 1, (1, count, 2))], 2).astype(np.float32)
    scores = m.rng.permutation(count).astype(np.float32).reshape(1, 1, count) / 8
    number = lambda value, dtype: m.graph.constant(np.asarray([value], dtype))
    operands = [m.graph.constant(boxes), m.graph.constant(scores), number(m.between(1, 4), np.int64), number(0.5, np.float32), number(0.2, np.float32)]
    return m.graph.add("NonMaxSuppression", operands, exact=True, **({"center_point_box": m.below(2)} if m.chance(0.7) else {}))


def loss(m):
    if m.opset < 12:
        return None
    classes, batch = m.between(2, 5), m.between(1, 4)
    rest = tuple(m.between(1, 3) for _ in range(m.below(3)))
    targets = m.rng.integers(0, classes, (batch, *rest)).astype(np.int64)
    attributes = {"reduction": m.pick(["none", "mean", "sum"])} if m.chance(0.8) else {}
    if m.chance(0.5):
        attributes["ignore_index"] = m.pick([0, 1, -100])
        if attributes["ignore_index"] in targets and (targets == attributes["ignore_index"]).all():
            return None  # a mean of nothing
    operands = [m.operand((batch, classes, *rest), np.float32), m.graph.given(targets, True, m.chance(0.5))]
    if m.chance(0.4):
        operands.append(m.operand((classes,), np.float32, positive=True))
    if m.chance(0.5):
        return m.graph.add("NegativeLogLikelihoodLoss", operands, **attributes)
    return m.graph.add("SoftmaxCrossEntropyLoss", operands, results=m.pick([1, 2]), **attributes)


def hardmax(m):
    a = m.value(np.float32, exact=True, least_rank=1)
    return m.graph.add("Hardmax", [a], exact=True, **({"axis": m.axis(a) if m.opset >= 11 else m.below(len(a.shape))} if m.chance(0.8) else {}))


def determinant(m):
    n = m.between(1, 4)
    return m.graph.add("Det", [m.operand((*m.shape(most=2), n, n), np.float32)]) if m.opset >= 11 else None


def old_scatter(m):
    if not 9 <= m.opset < 11:
        return None
    a = m.value(np.float32, least_rank=1)
    if 0 in a.shape:
        return None
    axis = m.below(len(a.shape))
    places = np.argsort(m.rng.random(a.shape), axis=axis).astype(np.int64)
    return m.graph.add("Scatter", [a, m.graph.given(places, True, m.chance(0.5)), m.operand(a.shape, np.float32)], exact=True, axis=axis)


def cumulative_product(m):
    if m.opset < 26:
        return None
    a = m.value(m.pick([np.float32, np.float64]), least_rank=1)
    axis = m.graph.constant(np.asarray(m.axis(a), np.int64))
    return m.graph.add("CumProd", [a, axis], exclusive=m.below(2), reverse=m.below(2))


TEMPLATES = [(compress, 1), (non_zero, 1), (unique, 1), (non_max_suppression, 1), (loss, 2), (hardmax, 1), (determinant, 1), (old_scatter, 1),
             (cumulative_product, 1)]
