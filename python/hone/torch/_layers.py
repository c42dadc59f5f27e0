"""Operators of neural networks: products, convolutions, pooling, normalization, resizing."""
import numpy as np
import torch

from hone.errors import UnsupportedError
from hone.torch._registry import converts, is_float, number, numbers


@converts("mm.default", "bmm.default", "matmul.default", "mv.default", "dot.default")
def _product(g, result, x, y):
    _check_product(result)
    return g.op("MatMul", x.name, y.name)


def _check_product(result):
    if not is_float(result.dtype):
        raise UnsupportedError("a product of matrices of integers")


@converts("addmm.default", "baddbmm.default", "addmv.default")
def _product_and_sum(g, result, bias, x, y, beta=1, alpha=1):
    _check_product(result)
    product = g.op("MatMul", x.name, y.name)
    if alpha != 1:
        product = g.op("Mul", product, g.constant(number(alpha, "a factor alpha"), result.dtype))
    if beta == 0:
        return product
    name = bias.name if beta == 1 else g.op("Mul", bias.name, g.constant(number(beta, "a factor beta"), result.dtype))
    return g.op("Add", product, name)


@converts("linear.default")
def _linear(g, result, x, weight, bias=None):
    _check_product(result)
    product = g.op("MatMul", x.name, g.transpose(weight.name, [1, 0]))
    return product if bias is None else g.op("Add", product, bias.name)


