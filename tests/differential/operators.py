"""Random nodes of supported operators, mostly legal; what is not, ONNX Runtime refuses. A template is a function of a Maker that adds
a node (or fails to); TEMPLATES lists them with weights."""
import numpy as np

FLOATS = (np.float32, np.float32, np.float32, np.float32, np.float64, np.float16)
INTEGERS = (np.int64, np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64)

# Name, since which opset, whether results jump (or, as atanh at 1, rise without bound) where operands differ a little.
UNARY = [
    ("Abs", 13, False), ("Neg", 13, False), ("Relu", 14, False), ("Exp", 13, False), ("Sigmoid", 13, False), ("Tanh", 13, False),
    ("Sqrt", 13, False), ("Erf", 13, False), ("Sin", 13, False), ("Cos", 13, False), ("Softplus", 13, False), ("Softsign", 13, False),
    ("HardSigmoid", 13, False), ("HardSwish", 14, False), ("LeakyRelu", 13, False), ("Elu", 13, False), ("Selu", 13, False),
    ("Celu", 13, False), ("Gelu", 20, False), ("Mish", 18, False), ("ThresholdedRelu", 13, True), ("Reciprocal", 13, False),
    ("Log", 13, False), ("Ceil", 13, True), ("Floor", 13, True), ("Round", 13, True), ("Sign", 13, True), ("Sinh", 13, False),
    ("Cosh", 13, False), ("Tan", 13, False), ("Asinh", 13, False), ("Atan", 13, False), ("Acos", 13, False), ("Asin", 13, False),
    ("Acosh", 13, True), ("Atanh", 13, True), ("IsNaN", 13, True), ("IsInf", 13, True), ("Identity", 13, False), ("Shrink", 13, True),
    ("Not", 13, True), ("BitwiseNot", 18, True)]
EXACT = {"Abs", "Neg", "Relu", "Identity", "Ceil", "Floor", "Round", "Sign", "IsNaN", "IsInf", "Not", "BitwiseNot", "Add", "Sub", "Mul",
         "Min", "Max", "And", "Or", "Xor", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "BitwiseAnd", "BitwiseOr",
         "BitwiseXor", "Sum"}
NUMBER_PARAMETERS = {"LeakyRelu": ["alpha"], "Elu": ["alpha"], "Celu": ["alpha"], "ThresholdedRelu": ["alpha"],
                     "HardSigmoid": ["alpha", "beta"], "Selu": ["alpha", "gamma"], "Shrink": ["lambd", "bias"]}
REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
              "ReduceLogSum", "ReduceLogSumExp"]


def unary(m):
    name, since, jumps = m.pick(UNARY)
    if m.opset < since:
        return None
    dtype = np.bool_ if name == "Not" else m.integer_type() if name == "BitwiseNot" else m.any_number_type() if name in (
        "Abs", "Neg", "Relu", "Sign", "Identity") else m.float_type()
    attributes = {key: float(m.pick([0.1, 0.5, 1.0, 1.5])) for key in NUMBER_PARAMETERS.get(name, []) if m.chance(0.7)}
    if name == "Gelu" and m.chance(0.5):
        attributes["approximate"] = "tanh"
    if name == "IsInf" and m.chance(0.5):
        attributes = {"detect_negative": m.below(2), "detect_positive": m.below(2)}
        m.graph.special = True
        values = m.rng.choice(np.asarray([1, np.inf, -np.inf, np.nan], np.float32), m.shape())
        return m.graph.add(name, [m.graph.given(values, True, m.chance(0.3))], exact=True, **attributes)
    if name in ("Atanh", "Acos", "Asin"):  # within their domains, and not where they rise without bound
        return m.graph.add(name, [m.graph.given((m.rng.integers(-3, 4, m.shape()) / 4).astype(dtype), True, m.chance(0.3))], **attributes)
    return m.graph.add(name, [m.value(dtype, exact=jumps, positive=name in ("Log", "Acosh"))], exact=name in EXACT, **attributes)


