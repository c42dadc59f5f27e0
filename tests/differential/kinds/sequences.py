"""Sequences and optional values, made, changed and taken apart, also by SequenceMap and by loops that append to them."""
import numpy as np
from onnx import helper

from kinds.kind import Kind
from kinds.maker import PLAIN, KindMaker

CODES = {np.float32: 1, np.int64: 7, np.float64: 11}


def lists(m, dtype=None, filled=True):
    """The sequences that are there."""
    found = [v for v in m.graph.held.values() if isinstance(v.array, list) and (v.array or not filled)]
    return [v for v in found if dtype is None or not v.array or v.array[0].dtype == dtype]


def some_list(m, **wanted):
    found = lists(m, **wanted)
    if not found or m.chance(0.15):
        construct(m)
        found = lists(m, **wanted)
    return m.pick(found[-3:]) if found else None


def place(m, count, behind=False):
    """A position, counted from either end."""
    if count == 0 and not behind:
        return None
    position = m.between(-count, count - (0 if behind else 1))
    return m.graph.constant(np.asarray(position, m.pick([np.int64, np.int32])))


def element_like(m, held):
    """Mostly of its shapes, so that they can be joined."""
    if not held.array:
        return m.value(np.float32)
    like = m.pick(held.array)
    found = [v for v in m.graph.values.values() if v.array.dtype == like.dtype and v.kind != "constant"]
    return m.pick(found) if found and m.chance(0.2) else m.operand(like.shape, like.dtype)


def construct(m):
    first = m.value(m.pick([np.float32] * 4 + [np.int64, np.float64]), least_rank=1)
    others = [m.operand(first.shape, first.array.dtype) for _ in range(m.below(4))]
    return m.graph.add("SequenceConstruct", [first, *others])


def empty(m):
    return m.graph.add("SequenceEmpty", [], **({"dtype": m.pick([1, 1, 7])} if m.chance(0.5) else {}))


def insert(m):
    held = some_list(m, filled=False)
    return held and m.graph.add("SequenceInsert", [held, element_like(m, held), place(m, len(held.array), True) if m.chance(0.6) else None])


def erase(m):
    held = some_list(m)
    return held and m.graph.add("SequenceErase", [held, place(m, len(held.array)) if m.chance(0.6) else None])


def at(m):
    held = some_list(m)
    return held and m.graph.add("SequenceAt", [held, place(m, len(held.array))], exact=True)


def length(m):
    held = some_list(m, filled=False)
    return held and m.graph.add("SequenceLength", [held], exact=True)


def split(m):
    x = m.any_value(least_rank=1)
    axis = m.axis(x)
    extent = x.shape[axis]
    kind, attributes = m.below(3), {"axis": axis} if m.chance(0.8) else {}
    extent = x.shape[axis] if attributes else x.shape[0]
    if extent == 0 or extent > 8:
        return None
    if kind == 0:
        return m.graph.add("SplitToSequence", [x], **attributes, **({"keepdims": m.below(2)} if m.chance(0.7) else {}))
    if kind == 1:
        return m.graph.add("SplitToSequence", [x, m.graph.constant(np.asarray(m.between(1, extent), np.int64))], **attributes)
    cuts = sorted(m.between(0, extent) for _ in range(m.below(3)))
    return m.graph.add("SplitToSequence", [x, m.integers(np.diff([0, *cuts, extent]))], **attributes)


def join(m):
    held = some_list(m)
    if held is None:
        return None
    rank, new = len(held.array[0].shape), m.below(2)
    axis = m.between(-rank - new, rank + new - 1) if rank + new else 0
    # ONNX Runtime leaves out what has no elements, whatever its other extents are.
    rests = {x.shape if new else x.shape[:axis % rank] + x.shape[axis % rank + 1:] for x in held.array if rank}
    if len(rests) > 1:
        return None
    attributes = {"new_axis": new} if new or m.chance(0.3) else {}
    return m.graph.add("ConcatFromSequence", [held], axis=axis, exact=True, **attributes) if rank + new else None


