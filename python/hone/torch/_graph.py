"""An ONNX graph that grows by one operator of ATen at a time."""
import dataclasses

import numpy as np
import onnx
import sympy
import torch

from hone.errors import UnsupportedError

OPSET = 20
IR_VERSION = 9
_LEAST_EXTERNAL_BYTES = 1024  # a constant of fewer bytes lies in the ONNX file itself

_TYPES = {
    torch.float32: onnx.TensorProto.FLOAT,
    torch.float64: onnx.TensorProto.DOUBLE,
    torch.float16: onnx.TensorProto.FLOAT16,
    torch.bfloat16: onnx.TensorProto.BFLOAT16,
    torch.int8: onnx.TensorProto.INT8,
    torch.int16: onnx.TensorProto.INT16,
    torch.int32: onnx.TensorProto.INT32,
    torch.int64: onnx.TensorProto.INT64,
    torch.uint8: onnx.TensorProto.UINT8,
    torch.bool: onnx.TensorProto.BOOL,
}


def onnx_type(dtype):
    if dtype not in _TYPES:
        raise UnsupportedError(f"the element type {dtype}")
    return _TYPES[dtype]


@dataclasses.dataclass(frozen=True)
class Value:
    """A value of the graph: its name there, and the element type and shape of the tensor. Extents are numbers, or expressions of
    the symbols of sizes that vary."""
    name: str
    dtype: torch.dtype
    shape: tuple

    @property
    def rank(self):
        return len(self.shape)


class Sizes:
    """What the symbols of PyTorch's sizes stand for: numbers, or symbols still where a library takes a range of sizes."""

    def __init__(self, numbers=None):
        self.numbers = numbers or {}

    def extent(self, size):
        """A number, or an expression of symbols."""
        if isinstance(size, int):
            return size
        expression = size.node.expr if isinstance(size, torch.SymInt) else sympy.sympify(size)
        expression = expression.xreplace(self.numbers)
        return int(expression) if expression.is_number else expression

    def value(self, name, tensor):
        """A value with the element type and shape of a (fake) tensor."""
        if not isinstance(tensor, torch.Tensor):
            raise UnsupportedError(f"a value of the type {type(tensor).__name__}")
        onnx_type(tensor.dtype)
        if tensor.device.type != "cpu":
            raise UnsupportedError(f"a tensor on the device {tensor.device}")
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise UnsupportedError("a tensor that is sparse or quantized")
        shape = tuple(self.extent(size) for size in tensor.shape)
        if 0 in shape:
            raise UnsupportedError("a tensor without elements")
        return Value(name, tensor.dtype, shape)


