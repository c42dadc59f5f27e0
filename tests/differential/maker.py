"""Makes random subgraphs: picks operands of wanted types and ranks among what is there, or makes new ones."""
import numpy as np

import chosen
import made
import movement
import operators
import quantized
import recurrent
import sampling
import transformer
import windowed
from subgraph import Subgraph

TEMPLATES = [template for module in (operators, movement, windowed, recurrent, transformer, sampling, quantized, made, chosen)
             for template in module.TEMPLATES]
LEAST_NODES, MOST_NODES = 1, 14


class Maker:
    """What the templates see: `graph` to add nodes to, `opset`, and random choices."""

    def __init__(self, prefix, opset, rng):
        self.rng, self.opset = rng, opset
        self.graph = Subgraph(prefix, opset, rng)

    # ---- choices ----

    def chance(self, probability):
        return self.rng.random() < probability

    def below(self, n):
        return int(self.rng.integers(n))

    def between(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def pick(self, items):
        return items[self.below(len(items))]

    def extent(self):
        return self.pick([0] if self.chance(0.01) else [33, 64] if self.chance(0.04) else [1, 2, 3, 4, 4, 5, 7, 8, 16, 17])

    def shape(self, most=4):
        if self.chance(0.03):
            return tuple(self.between(1, 3) for _ in range(self.between(5, 6)))
        return tuple(self.extent() for _ in range(self.between(0, most)))

    def axis(self, value):
        rank = len(value.shape)
        return self.between(-rank, rank - 1) if self.chance(0.3) else self.below(rank)

    def some_axes(self, rank):
        axes = [d for d in range(rank) if self.chance(0.5)]
        if self.chance(0.3):
            self.rng.shuffle(axes)
        return [int(d) - (rank if self.chance(0.2) else 0) for d in axes]

    def float_type(self):
        return self.pick(operators.FLOATS)

    def integer_type(self):
        return self.pick(operators.INTEGERS)

    def any_number_type(self):
        return self.float_type() if self.chance(0.75) else self.integer_type()

    # ---- operands ----

    def random(self, shape, dtype, exact=False, positive=False):
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.rng.integers(0, 2, shape).astype(np.bool_)
        if kind in "iu":
            low = 1 if positive else 0 if kind == "u" else -4
            return self.rng.integers(low, 6, shape).astype(dtype)
        if exact:  # quarters
            return (self.rng.integers(1 if positive else -12, 13, shape) / 4).astype(dtype)
        return self.rng.uniform(0.25 if positive else -2, 2, shape).astype(dtype)

    def operand(self, shape, dtype, exact=False, positive=False):
        """Of exactly this shape and type."""
        found = [v for v in self.graph.values.values() if v.shape == tuple(shape) and v.array.dtype == dtype and self._serves(v, exact, positive)]
        if found and self.chance(0.5):
            return self.pick(found)
        exact = exact or self.chance(0.3)
        return self.graph.given(self.random(shape, dtype, exact, positive), exact or np.dtype(dtype).kind != "f", self.chance(0.3))

    @staticmethod
    def _serves(value, exact, positive):
        if value.last:
            return False
        if exact and not (value.exact and (value.array.size == 0 or np.abs(value.array.astype(np.float64)).max() < 1000)):
            return False
        return not positive or value.kind == "input" and bool((value.array > 0).all())

    def value(self, dtype, rank=None, least_rank=0, exact=False, positive=False):
        """Mostly a recent result, so that graphs get deep."""
        found = [v for v in self.graph.values.values()
                 if v.array.dtype == dtype and (rank is None or len(v.shape) == rank) and len(v.shape) >= least_rank
                 and self._serves(v, exact, positive) and v.kind != "constant"]
        if found and self.chance(0.85):
            return found[-1] if self.chance(0.5) else self.pick(found)
        shape = tuple(self.extent() for _ in range(rank)) if rank is not None else self.shape()
        while len(shape) < least_rank:
            shape += (self.extent(),)
        return self.operand(shape, dtype, exact, positive)

    def any_value(self, least_rank=0):
        found = [v for v in self.graph.values.values() if len(v.shape) >= least_rank and v.kind != "constant" and not v.last]
        return self.pick(found[-3:]) if found and self.chance(0.85) else self.value(self.any_number_type(), least_rank=least_rank)

    def broadcastable(self, shape):
        """A shape that broadcasts to this one."""
        result = tuple(1 if self.chance(0.25) else extent for extent in shape)
        return result[self.below(len(result) + 1):] if self.chance(0.4) else result

    def fitting(self, other, dtype=None, exact=False, positive=False):
        """An operand that broadcasts with another one, of the same type unless one is given."""
        dtype = dtype or other.array.dtype
        if self.chance(0.4):
            return self.operand(other.shape, dtype, exact, positive)
        return self.operand(self.broadcastable(other.shape), dtype, exact, positive)

    def image(self, dtype, spatial, exact=False):
        """[N, C, spatial ...]"""
        found = [v for v in self.graph.values.values() if v.array.dtype == dtype and len(v.shape) == spatial + 2 and v.kind == "result"
                 and 0 not in v.shape and self._serves(v, exact, False)]
        if found and self.chance(0.7):
            return self.pick(found)
        shape = (self.between(1, 2), self.pick([1, 2, 3, 4, 8, 16, 24]), *(self.between(1 if spatial == 1 else 3, 9 - 2 * spatial + 2) for _ in range(spatial)))
        return self.operand(shape, dtype, exact)


def random_subgraph(prefix, opset, rng):
    maker = Maker(prefix, opset, rng)
    weights = np.asarray([weight for _, weight in TEMPLATES], np.float64)
    wanted = int(rng.integers(LEAST_NODES, MOST_NODES + 1))
    for _ in range(wanted * 4):
        if len(maker.graph.nodes) >= wanted:
            break
        template = TEMPLATES[rng.choice(len(TEMPLATES), p=weights / weights.sum())][0]
        template(maker)
    maker.graph.choose_outputs(rng)
    return maker.graph
