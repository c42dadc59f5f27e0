"""Operators that make, move and choose elements."""
import numpy as np
import torch

from hone.errors import UnsupportedError
from hone.torch._graph import Value
from hone.torch._registry import axis_of, converts, number

_LAST = 2**63 - 1  # the end of a slice that has none


@converts("view.default", "_unsafe_view.default", "reshape.default", "squeeze.default", "squeeze.dim", "squeeze.dims", "unsqueeze.default",
          "view_copy.default", "flatten.using_ints", "unflatten.int")
def _view(g, result, x, *arguments):
    return x.name if x.shape == result.shape else g.reshape(x.name, result.shape)


@converts("as_strided.default")
def _as_strided(g, result, x, size, stride, offset=None):
    # A tensor of one row of elements stays as it is: its other extents are 1, whose strides mean nothing.
    rows = [(extent, step) for extent, step in zip(result.shape, stride) if extent != 1]
    if x.shape != result.shape or offset or len(rows) > 1 or any(step != 1 for _, step in rows):
        raise UnsupportedError("a view by strides")
    return x.name


@converts("permute.default")
def _permute(g, result, x, dims):
    return g.transpose(x.name, [axis_of(axis, x.rank) for axis in dims])


@converts("transpose.int", "t.default")
def _swap(g, result, x, first=0, second=1):
    order = list(range(x.rank))
    if x.rank > 1:
        a, b = axis_of(first, x.rank), axis_of(second, x.rank)
        order[a], order[b] = b, a
    return g.transpose(x.name, order)


@converts("expand.default", "broadcast_to.default")
def _expand(g, result, x, *arguments, implicit=False):
    return x.name if x.shape == result.shape else g.op("Expand", x.name, g.size_list(result.shape))


@converts("copy.default")
def _copy(g, result, x, source, non_blocking=False):
    name = g.operand(source, result.dtype)
    return name if source.shape == result.shape else g.op("Expand", name, g.size_list(result.shape))


@converts("repeat.default")
def _repeat(g, result, x, repeats):
    if result.rank > x.rank:
        x = Value(g.reshape(x.name, (1,) * (result.rank - x.rank) + x.shape), x.dtype, (1,) * (result.rank - x.rank) + x.shape)
    if all(size == 1 for size in repeats):
        return x.name
    return g.op("Tile", x.name, g.size_list([g.sizes.extent(size) for size in repeats]))


@converts("cat.default")
def _cat(g, result, parts, dim=0):
    # PyTorch lets an empty list of one dimension be joined with anything; such a value is refused before it comes here.
    if len(parts) == 1:
        return g.operand(parts[0], result.dtype)
    return g.op("Concat", *(g.operand(part, result.dtype) for part in parts), axis=axis_of(dim, result.rank))


def _slice(g, name, axis, start, end, step=1):
    return g.op("Slice", name, start, end, g.ints(axis), g.ints(step))


def _bound(g, size, extent, absent):
    """The name of a bound of a slice."""
    if size is None:
        return g.ints(absent)
    size = g.sizes.extent(size)
    return g.ints(size) if isinstance(size, int) else g.size(size)


@converts("slice.Tensor")
def _slice_tensor(g, result, x, dim=0, start=None, end=None, step=1):
    if x.shape == result.shape:
        return x.name
    axis = axis_of(dim, x.rank)
    return _slice(g, x.name, axis, _bound(g, start, x.shape[axis], 0), _bound(g, end, x.shape[axis], _LAST), number(step, "a step"))


@converts("select.int")
def _select(g, result, x, dim, index):
    index = g.sizes.extent(index)
    at = g.constant(index, torch.int64) if isinstance(index, int) else g.op("Squeeze", g.size(index))
    return g.op("Gather", x.name, at, axis=axis_of(dim, x.rank))


@converts("split.Tensor", "split_with_sizes.default", "chunk.default", "unbind.int")
def _split(g, results, x, *arguments, dim=None, operator):
    place = 0 if "unbind" in operator else 1
    axis = axis_of(dim if dim is not None else (*arguments, 0, 0)[place], x.rank)
    if "unbind" in operator:
        return tuple(g.op("Gather", x.name, g.constant(i, torch.int64), axis=axis) for i in range(len(results)))
    extents = [part.shape[axis] for part in results if part is not None]  # None stands for an empty part
    names = iter(g.op("Split", x.name, g.size_list(extents), outputs=len(extents), axis=axis) if len(extents) > 1 else (x.name,))
    return tuple(None if part is None else next(names) for part in results)


