"""fold_constants and eliminate_common_subexpressions: nodes of constants, nodes that compute the same, and nodes that almost do."""
import numpy as np

import movement
import operators
from pass_edges.edge import Family, Impossible

_TEMPLATES = [template for template, _ in operators.TEMPLATES + movement.TEMPLATES]


def folded(m):
    """Random nodes of constants, which then meet an input."""
    given = m.graph.given
    m.graph.given = lambda array, exact, constant: given(array, exact, m.almost(True, False))
    made = []
    for _ in range(m.between(1, 4)):
        results = m.pick(_TEMPLATES)(m)
        made += results or []
    del m.graph.given
    if not made:
        raise Impossible("nothing made")
    for value in made[-2:]:
        if value.is_float:
            m.either_way(m.pick(["Add", "Mul", "Max"]), value, m.source(m.broadcastable(value.shape), value.array.dtype, exact=True), exact=True)
    if all(not value.is_float for value in made[-2:]):
        m.node("Identity", made[-1], exact=True)


def chained(m):
    """Elementwise operators of constants with zeros of both signs."""
    dtype = m.pick([np.float32, np.float64])
    shape = m.shape()
    x = m.graph.constant(m.content(shape, dtype, exact=True))
    for _ in range(m.between(1, 4)):
        kind = m.below(4)
        if kind == 0:
            x = m.node(m.pick(["Neg", "Abs", "Ceil", "Floor", "Relu", "Identity", "Sign"] if m.opset >= 9 else ["Neg", "Abs", "Ceil", "Floor"]), x, exact=True)
        elif kind == 1:
            x = m.either_way(m.pick(["Add", "Sub", "Mul", "Min", "Max"]), x, m.constant(m.content(m.broadcastable(x.shape), dtype, exact=True)), exact=True)
        elif kind == 2 and m.opset >= 9:
            x = m.node("Where", m.constant(m.random(m.broadcastable(x.shape), np.bool_)), x, m.constant(m.content((), dtype, exact=True)), exact=True)
        else:
            x = m.node("Cast", x, to=11 if x.array.dtype == np.float32 else 1, exact=True)
            dtype = x.array.dtype
    m.node("Mul", x, m.variable(m.content(m.broadcastable(x.shape), x.array.dtype, exact=True), exact=True), exact=True)


def _twice(m, make):
    """A node twice: the same, or with something else; both results meet."""
    first, second = make(False), make(True)
    if len(first) == 1 and first[0].shape == second[0].shape and first[0].array.dtype == second[0].array.dtype and first[0].is_float:
        m.either_way("Add", first[0], second[0])
    for value in first + second:
        m.share(value)


def same_operands(m):
    dtype = m.dtype()
    x = m.source(dtype=dtype)
    y = m.source(x.shape, dtype)
    name = m.pick(["Add", "Mul", "Max", "Min", "Sum", "Sub", "Div", "Equal", "And", "Or", "Xor", "Less"])
    if name in ("And", "Or", "Xor"):
        x, y = m.variable(m.random(x.shape, np.bool_)), m.variable(m.random(x.shape, np.bool_))
    if name in ("Equal", "Less"):
        x, y = m.source(x.shape, dtype, exact=True), m.source(x.shape, dtype, exact=True)
    swaps = m.half()
    _twice(m, lambda again: m.nodes(name, *([y, x] if again and swaps else [x, y])))


def same_constants(m):
    """Constants with the same elements, or another zero, type or shape."""
    dtype = m.dtype()
    x = m.source(dtype=dtype, exact=True)
    values = np.asarray(m.random(m.broadcastable(x.shape), dtype, exact=True))
    values = np.where(m.rng.random(values.shape) < 0.3, 0, values).astype(dtype)
    other = m.almost(values.copy(), np.where(values == 0, -values, values), values.reshape((1, *values.shape)), values + (np.arange(values.size) == values.size - 1).reshape(values.shape)).astype(dtype)
    name = m.pick(["Mul", "Add", "Div", "Max"])
    if name == "Div":
        values, other = np.where(values == 0, 2, values).astype(dtype), np.where(other == 0, 2, other).astype(dtype)
    _twice(m, lambda again: m.nodes(name, x, m.graph.constant(other if again else values), exact=name != "Div"))


def same_attributes(m):
    kind = m.below(7)
    x = m.source(tuple(m.between(1, 5) for _ in range(m.between(2, 4))), exact=True)
    rank = len(x.shape)
    a, b = m.below(rank), m.below(rank)
    a, b = (a, m.almost(a, b))
    if kind == 0:
        _twice(m, lambda again: m.nodes("Softmax", x, axis=b if again else a))
    elif kind == 1:
        _twice(m, lambda again: [m.reduce("ReduceSum", x, [b if again else a], m.almost(1, 0) if again else 1)])
    elif kind == 2:
        alphas = (0.1, m.almost(0.1, 0.2))
        _twice(m, lambda again: m.nodes("LeakyRelu", x, alpha=alphas[again]))
    elif kind == 3:
        perm = m.permutation(rank)
        _twice(m, lambda again: m.nodes("Transpose", x, exact=True, perm=m.almost(perm, perm[::-1]) if again else perm))
    elif kind == 4 and m.opset >= 11:
        k = m.graph.constant(np.asarray([min(2, x.shape[-1])], np.int64))
        _twice(m, lambda again: m.nodes("TopK", x, k, results=2, exact=True, largest=m.almost(1, 0) if again else 1))
    elif kind == 5 and rank >= 3:
        _twice(m, lambda again: m.nodes("MaxPool", x, results=m.almost(1, 2) if again and m.opset >= 8 else 1, kernel_shape=[1] * (rank - 2), exact=True))
    else:
        to = m.pick([6, 11, 7])
        _twice(m, lambda again: m.nodes("Cast", x, to=m.almost(to, 10) if again else to, exact=True) if not m.graph.special else m.nodes("Neg", x))


def same_chains(m):
    """Two copies of a chain, which become one node by node."""
    x = m.source()
    state = m.rng.bit_generator.state
    results = []
    for again in range(2):
        m.rng.bit_generator.state = state
        m.choices.paused = again == 0
        y = x
        for _ in range(3):
            y = m.activation(y)
        results.append(y)
    m.add(*results)


FAMILY = Family("constants", ("fold_constants", "eliminate_common_subexpressions"),
                [folded, folded, chained, chained, same_operands, same_constants, same_attributes, same_chains], signs=True,
                rules=("eliminate_common_subexpressions.constants", "eliminate_common_subexpressions.Add"))
