"""Nodes of other domains by the makers that test them one by one (random_nodes.py), here in graphs: an operand of floats is often a result of
other nodes that has got the shape which is asked for."""
import numpy as np

from random_nodes import Nodes


class NodesOfGraph(Nodes):
    """Nodes that a KindMaker's graph gets. `linked`: how likely an operand of floats is a result; `bounds`: whether it is kept within -1 and 1."""

    def __init__(self, m, linked=0.7, bounds=True):
        super().__init__(0)
        self.rng, self.m, self.linked, self.bounds = m.rng, m, linked, bounds

    def add(self, op, arrays, results=1, expected=None, domain="com.microsoft", constant=None, **attributes):
        """`expected` are the results where ONNX Runtime has no kernel, of the operands that are given."""
        m = self.m
        operands = [self._operand(array, expected is not None, False if i == 0 else constant) for i, array in enumerate(arrays)]
        if expected is None:
            return m.graph.add(op, operands, results, domain=domain, **attributes)
        return m.graph.add(op, operands, results, domain=domain, known=expected, **attributes)

    def _operand(self, array, known, constant):
        if array is None:
            return None
        # A normalisation of equal elements shows nothing but rounding.
        found = [v for v in self.m.graph.values.values() if v.kind == "result" and v.array.dtype == np.float32 and not v.last
                 and v.array.size > 3 and v.array.std() > 0.05]
        if known or constant or array.dtype != np.float32 or array.size == 0 or not found or not self.chance(self.linked):
            constant = self.m.chance(0.4) if constant is None else constant
            return self.m.graph.given(array, array.dtype.kind != "f", constant)
        return self._of_shape(self.m.pick(found[-4:]), array.shape) or self.m.graph.given(array, False, False)

    def _of_shape(self, value, shape):
        """The elements of a value, repeated or some of them, in another shape."""
        m = self.m
        if self.bounds and np.abs(value.array).max() > 1:
            value = m.node(m.pick(["Tanh", "Softsign", "Sin"]), value)
        if value is None or value.shape == shape:
            return value
        flat = m.node("Reshape", value, m.integers([-1]))
        places = np.arange(int(np.prod(shape))).reshape(shape) % value.array.size
        return flat and m.node("Gather", flat, m.graph.constant(places))