@converts("slice_scatter.default", "select_scatter.default")
def _replace_slice(g, result, x, new, dim=0, *place, operator):
    axis = axis_of(dim, x.rank)
    extent = x.shape[axis]
    if not isinstance(extent, int):
        raise UnsupportedError("a part that is replaced along an extent that varies")
    if "select" in operator:
        start = axis_of(number(place[0], "an index"), extent)
        end, step = start + 1, 1
        name = g.op("Unsqueeze", g.operand(new, result.dtype), g.ints(axis))
    else:
        start, end, step = (*place, *(0, _LAST, 1)[len(place):])
        start, end, step = number(0 if start is None else start, "a start"), number(_LAST if end is None else end, "an end"), number(step, "a step")
        start, end, step = slice(start, end, step).indices(extent)
        name = g.operand(new, result.dtype)
    if step != 1:
        raise UnsupportedError("a part with a step that is replaced")
    parts = [name]
    if start > 0:
        parts.insert(0, _slice(g, x.name, axis, g.ints(0), g.ints(start)))
    if end < extent:
        parts.append(_slice(g, x.name, axis, g.ints(end), g.ints(_LAST)))
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=axis)


@converts("flip.default")
def _flip(g, result, x, dims):
    name = x.name
    for axis in (axis_of(dim, x.rank) for dim in dims):
        name = _slice(g, name, axis, g.ints(-1), g.ints(-_LAST), -1)
    return name


# Reading and writing at places that data says.


@converts("embedding.default")
def _embedding(g, result, weight, indices, *arguments, **keywords):
    return g.op("Gather", weight.name, indices.name, axis=0)


@converts("index_select.default")
def _index_select(g, result, x, dim, index):
    return g.op("Gather", x.name, index.name, axis=axis_of(dim, x.rank))


@converts("gather.default")
def _gather(g, result, x, dim, index, sparse_grad=False):
    if x.rank == 0:
        raise UnsupportedError("a gather from a number")
    return g.op("GatherElements", x.name, index.name, axis=axis_of(dim, x.rank))


@converts("scatter.src", "scatter.value", "scatter_add.default")
def _scatter(g, result, x, dim, index, source, *, operator):
    if x.rank == 0:
        raise UnsupportedError("a scatter into a number")
    if isinstance(source, Value):
        if source.shape != index.shape:
            raise UnsupportedError("a scatter of a part of its source")
        name = source.name
    else:
        name = g.op("Expand", g.operand(source, x.dtype), g.size_list(index.shape))
    return g.op("ScatterElements", x.name, index.name, name, axis=axis_of(dim, x.rank), reduction="add" if "add" in operator else None)


def _indexed(g, x, indices):
    """For indices of some axes: (those axes, the shape of the indices together, the name of the list of places)."""
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    found = [indices[axis] for axis in axes]
    if any(index.dtype in (torch.bool, torch.uint8) for index in found):
        raise UnsupportedError("an index of booleans, whose result has a shape that depends on data")
    shape = _broadcast([index.shape for index in found])
    columns = []
    for index in found:
        name = g.operand(index, torch.int64)
        if index.shape != shape:
            name = g.op("Expand", name, g.size_list(shape))
        columns.append(g.op("Unsqueeze", name, g.ints(-1)))
    return axes, shape, columns[0] if len(columns) == 1 else g.op("Concat", *columns, axis=-1)


def _broadcast(shapes):
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(next((extent for extent in extents if extent != 1), 1) for extents in zip(*padded))


@converts("index.Tensor", "_unsafe_index.Tensor")
def _index(g, result, x, indices):
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    if len(axes) == 1 and indices[axes[0]].dtype not in (torch.bool, torch.uint8):
        return g.op("Gather", x.name, indices[axes[0]].name, axis=axes[0])
    axes, shape, places = _indexed(g, x, indices)
    others = [axis for axis in range(x.rank) if axis not in axes]
    found = g.op("GatherND", g.transpose(x.name, axes + others), places)
    first = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    order = [len(shape) + i for i in range(first)] + list(range(len(shape))) + [len(shape) + i for i in range(first, len(others))]
    return g.transpose(found, order)


