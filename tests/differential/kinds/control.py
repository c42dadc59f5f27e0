"""If, Loop and Scan whose conditions and numbers of turns a run decides, in each other, among other nodes."""
import numpy as np

from kinds.kind import Kind
from kinds.maker import PLAIN, KindMaker

FEEDS, MOST_TURNS, DEEPEST = 3, 6, 2


def decision(m):
    """A condition: an input, or what data is compared with."""
    exact = [v for v in m.graph.values.values() if v.exact and v.is_float and v.kind != "constant" and v.array.size]
    if not exact or m.chance(0.4):
        if m.depth:
            return m.graph.constant(np.asarray(m.chance(0.5)))
        return m.graph.given_each([np.asarray(m.chance(0.5)) for _ in range(m.graph.feeds)], True)
    x = m.pick(exact)
    at = m.node("Reshape", x, m.integers([-1]), exact=True)
    element = at and m.node("Gather", at, m.graph.constant(np.int64(m.below(x.array.size))), exact=True)
    bound = element and m.number(sorted(array.item() for array in element.arrays)[len(element.arrays) // 2], element)
    return bound and m.node(m.pick(["Less", "Greater", "GreaterOrEqual", "LessOrEqual", "Equal"]), element, bound, exact=True)


def captured(m):
    found = [v for v in m.graph.values.values() if not v.last and v.kind != "constant"]
    return [v for v in found if m.chance(2 / len(found))]


def reads(inner):
    """What a graph captures, also for graphs inside of it."""
    return [v for v in inner.captured if v.kind != "constant"]


def fill(m, inner):
    inner.grow(PLAIN + (NESTED if m.depth + 1 < DEEPEST else []), m.between(1, 5))
    if not inner.results():
        operand = next((v for v in inner.graph.values.values() if v.kind == "outer"), None) or inner.graph.constant(np.float32([1, 2]))
        inner.node("Identity", operand, exact=True)
    return inner.results()


def if_(m):
    """Results have one type; sometimes the branches' shapes differ."""
    condition = decision(m)
    if condition is None:
        return None
    then = m.inside([], captured(m))
    first = fill(m, then)
    if not first:
        return None
    wanted = [m.pick(first) for _ in range(m.between(1, 2))]
    other = m.inside([], captured(m), then.graph.prefix + "e_")
    second, given = fill(m, other), []
    for value in wanted if second else []:
        others = [v for v in second if len(v.shape) == len(value.shape)]
        differs = m.depth == 0 and m.chance(0.3) and others
        given.append(other.converted(m.pick(others), value.array.dtype) if differs else other.like(m.pick(second), value))
    if None in given or not second:
        return None
    branch = lambda inner, values, name: inner.to_graph(inner.graph.prefix + name, [], unique(inner, values))
    branches = {"then_branch": branch(then, wanted, "then"), "else_branch": branch(other, given, "else")}
    return m.graph.add("If", [condition], len(wanted), reads=reads(then) + reads(other), **branches)


def unique(inner, values):
    """(name, array, shape) of results, each by a name of its own."""
    found = []
    for value in values:
        again = value.name in [name for name, _, _ in found] or value.kind != "result"
        named = inner.node("Identity", value, exact=True) if again else value
        found.append((named.name, named.array, value.shape if not inner.shapes_vary and (inner.depth > 1 or inner.chance(0.5)) else None))
    return found


def turns(m):
    """The bound of a Loop."""
    kind = m.below(4)
    if kind == 0 or m.depth:
        return m.graph.constant(np.asarray(m.between(0, 4), np.int64))
    if kind == 1:
        x = m.any_value(least_rank=1)
        shape = m.node("Shape", x, exact=True)
        return shape and m.node("Gather", shape, m.graph.constant(np.int64(0)), exact=True)
    return m.graph.given_each([np.asarray(m.between(0, MOST_TURNS), np.int64) for _ in range(m.graph.feeds)], True)


def next_of(m, inner, parameter):
    """What a turn hands on: bounded, so that turns do not add up to infinity."""
    value = inner.like(m.pick(inner.results()), parameter)
    if value is None or value.array.dtype.kind != "f" or m.chance(0.3):
        return value
    return inner.node(m.pick(["Tanh", "Sigmoid", "Softsign", "Sin"]), value)


def goes_on(m, inner, go):
    """The condition of a body."""
    if m.chance(0.5):
        return inner.node("Identity", go, exact=True)
    found = [v for v in inner.floats() if v.kind == "result"]
    if not found:
        return inner.node("Identity", go, exact=True)
    x = m.pick(found)
    total = inner.node("ReduceSum", x, keepdims=0)
    return total and inner.node("Less", total, inner.number(float(m.rng.uniform(-2, 6)), total))


def loop(m):
    """Where shapes vary, with a turn at least: of rows that are not there, ONNX Runtime does not know the shape."""
    bound, open_ = turns(m), m.shapes_vary
    if bound is None or 0 in bound.shape or open_ and any(array < 1 for array in bound.arrays):
        return None
    start = decision(m) if m.chance(0.5) and not open_ else None
    carried = [v for v in m.graph.values.values() if not v.last and v.kind != "constant" and v.array.dtype != np.int64]
    carried = [m.pick(carried) for _ in range(m.below(4))] if carried else []
    inner = m.inside([(np.asarray(1, np.int64), True), (np.asarray(True), True), *[(v.array, False) for v in carried]], captured(m))
    turn, go, *states = inner.parameters
    if m.chance(0.5):
        inner.node("Cast", turn, to=1)
    if not fill(m, inner):
        return None
    handed = [next_of(m, inner, state) for state in states]
    rows = [m.pick(inner.results()) for _ in range(m.between(0 if carried else 1, 2))]
    on = goes_on(m, inner, go)
    if on is None or None in handed:
        return None
    outputs = unique(inner, [on, *handed, *rows])
    shapes = [(), *[None if m.chance(0.3) else v.shape for v in handed], *[v.shape for v in rows]]
    outputs = [(name, array, None if open_ else shape) for (name, array, _), shape in zip(outputs, shapes, strict=True)]
    inputs = [(v.name, v.array, None if open_ else v.shape) for v in inner.parameters]
    body = inner.to_graph(inner.graph.prefix + "body", inputs, outputs)
    return m.graph.add("Loop", [bound, start, *carried], len(handed) + len(rows), reads=reads(inner), body=body)


def scan(m):
    """Rows of values along any axis, forwards or backwards."""
    found = [v for v in m.floats(least_rank=1) if not v.last]
    if not found:
        return None
    x = m.pick(found)
    axis = m.below(len(x.shape))
    scanned = [(x, axis)] + [(v, d) for v in found if v is not x for d, extent in enumerate(v.shape) if extent == x.shape[axis]][:m.below(2)]
    states = [m.pick(m.floats()) for _ in range(m.below(3))]
    rows = [v.array.take(0, axis=d) for v, d in scanned]
    inner = m.inside([(v.array, False) for v in states] + [(row, False) for row in rows], captured(m))
    inner.node("Add", inner.parameters[-1], inner.graph.constant(np.float32(0.25)))
    if not fill(m, inner):
        return None
    handed = [next_of(m, inner, state) for state in inner.parameters[:len(states)]]
    made = [m.pick(inner.results()) for _ in range(m.between(0 if states else 1, 2))]
    if None in handed:
        return None
    known = lambda array: None if m.shapes_vary else array.shape
    outputs = [(name, array, known(array)) for name, array, _ in unique(inner, handed + made)]
    body = inner.to_graph(inner.graph.prefix + "body", [(v.name, v.array, known(v.array)) for v in inner.parameters], outputs)
    attributes = {"scan_input_axes": [d - (len(v.shape) if m.chance(0.3) else 0) for v, d in scanned]}
    for key, values, count in (("scan_input_directions", [0, 1], len(scanned)), ("scan_output_directions", [0, 1], len(made))):
        if m.chance(0.5):
            attributes[key] = [m.pick(values) for _ in range(count)]
    if m.chance(0.5):
        attributes["scan_output_axes"] = [m.between(-1, 0) for _ in made]
    return m.graph.add("Scan", [*states, *[v for v, _ in scanned]], len(handed) + len(made), reads=reads(inner), body=body,
                       num_scan_inputs=len(scanned), **attributes)


NESTED = [(if_, 2), (loop, 3), (scan, 2)]


def make(prefix, opset, imports, rng):
    m = KindMaker(prefix, opset, rng, FEEDS, imports)
    m.graph.given(m.random(m.shape(), np.float32, exact=True), True, False)
    m.grow(PLAIN, m.between(0, 2))
    for _ in range(m.between(1, 3)):
        m.grow(NESTED, len(m.graph.nodes) + 1)
        m.grow(PLAIN, len(m.graph.nodes) + m.below(3))
    return m.graph


KIND = Kind("control", make, opsets=(11, 13, 14, 16, 17, 18, 19, 21, 22, 23, 24), arguments=("--max-turns", "12"))
