"""What generators of graphs at the edges of passes see: nodes in the form of each opset, constants in the forms that models give them,
and choices that now and then are the wrong ones.

A generator is a function of an Edge that writes what a pass looks for. Where it says `m.almost(right, wrong, ...)` it has a choice: a third
of the graphs are right everywhere, half of them are wrong in one place, so that they match almost, the others in several. To share an
intermediate value is such a choice, too. A part of the graphs hold NaN and infinity.
"""
import dataclasses

import numpy as np

from maker import Maker

OPSETS = (7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24)
ATTEMPTS = 20


class Impossible(Exception):
    """No oracle takes a node: the graph is made anew."""


@dataclasses.dataclass
class Choices:
    """Which of the choices of a graph are wrong: the one of this number, or each with this probability."""

    number: int = -1
    probability: float = 0.0
    made: int = 0
    paused: bool = False  # all are right, and none counts

    def is_wrong(self, m):
        if self.paused:
            return False
        self.made += 1
        return self.made - 1 == self.number or self.probability > 0 and m.chance(self.probability)


class Edge(Maker):
    def __init__(self, prefix, opset, rng, family, odd=0.0, choices=None):
        """odd: how likely its inputs hold NaN and infinity."""
        super().__init__(prefix, opset, rng)
        self.choices = choices or Choices()
        self.odd = self.graph.special = self.chance(odd)
        self.graph.signs = family.signs

    # ---- choices ----

    def almost(self, right, *wrong):
        """What is wrong may be a function that makes it."""
        if not self.choices.is_wrong(self):
            return right
        made = self.pick(wrong)
        return made() if callable(made) and not isinstance(made, type) else made

    def half(self):
        return self.chance(0.5)

    def dtype(self):
        return self.pick([np.float32] * 6 + [np.float64, np.float16])

    # ---- operands ----

    def content(self, shape, dtype=np.float32, exact=False, positive=False):
        array = np.asarray(self.random(tuple(shape), dtype, exact, positive))
        if self.graph.signs and array.dtype.kind == "f":
            zeros = self.rng.random(array.shape) < 0.3
            array = np.where(zeros, np.where(self.rng.random(array.shape) < 0.5, 0.0, -0.0), array).astype(dtype)
        if self.odd and array.dtype.kind == "f":
            odd = self.rng.choice(np.asarray([np.nan, np.inf, -np.inf, -0.0], dtype), array.shape)
            array = np.where(self.rng.random(array.shape) < 0.2, odd, array).astype(dtype)
        return array

    def source(self, shape=None, dtype=np.float32, exact=False, positive=False):
        """What the data of a pattern comes from: an input, or a node's result."""
        x = self.graph.given(self.content(self.shape() if shape is None else shape, dtype, exact, positive), exact, False)
        if self.chance(0.25) and x.is_float and not positive:
            x = self.node(self.pick(["Neg", "Abs", "Identity", "Ceil"] if exact else ["Neg", "Abs", "Identity", "Sigmoid", "Tanh"]), x, exact=exact)
        return x

    def variable(self, array, exact=False):
        """An operand that is no constant."""
        return self.graph.given(array, exact, False)

    def constant(self, array, likely=1.0):
        """An initializer or a node that constants decide; in a part of the graphs that almost match an input."""
        array = np.asarray(array)
        if not self.almost(True, False):
            return self.variable(array, True)
        value = self.graph.constant(array)
        return self.node("Identity", value, exact=True) if self.chance(0.1) else value

    def weight(self, shape, dtype=np.float32, positive=False):
        return self.constant(self.random(tuple(shape), dtype, positive=positive))

    def uniform(self, number, like):
        """A constant with one value, of any shape that broadcasts to that of `like`."""
        rank, shape = len(like.shape), like.shape
        forms = [(), (), (1,), (1,) * rank, shape] + [shape[-1:]] * (rank > 0)
        form = self.almost(self.pick(forms), (1,) * (rank + 1), (2, *[1] * rank))
        array = np.full(form, number, like.array.dtype)
        if array.size > 1 and not self.almost(True, False):  # one element differs
            array.flat[self.below(array.size)] += 1
        return self.constant(array)

    def integers(self, values):
        return self.graph.constant(np.asarray(values, np.int64))

    # ---- nodes ----

    def nodes(self, op_type, *operands, results=1, exact=False, **attributes):
        found = self.graph.add(op_type, list(operands), results, exact, **attributes)
        if found is None:
            raise Impossible(op_type)
        return found

    def node(self, op_type, *operands, exact=False, **attributes):
        result = self.nodes(op_type, *operands, exact=exact, **attributes)[0]
        self.share(result)
        return result

    def share(self, value):
        """Another reader, for a part of the graphs that almost match."""
        if self.almost(False, True):
            self.graph.add("Neg" if value.is_float and self.half() else "Identity", [value], exact=True)

    def either_way(self, op_type, a, b, exact=False):
        return self.node(op_type, *([a, b] if self.half() else [b, a]), exact=exact)

    def mul(self, a, b):
        return self.either_way("Mul", a, b)

    def add(self, a, b):
        return self.either_way("Add", a, b)

    def times(self, x, factor):
        """x * factor, by a product or a quotient."""
        if factor != 0 and self.chance(0.3):
            return self.node("Div", x, self.uniform(1 / factor, x))
        return self.mul(x, self.uniform(factor, x))

    def plus(self, x, term):
        return self.node("Sub", x, self.uniform(-term, x)) if self.chance(0.2) else self.add(x, self.uniform(term, x))

    def power(self, x, exponent):
        dtype = x.array.dtype if self.opset < 12 or self.half() else self.pick([np.float32, np.int64, np.int32] if exponent == int(exponent) else [np.float32])
        return self.node("Pow", x, self.constant(np.asarray(exponent if self.half() else [exponent], dtype)))

    def square(self, x):
        return self.power(x, self.almost(2, 3, 2.5)) if self.half() else self.node("Mul", x, x)

    def axes(self, given, rank):
        """The same axes, some of them counted from the end."""
        return [int(a) - (rank if self.chance(0.4) else 0) for a in given]

    def reduce(self, op_type, x, axes, keepdims=1):
        axes = self.axes(axes, len(x.shape))
        attributes = {} if keepdims == 1 and self.half() else {"keepdims": keepdims}
        if self.opset >= (13 if op_type == "ReduceSum" else 18):
            return self.node(op_type, x, self.integers(axes), **attributes)
        axes = axes if self.opset >= 11 else [a % len(x.shape) for a in axes]
        return self.node(op_type, x, axes=axes, **attributes)

    def clip(self, x, low, high):
        if self.opset < 11:
            return self.node("Clip", x, exact=True, min=float(low), max=float(high))
        return self.node("Clip", x, *[self.graph.constant(np.asarray(b, x.array.dtype)) for b in (low, high)], exact=True)

    def reshape(self, x, shape):
        """By any operator that can: Reshape, Flatten, Squeeze, Unsqueeze."""
        shape = [int(e) for e in shape]
        if len(shape) == 2 and x.array.size and self.chance(0.3):
            for axis in range(len(x.shape) + 1):
                if np.prod(x.shape[:axis], dtype=int) == shape[0]:
                    return self.node("Flatten", x, axis=axis, exact=True)
        if self.chance(0.3) and len(shape) != len(x.shape) and [e for e in shape if e != 1] == [e for e in x.shape if e != 1]:
            return self.squeezed(x, shape)
        written = list(shape)
        if x.array.size and self.chance(0.3) and written:
            written[self.below(len(written))] = -1
        for d, extent in enumerate(written):
            if extent > 0 and d < len(x.shape) and x.shape[d] == extent and self.chance(0.2):
                written[d] = 0  # as it was
        return self.node("Reshape", x, self.integers(written), exact=True)

    def squeezed(self, x, shape):
        if len(shape) < len(x.shape):
            ones = [d for d, e in enumerate(x.shape) if e == 1]
            return self.squeeze(x, ones[:len(x.shape) - len(shape)])
        return self.unsqueeze(x, list(range(len(shape) - len(x.shape))))

    def squeeze(self, x, axes, op_type="Squeeze"):
        if self.opset >= 13:
            return self.node(op_type, x, self.integers(axes), exact=True)
        return self.node(op_type, x, axes=[int(a) for a in axes], exact=True)

    def unsqueeze(self, x, axes):
        return self.squeeze(x, axes, "Unsqueeze")

    def transpose(self, x, perm):
        perm = [int(d) for d in perm]
        if perm == list(range(len(perm)))[::-1] and self.half():
            return self.node("Transpose", x, exact=True)
        return self.node("Transpose", x, perm=perm, exact=True)

    def permutation(self, rank):
        return [int(d) for d in self.rng.permutation(rank)]

    def slice(self, x, starts, ends, axes, steps=None):
        if self.opset < 10:
            if steps and any(s != 1 for s in steps):
                raise Impossible("steps")
            return self.node("Slice", x, starts=list(map(int, starts)), ends=list(map(int, ends)), axes=list(map(int, axes)), exact=True)
        operands = [self.integers(starts), self.integers(ends), self.integers(axes)]
        if steps is not None:
            operands.append(self.integers(steps))
        return self.node("Slice", x, *operands, exact=True)

    def pad(self, x, pads, mode="constant", fill=None):
        """fill: a number, or None for the default."""
        pads = [int(p) for p in pads]
        if self.opset < 11:
            return self.node("Pad", x, pads=pads, mode=mode, exact=True, **({} if fill is None else {"value": float(fill)}))
        operands = [self.integers(pads)]
        if fill is not None:
            operands.append(self.constant(np.asarray(fill, x.array.dtype)))
        return self.node("Pad", x, *operands, mode=mode, exact=True)

    def activation(self, x):
        """An elementwise operator with constants at most."""
        kind = self.below(7)
        if kind < 2:
            return self.node(self.pick(["Relu", "Tanh", "Sigmoid", "Neg", "Abs", "LeakyRelu", "Elu"]), x)
        if kind == 2:
            return self.clip(x, 0, 6) if x.array.dtype == np.float32 else self.node("Abs", x)
        if kind == 3:
            return self.times(x, self.pick([2, 0.5, 3, -1]))
        if kind == 4:
            return self.plus(x, self.pick([1, 0.5, -2]))
        if kind == 5 and self.opset >= 9:
            return self.node("Where", self.constant(self.random(self.broadcastable(x.shape), np.bool_)), x, self.uniform(0.5, x))
        return self.either_way(self.pick(["Max", "Min", "Add", "Mul"]), x, self.uniform(0.25, x))

    def per_channel(self, x, axis=1):
        """A constant with one element per channel, in the forms that broadcast so."""
        rank, channels = len(x.shape), x.shape[axis]
        shape = (channels, *[1] * (rank - axis - 1))
        forms = [shape, (1,) * axis + shape, ()]
        return self.weight(self.almost(self.pick(forms), self.broadcastable(x.shape), (1, *shape), (channels,), x.shape), x.array.dtype)


