"""Random nodes that make values from numbers and attributes. See operators.py."""
import numpy as np
from onnx import helper, numpy_helper

_CODES = {1: np.float32, 11: np.float64, 10: np.float16, 6: np.int32, 7: np.int64}


def _scalar(m, number, dtype=np.int64):
    return m.graph.constant(np.asarray(number, dtype))


def constant(m):
    kind = m.below(6) if m.opset >= 12 else 0
    if kind == 0 or kind == 5:
        array = m.random(m.shape(), m.any_number_type(), exact=True)
        return m.graph.add("Constant", [], value=numpy_helper.from_array(np.asarray(array)), exact=True)
    attributes = [{"value_float": 1.5}, {"value_floats": [0.5, -1.0, 2.0]}, {"value_int": -3}, {"value_ints": [1, 2, 3, 4]}]
    return m.graph.add("Constant", [], exact=True, **attributes[kind - 1])


def constant_of_shape(m):
    if m.opset < 9:
        return None
    shape = m.graph.constant(np.asarray(m.shape(), np.int64))
    attributes = {"value": numpy_helper.from_array(np.asarray([2], m.any_number_type()))} if m.chance(0.7) else {}
    return m.graph.add("ConstantOfShape", [shape], exact=True, **attributes)


def eye_like(m):
    if m.opset < 9:
        return None
    attributes = {"dtype": m.pick([1, 11, 6, 7])} if m.chance(0.7) else {}
    if m.chance(0.7):
        attributes["k"] = m.between(-3, 3)
    return m.graph.add("EyeLike", [m.operand((m.between(1, 5), m.between(1, 5)), m.pick([np.float32, np.int32]))], exact=True, **attributes)


def range_(m):
    if m.opset < 11:
        return None
    dtype = m.pick([np.float32, np.int64, np.int32, np.float64])
    low = m.between(-4, 4)
    step = m.pick([1, 2, -1, -2, 3])
    operands = [_scalar(m, low, dtype), _scalar(m, low + step * m.between(0, 6), dtype), _scalar(m, step, dtype)]
    attributes = {"stash_type": 1} if m.opset >= 27 and m.chance(0.7) else {}
    return m.graph.add("Range", operands, exact=True, **attributes)


def window_function(m):
    if m.opset < 17:
        return None
    attributes = {"output_datatype": m.pick([1, 11])} if m.chance(0.6) else {}
    if m.chance(0.6):
        attributes["periodic"] = m.below(2)
    return m.graph.add(m.pick(["HannWindow", "HammingWindow", "BlackmanWindow"]), [_scalar(m, m.between(1, 12))], **attributes)


def mel_weights(m):
    if m.opset < 17:
        return None
    operands = [_scalar(m, m.between(2, 6)), _scalar(m, m.pick([16, 32])), _scalar(m, 8000), _scalar(m, 0.0, np.float32), _scalar(m, 4000.0, np.float32)]
    return m.graph.add("MelWeightMatrix", operands, **({"output_datatype": m.pick([1, 11])} if m.chance(0.7) else {}))


def bit_cast(m):
    if m.opset < 26:
        return None
    pairs = [(np.int32, 12), (np.uint32, 6), (np.int64, 13), (np.float32, 6), (np.int8, 2), (np.uint8, 3), (np.float64, 7), (np.int16, 4)]
    dtype, to = m.pick(pairs)
    return m.graph.add("BitCast", [m.value(dtype, exact=True)], exact=True, to=to)


def cast_like(m):
    if m.opset < 15:
        return None
    a = m.value(m.any_number_type(), exact=True)
    like = m.operand((1,), m.pick([np.float32, np.int32, np.float64]))
    attributes = {"saturate": m.below(2)} if m.opset >= 19 and m.chance(0.6) else {}
    if m.opset >= 25 and m.chance(0.4):
        attributes["round_mode"] = m.pick(["up", "down", "nearest"])
    return m.graph.add("CastLike", [a, like], exact=True, **attributes)


def spectrum(m):
    """Fourier transforms of rows, real or complex."""
    if m.opset < 17:
        return None
    length, parts = m.pick([4, 5, 8]), m.pick([1, 1, 2])
    if m.chance(0.3):
        signal = m.operand((m.between(1, 2), m.between(8, 12), 1), np.float32)
        frame = m.pick([4, 8])
        operands = [signal, _scalar(m, m.between(1, 4)), m.graph.constant(m.random((frame,), np.float32)) if m.chance(0.5) else None, _scalar(m, frame)]
        return m.graph.add("STFT", operands, **({"onesided": m.below(2)} if m.chance(0.7) else {}))
    x = m.operand((m.between(1, 2), length, m.between(1, 3), parts), np.float32)
    attributes = {}
    if m.chance(0.6):
        attributes["inverse"] = m.below(2)
    if parts == 1 and not attributes.get("inverse") and m.chance(0.6):
        attributes["onesided"] = m.below(2)
    operands = [x, _scalar(m, length + m.between(-1, 2)) if m.chance(0.4) else None]
    axis = m.pick([1, 2, -2, -3])
    if m.opset >= 20:
        operands.append(_scalar(m, axis))
    else:
        attributes["axis"] = axis % 4
    while operands[-1] is None:
        operands.pop()
    return m.graph.add("DFT", operands, **attributes)


