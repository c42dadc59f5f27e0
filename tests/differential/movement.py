"""Random nodes that move elements: views, slices, gathers, scatters, pictures. See operators.py."""
import numpy as np


def integers(m, values):
    return m.graph.constant(np.asarray(values, np.int64))


def factored(m, size):
    """A random shape of as many elements."""
    shape, rest = [], size
    for _ in range(m.below(4)):
        divisors = [d for d in range(1, min(rest, 12) + 1) if rest % d == 0] if rest else [1]
        shape.append(m.pick(divisors))
        rest //= shape[-1]
    shape.insert(m.below(len(shape) + 1), rest)
    return shape


def reshape(m):
    a = m.any_value()
    shape = factored(m, a.array.size)
    if a.array.size and m.chance(0.4):
        shape[m.below(len(shape))] = -1
    if m.opset >= 14 and m.chance(0.3):
        return m.graph.add("Reshape", [a, integers(m, shape)], exact=True, allowzero=0 if -1 in shape else m.below(2))
    return m.graph.add("Reshape", [a, integers(m, shape)], exact=True)


def transpose(m):
    a = m.any_value(least_rank=1)
    perm = [int(d) for d in m.rng.permutation(len(a.shape))]
    return m.graph.add("Transpose", [a], exact=True, **({"perm": perm} if m.chance(0.9) else {}))


def flatten(m):
    a = m.any_value()
    return m.graph.add("Flatten", [a], axis=m.between(0, len(a.shape)), exact=True)


def with_axes(m, op_type, a, axes):
    """As an operand or, before opset 13, an attribute."""
    if m.opset < 13:
        return m.graph.add(op_type, [a], exact=True, axes=axes)
    return m.graph.add(op_type, [a, integers(m, axes)], exact=True)


def squeeze(m):
    a = m.any_value()
    ones = [d for d, extent in enumerate(a.shape) if extent == 1]
    if ones and m.chance(0.6):
        return with_axes(m, "Squeeze", a, [d for d in ones if m.chance(0.7)] or ones)
    rank = len(a.shape) + m.between(1, 2)
    axes = sorted(int(d) for d in m.rng.choice(rank, rank - len(a.shape), replace=False))
    return with_axes(m, "Unsqueeze", a, axes)


def expand(m):
    a = m.any_value()
    shape = [m.between(1, 3) if extent == 1 else extent for extent in a.shape]
    if m.chance(0.3):
        shape.insert(0, m.between(1, 3))
    if m.chance(0.5):
        return m.graph.add("Expand", [a, integers(m, shape)], exact=True)
    return m.graph.add("Tile", [a, integers(m, [m.between(1, 3) for _ in a.shape])], exact=True)


def slice_(m):
    a = m.any_value(least_rank=1)
    axes = m.some_axes(len(a.shape))
    low = -6 if m.chance(0.5) else 0
    starts, ends = [m.between(low, 5) for _ in axes], [m.between(low, 9) for _ in axes]
    if m.opset < 10:
        return m.graph.add("Slice", [a], exact=True, starts=starts, ends=ends, axes=[d % len(a.shape) for d in axes]) if axes else None
    steps = [m.pick([1, 1, 1, 2, 3, -1, -2]) for _ in axes]
    for i, step in enumerate(steps):
        if (step < 0) != (starts[i] > ends[i]):
            starts[i], ends[i] = ends[i], starts[i]
    operands = [integers(m, starts), integers(m, ends), integers(m, axes), integers(m, steps)]
    return m.graph.add("Slice", [a, *operands], exact=True)


def concat(m):
    a = m.any_value(least_rank=1)
    axis = m.axis(a)
    operands = [a]
    for _ in range(m.between(0, 2)):
        shape = list(a.shape)
        shape[axis] = m.extent()
        operands.append(m.operand(tuple(shape), a.array.dtype))
    m.rng.shuffle(operands)
    return m.graph.add("Concat", operands, axis=axis, exact=True)


def split(m):
    a = m.any_value(least_rank=1)
    axis = m.axis(a)
    parts = m.between(1, 3)
    if a.shape[axis] < parts:
        return None
    cuts = sorted(m.between(0, a.shape[axis]) for _ in range(parts - 1))
    lengths = np.diff([0, *cuts, a.shape[axis]])
    if m.opset < 13:
        return m.graph.add("Split", [a], results=parts, exact=True, axis=axis, split=[int(n) for n in lengths])
    if m.opset >= 18 and m.chance(0.3):
        return m.graph.add("Split", [a], results=parts, exact=True, axis=axis, num_outputs=parts)
    return m.graph.add("Split", [a, integers(m, lengths)], results=parts, axis=axis, exact=True)


def pad(m):
    a = m.value(m.any_number_type())
    mode = m.pick(["constant", "constant", "edge", "reflect"] + ["wrap"] * (m.opset >= 19))
    low = -1 if mode == "constant" and m.chance(0.2) else 0
    pads = [m.between(low, 2) for _ in range(2 * len(a.shape))]
    if m.opset < 11:
        return m.graph.add("Pad", [a], exact=True, pads=pads, mode=mode, **({"value": float(m.below(3))} if m.chance(0.5) else {}))
    operands = [a, integers(m, pads)]
    if mode == "constant" and m.chance(0.5):
        operands.append(m.graph.given(np.asarray(m.below(3), a.array.dtype), True, m.chance(0.7)))
    return m.graph.add("Pad", operands, mode=mode, exact=True)


