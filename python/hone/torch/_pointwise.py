"""Operators that work element by element."""
import math

import torch

from hone.errors import UnsupportedError
from hone.torch._graph import Value, onnx_type
from hone.torch._registry import CONVERTERS, converts, is_float, number

# These are one node on numbers of the result's type.
_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "cos": "Cos",
    "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "hardswish": "HardSwish", "log": "Log", "mish": "Mish", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign", "sgn": "Sign", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}
_ROUNDING = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}
_COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
_LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_BITWISE = {"bitwise_and": ("And", "BitwiseAnd"), "bitwise_or": ("Or", "BitwiseOr"), "bitwise_xor": ("Xor", "BitwiseXor")}


def _register_families():
    def unary(kind):
        return lambda g, result, x: g.op(kind, g.operand(x, result.dtype))

    def rounding(kind):
        return lambda g, result, x: g.op(kind, x.name) if is_float(x.dtype) else x.name

    def comparison(kind):
        return lambda g, result, x, y: g.op(kind, *_alike(g, x, y))

    def logical(kind):
        return lambda g, result, x, y: g.op(kind, g.operand(x, torch.bool), g.operand(y, torch.bool))

    def bitwise(of_bool, of_ints):
        def convert(g, result, x, y):
            return g.op(of_bool if result.dtype == torch.bool else of_ints, g.operand(x, result.dtype), g.operand(y, result.dtype))
        return convert

    for name, kind in _UNARY.items():
        converts(f"{name}.default")(unary(kind))
    for name, kind in _ROUNDING.items():
        converts(f"{name}.default")(rounding(kind))
    for name, kind in _COMPARISONS.items():
        converts(f"{name}.Tensor", f"{name}.Scalar")(comparison(kind))
    for name, kind in _LOGICAL.items():
        converts(f"{name}.default")(logical(kind))
    for name, (of_bool, of_ints) in _BITWISE.items():
        converts(f"{name}.Tensor", f"{name}.Scalar")(bitwise(of_bool, of_ints))


def _kind_of(x):
    """An operand as torch.result_type takes it: a tensor of the same type and number of dimensions, or a number."""
    if isinstance(x, Value):
        return torch.empty((1,) * x.rank, dtype=x.dtype, device="meta")
    return 1 if isinstance(x, (torch.SymInt, int)) and not isinstance(x, bool) else x


def _alike(g, x, y):
    """Two operands in the element type in which PyTorch compares them."""
    dtype = torch.result_type(_kind_of(x), _kind_of(y))
    return g.operand(x, dtype), g.operand(y, dtype)


_register_families()


@converts("ne.Tensor", "ne.Scalar")
def _ne(g, result, x, y):
    return g.op("Not", g.op("Equal", *_alike(g, x, y)))


@converts("logical_not.default")
def _logical_not(g, result, x):
    return g.op("Not", g.operand(x, torch.bool))


@converts("bitwise_not.default")
def _bitwise_not(g, result, x):
    return g.op("Not" if x.dtype == torch.bool else "BitwiseNot", x.name)


@converts("isnan.default")
def _isnan(g, result, x):
    return g.op("IsNaN", x.name) if is_float(x.dtype) else g.op("Not", g.op("Equal", x.name, x.name))


@converts("isinf.default")
def _isinf(g, result, x):
    if not is_float(x.dtype):
        raise UnsupportedError("infinity of integers")
    return g.op("IsInf", x.name)


@converts("trunc.default")
def _trunc(g, result, x):
    return g.op("Mul", g.op("Sign", x.name), g.op("Floor", g.op("Abs", x.name))) if is_float(x.dtype) else x.name


@converts("rsqrt.default")
def _rsqrt(g, result, x):
    return g.op("Reciprocal", g.op("Sqrt", g.operand(x, result.dtype)))