def dropout(m):
    a = m.value(m.float_type())
    attributes = {"seed": 7} if m.opset >= 12 and m.chance(0.5) else {"ratio": 0.3} if m.opset < 12 and m.chance(0.5) else {}
    operands = [a] + ([m.graph.constant(np.asarray(0.25, np.float32))] if m.opset >= 12 and m.chance(0.5) else [])
    return m.graph.add("Dropout", operands, results=m.pick([1, 1, 2]) if m.opset >= 12 else 1, exact=True, **attributes)


def _subgraph(name, nodes, inputs, outputs):
    info = lambda names: [helper.make_empty_tensor_value_info(n) if t is None else helper.make_tensor_value_info(n, *t) for n, t in names]
    return helper.make_graph(nodes, name, info(inputs), info(outputs))


def _info(value, shape=None):
    return helper.np_dtype_to_tensor_dtype(value.array.dtype), value.shape if shape is None else shape


def if_(m):
    """Branches that read a value from outside."""
    a = m.value(np.float32)
    condition = m.graph.given(np.asarray(m.chance(0.5)), True, m.chance(0.5))
    prefix = m.graph.fresh()
    branch = lambda side, op: _subgraph(prefix + side, [helper.make_node(op, [a.name], [prefix + side + "y"])], [], [(prefix + side + "y", _info(a))])
    return m.graph.add("If", [condition], reads=[a], then_branch=branch("then", m.pick(["Neg", "Relu"])), else_branch=branch("else", m.pick(["Abs", "Tanh"])))


def loop(m):
    a = m.value(np.float32)
    prefix = m.graph.fresh() + "loop_"
    name = lambda text: prefix + text
    nodes = [helper.make_node("Identity", [name("go")], [name("go_on")]), helper.make_node("Add", [name("x"), a.name], [name("sum")]),
             helper.make_node("Sigmoid", [name("sum")], [name("next")]), helper.make_node("Neg", [name("next")], [name("scan")])]
    body = _subgraph(prefix, nodes, [(name("i"), (7, [])), (name("go"), (9, [])), (name("x"), _info(a))],
                     [(name("go_on"), (9, [])), (name("next"), _info(a)), (name("scan"), _info(a))])
    turns, condition = _scalar(m, m.between(1, 3)), _scalar(m, True, np.bool_)
    return m.graph.add("Loop", [turns, condition, m.operand(a.shape, np.float32)], results=2, reads=[a], body=body)


def scan(m):
    if m.opset < 9:
        return None
    steps, width, axis = m.between(1, 4), m.between(1, 4), m.below(2)
    state, row = (width,), (width,)
    x = m.operand((steps, width) if axis == 0 else (width, steps), np.float32)
    prefix = m.graph.fresh() + "scan_"
    name = lambda text: prefix + text
    nodes = [helper.make_node("Add", [name("s"), name("r")], [name("t")]), helper.make_node("Tanh", [name("t")], [name("next")]),
             helper.make_node("Neg", [name("next")], [name("out")])]
    body = _subgraph(prefix, nodes, [(name("s"), (1, state)), (name("r"), (1, row))], [(name("next"), (1, state)), (name("out"), (1, row))])
    attributes = {"scan_input_axes": [axis - (2 if m.opset >= 11 and m.chance(0.3) else 0)]} if axis or m.chance(0.5) else {}
    for key, values in (("scan_input_directions", [0, 1]), ("scan_output_directions", [0, 1]), ("scan_output_axes", [0, 1])):
        if m.chance(0.5):
            attributes[key] = [m.pick(values)]
    return m.graph.add("Scan", [m.operand(state, np.float32), x], results=2, num_scan_inputs=1, body=body, **attributes)


TEMPLATES = [(constant, 1), (constant_of_shape, 1), (eye_like, 1), (range_, 1), (window_function, 1), (mel_weights, 1), (bit_cast, 1), (cast_like, 1),
             (spectrum, 2), (dropout, 1), (if_, 1), (loop, 1), (scan, 1)]
