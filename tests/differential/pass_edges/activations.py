"""recognize_patterns: activations as models write them, of products, sums and exponentials."""
import math


from pass_edges.edge import Family


def _x(m):
    return m.source(dtype=m.dtype())


def _negative(m, x):
    return m.node("Neg", x) if m.half() else m.times(x, m.almost(-1, 1, -1.01))


def _sigmoid_of(m, x):
    below = m.plus(m.node("Exp", _negative(m, x)), m.almost(1, 2, 1.001, -1))
    if m.half():
        return m.node("Reciprocal", below)
    return m.node("Div", m.uniform(m.almost(1, 2, -1), below), below)


def sigmoid(m):
    _sigmoid_of(m, _x(m))


def softplus(m):
    m.node("Log", m.plus(m.node("Exp", _x(m)), m.almost(1, 2, 0.999)))


def _other(m, x):
    """A value like x that is not x."""
    return m.node("Abs", x) if m.half() else m.variable(m.content(m.broadcastable(x.shape), x.array.dtype))


def _scaled_product(m, factors, scale):
    """The product of factors and a scale, in any order."""
    factors = list(factors)
    m.rng.shuffle(factors)
    at = m.below(len(factors) + 1) if scale != 1 else -1
    result = None
    for i, factor in enumerate(factors):
        result = factor if result is None else m.mul(result, factor)
        if i == at:
            result = m.times(result, scale)
    return m.times(result, scale) if at == len(factors) else result


def swish(m):
    x = _x(m)
    inner = m.almost(x, lambda: _other(m, x)) if m.half() else m.times(x, m.pick([1.702, 2, -1, 0.5]))
    gate = m.node("Sigmoid", inner) if m.chance(0.7) else _sigmoid_of(m, inner)
    _scaled_product(m, [x, gate], m.almost(1, 2, 0.5, -1))


def gelu_by_erf(m):
    x = _x(m)
    root = m.almost(math.sqrt(0.5), 0.7, 1, 0.70711)
    inner = m.times(x, root)
    gate = m.plus(m.node("Erf", inner), m.almost(1, -1, 1.01))
    _scaled_product(m, [m.almost(x, lambda: _other(m, x)), gate], m.almost(0.5, 1, 0.51, 0.50001))


def gelu_by_tanh(m):
    x = _x(m)
    scale, third = m.almost(math.sqrt(2 / math.pi), 0.8, 1), m.almost(0.044715, 0.05, 0.44715)
    if m.half():
        cube = m.power(x, m.almost(3, 2)) if m.half() else _scaled_product(m, [m.square(x), x], 1)
        polynomial = m.times(m.add(x, m.times(cube, third)), scale)
    else:
        polynomial = _scaled_product(m, [x, m.plus(m.times(m.square(x), third), m.almost(1, 2))], scale)
    gate = m.plus(m.node("Tanh", polynomial), m.almost(1, 2))
    _scaled_product(m, [x, gate], m.almost(0.5, 1, 0.4))


def _clipped(m, x):
    low, high = m.almost((0, 6), (0, 5), (-1, 6), (0, 6.5))
    return m.clip(m.plus(x, m.almost(3, 2, 3.5, -3)), low, high)


def hard_sigmoid(m):
    m.times(_clipped(m, _x(m)), m.almost(1 / 6, 1 / 5, 6))


def hard_swish(m):
    x = _x(m)
    if m.half():
        attributes = {"alpha": m.almost(1 / 6, 0.2), "beta": m.almost(0.5, 0.4)}
        _scaled_product(m, [x, m.node("HardSigmoid", x, **attributes)], m.almost(1, 2))
    else:
        _scaled_product(m, [m.almost(x, lambda: _other(m, x)), _clipped(m, x)], m.almost(1 / 6, 1 / 3, 1))


def mish(m):
    x = _x(m)
    inner = m.almost(x, lambda: _other(m, x))
    curve = m.node("Softplus", inner) if m.half() else m.node("Log", m.plus(m.node("Exp", inner), 1))
    gate = m.node(m.almost("Tanh", "Sigmoid"), curve)
    _scaled_product(m, [x, gate], m.almost(1, 2))


FAMILY = Family("activations", ("recognize_patterns",), [sigmoid, softplus, swish, gelu_by_erf, gelu_by_tanh, hard_sigmoid, hard_swish, mish],
                opsets=(7, 9, 11, 12, 13, 14, 15, 17, 18, 20, 22))