def map_(m):
    """A body of nodes for each element, with an element of another sequence, a tensor and what is around it."""
    if m.opset < 17:
        return None
    held = some_list(m)
    if held is None:
        return None
    others = [v for v in lists(m) if len(v.array) == len(held.array)][:m.below(2)]
    shared = [m.any_value() for _ in range(m.below(2))]
    arrays = [held.array[0], *[v.array[0] for v in others], *[v.array for v in shared]]
    inner = m.inside([(array, False) for array in arrays], [v for v in m.graph.values.values() if v.kind == "result"][:m.below(2)])
    inner.grow(PLAIN, m.between(1, 3))
    if not inner.results():
        return None
    made = list({v.name: v for v in [m.pick(inner.results()) for _ in range(m.between(1, 2))]}.values())
    body = inner.to_graph(inner.graph.prefix + "map", [(v.name, v.array, None) for v in inner.parameters], [(v.name, v.array, None) for v in made])
    return m.graph.add("SequenceMap", [held, *others, *shared], len(made), reads=inner.captured, body=body)


def grown_by_loop(m):
    """A Loop whose turns append a row."""
    x = m.value(np.float32, least_rank=1)
    if 0 in x.shape:
        return None
    name = m.graph.fresh() + "b_"
    turns, code = m.between(0, min(4, x.shape[0])), helper.np_dtype_to_tensor_dtype(x.array.dtype)
    made = [held for held in lists(m, np.float32, filled=False)]
    first = m.pick(made) if made and m.chance(0.5) else (m.graph.add("SequenceEmpty", []) or [None])[0]
    if first is None:
        return None
    info = lambda text, kind: helper.make_tensor_value_info(name + text, kind, [])
    sequence = lambda text: helper.make_tensor_sequence_value_info(name + text, code, None)
    nodes = [helper.make_node("Identity", [name + "go"], [name + "on"]), helper.make_node("Gather", [x.name, name + "i"], [name + "row"]),
             helper.make_node(m.pick(["Neg", "Tanh", "Abs"]), [name + "row"], [name + "out"]),
             helper.make_node("SequenceInsert", [name + "rows", name + "out"], [name + "grown"])]
    body = helper.make_graph(nodes, name + "body", [info("i", 7), info("go", 9), sequence("rows")], [info("on", 9), sequence("grown")])
    yes = m.graph.constant(np.asarray(True))
    return m.graph.add("Loop", [m.graph.constant(np.asarray(turns, np.int64)), yes, first], reads=[x], body=body)


def optional(m):
    """Of a tensor, a sequence or nothing; then whether it is there, or what it is."""
    if m.opset < 15:
        return None
    kind, attributes = m.below(3), {}
    operands = [m.any_value() if kind == 0 else some_list(m)] if kind < 2 else []
    if not operands:
        attributes["type"] = helper.make_tensor_type_proto(1, None)
    made = m.graph.add("Optional", operands, **attributes) if None not in operands else None
    if made and (not operands or m.chance(0.5)):
        return m.graph.add("OptionalHasElement", made, exact=True)
    return made and m.graph.add("OptionalGetElement", made, exact=True)


def has_element(m):
    """Since opset 18 also of what is no optional value, or is not given."""
    if m.opset < 18:
        return None
    operand = m.pick([m.any_value(), some_list(m)])
    if m.chance(0.3):
        return m.graph.add("OptionalHasElement", [], exact=True)
    return operand and m.graph.add(m.pick(["OptionalHasElement", "OptionalGetElement"]), [operand], exact=True)


def same(m):
    held = some_list(m) if m.opset >= 14 else None
    return held and m.graph.add("Identity", [held])


TEMPLATES = [(construct, 2), (empty, 1), (insert, 4), (erase, 2), (at, 3), (length, 1), (split, 3), (join, 4), (map_, 3), (grown_by_loop, 1),
             (optional, 2), (has_element, 1), (same, 1)]


def make(prefix, opset, imports, rng):
    m = KindMaker(prefix, opset, rng)
    m.graph.given(m.random(tuple(m.between(1, 5) for _ in range(m.between(1, 3))), np.float32, exact=True), True, False)
    m.grow(TEMPLATES + [(template, weight / 4) for template, weight in PLAIN], m.between(4, 14))
    finish(m)
    return m.graph


def finish(m):
    """What no node has taken out of a sequence."""
    read = {name for node in m.graph.nodes for name in node.input}
    for held in lists(m):
        if held.name in read:
            continue
        if len({x.shape for x in held.array}) == 1:
            m.graph.add("ConcatFromSequence", [held], axis=0, new_axis=m.below(2) if held.array[0].shape else 1, exact=True)
        else:
            m.graph.add("SequenceAt", [held, place(m, len(held.array))], exact=True)


KIND = Kind("sequences", make, opsets=(11, 13, 14, 15, 17, 17, 18, 18, 19, 21, 22, 23))
