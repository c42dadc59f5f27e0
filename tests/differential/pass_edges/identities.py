"""remove_identities: nodes that change nothing, and nodes that change a little."""
import numpy as np

from pass_edges.edge import Family


def _data(m, least=0, dtype=None):
    shape = [m.extent() for _ in range(m.between(least, 5))]
    return m.source(shape, dtype or m.pick([np.float32, np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_]), exact=True)


def identity(m, x):
    return m.node("Identity", x, exact=True)


def dropout(m, x):
    if not x.is_float:
        return x
    wanted = m.almost(1, 2)
    if m.opset < 12:
        return m.nodes("Dropout", x, results=1, exact=True, **({"ratio": 0.5} if m.half() else {}))[0]
    operands = [m.constant(np.asarray(m.pick([0.0, 0.25, 0.5]), np.float32))] if m.half() else []
    if operands and m.half():
        operands.append(m.graph.constant(np.asarray(False)))
    return m.nodes("Dropout", x, *operands, results=wanted, exact=True, **({"seed": 3} if m.half() else {}))[0]


def cast(m, x):
    to = m.almost(x.array.dtype, np.dtype(np.float64), np.dtype(np.int32))
    codes = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "bool": 9, "float64": 11, "float16": 10}
    if to.name not in codes or x.is_float and to.kind == "i" and m.graph.special:
        return x
    return m.node("Cast", x, to=codes[to.name], exact=True)


def concat(m, x):
    if not x.shape:
        return x
    parts = m.almost([x], [x, x], lambda: [m.constant(np.zeros(x.shape, x.array.dtype)), x])
    return m.node("Concat", *parts, axis=m.axis(x) if m.opset >= 11 else m.below(len(x.shape)), exact=True)


def pad(m, x):
    if not x.is_float or not x.shape:
        return x
    pads = [0] * (2 * len(x.shape))
    if m.almost(False, True):  # a shift, or a pad
        d = m.below(len(x.shape))
        pads[d] = m.pick([1, -1])
        pads[d + len(x.shape)] = m.pick([0, -pads[d]])
    return m.pad(x, pads, m.pick(["constant", "constant", "edge", "reflect"]), m.pick([None, 0, 3]))


def transpose(m, x):
    order = list(range(len(x.shape)))
    return m.transpose(x, m.almost(order, order[::-1], m.permutation(len(order)))) if order else x


def view(m, x):
    kind = m.below(5)
    if kind == 0 and len(x.shape) == 2 or kind == 1 and m.almost(False, True):
        return m.node("Flatten", x, axis=m.almost(1, 0) if x.shape else 0, exact=True)
    if kind == 1:
        return m.node("Reshape", x, m.integers(m.almost([0] * len(x.shape), list(x.shape)[::-1])) if 0 not in x.shape else m.integers(x.shape), exact=True)
    if kind == 2 and m.opset >= 13 and 1 not in x.shape:
        return m.node("Squeeze", x, exact=True)
    if kind == 3 and m.opset >= 13 and 1 not in x.shape:
        return m.squeeze(x, [])
    return m.node("Reshape", x, m.integers(x.shape), exact=True, **({"allowzero": 1} if m.opset >= 14 and m.half() else {}))


def repeated(m, x):
    """Operators that broadcast, join or slice, where there is nothing to do."""
    kind = m.below(5)
    if kind == 0 and m.opset >= 8:
        return m.node("Expand", x, m.integers(m.almost(list(x.shape), [2, *x.shape], [1] * len(x.shape))), exact=True)
    if kind == 1 and x.shape:
        repeats = [1] * len(x.shape)
        repeats[m.below(len(repeats))] = m.almost(1, 2)
        return m.node("Tile", x, m.integers(repeats), exact=True)
    if kind == 2 and x.is_float:
        return m.node(m.pick(["Sum", "Mean", "Max", "Min"]), x, exact=True)
    if kind == 3 and x.shape and x.array.dtype in (np.float32, np.int64):
        d = m.below(len(x.shape))
        return m.slice(x, [m.almost(0, 1)], [m.pick([x.shape[d], 2**31, x.shape[d] + 3])], [d])
    return x


def pool(m):
    spatial = m.between(1, 3)
    x = m.source((m.between(1, 2), m.between(1, 4), *(m.between(1, 6) for _ in range(spatial))))
    name = m.pick(["MaxPool", "AveragePool"])
    attributes = {"kernel_shape": [m.almost(1, 2) for _ in range(spatial)]}
    if m.half():
        attributes["strides"] = [m.almost(1, 2) for _ in range(spatial)]
    if m.chance(0.3):
        attributes["auto_pad"] = m.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif m.half():
        attributes["pads"] = [m.almost(0, 1) for _ in range(2 * spatial)] if max(attributes["kernel_shape"]) > 1 else [0] * (2 * spatial)
    if m.opset >= 10 and m.half():
        attributes["ceil_mode"] = m.below(2)
    if name == "AveragePool" and m.half():
        attributes["count_include_pad"] = m.below(2)
    results = m.nodes(name, x, results=m.almost(1, 2) if name == "MaxPool" and m.opset >= 8 else 1, exact=name == "MaxPool", **attributes)
    m.activation(results[0])


def chain(m):
    """Several; the ends may be what the model takes or returns."""
    x = _data(m)
    if m.half() and x.is_float:
        x = m.node("Neg", x, exact=True)
    for _ in range(m.between(1, 5)):
        x = m.pick([identity, dropout, cast, concat, pad, transpose, view, repeated])(m, x)
        m.share(x)
    if m.half() and x.is_float:
        m.activation(x)


FAMILY = Family("identities", ("remove_identities",), [chain, chain, chain, pool], signs=True,
                rules=tuple(f"remove_identities.{name}" for name in ("Cast", "MaxPool", "AveragePool", "Concat", "Pad", "Transpose", "Identity", "Reshape", "Flatten")))