class Graph:
    """Nodes get names after the operator of PyTorch that they are made for (`origin`), which is how errors find it."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.origin = "graph"
        self.origins = {}  # name of a node -> origin
        self._nodes = []
        self.inputs = []
        self._initializers = []
        self._external = []  # (TensorProto, tensor) whose elements go to the file of weights
        self._known = {}  # (type, shape, bytes) -> name of a small constant
        self._symbols = {}  # symbol -> (name of an input, axis)
        self._sizes = {}  # expression -> name of its value
        self._count = 0

    # Inputs, constants and nodes.

    def _name(self, what):
        self._count += 1
        return f"{self.origin}.{what}{self._count}"

    def input(self, value):
        dims = [extent if isinstance(extent, int) else str(extent) for extent in value.shape]
        self.inputs.append(onnx.helper.make_tensor_value_info(value.name, onnx_type(value.dtype), dims))
        for axis, extent in enumerate(value.shape):
            if isinstance(extent, sympy.Symbol):
                self.bind_symbol(extent, value.name, axis)

    def bind_symbol(self, symbol, name, axis):
        """The symbol is the extent of an axis of an input."""
        self._symbols.setdefault(symbol, (name, axis))

    def weight(self, name, tensor):
        """A constant with the elements of a tensor, which are read when the model is written."""
        proto = onnx.TensorProto(name=name, data_type=onnx_type(tensor.dtype), dims=tuple(tensor.shape))
        self._external.append((proto, tensor))
        return Value(name, tensor.dtype, tuple(tensor.shape))

    def constant(self, array, dtype=None):
        """The name of a small constant; of a type that NumPy lacks, it is converted to it."""
        array = np.asarray(array)
        if dtype is torch.bfloat16:
            return self.op("Cast", self.constant(array, torch.float32), to=onnx_type(dtype))
        if dtype is not None:
            array = array.astype(str(dtype).removeprefix("torch."))
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = f"constant{len(self._known)}"
            self._initializers.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), self._known[key]))
        return self._known[key]

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        """Adds a node, and returns the name of its result, or a tuple of names."""
        name = self._name(kind.lower())
        self.origins[name] = self.origin
        results = [name] if outputs == 1 else [f"{name}.{i}" for i in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self._nodes.append(onnx.helper.make_node(kind, list(inputs), results, name=name, domain=domain, **attributes))
        return results[0] if outputs == 1 else tuple(results)

    # Numbers and types.

    def cast(self, name, found, wanted):
        return name if found == wanted else self.op("Cast", name, to=onnx_type(wanted))

    def operand(self, value, dtype):
        """The name of a value, or of a Python number, in an element type."""
        if isinstance(value, Value):
            return self.cast(value.name, value.dtype, dtype)
        if isinstance(value, (bool, int, float)):
            return self.constant(value, dtype)
        extent = self.sizes.extent(value) if isinstance(value, (torch.SymInt, sympy.Expr)) else None
        if extent is None:
            raise UnsupportedError(f"an operand of the type {type(value).__name__}")
        if isinstance(extent, int):
            return self.constant(extent, dtype)
        return self.cast(self.op("Squeeze", self.size(extent)), torch.int64, dtype)

    # Sizes that vary.

    def size(self, extent):
        """The name of a list of one number, an extent."""
        if isinstance(extent, int):
            return self.ints(extent)
        if extent not in self._sizes:
            self._sizes[extent] = self._compute(extent)
        return self._sizes[extent]

    def _compute(self, extent):
        if isinstance(extent, sympy.Symbol):
            if extent not in self._symbols:
                raise UnsupportedError(f"the size {extent}, which is the extent of no input")
            name, axis = self._symbols[extent]
            return self.op("Shape", name, start=axis, end=axis + 1)
        kinds = {"Add": "Add", "Mul": "Mul", "FloorDiv": "Div", "CleanDiv": "Div", "Mod": "Mod", "PythonMod": "Mod", "Max": "Max", "Min": "Min"}
        kind = kinds.get(type(extent).__name__)
        if isinstance(extent, sympy.Pow) and extent.exp.is_Integer and extent.exp > 0:
            kind, parts = "Mul", [extent.base] * int(extent.exp)
        elif kind is None:
            raise UnsupportedError(f"the size {extent}")
        else:
            parts = extent.args
        names = [self.size(self.sizes.extent(part)) for part in parts]
        result = names[0]
        for name in names[1:]:
            result = self.op(kind, result, name)
        return result

    def size_list(self, extents):
        """The name of a list of extents."""
        if all(isinstance(extent, int) for extent in extents):
            return self.ints(*extents)
        return self.op("Concat", *(self.size(extent) for extent in extents), axis=0)

    def reshape(self, name, shape):
        """Reshapes to a shape in which any number of extents may vary."""
        varying = [axis for axis, extent in enumerate(shape) if not isinstance(extent, int)]
        if len(varying) == 1:
            return self.op("Reshape", name, self.ints(*(-1 if axis in varying else extent for axis, extent in enumerate(shape))))
        return self.op("Reshape", name, self.size_list(shape))

    def transpose(self, name, order):
        return name if list(order) == sorted(order) else self.op("Transpose", name, perm=list(order))

    # The model.

    def model(self, outputs):
        """An onnx.ModelProto with these results, values whose names are their own."""
        infos = [onnx.helper.make_tensor_value_info(value.name, onnx_type(value.dtype), [None] * value.rank) for value in outputs]
        graph = onnx.helper.make_graph(self._nodes, "torch", self.inputs, infos, self._initializers)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="hone.torch")
        for proto, _ in self._external:
            model.graph.initializer.append(proto)
        return model

    def write(self, outputs, folder):
        """Writes model.onnx and its weights into a folder; the path of the former. No weight is held in memory beside its tensor,
        unless that is not dense."""
        with open(folder / "weights", "wb") as file:
            for proto, tensor in self._external:
                _write_elements(proto, tensor.detach(), file)
        (folder / "model.onnx").write_bytes(self.model(outputs).SerializeToString())
        return folder / "model.onnx"


def _write_elements(proto, tensor, file):
    elements = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy()
    if elements.nbytes < _LEAST_EXTERNAL_BYTES:
        proto.raw_data = elements.tobytes()
        return
    proto.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "weights"), ("offset", file.tell()), ("length", elements.nbytes)):
        proto.external_data.add(key=key, value=str(value))
    elements.tofile(file)