@converts("index_put.default", "_unsafe_index_put.default")
def _index_put(g, result, x, indices, values, accumulate=False):
    axes, shape, places = _indexed(g, x, indices)
    if axes != list(range(len(axes))):
        raise UnsupportedError("a write at indices of axes behind the first")
    updates = g.operand(values, x.dtype)
    wanted = shape + x.shape[len(axes):]
    if values.shape != wanted:
        updates = g.op("Expand", updates, g.size_list(wanted))
    return g.op("ScatterND", x.name, places, updates, reduction="add" if accumulate else None)


# New tensors.


@converts("full.default", "full_like.default", "new_full.default", "zeros.default", "zeros_like.default", "ones.default", "ones_like.default",
          "new_zeros.default", "new_ones.default", "fill.Scalar", "scalar_tensor.default")
def _full(g, result, *arguments, operator, **keywords):
    kind = operator.split(".")[1]
    if kind == "scalar_tensor":
        value = arguments[0]
    elif "zeros" in kind or "ones" in kind:
        value = int("ones" in kind)
    else:
        value = arguments[2 if kind == "new_full" else 1]
    name = g.operand(value, result.dtype)
    return g.op("Expand", name, g.size_list(result.shape)) if result.rank else name


@converts("arange.start_step", "arange.start", "arange.default")
def _arange(g, result, start, end=None, step=1, *, operator, **keywords):
    if operator == "aten.arange.default":
        start, end = 0, start
    if all(isinstance(bound, (int, float)) for bound in (start, end, step)):
        return g.constant(start + step * np.arange(result.shape[0]), result.dtype)
    return g.op("Range", *(g.operand(bound, result.dtype) for bound in (start, end, step)))


@converts("eye.default", "eye.m")
def _eye(g, result, *arguments, **keywords):
    if not all(isinstance(extent, int) for extent in result.shape):
        raise UnsupportedError("an identity matrix whose size varies")
    return g.constant(np.eye(*result.shape), result.dtype)


@converts("tril.default", "triu.default")
def _triangle(g, result, x, diagonal=0, *, operator):
    if x.dtype == torch.bool:
        raise UnsupportedError("a triangle of booleans")
    return g.op("Trilu", x.name, g.constant(number(diagonal, "a diagonal"), torch.int64), upper=int("triu" in operator))


@converts("constant_pad_nd.default", "reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default",
          "replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def _pad(g, result, x, padding, value=0, *, operator):
    mode = "constant" if "constant" in operator else "reflect" if "reflection" in operator else "edge"
    padding = [number(size, "a padding") for size in padding]
    before, after = [0] * x.rank, [0] * x.rank
    for i in range(len(padding) // 2):
        before[-1 - i], after[-1 - i] = padding[2 * i], padding[2 * i + 1]
    if mode == "constant":
        return g.op("Pad", x.name, g.ints(*before, *after), g.operand(value, x.dtype), mode=mode)
    return g.op("Pad", x.name, g.ints(*before, *after), mode=mode)


@converts("unfold.default")
def _unfold(g, result, x, dimension, size, step):
    axis = axis_of(dimension, x.rank)
    count = result.shape[axis]
    if not isinstance(count, int):
        raise UnsupportedError("windows along an extent that varies")
    places = np.arange(count)[:, None] * step + np.arange(size)
    windows = g.op("Gather", x.name, g.constant(places, torch.int64), axis=axis)
    order = [i for i in range(result.rank) if i != axis + 1] + [axis + 1]
    return g.transpose(windows, order)


@converts("diagonal.default")
def _diagonal(g, result, x, offset=0, dim1=0, dim2=1):
    a, b = axis_of(dim1, x.rank), axis_of(dim2, x.rank)
    if not isinstance(x.shape[b], int) or not isinstance(result.shape[-1], int):
        raise UnsupportedError("a diagonal whose length varies")
    others = [axis for axis in range(x.rank) if axis not in (a, b)]
    kept = tuple(x.shape[axis] for axis in others)
    if not all(isinstance(extent, int) for extent in kept):
        raise UnsupportedError("diagonals whose number varies")
    flat = g.op("Reshape", g.transpose(x.name, others + [a, b]), g.ints(*kept, x.shape[a] * x.shape[b]))
    start = offset if offset >= 0 else -offset * x.shape[b]
    places = [start + i * (x.shape[b] + 1) for i in range(result.shape[-1])]
    return g.op("Gather", flat, g.ints(*places), axis=len(kept))