def binary(m):
    kind = m.pick(["arithmetic"] * 4 + ["compare", "logic", "bits"])
    if kind == "arithmetic":
        name, dtype = m.pick(["Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu"]), m.any_number_type()
    elif kind == "compare":
        name, dtype = m.pick(["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]), m.any_number_type()
    elif kind == "logic":
        name, dtype = m.pick(["And", "Or", "Xor"]), np.bool_
    else:
        name, dtype = m.pick(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"]), m.integer_type()
    jumps = kind == "compare" or name == "Mod"
    a = m.value(dtype, exact=jumps)
    b = m.fitting(a, exact=jumps, positive=name in ("Pow", "Mod", "BitShift", "Div"))
    attributes = {}
    if name == "BitShift":
        attributes["direction"] = m.pick(["LEFT", "RIGHT"])
    if name == "Mod" and np.dtype(dtype).kind == "f":
        attributes["fmod"] = 1
    if name == "Pow":
        a = m.value(dtype, positive=True)
        b = m.fitting(a, exact=True, positive=True)
    operands = [b, a] if m.chance(0.3) and name != "PRelu" else [a, b]
    return m.graph.add(name, operands, exact=name in EXACT, **attributes)


def variadic(m):
    name = m.pick(["Min", "Max", "Sum", "Mean"])
    a = m.value(m.float_type() if name in ("Sum", "Mean") else m.any_number_type())
    return m.graph.add(name, [a] + [m.fitting(a) for _ in range(m.below(3))], exact=name in EXACT)


def where(m):
    a = m.value(m.any_number_type())
    return m.graph.add("Where", [m.fitting(a, dtype=np.bool_), a, m.fitting(a)], exact=True)


def clip(m):
    a = m.value(m.any_number_type())
    if m.opset < 11:
        return m.graph.add("Clip", [a], exact=True, **{name: x for name, x in (("min", 0.0), ("max", 2.0)) if m.chance(0.8)})
    bounds = [m.graph.constant(np.asarray(x, a.array.dtype)) if m.chance(0.8) else None for x in (0, 2)]
    return m.graph.add("Clip", [a, *bounds], exact=True)


def cast(m):
    to = m.pick([1, 1, 1, 10, 11, 6, 7, 9, 2, 3])
    a = m.value(m.any_number_type() if m.chance(0.9) else np.bool_, exact=to not in (1, 10, 11), positive=to == 2)
    attributes = {"saturate": m.below(2)} if m.opset >= 19 and m.chance(0.3) else {}
    if m.opset >= 25 and m.chance(0.3):
        attributes["round_mode"] = m.pick(["up", "down", "nearest"])
    return m.graph.add("Cast", [a], to=to, exact=True, **attributes)


def reduction(m):
    name = m.pick(REDUCTIONS)
    dtype = m.float_type() if m.chance(0.8) or name.startswith("ReduceLog") else m.pick([np.int32, np.int64])
    a = m.value(dtype, positive=name == "ReduceLogSum")
    operands, attributes = [a], {}
    by_operand = m.opset >= (13 if name == "ReduceSum" else 18)
    if by_operand and m.chance(0.3):
        attributes["noop_with_empty_axes"] = m.below(2)
    if m.chance(0.85):
        axes = m.some_axes(len(a.shape))
        if m.opset < 11:
            axes = [d % len(a.shape) for d in axes]
        if by_operand:
            operands.append(m.graph.constant(np.asarray(axes, np.int64)))
        elif axes:
            attributes["axes"] = axes
    if m.chance(0.7):
        attributes["keepdims"] = m.below(2)
    exact = name in ("ReduceMax", "ReduceMin")
    return m.graph.add(name, operands, exact=exact, **attributes)


def arg_extreme(m):
    a = m.value(m.float_type(), exact=True, least_rank=1)
    attributes = {"select_last_index": m.below(2)} if m.opset >= 12 else {}
    axis = m.axis(a) if m.opset >= 11 else m.below(len(a.shape))
    return m.graph.add(m.pick(["ArgMax", "ArgMin"]), [a], axis=axis, keepdims=m.below(2), exact=True, **attributes)


def softmax(m):
    a = m.value(m.float_type(), least_rank=1)
    return m.graph.add(m.pick(["Softmax", "Softmax", "LogSoftmax"]), [a], axis=m.axis(a))


def top_k(m):
    a = m.value(m.float_type(), exact=True, least_rank=1)
    axis = m.axis(a)
    if m.opset < 10:
        return m.graph.add("TopK", [a], results=2, exact=True, axis=axis, k=m.between(1, max(1, a.shape[axis])))
    k = m.graph.constant(np.asarray([m.below(a.shape[axis] + 1)], np.int64))
    return m.graph.add("TopK", [a, k], results=2, axis=axis, exact=True, **({"largest": m.below(2), "sorted": 1} if m.opset >= 11 else {}))


def cumulative(m):
    a = m.value(m.pick([np.float32, np.float64, np.int32, np.int64]), least_rank=1)
    axis = m.graph.constant(np.asarray(m.axis(a), np.int64))
    return m.graph.add("CumSum", [a, axis], exclusive=m.below(2), reverse=m.below(2))


def norm(m):
    name = m.pick(["LayerNormalization", "InstanceNormalization", "BatchNormalization", "LpNormalization", "MeanVarianceNormalization",
                   "LRN", "GroupNormalization", "RMSNormalization"])
    dtype = np.float32
    if m.opset < 9 and m.chance(0.5):
        name = "BatchNormalization"  # with the attribute that it had then
    if name in ("LayerNormalization", "RMSNormalization"):
        if m.opset < (17 if name[0] == "L" else 23):
            return None
        a = m.value(dtype, least_rank=1)
        axis = m.axis(a)
        operands = [a] + [m.graph.given(m.random(a.shape[axis:], dtype), False, m.chance(0.7)) for _ in range(1 if name[0] == "R" else m.between(1, 2))]
        attributes = {"epsilon": m.pick([1e-5, 1e-2])} if m.chance(0.5) else {}
        if m.chance(0.4):
            attributes["stash_type"] = 1
        return m.graph.add(name, operands, axis=axis, **attributes)
    if name == "LpNormalization":
        a = m.value(dtype, least_rank=1)
        return m.graph.add(name, [a], axis=m.axis(a), p=m.between(1, 2))
    a = m.image(dtype, m.between(1, 3)) if name not in ("MeanVarianceNormalization", "LRN") else m.image(dtype, 2)
    channels = a.shape[1]
    if name == "LRN":
        return m.graph.add(name, [a], size=m.pick([1, 3, 5]), alpha=0.1, beta=0.75, bias=1.5)
    if name == "MeanVarianceNormalization":
        return m.graph.add(name, [a], axes=[0, 2, 3])
    vector = lambda positive=False: m.graph.given(m.random((channels,), dtype, positive=positive), False, m.chance(0.8))
    if name == "BatchNormalization":
        attributes = {"epsilon": 1e-3, "momentum": 0.8}
        if m.opset >= 14 and m.chance(0.3):
            attributes["training_mode"] = 0
        if m.opset < 9:
            attributes["spatial"] = 1
        return m.graph.add(name, [a, vector(), vector(), vector(), vector(True)], **attributes)
    epsilon = {"epsilon": m.pick([1e-5, 1e-2])} if m.chance(0.5) else {}
    if name == "GroupNormalization":
        if m.opset < 18:
            return None
        groups = m.pick([1, channels] + [2] * (channels % 2 == 0))
        if m.opset >= 21 and m.chance(0.4):
            epsilon["stash_type"] = 1
        operands = [vector(), vector()] if m.opset >= 21 else [m.graph.given(m.random((groups,), dtype), False, True) for _ in range(2)]
        return m.graph.add(name, [a, *operands], num_groups=groups, **epsilon)
    return m.graph.add(name, [a, vector(), vector()], **epsilon)


def matmul(m):
    a = m.value(m.pick([np.float32, np.float32, np.float64, np.int32]), least_rank=1)
    rows = a.shape[-1]
    batch = m.broadcastable(a.shape[:-2]) if len(a.shape) > 2 and m.chance(0.5) else ()
    shape = (rows,) if m.chance(0.15) else (*batch, rows, m.extent())
    return m.graph.add("MatMul", [a, m.operand(shape, a.array.dtype)])


def gemm(m):
    a = m.value(m.pick([np.float32, np.float32, np.float64]), rank=2)
    trans_a, trans_b = m.below(2), m.below(2)
    k, rows, columns = (a.shape[0], a.shape[1], m.extent()) if trans_a else (a.shape[1], a.shape[0], m.extent())
    b = m.operand((columns, k) if trans_b else (k, columns), a.array.dtype)
    c = [m.operand(m.broadcastable((rows, columns)), a.array.dtype)] if m.chance(0.6) else []
    return m.graph.add("Gemm", [a, b, *c], transA=trans_a, transB=trans_b, alpha=float(m.pick([1, 1, 0.5])), beta=float(m.pick([1, 1, 2])))


def einsum(m):
    equation, shapes = m.pick([
        ("ij,jk->ik", ("ij", "jk")), ("bij,bjk->bik", ("bij", "bjk")), ("bij,bkj->bik", ("bij", "bkj")), ("ij->ji", ("ij",)),
        ("ij->i", ("ij",)), ("i,j->ij", ("i", "j")), ("bhqd,bhkd->bhqk", ("bhqd", "bhkd")), ("ij,ij->", ("ij", "ij")), ("ii->i", ("ii",)),
        ("abc,cd->abd", ("abc", "cd")), ("ij,ij->ij", ("ij", "ij"))])
    extents = {letter: m.extent() for letter in "abcdhijkq"}
    operands = [m.operand(tuple(extents[letter] for letter in shape), np.float32) for shape in shapes]
    return m.graph.add("Einsum", operands, equation=equation)


def window(m, spatial, extents, dilation=True):
    """Attributes of a window that mostly fits."""
    kernel = [max(int(min(m.between(1, 3), extent)), 1) for extent in extents]
    attributes = {"kernel_shape": kernel}
    if m.chance(0.6):
        attributes["strides"] = [m.between(1, 3) for _ in range(spatial)]
    if dilation and m.chance(0.3):
        attributes["dilations"] = [m.between(1, 2) for _ in range(spatial)]
    kind = m.below(4)
    if kind == 0 and "dilations" not in attributes:  # ONNX Runtime leaves them out of the sum
        attributes["auto_pad"] = m.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if any(k < s for k, s in zip(kernel, attributes.get("strides", [1] * spatial))):
            attributes["auto_pad"] = "VALID"  # ONNX Runtime pads by a negative number else
    elif kind < 3:
        attributes["pads"] = [m.below(k) for k in kernel] + [m.below(k) for k in kernel]
    pads = attributes.get("pads", [0] * 2 * spatial)
    for d, extent in enumerate(extents):
        # ONNX Runtime rounds the number of places up from below 0, so that one window fits where none does.
        if extent + pads[d] + pads[spatial + d] < (kernel[d] - 1) * attributes.get("dilations", [1] * spatial)[d] + 1:
            attributes.pop("dilations", None)
    return attributes


def conv(m):
    spatial = m.pick([1, 2, 2, 2, 2, 3])
    a = m.image(np.float32 if m.chance(0.9) else np.float64, spatial)
    channels = a.shape[1]
    attributes = window(m, spatial, a.shape[2:])
    group = m.pick([1, 1, channels] + [2] * (channels % 2 == 0)) if channels else 1
    per_group = m.between(1, 3)
    transposed = m.chance(0.25)
    if transposed:
        shape = (channels, per_group, *attributes["kernel_shape"])
        attributes.pop("auto_pad", None)
        if m.chance(0.3) and "strides" in attributes:
            attributes["output_padding"] = [m.below(s) for s in attributes["strides"]]
    else:
        shape = (group * per_group, channels // group, *attributes["kernel_shape"])
    weight = m.graph.given(m.random(shape, a.array.dtype), False, m.chance(0.9))
    bias = [m.graph.given(m.random((group * per_group,), a.array.dtype), False, m.chance(0.9))] if m.chance(0.6) else []
    return m.graph.add("ConvTranspose" if transposed else "Conv", [a, weight, *bias], group=group, **attributes)


def pool(m):
    spatial = m.pick([1, 2, 2, 2, 3])
    a = m.image(np.float32, spatial)
    name = m.pick(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"])
    if name.startswith("Global"):
        return m.graph.add(name, [a], exact=name == "GlobalMaxPool")
    attributes = window(m, spatial, a.shape[2:], dilation=name == "MaxPool" or m.opset >= 19)
    if name != "LpPool" or m.opset >= 18:
        attributes["ceil_mode"] = m.below(2)
    if name == "AveragePool":
        attributes["count_include_pad"] = m.below(2)
    return m.graph.add(name, [a], exact=name == "MaxPool", **attributes)


TEMPLATES = [(unary, 12), (binary, 8), (variadic, 2), (where, 2), (clip, 1), (cast, 2), (reduction, 6), (arg_extreme, 1), (softmax, 3),
             (top_k, 1), (cumulative, 1), (norm, 4), (matmul, 4), (gemm, 2), (einsum, 1), (conv, 4), (pool, 3)]