@dataclasses.dataclass
class Family:
    """Generators for some passes. All rules of these that the program lists, and those named here, must change some graph."""

    name: str
    passes: tuple
    generators: list
    rules: tuple = ()  # "pass.rule", of passes that list none
    opsets: tuple = OPSETS
    arguments: tuple = ()  # of hone compile
    odd: float = 0.25  # share of graphs with NaN and infinity in a model that has such
    signs: bool = False  # zeros have the right sign

    def model(self, seed, count):
        """(opset, more arguments of hone compile, subgraphs)"""
        rng = np.random.default_rng([seed, *self.name.encode()])
        opset = self.opsets[int(rng.integers(len(self.opsets)))]
        odd = self.odd if rng.random() < 0.4 else 0.0
        # Algorithms that mix elements, as Winograd's does, are left out where one may be infinite.
        arguments = self.arguments + (("--accuracy", "strict") if odd else ())
        return opset, arguments, [made for i in range(count) if (made := self.subgraph(f"s{i}_", opset, rng, odd))]

    def subgraph(self, prefix, opset, rng, odd):
        for _ in range(ATTEMPTS):
            seed = int(rng.integers(2**63))
            kind = rng.random()
            choices = Choices(probability=0.1 if kind < 0.15 else 0.0)
            made = self.attempt(prefix, opset, seed, odd, choices)
            if made and kind >= 0.5 and choices.made:  # the same until the one that is wrong
                made = self.attempt(prefix, opset, seed, odd, Choices(number=int(rng.integers(choices.made)))) or made
            if made:
                return made
        return None

    def attempt(self, prefix, opset, seed, odd, choices):
        m = Edge(prefix, opset, np.random.default_rng(seed), self, odd, choices)
        try:
            m.pick(self.generators)(m)
        except Impossible:
            return None
        m.graph.choose_outputs(m.rng)
        return m.graph if m.graph.nodes else None
