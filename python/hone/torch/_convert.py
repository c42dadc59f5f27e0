"""From a graph of ATen operators to an ONNX model."""
import inspect
import operator

import torch
from torch import fx

from hone.errors import UnsupportedError
from hone.torch import _layers, _pointwise, _reductions, _shapes  # noqa: F401  they fill the table
from hone.torch._graph import Graph, Sizes, Value
from hone.torch._registry import CONVERTERS


def value_of(node):
    """The (fake) tensor, number or SymInt, or the tuple of these, that PyTorch found for a node."""
    return node.meta.get("val")


def is_size(node):
    """Whether a node computes with sizes, not with tensors."""
    return isinstance(value_of(node), (torch.SymInt, int)) and not isinstance(value_of(node), bool)


def _needs_name(convert):
    parameter = inspect.signature(convert).parameters.get("operator")
    return parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY


def _value_if_any(sizes, name, tensor):
    """A value for one of several results; None for one without elements, which some operators have for what is not asked for."""
    return None if tensor is None or 0 in tensor.shape else sizes.value(name, tensor)


# Parameters of fewer bytes are constants, which may be folded, even if they are only read row by row.
_LEAST_SHARED_BYTES = 1 << 20
_ALIGNMENT = 64  # of the inputs that a library reads in place


def _reads_rows(user, weight):
    """Whether a node reads rows of a parameter, as it lies in PyTorch's memory, and nothing else of it."""
    return user.target is torch.ops.aten.embedding.default and user.args[0] is weight and weight not in user.args[1:]


def tables(module, arguments):
    """The places among the placeholders of large parameters whose rows are read: a dict, with whether that is all that reads them.
    Those that are not aligned are left out, as a library would copy them in each call."""
    found = {}
    for place, node in enumerate(node for node in module.graph.nodes if node.op == "placeholder"):
        tensor = arguments[place]
        if isinstance(tensor, torch.Tensor) and tensor.is_contiguous() and tensor.nbytes >= _LEAST_SHARED_BYTES and \
                tensor.data_ptr() % _ALIGNMENT == 0:
            reads = [_reads_rows(user, node) for user in node.users]
            if any(reads):
                found[place] = all(reads)
    return found


class _Converter:
    """Converts nodes one by one; `values` has what came before, by node, and `tables` the inputs of the same parameters as
    constants, whose rows are read there."""

    def __init__(self, graph):
        self.graph = graph
        self.values, self.tables = {}, {}

    def _argument(self, argument):
        if isinstance(argument, fx.Node):
            if argument in self.values:
                found = self.values[argument]
                if found is None:
                    raise UnsupportedError("a result that Hone does not compute")
                return found
            if is_size(argument):
                return value_of(argument)
            raise UnsupportedError(f"an argument of the type {type(value_of(argument)).__name__}")
        if isinstance(argument, (list, tuple)):
            return [self._argument(part) for part in argument]
        return argument

    def _results(self, node):
        """The values, without names, that a node has."""
        found = value_of(node)
        sizes = self.graph.sizes
        if isinstance(found, (list, tuple)):
            return tuple(_value_if_any(sizes, "", tensor) for tensor in found)
        return sizes.value("", found)

    def convert(self, node):
        """Converts a node that calls an operator."""
        if is_size(node):
            return
        if node.target is operator.getitem:
            self.values[node] = self._argument(node.args[0])[node.args[1]]
            if self.values[node] is None:
                raise UnsupportedError("a result that Hone does not compute")
            return
        name = str(node.target)
        if name not in CONVERTERS:
            raise UnsupportedError(f"the operator {name}")
        convert = CONVERTERS[name]
        self.graph.origin = node.name
        keywords = {key: self._argument(argument) for key, argument in node.kwargs.items() if key not in ("layout", "device", "pin_memory", "memory_format")}
        if _needs_name(convert):
            keywords["operator"] = name
        results = self._results(node)
        arguments = [self._argument(argument) for argument in node.args]
        if node.args and _reads_rows(node, node.args[0]):
            arguments[0] = self.tables.get(node.args[0], arguments[0])
        made = convert(self.graph, results, *arguments, **keywords)
        if isinstance(results, tuple):
            assert len(made) == len(results), f"{name}: {len(made)} results, expected {len(results)}"
            self.values[node] = [None if part is None or result is None else Value(part, result.dtype, result.shape) for part, result in zip(made, results)]
        else:
            self.values[node] = Value(made, results.dtype, results.shape)