@converts("log1p.default", "log2.default", "log10.default", "expm1.default", "exp2.default", "erfc.default", "square.default")
def _composed_unary(g, result, x, *, operator):
    x = g.operand(x, result.dtype)

    def constant(value):
        return g.constant(value, result.dtype)

    if operator == "aten.log1p.default":
        # The factor x / (u - 1) makes good what x + 1 rounds away.
        u = g.op("Add", x, constant(1))
        exact = g.op("Mul", g.op("Log", u), g.op("Div", x, g.op("Sub", u, constant(1))))
        return g.op("Where", g.op("Equal", u, constant(1)), x, g.op("Where", g.op("Equal", u, constant(math.inf)), u, exact))
    if operator == "aten.log2.default":
        return g.op("Mul", g.op("Log", x), constant(1 / math.log(2)))
    if operator == "aten.log10.default":
        return g.op("Mul", g.op("Log", x), constant(1 / math.log(10)))
    if operator == "aten.expm1.default":
        return g.op("Mul", g.op("Add", g.op("Exp", x), constant(1)), g.op("Tanh", g.op("Mul", x, constant(0.5))))
    if operator == "aten.exp2.default":
        return g.op("Exp", g.op("Mul", x, constant(math.log(2))))
    if operator == "aten.erfc.default":
        return g.op("Sub", constant(1), g.op("Erf", x))
    return g.op("Mul", x, x)


@converts("silu.default")
def _silu(g, result, x):
    return g.op("Mul", x.name, g.op("Sigmoid", x.name))


@converts("gelu.default")
def _gelu(g, result, x, approximate="none"):
    return g.op("Gelu", x.name, approximate=approximate)


@converts("hardsigmoid.default")
def _hardsigmoid(g, result, x):
    return g.op("HardSigmoid", x.name, alpha=1 / 6, beta=0.5)


@converts("leaky_relu.default")
def _leaky_relu(g, result, x, negative_slope=0.01):
    return g.op("LeakyRelu", x.name, alpha=float(negative_slope))


@converts("elu.default")
def _elu(g, result, x, alpha=1, scale=1, input_scale=1):
    if scale != 1 or input_scale != 1:
        if input_scale != 1:
            raise UnsupportedError("an ELU whose input is scaled")
        return g.op("Mul", g.op("Elu", x.name, alpha=float(alpha)), g.constant(scale, result.dtype))
    return g.op("Elu", x.name, alpha=float(alpha))


@converts("softplus.default")
def _softplus(g, result, x, beta=1, threshold=20):
    if beta == 1:
        soft = g.op("Softplus", x.name)
        return g.op("Where", g.op("Greater", x.name, g.constant(threshold, x.dtype)), x.name, soft)
    scaled = g.op("Mul", x.name, g.constant(beta, x.dtype))
    soft = g.op("Div", g.op("Softplus", scaled), g.constant(beta, x.dtype))
    return g.op("Where", g.op("Greater", scaled, g.constant(threshold, x.dtype)), x.name, soft)


@converts("_prelu_kernel.default")
def _prelu(g, result, x, weight):
    return g.op("PRelu", x.name, weight.name)


@converts("hardtanh.default", "clamp.default", "clamp.Tensor", "clamp_min.default", "clamp_max.default")
def _clamp(g, result, x, low=None, high=None, *, operator):
    if operator == "aten.clamp_max.default":
        low, high = None, low
    if operator == "aten.hardtanh.default":
        low, high = -1 if low is None else low, 1 if high is None else high
    x = g.operand(x, result.dtype)
    if is_float(result.dtype) and all(isinstance(bound, (int, float, type(None))) for bound in (low, high)):
        return g.op("Clip", x, "" if low is None else g.constant(low, result.dtype), "" if high is None else g.constant(high, result.dtype))
    if low is not None:
        x = g.op("Max", x, g.operand(low, result.dtype))
    return x if high is None else g.op("Min", x, g.operand(high, result.dtype))


def _scaled(g, y, alpha, dtype):
    """alpha * y in an element type."""
    if not isinstance(y, Value) and isinstance(y, (int, float)):
        return g.constant(alpha * y, dtype)
    name = g.operand(y, dtype)
    return name if alpha == 1 else g.op("Mul", name, g.constant(number(alpha, "a factor alpha"), dtype))


@converts("add.Tensor", "add.Scalar")
def _add(g, result, x, y, alpha=1):
    if result.dtype == torch.bool:
        return g.op("Or", g.operand(x, torch.bool), g.operand(y, torch.bool))
    return g.op("Add", g.operand(x, result.dtype), _scaled(g, y, alpha, result.dtype))


@converts("sub.Tensor", "sub.Scalar")
def _sub(g, result, x, y, alpha=1):
    return g.op("Sub", g.operand(x, result.dtype), _scaled(g, y, alpha, result.dtype))


@converts("rsub.Scalar", "rsub.Tensor")
def _rsub(g, result, x, y, alpha=1):
    return g.op("Sub", g.operand(y, result.dtype), _scaled(g, x, alpha, result.dtype))


