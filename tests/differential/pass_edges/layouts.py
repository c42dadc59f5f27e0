"""assign_layouts, assign_storage and what becomes one task: networks of operators that want channels last, views, parts and borders."""
import numpy as np

from pass_edges.edge import Family


def _image(m):
    return m.source((m.between(1, 2), m.pick([1, 2, 3, 4, 8]), m.between(3, 6), m.between(3, 6)))


def _conv(m, x):
    kernel = m.pick([1, 2, 3])
    if min(x.shape[2:]) < kernel:
        kernel = 1
    group = x.shape[1] if m.chance(0.3) else 1
    outputs = group if group > 1 else m.pick([x.shape[1], 2, 4])
    pads = [m.below(kernel) for _ in range(4)] if m.half() else [kernel // 2] * 4
    return m.node("Conv", x, m.weight((outputs, x.shape[1] // group, kernel, kernel)), group=group, pads=pads)


def _pool(m, x):
    kernel = [m.between(1, min(3, extent)) for extent in x.shape[2:]]
    name = m.pick(["MaxPool", "AveragePool", "GlobalAveragePool"])
    if name[0] == "G":
        return m.node(name, x)
    pads = [m.below(k) for k in kernel]
    return m.node(name, x, kernel_shape=kernel, pads=pads * 2, strides=[m.between(1, 2)] * 2)


def _same_shape(m, x, values):
    found = [v for v in values if v.shape == x.shape and v.name != x.name]
    return m.pick(found) if found else m.source(x.shape)


def _join(m, x, values):
    axis = m.pick([1, 1, 0, 2, 3])
    fits = [v for v in values if v.shape[:axis] == x.shape[:axis] and v.shape[axis + 1:] == x.shape[axis + 1:]]
    parts = [x, m.pick(fits) if fits else m.source(x.shape)]
    if m.chance(0.3):
        parts.append(m.graph.constant(m.random(x.shape, np.float32)) if m.half() else x)
    m.rng.shuffle(parts)
    return m.node("Concat", *parts, axis=axis, exact=True)


def _part(m, x):
    axis = m.pick([1, 1, 2, 3, 0])
    low = m.below(x.shape[axis])
    return m.slice(x, [low], [m.between(low + 1, x.shape[axis])], [axis], [m.pick([1, 1, 2])] if m.opset >= 10 and m.half() else None)


def _split(m, x):
    if x.shape[1] % 2:
        return _part(m, x)
    attributes = {"num_outputs": 2} if m.opset >= 18 else {}
    return m.pick(m.nodes("Split", x, results=2, exact=True, axis=1, **attributes))


def _moved(m, x):
    y = m.transpose(x, m.pick([[0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2], m.permutation(4)]))
    return m.activation(y) if m.half() else y


def _reshaped(m, x):
    n, c, h, w = x.shape
    shape = m.pick([[n, c, h * w, 1], [n, c, w, h], [n, c * h, 1, w], [n, h, c, w]])
    return m.node("Reshape", x, m.integers(shape), exact=True)


def _shuffled(m, x):
    n, c, h, w = x.shape
    if c % 4 == 0 and m.half():
        return m.node("DepthToSpace", x, blocksize=2, exact=True)
    if h % 2 == 0 and w % 2 == 0:
        return m.node("SpaceToDepth", x, blocksize=2, exact=True)
    return _moved(m, x)


def network(m):
    values = [_image(m)]
    for _ in range(m.between(2, 8)):
        x = values[-1] if m.chance(0.7) else m.pick(values)
        if max(x.shape) > 24 or 0 in x.shape:
            x = _image(m)
        kind = m.below(12)
        if kind < 3:
            y = _conv(m, x)
        elif kind == 3:
            y = _pool(m, x)
        elif kind == 4:
            y = m.either_way(m.pick(["Add", "Mul", "Max"]), x, _same_shape(m, x, values))
        elif kind == 5:
            y = _join(m, x, values)
        elif kind == 6:
            y = m.pick([_part, _split])(m, x)
        elif kind == 7:
            y = _moved(m, x)
        elif kind == 8:
            y = _reshaped(m, x)
        elif kind == 9:
            y = _shuffled(m, x)
        elif kind == 10:
            y = m.node("Softmax", x, axis=m.pick([1, 3])) if m.half() else m.reduce(m.pick(["ReduceMean", "ReduceMax"]), x, [m.between(1, 3)])
        else:
            y = m.activation(x)
        if len(y.shape) == 4:
            values.append(y)


def passed_through(m):
    """Outputs that are views, parts or twins of inputs, constants and other outputs."""
    x = _image(m)
    y = m.pick([_moved, _reshaped, _part, _split, _shuffled])(m, x)
    if m.half() and len(y.shape) == 4 and 0 not in y.shape:
        y = m.pick([_moved, _reshaped, _part])(m, y)
    if m.half():
        m.node("Identity", y, exact=True)
    if m.half():
        m.node("Identity", m.graph.constant(m.random((2, 3), np.float32)), exact=True)


FAMILY = Family("layouts", ("assign_layouts", "assign_storage"), [network] * 5 + [passed_through],
                rules=tuple(f"assign_layouts.{rule}" for rule in ("plain", "reordered", "output"))
                + tuple(f"assign_storage.{rule}" for rule in ("window", "bordered", "output", "part", "joined", "border")))