def indices(m, shape, extent, constant):
    return m.graph.given(m.rng.integers(-extent, extent, shape).astype(m.pick([np.int64, np.int32])), True, constant)


def gather(m):
    a = m.any_value(least_rank=1)
    axis = m.axis(a)
    if a.shape[axis] == 0:
        return None
    constant = m.chance(0.5)
    kind = m.pick(["Gather", "Gather", "GatherElements", "GatherND"])
    if kind == "Gather":
        return m.graph.add(kind, [a, indices(m, m.shape(most=2), a.shape[axis], constant)], axis=axis, exact=True)
    if kind == "GatherElements":
        shape = [m.between(1, extent) if extent else 0 for extent in a.shape]
        shape[axis] = m.extent()
        return m.graph.add(kind, [a, indices(m, shape, a.shape[axis], constant)], axis=axis, exact=True)
    depth = m.between(1, len(a.shape))
    if 0 in a.shape:
        return None
    if m.opset >= 12 and len(a.shape) > 1 and m.chance(0.4):
        batch = m.between(1, len(a.shape) - 1)
        places = m.rng.integers(0, a.shape[batch], (*a.shape[:batch], m.between(1, 3), 1)).astype(np.int64)
        return m.graph.add(kind, [a, m.graph.given(places, True, constant)], exact=True, batch_dims=batch)
    places = np.stack([m.rng.integers(-a.shape[d], a.shape[d], (3,)) for d in range(depth)], -1).astype(np.int64)
    return m.graph.add(kind, [a, m.graph.given(places, True, constant)], exact=True)


def scatter(m):
    a = m.value(m.pick([np.float32, np.float32, np.int64, np.float64]), least_rank=1)
    if 0 in a.shape:
        return None
    reduce = m.pick(["none", "none"] + ["add", "mul"] * (m.opset >= 16) + ["max", "min"] * (m.opset >= 18))
    attributes = {"reduction": reduce} if m.opset >= 16 else {}
    constant = m.chance(0.5)
    if m.chance(0.5):
        axis = m.axis(a)
        shape = [m.between(1, extent) for extent in a.shape]
        # Without duplicates: with them the order would matter.
        places = np.argsort(m.rng.random(a.shape), axis=axis)[tuple(slice(0, extent) for extent in shape)].astype(np.int64)
        updates = m.operand(tuple(shape), a.array.dtype)
        return m.graph.add("ScatterElements", [a, m.graph.given(places, True, constant), updates], axis=axis, **attributes)
    depth = m.between(1, len(a.shape))
    flat = m.rng.permutation(int(np.prod(a.shape[:depth])))[:m.between(1, 4)]
    places = np.stack(np.unravel_index(flat, a.shape[:depth]), -1).astype(np.int64)
    updates = m.operand((len(flat), *a.shape[depth:]), a.array.dtype)
    return m.graph.add("ScatterND", [a, m.graph.given(places, True, constant), updates], **attributes)


def depth_to_space(m):
    block = m.between(1, 2)
    if m.chance(0.5):
        shape = (m.between(1, 2), block * block * m.between(1, 2), m.between(1, 3), m.between(1, 3))
        return m.graph.add("DepthToSpace", [m.operand(shape, np.float32)], blocksize=block, mode=m.pick(["DCR", "CRD"]), exact=True)
    shape = (m.between(1, 2), m.between(1, 3), block * m.between(1, 2), block * m.between(1, 2))
    attributes = {"mode": m.pick(["DCR", "CRD"])} if m.opset >= 28 and m.chance(0.8) else {}
    return m.graph.add("SpaceToDepth", [m.operand(shape, np.float32)], blocksize=block, exact=True, **attributes)


def trilu(m):
    a = m.value(m.any_number_type(), least_rank=2)
    k = [m.graph.given(np.asarray(m.between(-2, 2), np.int64), True, m.chance(0.7))] if m.chance(0.6) else []
    return m.graph.add("Trilu", [a, *k], upper=m.below(2), exact=True)


def one_hot(m):
    places = m.operand(m.shape(most=2), np.int64)
    depth, values = m.graph.constant(np.asarray([m.between(1, 5)], np.int64)), m.operand((2,), np.float32)
    return m.graph.add("OneHot", [places, depth, values], axis=m.pick([-1, 0]), exact=True)


def reverse_sequence(m):
    a = m.any_value(least_rank=2)
    if 0 in a.shape:
        return None
    batch = m.below(2)
    lengths = m.graph.given(m.rng.integers(1, a.shape[1 - batch] + 1, (a.shape[batch],)), True, m.chance(0.5))
    return m.graph.add("ReverseSequence", [a, lengths], batch_axis=batch, time_axis=1 - batch, exact=True)


def shape_of(m):
    a = m.any_value()
    if m.opset >= 15 and m.chance(0.5):
        attributes = {name: m.between(-len(a.shape) - 1, len(a.shape) + 1) for name in ("start", "end") if m.chance(0.7)}
        return m.graph.add("Shape", [a], exact=True, **attributes)
    return m.graph.add(m.pick(["Shape", "Size"]), [a], exact=True)


TEMPLATES = [(reshape, 4), (transpose, 4), (flatten, 1), (squeeze, 2), (expand, 2), (slice_, 4), (concat, 4), (split, 2), (pad, 3),
             (gather, 3), (scatter, 2), (depth_to_space, 2), (trilu, 1), (one_hot, 1), (reverse_sequence, 1), (shape_of, 1)]
