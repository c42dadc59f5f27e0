"""What the symbols of sizes that vary stand for in a call."""
import sympy
import torch

from hone.torch._convert import is_size, value_of
from hone.torch._graph import Sizes


class Symbols:
    """The symbols of a graph's placeholders.

    Attributes:
        names: the symbols.
    """

    def __init__(self, module):
        found = {}
        for place, node in enumerate(node for node in module.graph.nodes if node.op == "placeholder"):
            value = value_of(node)
            sizes = [(None, value)] if is_size(node) else enumerate(value.shape) if isinstance(value, torch.Tensor) else []
            for axis, size in sizes:
                if isinstance(size, torch.SymInt) and isinstance(size.node.expr, sympy.Symbol):
                    found.setdefault(size.node.expr, (place, axis, size.node.shape_env))
        self.names = list(found)
        self._sources = [(place, axis) for place, axis, _ in found.values()]
        self._ranges = {symbol: environment.var_to_range.get(symbol) for symbol, (*_, environment) in found.items()}

    def values(self, arguments):
        """The number of each symbol, by the arguments of a call."""
        return [arguments[place] if axis is None else arguments[place].shape[axis] for place, axis in self._sources]

    def bounds(self, symbol):
        """The least and the greatest number of a symbol, as torch._dynamo.mark_dynamic or PyTorch's guards say; None for any."""
        known = self._ranges[symbol]
        if known is None:
            return None, None
        most = int(known.upper) if known.upper.is_Integer and known.upper < 2**31 else None
        return int(known.lower) if known.lower.is_Integer else None, most

    def function(self, size):
        """A function from the values to the number of a size, which is a number or an expression of symbols."""
        expression = Sizes().extent(size)
        if isinstance(expression, int):
            return lambda values: expression
        return lambda values: int(expression.xreplace(dict(zip(self.names, map(sympy.Integer, values)))))
