"""How each operator of ATen becomes nodes of ONNX: a table of functions by the operator's name."""
from hone.errors import UnsupportedError
from hone.torch._graph import Value

CONVERTERS = {}


def converts(*names):
    """Registers convert(graph, result, *arguments, **keywords) for operators, such as "add.Tensor".

    The arguments are those of the operator, with values in place of tensors; `result` is a value without a name, or a tuple of
    them, that says the type and shape of the result. It returns the name of the result, or a tuple of names; None stands for
    a result that cannot be computed, which is an error only where it is read.
    """
    def register(function):
        for name in names:
            CONVERTERS[f"aten.{name}"] = function
        return function
    return register


def is_float(dtype):
    return dtype.is_floating_point


def axis_of(axis, rank):
    return axis + rank if axis < 0 else axis


def axes_of(axes, rank):
    """Axes as numbers from 0; None or an empty list stand for all."""
    if axes is None or axes == []:
        return list(range(rank))
    return [axis_of(axis, rank) for axis in ([axes] if isinstance(axes, int) else axes)]


def number(value, what):
    """A Python number that has to be known when the model is compiled."""
    if isinstance(value, (bool, int, float)):
        return value
    raise UnsupportedError(f"{what} that is not a constant number")


def numbers(g, sizes, what):
    """Extents that have to be known when the model is compiled."""
    found = [size if isinstance(size, (int, Value)) else g.sizes.extent(size) for size in sizes]
    return [number(size, what) for size in found]