@converts("mul.Tensor", "mul.Scalar")
def _mul(g, result, x, y):
    return g.op("And" if result.dtype == torch.bool else "Mul", g.operand(x, result.dtype), g.operand(y, result.dtype))


def _floored(g, x, y, dtype):
    """The remainder of a division of floats towards zero, which is exact, and whether one that rounds down has a quotient less by 1."""
    rest, zero = g.op("Mod", x, y, fmod=1), g.constant(0, dtype)
    differ = g.op("Xor", g.op("Less", rest, zero), g.op("Less", y, zero))
    return rest, g.op("And", differ, g.op("Not", g.op("Equal", rest, zero)))


def _floor_of_quotient(g, x, y, dtype):
    """Floats divided as Python's // does: the quotient itself may round to the next whole number."""
    rest, off = _floored(g, x, y, dtype)
    whole = g.op("Sub", g.op("Div", g.op("Sub", x, rest), y), g.cast(off, torch.bool, dtype))
    return g.op("Where", g.op("Equal", y, g.constant(0, dtype)), g.op("Div", x, y), g.op("Round", whole))


@converts("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode")
def _div(g, result, x, y, rounding_mode=None):
    x, y = g.operand(x, result.dtype), g.operand(y, result.dtype)
    if rounding_mode is None:
        return g.op("Div", x, y)
    if is_float(result.dtype):
        if rounding_mode == "floor":
            return _floor_of_quotient(g, x, y, result.dtype)
        quotient = g.op("Div", x, y)
        return g.op("Mul", g.op("Sign", quotient), g.op("Floor", g.op("Abs", quotient)))
    quotient = g.op("Div", x, y)  # of integers, towards zero
    if rounding_mode == "trunc" or not result.dtype.is_signed:
        return quotient
    zero = g.constant(0, result.dtype)
    remainder = g.op("Sub", x, g.op("Mul", quotient, y))
    differ = g.op("Xor", g.op("Less", remainder, zero), g.op("Less", y, zero))
    inexact = g.op("Not", g.op("Equal", remainder, zero))
    return g.op("Sub", quotient, g.cast(g.op("And", differ, inexact), torch.bool, result.dtype))


@converts("remainder.Tensor", "remainder.Scalar", "fmod.Tensor", "fmod.Scalar")
def _remainder(g, result, x, y, *, operator):
    x, y = g.operand(x, result.dtype), g.operand(y, result.dtype)
    if "fmod" in operator:
        return g.op("Mod", x, y, fmod=1)
    if not is_float(result.dtype):
        return g.op("Mod", x, y)
    rest, off = _floored(g, x, y, result.dtype)
    return g.op("Where", off, g.op("Add", rest, y), rest)


@converts("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def _pow(g, result, x, y):
    if isinstance(y, (int, float)) and not isinstance(y, bool) and y in (0.5, 1, 2, 3, -0.5, -1):
        base = g.operand(x, result.dtype)
        if y in (0.5, -0.5, -1):
            root = base if y == -1 else g.op("Sqrt", base)
            return root if y == 0.5 else g.op("Reciprocal", root)
        power = base
        for _ in range(int(y) - 1):
            power = g.op("Mul", power, base)
        return power
    return g.op("Pow", g.operand(x, result.dtype), g.operand(y, result.dtype))


@converts("maximum.default", "minimum.default")
def _extremum(g, result, x, y, *, operator):
    return g.op("Max" if "maximum" in operator else "Min", g.operand(x, result.dtype), g.operand(y, result.dtype))


@converts("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where(g, result, condition, x, y):
    return g.op("Where", g.operand(condition, torch.bool), g.operand(x, result.dtype), g.operand(y, result.dtype))


@converts("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(g, result, x, mask, value):
    return g.op("Where", mask.name, g.operand(value, result.dtype), x.name)


@converts("_to_copy.default")
def _to_copy(g, result, x, dtype=None, **keywords):
    if x.dtype == result.dtype:
        return x.name
    return g.op("Cast", x.name, to=onnx_type(result.dtype))


@converts("clone.default", "alias.default", "detach.default", "lift_fresh_copy.default", "contiguous.default", "native_dropout.default")
def _same(g, result, x, *arguments, operator, **keywords):
    if operator == "aten.native_dropout.default":
        if arguments[1] is not False:
            raise UnsupportedError("dropout in training")
        return x.name, None
    return x.name


CONVERTERS["prims.convert_element_type.default"] = _to_copy
