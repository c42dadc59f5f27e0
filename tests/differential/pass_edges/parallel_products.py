"""merge_parallel_products: several products of one value by constant weights, with what follows them."""
import numpy as np

from pass_edges.edge import Family, Impossible


def _weights(m, kind, depth, columns, attributes):
    if kind == "Conv":
        return (columns, depth, *m.almost((1, 1), (2, 2), (1, 2)))
    return (columns, depth) if attributes.get("transB") else (depth, columns)


def _read(m, y):
    """A reader that is no elementwise operator, so that a part of the whole result serves it."""
    rank = len(y.shape)
    kind = m.below(6)
    if kind == 0:
        m.node("Softmax", y, axis=rank - 1)
    elif kind == 1:
        m.reduce("ReduceSum", y, [m.below(rank)])
    elif kind == 2 and rank == 3 and y.shape[2] % 2 == 0:
        m.transpose(m.node("Reshape", y, m.integers([y.shape[0], y.shape[1], 2, y.shape[2] // 2])), [0, 2, 1, 3])
    elif kind == 3 and rank > 1:
        m.node("MatMul", y, m.weight((y.shape[-1], m.between(1, 4)), y.array.dtype))
    elif kind == 4:
        m.node("Concat", y, m.source(y.shape, y.array.dtype), axis=m.below(rank))
    else:
        m.reduce("ReduceMax", y, [rank - 1])


def parallel(m):
    kind = m.pick(["MatMul", "MatMul", "Gemm", "Conv"])
    depth = m.between(1, 6)
    dtype = m.pick([np.float32, np.float32, np.float64])
    shapes = {"MatMul": [(m.between(1, 5), depth), (m.between(1, 3), m.between(1, 5), depth)], "Gemm": [(m.between(1, 5), depth)],
              "Conv": [(m.between(1, 2), depth, m.between(2, 4), m.between(2, 4))]}
    x = m.source(m.pick(shapes[kind]), dtype)
    attributes = {}
    if kind == "Gemm":
        attributes = {"transB": m.below(2), "alpha": m.pick([1.0, 0.5])}
    elif kind == "Conv" and m.half():
        attributes = {"strides": [m.between(1, 2)] * 2}
    biased = kind != "MatMul" and (m.half() or kind == "Gemm" and m.opset < 11)
    same = m.pick([2, 4, 6])
    followers = [m.pick(["add", "mul", "activation"]) for _ in range(m.below(3))]
    numbers = [m.pick([0.5, 2, -1]) for _ in followers]
    kinds = [m.pick(["Relu", "Tanh", "Sigmoid", "LeakyRelu"]) for _ in followers]
    for _ in range(m.between(2, 4)):
        columns = same if m.half() else m.between(1, 6)
        own = dict(attributes)
        if kind == "Gemm" and not m.almost(True, False):
            own["alpha"] = 2.0
        operands = [m.weight(_weights(m, kind, depth, columns, own), dtype)]
        if m.almost(biased, not biased) and (kind != "MatMul"):
            operands.append(m.weight((columns,), dtype))
        y = m.node(kind, m.almost(x, lambda: m.node("Abs", x)), *operands, **own)
        for follower, number, elementwise in zip(followers, numbers, kinds):
            if follower == "activation":
                y = m.node(m.almost(elementwise, "Abs"), y, **({"alpha": 0.2} if elementwise == "LeakyRelu" and m.almost(False, True) else {}))
            else:
                channels = (columns, 1, 1) if kind == "Conv" else (columns,)
                other = m.weight(m.almost(channels, y.shape), dtype) if m.half() else m.uniform(number, y)
                y = m.either_way("Add" if follower == "add" else "Mul", y, other)
        if not y.shape:
            raise Impossible("a scalar")
        if m.almost(True, False):
            _read(m, y)


FAMILY = Family("parallel_products", ("merge_parallel_products",), [parallel], arguments=("--also-pass", "merge_parallel_products"),
                rules=tuple(f"merge_parallel_products.{rule}" for rule in ("MatMul", "Gemm", "Conv", "followers")))
