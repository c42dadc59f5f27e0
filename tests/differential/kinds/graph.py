"""A subgraph of a random model that runs several times: every value has its content at each feed, and both oracles say what it is."""
import dataclasses

import numpy as np
import onnx
from onnx import helper

from kinds import oracles
from subgraph import Subgraph, Value, names_read


@dataclasses.dataclass
class KindValue(Value):
    """A tensor; `arrays` are its content at each feed, of which `array` is the first."""

    arrays: tuple = ()


@dataclasses.dataclass
class Held:
    """A sequence or an optional value: nothing that a model takes or gives."""

    name: str
    arrays: tuple
    kind: str = "held"

    @property
    def array(self):
        return self.arrays[0]


def permuted(array, rng):
    """The same elements in another order: it keeps what generators know about them."""
    return rng.permutation(np.ravel(array)).reshape(np.shape(array)).astype(array.dtype)


class KindGraph(Subgraph):
    """imports: versions by domain."""

    def __init__(self, prefix, opset, rng, feeds=1, imports=()):
        super().__init__(prefix, opset, rng)
        self.feeds, self.imports = feeds, {"": opset, **dict(imports)}
        self.held, self.functions = {}, []
        self.is_inside = False  # of a node
        self.oracles = []  # of each node, the names of those that say what it gives

    def fresh(self):
        return f"{self.prefix}v{len(self.values) + len(self.held)}"

    # ---- values ----

    def given(self, array, exact, constant):
        array = np.asarray(array)
        others = [array if constant else permuted(array, self.rng) for _ in range(self.feeds - 1)]
        return self.given_each([array, *others], exact, constant)

    def given_each(self, arrays, exact, constant=False):
        value = KindValue(self.fresh(), np.asarray(arrays[0]), exact, "constant" if constant else "input", arrays=tuple(map(np.asarray, arrays)))
        self.values[value.name] = value
        return value

    def add(self, op_type, operands, results=1, exact=False, rounds=False, reads=(), domain="", overload="", known=None, **attributes):
        """As of its base, of any domain; an operand may be held. `results` may be a list of which are wanted; `known` are they at every feed."""
        wanted = [True] * results if isinstance(results, int) else results
        first = len(self.values) + len(self.held)
        names = [f"{self.prefix}v{first + sum(wanted[:i])}" if want else "" for i, want in enumerate(wanted)]
        given = [operand.name if operand else "" for operand in operands]
        while given and given[-1] == "":
            given.pop()
        node = helper.make_node(op_type, given, names, name=f"{self.prefix}n{len(self.nodes)}", domain=domain)
        if overload:
            node.overload = overload
        for key, value in attributes.items():
            empty = isinstance(value, list) and not value
            node.attribute.append(helper.make_attribute(key, value, attr_type=onnx.AttributeProto.INTS if empty else None))
        distinct = {operand.name: operand for operand in [*operands, *reads] if operand}
        if op_type == "Tan" and any((np.abs(np.cos(array)) < 0.1).any() for array in operands[0].arrays):
            return None  # near a pole, where rounding decides
        if op_type in ("Div", "Mod") and not self._may_divide(operands[1]):
            return None
        found = self._results(node, distinct) if known is None else [known] * self.feeds
        if found is None:
            return None
        if known is not None:
            self.oracles.append(("definition",))
        exact = exact and all(getattr(operand, "exact", True) for operand in distinct.values())
        held = op_type == "Optional" or any(value.kind == "held" for value in distinct.values()) and op_type == "Identity"
        made = [self._made(name, [run[i] for run in found], exact, rounds, held) for i, name in enumerate(filter(None, names))]
        self.nodes.append(node)
        for value in made:
            (self.held if isinstance(value, Held) else self.values)[value.name] = value
        return made

    def _may_divide(self, divisor):
        """Whether no element is an integer that is 0, also where a graph inside of a node runs with other numbers."""
        if divisor.array.dtype.kind == "f":
            return True
        return (divisor.kind == "constant" or not self.is_inside) and all(array.all() for array in divisor.arrays)

    def _results(self, node, distinct):
        """What it gives at each feed, if that can be part of a model."""
        nodes, given = self._closure(node, distinct)
        arrays = [distinct[name].array if name in distinct else None for name in node.input]
        answer = oracles.results_of(node, nodes, given, arrays, self.imports, self.functions, self.feeds)
        if answer is None:
            return None
        found, names = answer
        if not all(self._can_be(x) for run in found for x in run):
            return None
        if all(oracles.is_plain(x) for run in found for x in run if isinstance(x, np.ndarray)):
            self.oracles.append(names)  # else later nodes, of which this one is a part, say so
        return found

    def _can_be(self, x):
        if isinstance(x, list):
            return all(self._can_be(element) for element in x)
        return x is None or isinstance(x, np.ndarray) and x.dtype.kind not in "OUS" and self._fits(x)

    def _closure(self, node, distinct):
        """The nodes that make what no oracle takes as an input, then `node`; and what is given to them."""
        nodes, given, open_ = [node], {}, list(distinct.values())
        while open_:
            value = open_.pop()
            if value.kind != "held" and (value.kind != "result" or oracles.is_plain(value.array)):
                given[value.name] = value
                continue
            maker = next(other for other in self.nodes if value.name in other.output)
            if maker not in nodes:
                nodes.insert(0, maker)
                open_ += [self.find(name) for name in names_read(maker)]
        return [other for other in self.nodes if other in nodes] + [node], list(given.values())

    def find(self, name):
        return self.held.get(name) or self.values[name]

    def _made(self, name, arrays, exact, rounds, held):
        if held or not isinstance(arrays[0], np.ndarray):
            return Held(name, tuple(arrays))
        return KindValue(name, arrays[0], exact, "result", rounds, arrays=tuple(arrays))

    # ---- after it is made ----

    def choose_outputs(self, rng):
        super().choose_outputs(rng)
        self.outputs = [name for name in self.outputs if oracles.is_plain(self.values[name].array)]

    def without_nodes(self):
        copy = KindGraph(self.prefix, self.opset, self.rng, self.feeds, self.imports)
        copy.held, copy.functions, copy.oracles = self.held, self.functions, self.oracles
        return copy

    def restricted(self, nodes, outputs):
        """None if it would need a sequence from outside."""
        copy = super().restricted(nodes, outputs)
        made = {name for node in copy.nodes for name in node.output}
        needs = any(name in self.held and name not in made for node in copy.nodes for name in names_read(node))
        return None if needs else copy

    def used_functions(self):
        """Those that its nodes call, and those that these call."""
        open_, used = list(self.nodes), []
        while open_:
            node = open_.pop()
            open_ += [inner for attribute in node.attribute for inner in attribute.g.node]
            for function in self.functions:
                if (function.domain, function.name, function.overload) == (node.domain, node.op_type, node.overload) and function not in used:
                    used.append(function)
                    open_ += function.node
        return [function for function in self.functions if function in used]

    # ---- extents that differ between feeds ----

    def symbols(self):
        """{name: (least, most)} of its inputs."""
        found = {}
        for value in self.inputs():
            for extents in zip(*[array.shape for array in value.arrays], strict=True):
                if len(set(extents)) > 1:
                    found[self._symbol(extents)] = (min(extents), max(extents))
        return found

    def _symbol(self, extents):
        """Extents that are the same at all feeds have one."""
        return f"{self.prefix}d{'_'.join(map(str, extents))}"

    def input_info(self, value):
        extents = zip(*[array.shape for array in value.arrays], strict=True)
        shape = [self._symbol(each) if len(set(each)) > 1 else each[0] for each in extents]
        return helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.array.dtype), shape)

    def output_info(self, value):
        return helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.array.dtype), None)

    def supported_by(self):
        """The oracles that say what all of its nodes give."""
        return set.intersection(*map(set, self.oracles)) if self.oracles else set()
