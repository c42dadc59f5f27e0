"""Operators that reduce, sort and scan."""
import math

import torch

from hone.errors import UnsupportedError
from hone.torch._registry import axes_of, axis_of, converts, is_float, number


def _reduce(g, kind, name, axes, keepdims):
    return g.op(kind, name, g.ints(*axes), keepdims=int(bool(keepdims)))


def _extreme(g, kind, name, dtype, axes, keepdims):
    """The greatest or least elements; NaN wherever there is one."""
    found = _reduce(g, kind, name, axes, keepdims)
    if not is_float(dtype):
        return found
    nan = _reduce(g, "ReduceMax", g.cast(g.op("IsNaN", name), torch.bool, torch.int32), axes, keepdims)
    return g.op("Where", g.cast(nan, torch.int32, torch.bool), g.constant(math.nan, dtype), found)


@converts("sum.default", "sum.dim_IntList", "mean.default", "mean.dim", "prod.default", "prod.dim_int")
def _sum(g, result, x, dim=None, keepdim=False, *, dtype=None, operator):
    kind = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd"}[operator.split(".")[1]]
    if x.rank == 0:
        return g.operand(x, result.dtype)
    return _reduce(g, kind, g.operand(x, result.dtype), axes_of(dim, x.rank), keepdim)


@converts("amax.default", "amin.default", "max.default", "min.default")
def _extremum(g, result, x, dim=None, keepdim=False, *, operator):
    if x.rank == 0:
        return x.name
    return _extreme(g, "ReduceMax" if "max" in operator else "ReduceMin", x.name, x.dtype, axes_of(dim, x.rank), keepdim)


@converts("max.dim", "min.dim")
def _extremum_and_place(g, results, x, dim, keepdim=False, *, operator):
    axis = axis_of(dim, x.rank)
    kind, place = ("ReduceMax", "ArgMax") if "max" in operator else ("ReduceMin", "ArgMin")
    return _extreme(g, kind, x.name, x.dtype, [axis], keepdim), g.op(place, x.name, axis=axis, keepdims=int(keepdim))


@converts("argmax.default", "argmin.default")
def _place(g, result, x, dim=None, keepdim=False, *, operator):
    kind = "ArgMax" if "argmax" in operator else "ArgMin"
    if dim is None:
        flat = g.op(kind, g.op("Reshape", x.name, g.ints(-1)), axis=0, keepdims=0)
        return g.reshape(flat, result.shape) if keepdim else flat
    return g.op(kind, x.name, axis=axis_of(dim, x.rank), keepdims=int(keepdim))


@converts("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def _any(g, result, x, dim=None, keepdim=False, *, operator):
    ints = g.cast(g.operand(x, torch.bool), torch.bool, torch.int32)
    if x.rank > 0:
        ints = _reduce(g, "ReduceMax" if ".any." in operator else "ReduceMin", ints, axes_of(dim, x.rank), keepdim)
    return g.cast(ints, torch.int32, result.dtype)


def _variance(g, x, dim, correction, keepdim):
    """The names of variance and mean."""
    axes = axes_of(dim, x.rank)
    count = math.prod(x.shape[axis] for axis in axes)
    if not isinstance(count, int):
        raise UnsupportedError("a variance along an extent that varies")
    mean = _reduce(g, "ReduceMean", x.name, axes, True)
    off = g.op("Sub", x.name, mean)
    squares = g.op("Mul", off, off)
    divisor = count - (1 if correction is None else number(correction, "a correction"))
    if divisor == count:
        return _reduce(g, "ReduceMean", squares, axes, keepdim), mean
    if divisor <= 0:
        raise UnsupportedError("a variance of too few elements")
    return g.op("Mul", _reduce(g, "ReduceSum", squares, axes, keepdim), g.constant(1 / divisor, x.dtype)), mean


@converts("var.correction", "std.correction")
def _var(g, result, x, dim=None, correction=None, keepdim=False, *, operator):
    variance, _ = _variance(g, x, dim, correction, keepdim)
    return g.op("Sqrt", variance) if ".std." in operator else variance


@converts("var_mean.correction")
def _var_mean(g, results, x, dim=None, correction=None, keepdim=False):
    variance, mean = _variance(g, x, dim, correction, keepdim)
    return variance, mean if keepdim else g.reshape(mean, results[1].shape)


@converts("linalg_vector_norm.default")
def _norm(g, result, x, order=2, dim=None, keepdim=False, dtype=None):
    name, axes = g.operand(x, result.dtype), axes_of(dim, x.rank)
    if order == 2:
        return _reduce(g, "ReduceL2", name, axes, keepdim)
    if order == 1:
        return _reduce(g, "ReduceL1", name, axes, keepdim)
    if order in (math.inf, -math.inf):
        return _extreme(g, "ReduceMax" if order > 0 else "ReduceMin", g.op("Abs", name), result.dtype, axes, keepdim)
    raise UnsupportedError(f"a norm of the order {order}")


@converts("logsumexp.default")
def _logsumexp(g, result, x, dim, keepdim=False):
    return _reduce(g, "ReduceLogSumExp", g.operand(x, result.dtype), axes_of(dim, x.rank), keepdim)


@converts("_softmax.default", "_log_softmax.default", "softmax.int", "log_softmax.int")
def _softmax(g, result, x, dim, half_to_float=False, *, dtype=None, operator):
    if x.rank == 0:
        raise UnsupportedError("a softmax of a number")
    kind = "LogSoftmax" if "log" in operator else "Softmax"
    return g.op(kind, g.operand(x, result.dtype), axis=axis_of(dim, x.rank))


@converts("cumsum.default", "cumprod.default")
def _scan(g, result, x, dim, *, dtype=None, operator):
    if "cumprod" in operator or x.rank == 0:
        raise UnsupportedError("a running product, or a scan of a number")
    return g.op("CumSum", g.operand(x, result.dtype), g.constant(axis_of(dim, x.rank), torch.int64))


@converts("topk.default")
def _topk(g, results, x, k, dim=-1, largest=True, sorted=True):
    return g.op("TopK", x.name, g.size(g.sizes.extent(k)), outputs=2, axis=axis_of(dim, x.rank), largest=int(largest), sorted=int(sorted))


@converts("sort.default", "sort.stable")
def _sort(g, results, x, *arguments, stable=False, dim=-1, descending=False, operator):
    if arguments:
        dim, descending = (*arguments, False)[:2]
    axis = axis_of(dim, x.rank)
    return g.op("TopK", x.name, g.size(x.shape[axis]), outputs=2, axis=axis, largest=int(descending), sorted=1)