@converts("convolution.default")
def _convolution(g, result, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    spatial = x.rank - 2
    if result.rank != x.rank or spatial < 1:
        raise UnsupportedError("a convolution without a batch")

    def each(sizes):
        sizes = numbers(g, sizes, "a size of a convolution")
        return sizes * spatial if len(sizes) == 1 else sizes

    pads = each(padding)
    inputs = [x.name, weight.name] + ([] if bias is None else [bias.name])
    shared = {"strides": each(stride), "pads": pads + pads, "dilations": each(dilation), "group": groups}
    if transposed:
        return g.op("ConvTranspose", *inputs, **shared, output_padding=each(output_padding))
    return g.op("Conv", *inputs, **shared)


def _window(g, sizes, spatial):
    sizes = numbers(g, sizes, "a size of a window")
    return sizes * spatial if len(sizes) == 1 else sizes


def _batched(g, x, spatial, convert):
    """convert(name) of images with a batch, for images with or without one."""
    if x.rank == spatial + 2:
        return convert(x.name)
    return g.op("Squeeze", convert(g.op("Unsqueeze", x.name, g.ints(0))), g.ints(0))


@converts("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def _max_pool(g, results, x, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False, *, operator):
    spatial = 2 if "2d" in operator else 3
    kernel, pads = _window(g, kernel_size, spatial), _window(g, padding, spatial)
    strides = _window(g, stride, spatial) if stride else kernel
    return _batched(g, x, spatial, lambda name: g.op("MaxPool", name, kernel_shape=kernel, strides=strides, pads=pads + pads,
                                                     dilations=_window(g, dilation, spatial), ceil_mode=int(ceil_mode))), None


@converts("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def _avg_pool(g, result, x, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None, *, operator):
    spatial = int(operator.split("pool")[1][0])
    if divisor_override is not None:
        raise UnsupportedError("an average with a divisor of its own")
    kernel, pads = _window(g, kernel_size, spatial), _window(g, padding, spatial)
    strides = _window(g, stride, spatial) if stride else kernel
    return _batched(g, x, spatial, lambda name: g.op("AveragePool", name, kernel_shape=kernel, strides=strides, pads=pads + pads,
                                                     ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad)))


@converts("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_avg_pool1d.default")
def _adaptive_avg_pool(g, result, x, output_size):
    spatial = len(output_size)
    sizes, wanted = x.shape[-spatial:], numbers(g, output_size, "an extent of a pooled image")
    if all(size == 1 for size in wanted):
        return g.op("ReduceMean", x.name, g.ints(*range(x.rank - spatial, x.rank)), keepdims=1)
    if not all(isinstance(size, int) for size in sizes):
        raise UnsupportedError("adaptive pooling of an image whose sides vary")
    if any(size % to != 0 for size, to in zip(sizes, wanted)):
        return _pool_unequal(g, x, sizes, wanted)
    kernel = [size // to for size, to in zip(sizes, wanted)]
    return _batched(g, x, spatial, lambda name: g.op("AveragePool", name, kernel_shape=kernel, strides=kernel))


def _pool_unequal(g, x, sizes, wanted):
    """Means over windows that differ, as products with matrices of their weights."""
    if len(sizes) > 2:
        raise UnsupportedError("adaptive pooling of three axes with windows that differ")
    weights = [np.zeros((to, size)) for size, to in zip(sizes, wanted)]
    for size, to, weight in zip(sizes, wanted, weights):
        for i in range(to):
            begin, end = i * size // to, -(-(i + 1) * size // to)
            weight[i, begin:end] = 1 / (end - begin)
    name = g.op("MatMul", x.name, g.constant(weights[-1].T, x.dtype))
    return name if len(sizes) == 1 else g.op("MatMul", g.constant(weights[0], x.dtype), name)


# Normalization.


@converts("_native_batch_norm_legit_no_training.default")
def _batch_norm(g, results, x, weight, bias, mean, variance, momentum, epsilon):
    weight = g.op("Expand", g.constant(1, x.dtype), g.size_list(mean.shape)) if weight is None else weight.name
    bias = g.op("Expand", g.constant(0, x.dtype), g.size_list(mean.shape)) if bias is None else bias.name
    return g.op("BatchNormalization", x.name, weight, bias, mean.name, variance.name, epsilon=epsilon), None, None


@converts("_native_batch_norm_legit.no_stats")
def _batch_norm_of_itself(g, results, x, weight, bias, training, momentum, epsilon):
    axes = g.ints(0, *range(2, x.rank))
    mean = g.op("ReduceMean", x.name, axes, keepdims=1)
    off = g.op("Sub", x.name, mean)
    variance = g.op("ReduceMean", g.op("Mul", off, off), axes, keepdims=1)
    name = g.op("Div", off, g.op("Sqrt", g.op("Add", variance, g.constant(epsilon, x.dtype))))
    channels = g.size_list((x.shape[1], *(1 for _ in range(x.rank - 2))))
    for kind, part in (("Mul", weight), ("Add", bias)):
        if part is not None:
            name = g.op(kind, name, g.op("Reshape", part.name, channels))
    return name, None, None


@converts("native_layer_norm.default")
def _layer_norm(g, results, x, normalized_shape, weight, bias, epsilon):
    axis = -len(normalized_shape)
    shape = x.shape[axis:]
    if x.dtype in (torch.float16, torch.bfloat16) and weight is not None and weight.dtype != x.dtype:
        raise UnsupportedError("a normalization of mixed types")
    scale = g.op("Expand", g.constant(1, x.dtype), g.size_list(shape)) if weight is None else weight.name
    inputs = [x.name, scale] + ([] if bias is None else [bias.name])
    return g.op("LayerNormalization", *inputs, axis=axis, epsilon=epsilon), None, None


@converts("native_group_norm.default")
def _group_norm(g, results, x, weight, bias, n, c, hxw, groups, epsilon):
    shape = x.shape
    split = g.reshape(x.name, (shape[0], groups, -1)) if isinstance(shape[0], int) else g.op("Reshape", x.name, g.ints(0, groups, -1))
    ones, zeros = g.constant([1.0] * groups, x.dtype), g.constant([0.0] * groups, x.dtype)
    name = g.reshape(g.op("InstanceNormalization", split, ones, zeros, epsilon=epsilon), shape)
    channels = g.ints(shape[1], *(1 for _ in range(x.rank - 2)))
    for kind, part in (("Mul", weight), ("Add", bias)):
        if part is not None:
            name = g.op(kind, name, g.op("Reshape", part.name, channels))
    return name, None, None


@converts("_fused_rms_norm.default")
def _rms_norm(g, results, x, normalized_shape, weight, epsilon):
    axes = g.ints(*range(x.rank - len(normalized_shape), x.rank))
    epsilon = torch.finfo(x.dtype).eps if epsilon is None else epsilon
    mean = g.op("ReduceMean", g.op("Mul", x.name, x.name), axes, keepdims=1)
    name = g.op("Mul", x.name, g.op("Reciprocal", g.op("Sqrt", g.op("Add", mean, g.constant(epsilon, x.dtype)))))
    return name if weight is None else g.op("Mul", name, weight.name), None


# Resizing.

_LINEAR = {"mode": "linear"}
_CUBIC = {"mode": "cubic", "cubic_coeff_a": -0.75}
_NEAREST = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}


def _resize(g, result, x, scales, **attributes):
    """Resizes by factors, where PyTorch counts coordinates with them, else to the sizes of the result."""
    spatial = x.rank - 2
    scales = [scale for scale in scales if scale is not None]
    if scales:
        if len(scales) != spatial:
            raise UnsupportedError("resizing by factors of some axes")
        scales = [float(number(scale, "a factor")) for scale in scales]
        for extent, made, scale in zip(x.shape[2:], result.shape[2:], scales):
            # Hone rounds a factor to float32 before it multiplies, PyTorch does not.
            if isinstance(extent, int) and isinstance(made, int) and int(np.float32(extent) * np.float32(scale)) != made:
                raise UnsupportedError("a factor that rounds to another size")
        factors = g.constant([1.0, 1.0, *scales], torch.float32)
        return g.op("Resize", x.name, "", factors, **attributes)
    if not all(isinstance(extent, int) for extent in result.shape[2:]):
        raise UnsupportedError("resizing to a size that varies")
    return g.op("Resize", x.name, "", "", g.ints(*result.shape[2:]), axes=list(range(2, x.rank)), **attributes)


def _factors(arguments):
    """The factors, which are single numbers or one list of them, or None."""
    return [scale for argument in arguments if argument is not None for scale in (argument if isinstance(argument, (list, tuple)) else [argument])]


@converts("upsample_linear1d.default", "upsample_bilinear2d.default", "upsample_trilinear3d.default", "upsample_linear1d.vec",
          "upsample_bilinear2d.vec", "upsample_trilinear3d.vec", "upsample_bicubic2d.default", "upsample_bicubic2d.vec",
          "_upsample_bilinear2d_aa.default", "_upsample_bicubic2d_aa.default", "_upsample_bilinear2d_aa.vec", "_upsample_bicubic2d_aa.vec")
def _upsample(g, result, x, output_size, align_corners, *scales, operator):
    kind = dict(_CUBIC if "cubic" in operator else _LINEAR)
    if "_aa" in operator:
        if align_corners:
            raise UnsupportedError("resizing with antialiasing and aligned corners")
        kind.update(antialias=1, exclude_outside=1)
        if "cubic" in operator:
            kind["cubic_coeff_a"] = -0.5
    coordinates = "align_corners" if align_corners else "half_pixel"
    return _resize(g, result, x, [] if align_corners else _factors(scales), coordinate_transformation_mode=coordinates, **kind)


@converts("upsample_nearest1d.default", "upsample_nearest2d.default", "upsample_nearest3d.default", "upsample_nearest1d.vec",
          "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def _upsample_nearest(g, result, x, output_size, *scales):
    return _resize(g, result, x, _factors(scales), **_NEAREST)


@converts("grid_sampler_2d.default", "grid_sampler.default")
def _grid_sample(g, result, x, grid, interpolation, padding, align_corners):
    if interpolation == 2 and padding == 1:
        raise UnsupportedError("a cubic sample with the border repeated")
    return g.op("GridSample", x.name, grid.name, mode=["linear", "nearest", "cubic"][interpolation],
                padding_mode=["zeros", "border", "reflection"][padding], align_corners=int(align_corners))
