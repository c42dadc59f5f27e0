"""Functions that a model brings along: calls in calls, attributes that are handed on or have defaults, operands that are left out, loops and
branches inside, names that collide, opsets of their own, overloads."""
import dataclasses

import numpy as np
import onnx
from onnx import helper

from kinds import control
from kinds.kind import Kind
from kinds.maker import PLAIN, KindMaker

DOMAINS = ("one", "two")
KINDS_OF_ATTRIBUTES = {onnx.AttributeProto.FLOAT, onnx.AttributeProto.INT, onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS}


@dataclasses.dataclass
class Function:
    """proto, arrays that it was made with, how many of the last operands may be absent, and the attributes' values at the making."""

    proto: onnx.FunctionProto
    examples: list
    optional: int
    attributes: dict


def bounded(m):
    """A node whose optional operands are the function's last ones, which a call may leave out."""
    x, *bounds = m.parameters[0], *m.parameters[-m.optional:]
    if x.array.dtype != np.float32 or any(b.shape != () for b in bounds):
        return None
    return m.graph.add("Clip", [x, *([None] * (len(bounds) == 1 and m.chance(0.5))), *bounds])


def handed_on(m, node, attributes):
    """Some of a node's attributes become the function's; an attribute that several nodes have, one name."""
    for attribute in list(node.attribute):
        if attribute.type not in KINDS_OF_ATTRIBUTES or attribute.name in ("to", "axes") or not m.chance(0.5):
            continue
        if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS) and not (attribute.ints or attribute.floats):
            continue
        value, name = helper.get_attribute_value(attribute), f"{attribute.name}_of_it"
        if attributes.setdefault(name, value) != value:
            continue
        kind = attribute.type
        node.attribute.remove(attribute)
        made = node.attribute.add()
        made.name, made.ref_attr_name, made.type = attribute.name, name, kind
    for attribute in node.attribute:
        for inner in attribute.g.node:
            handed_on(m, inner, attributes)


def define(m, functions, number):
    """Adds a function of one to three operands to the graph of `m`."""
    imports = dict(m.graph.imports) | dict.fromkeys(DOMAINS, 1)
    if m.chance(0.3):
        imports[""] = m.pick([13, 14, 15, 17, 18, 20, 21])
    optional = m.pick([0, 0, 1, 2])
    arrays = [m.random(m.pick([(3, 4), (2, 3, 4), (4,), (1, 4)]), m.pick([np.float32] * 4 + [np.float64, np.int64])) for _ in range(m.between(1, 2))]
    if optional:
        arrays[0] = m.random(arrays[0].shape, np.float32)
    arrays += [np.asarray(x, np.float32) for x in (-0.75, 0.5)[:optional]]
    inner = m.inside([(array, False) for array in arrays], prefix="")
    inner.opset = inner.graph.opset = imports[""]
    inner.graph.imports, inner.optional = imports, optional
    if optional and not bounded(inner):
        return
    inner.grow([*PLAIN, (lambda m: call(m, functions), 6), *[(template, 1) for template, _ in control.NESTED]], m.between(1, 6))
    made = [v for v in inner.results() if v.array.dtype.kind in "fi"]
    if not made:
        return
    results = list({v.name: v for v in [made[-1], *[m.pick(made) for _ in range(m.below(2))]]}.values())
    nodes, attributes = inner.constants_as_nodes() + inner.graph.nodes, {}
    nodes = [copied(node) for node in nodes]
    for node in inner.graph.nodes:
        handed_on(m, nodes[len(nodes) - len(inner.graph.nodes) + inner.graph.nodes.index(node)], attributes)
    with_default = [name for name in attributes if m.chance(0.5)]
    name, overload = ("same", str(number)) if m.chance(0.3) else (f"{m.graph.prefix}f{number}", "")
    name = m.graph.prefix + "same" if overload else name
    proto = helper.make_function(m.pick(DOMAINS), name, [v.name for v in inner.parameters], [v.name for v in results], nodes,
                                 [helper.make_opsetid(*pair) for pair in imports.items()], [a for a in attributes if a not in with_default],
                                 [helper.make_attribute(a, attributes[a]) for a in with_default], overload=overload)
    m.graph.functions.append(proto)
    functions.append(Function(proto, arrays, optional, attributes))


def copied(node):
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def call(m, functions):
    """Of other types and shapes than the function was made with, at times: what cannot be, the oracles refuse."""
    if not functions:
        return None
    function = m.pick(functions)
    operands = []
    for i, example in enumerate(function.examples):
        bound = i >= len(function.examples) - function.optional
        if bound and m.chance(0.5):
            operands.append(None)
        elif m.chance(0.2) and not bound and not (i == 0 and function.optional):
            operands.append(m.any_value())
        else:
            operands.append(m.operand(example.shape, example.dtype))
    proto, attributes = function.proto, {}
    for name, value in function.attributes.items():
        if name in proto.attribute or m.chance(0.4):
            attributes[name] = float(m.pick([0.5, 1.0, 2.0])) if isinstance(value, float) and m.chance(0.6) else value
    return m.graph.add(proto.name, operands, len(proto.output), domain=proto.domain, overload=proto.overload, **attributes)


def make(prefix, opset, imports, rng):
    m = KindMaker(prefix, opset, rng, imports={**imports, **dict.fromkeys(DOMAINS, 1)})
    functions = []
    m.graph.given(m.random((3, 4), np.float32), False, False)
    for number in range(m.between(2, 5)):
        define(m, functions, number)
    for _ in range(m.between(2, 6)):
        m.grow([(lambda m: call(m, functions), 1)], len(m.graph.nodes) + 1)
        m.grow(PLAIN, len(m.graph.nodes) + m.below(2))
    return m.graph


KIND = Kind("functions", make)