def why_unsupported(node):
    """Why Hone cannot compute a node of a graph of ATen operators; None if it can."""
    if is_size(node):
        return None
    converter = _Converter(Graph(Sizes()))
    try:
        for source in node.all_input_nodes:
            _declare(converter, source)
        converter.convert(node)
    except UnsupportedError as error:
        return str(error)
    except (TypeError, KeyError, IndexError, ValueError) as error:  # such as other parameters in another version of PyTorch
        return f"{node.target}: {type(error).__name__}: {error}"
    return None


def _declare(converter, source):
    """Makes a node an input of a graph that is only tried."""
    found = value_of(source)
    if is_size(source):
        _bind_symbols(converter.graph, found, source.name)
    elif isinstance(found, (list, tuple)):
        converter.values[source] = [_value_if_any(converter.graph.sizes, f"{source.name}.{i}", tensor) for i, tensor in enumerate(found)]
        for value in converter.values[source]:
            _bind_shape(converter.graph, value)
    else:
        converter.values[source] = converter.graph.sizes.value(source.name, found)
        _bind_shape(converter.graph, converter.values[source])


def _bind_symbols(graph, size, name):
    for symbol in getattr(graph.sizes.extent(size), "free_symbols", ()):
        graph.bind_symbol(symbol, name, 0)


def _bind_shape(graph, value):
    for axis, extent in enumerate(value.shape if value is not None else ()):
        for symbol in getattr(extent, "free_symbols", ()):
            graph.bind_symbol(symbol, value.name, axis)


class Converted:
    """A graph as ONNX.

    Attributes:
        graph: the Graph, which writes the model.
        inputs: for each input of the model, (place among the placeholders, order of axes), the order in which the tensor lies in
            memory.
        outputs: for each output of the model, (its value, order of axes), likewise.
        places: for each result of the graph, a place among the outputs, or None for one that is no tensor.
    """


def convert(module, constants, sizes, shared=()):
    """Converts a torch.fx.GraphModule.

    Args:
        constants: {place among the placeholders: tensor} for those that become constants of the library.
        shared: the places of those constants that are inputs, too, for what reads their rows.
        sizes: the Sizes that say what symbols stand for.
    """
    made = Converted()
    made.graph, made.inputs = Graph(sizes), []
    converter = _Converter(made.graph)
    place = -1
    for node in module.graph.nodes:
        if node.op == "placeholder":
            place += 1
            if not isinstance(value_of(node), torch.Tensor) or not node.users:
                continue
            if place in constants:
                sizes.value(node.name, value_of(node))
                converter.values[node] = made.graph.weight(node.name, constants[place])
                if place in shared:
                    converter.tables[node] = _add_input(made, node, place, f"{node.name}.rows")
            else:
                converter.values[node] = _add_input(made, node, place, node.name)
        elif node.op == "get_attr":
            converter.values[node] = made.graph.weight(node.name, getattr(module, node.target))
        elif node.op == "call_function":
            converter.convert(node)
        elif node.op == "output":
            _add_outputs(made, converter, node)
    return made


def results_of(output):
    """The list of what a graph returns, by its output node."""
    return output.args[0] if isinstance(output.args[0], (list, tuple)) else [output.args[0]]


def memory_order(tensor):
    """The order of axes in which a dense tensor lies in memory, the slowest first; that of the axes for others."""
    plain = list(range(tensor.dim()))
    if not all(isinstance(size, int) for size in (*tensor.shape, *tensor.stride())) or tensor.is_contiguous():
        return plain
    order = sorted(plain, key=lambda axis: (-tensor.stride(axis), axis))
    return order if tensor.permute(order).is_contiguous() else plain


def _inverse(order):
    return [order.index(axis) for axis in range(len(order))]


def _add_input(made, node, place, name):
    """Adds a placeholder, as it lies in memory, as an input of that name. Returns its value with the axes of PyTorch."""
    graph, order = made.graph, memory_order(value_of(node))
    graph.origin = node.name
    value = graph.sizes.value(name, value_of(node))
    graph.input(Value(name, value.dtype, tuple(value.shape[axis] for axis in order)))
    made.inputs.append((place, order))
    return Value(graph.transpose(name, _inverse(order)), value.dtype, value.shape)


def _add_outputs(made, converter, node):
    made.outputs, made.places = [], []
    for result in results_of(node):
        if not isinstance(result, fx.Node) or is_size(result):
            made.places.append(None)
            continue
        value = converter.values[result]
        if value is None:
            raise UnsupportedError("a result that Hone does not compute")
        made.graph.origin = result.name
        order = memory_order(value_of(result))
        name = made.graph.op("Identity", made.graph.transpose(value.name, order))
        made.places.append(len(made.outputs))
        made.outputs.append((Value(name, value.dtype, tuple(value.shape[axis] for axis in order)), order))
