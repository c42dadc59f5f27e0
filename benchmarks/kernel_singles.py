"""Rows of the kernels table that the nine models have seldom or not at all: convolutions of other networks, and single operators."""

IMAGE, WIDE, SCORES, ROWS = [1, 64, 56, 56], [1, 64, 112, 112], [1, 21, 260, 260], [512, 1024]
# (operator, input, output, attributes, other inputs: None or (type, values)); "count" inputs of that shape.
OPERATORS = (
    ("Softmax", SCORES, SCORES, {"axis": 1}, []),
    ("ArgMax", SCORES, [1, 1, 260, 260], {"axis": 1}, []),
    ("ReduceMean", ROWS, [512, 1], {}, [("int64", [1])]),
    ("ReduceMax", ROWS, [1, 1024], {}, [("int64", [0])]),
    ("ReduceSum", IMAGE, [1, 64, 1, 1], {}, [("int64", [2, 3])]),
    ("CumSum", ROWS, ROWS, {}, [("int64", 1)]),
    ("CumSum", ROWS, ROWS, {}, [("int64", 0)]),
    ("TopK", ROWS, [512, 16], {"axis": 1}, [("int64", [16])]),
    ("Resize", IMAGE, WIDE, {"mode": "nearest"}, [None, ("float32", [1, 1, 2, 2])]),
    ("Resize", IMAGE, WIDE, {"mode": "linear"}, [None, ("float32", [1, 1, 2, 2])]),
    ("Concat", IMAGE, [1, 128, 56, 56], {"axis": 1, "count": 2}, []),
)
# (network, kind, shape whose rows are normalised). None of the nine models has it: a long prompt and one token of a language model.
NORMALIZATIONS = (
    ("llama", "rmsnorm", [1, 128, 4096]),
    ("llama", "rmsnorm", [1, 1, 4096]),
)
# (network, kind, channels in and out, extents in, window, what is not the default of convolution()).
CONVOLUTIONS = (
    ("resnext50_32x4d", "conv", 128, 128, [56, 56], [3, 3], {"groups": 32}),
    ("resnext50_32x4d", "conv", 256, 256, [56, 56], [3, 3], {"groups": 32, "stride": [2, 2]}),
    ("resnext50_32x4d", "conv", 256, 256, [28, 28], [3, 3], {"groups": 32}),
    ("resnext50_32x4d", "conv", 512, 512, [14, 14], [3, 3], {"groups": 32}),
    ("resnext50_32x4d", "conv", 1024, 1024, [7, 7], [3, 3], {"groups": 32}),
    ("shufflenet", "conv", 240, 240, [28, 28], [1, 1], {"groups": 3}),
    ("depth multiplier 2", "depthwise", 64, 128, [28, 28], [3, 3], {"groups": 64}),
    ("convnext", "depthwise", 96, 96, [56, 56], [7, 7], {"groups": 96, "activation": None}),
    ("convnext", "depthwise", 384, 384, [14, 14], [7, 7], {"groups": 384, "activation": None}),
    ("a mobile network", "depthwise", 96, 96, [56, 56], [5, 5], {"groups": 96, "stride": [2, 2]}),
    ("convnext with a stride", "depthwise", 96, 96, [56, 56], [7, 7], {"groups": 96, "stride": [2, 2], "activation": None}),
    ("deeplab", "depthwise", 256, 256, [28, 28], [3, 3], {"groups": 256, "dilation": 2}),
    ("dilated resnet", "conv", 256, 256, [28, 28], [3, 3], {"dilation": 2}),
    ("deeplab", "conv", 512, 256, [33, 33], [3, 3], {"dilation": 12}),
    ("wav2vec", "conv", 1, 512, [16000], [10], {"stride": [5], "pad": [0], "activation": None}),
    ("wav2vec", "conv", 512, 512, [1599], [3], {"stride": [2], "pad": [0], "activation": None}),
    ("temporal convolution", "conv", 64, 64, [1024], [5], {}),
    ("r3d_18", "conv", 3, 64, [8, 112, 112], [3, 7, 7], {"stride": [1, 2, 2]}),
    ("r3d_18", "conv", 64, 64, [8, 28, 28], [3, 3, 3], {}),
    ("dcgan", "transposed", 256, 128, [16, 16], [4, 4], {"stride": [2, 2], "pad": [1, 1]}),
    ("unet", "transposed", 256, 128, [32, 32], [2, 2], {"stride": [2, 2], "pad": [0, 0], "activation": None}),
    ("a decoder", "transposed", 128, 64, [28, 28], [3, 3], {"stride": [2, 2]}),
)


def operators():
    """(kind, parameters) of each single operator."""
    for operator, src, dst, attributes, constants in OPERATORS:
        count = attributes.get("count", 1)
        attributes = {name: value for name, value in attributes.items() if name != "count"}
        yield "operator", {"operator": operator, "src": src, "dst": dst, "attributes": attributes, "constants": constants, "count": count}


def normalizations():
    """(network, kind, parameters) of each normalisation."""
    for network, kind, shape in NORMALIZATIONS:
        yield network, kind, {"shape": shape}


def convolution(kind, channels, filters, extents, window, groups=1, stride=None, dilation=1, pad=None, activation="relu"):
    """Parameters of a row with a bias; padded to keep the extents at stride 1, and for a transposed one to multiply them by the stride."""
    stride = stride or [1] * len(window)
    reach = [(taps - 1) * dilation for taps in window]
    pad = [total // 2 for total in reach] if pad is None else pad
    transposed = kind == "transposed"
    if transposed:
        dst = [extent * step for extent, step in zip(extents, stride, strict=True)]
    else:
        dst = [(extent + 2 * before - total - 1) // step + 1 for extent, before, total, step in zip(extents, pad, reach, stride, strict=True)]
    weights = [channels, filters // groups, *window] if transposed else [filters, channels // groups, *window]
    return {"src": [1, channels, *extents], "dst": [1, filters, *dst], "weights": weights, "groups": groups, "strides": stride,
            "dilations": [dilation] * len(window), "pads": pad * 2, "bias": True, "activation": activation}


def convolutions():
    """(network, kind, parameters) of each convolution."""
    for network, kind, channels, filters, extents, window, more in CONVOLUTIONS:
        yield network, kind, convolution(kind, channels, filters, extents, window, **more)
