"""Small models whose inputs vary, as exporters write them: shapes by Shape, Gather and Concat, positions and masks by Range."""
import numpy as np
from onnx import TensorProto, helper

import support
from support import make_model, value

WIDTH, HEADS, WORDS, MOST = 16, 2, 30, 64
TOLERANCE = 1e-4  # of the largest element


class RangeCase(support.Case):
    """A test of a library for ranges of sizes, which is model.so."""

    def compile(self, model, *shapes):
        path = self.save(model)
        self.succeed("compile", path, "-o", self.folder / "model.so", "--no-db", "--threads", 2, *(f"--shape={shape}" for shape in shapes))
        return path

    def expect_near(self, found, path, inputs):
        """The outputs, by name, are those of ONNX Runtime."""
        for name, expected in support.reference(path, inputs).items():
            self.assertEqual(found[name].shape, expected.shape, name)
            self.assertLessEqual(support.relative_error(found[name], expected), TOLERANCE, f"{name} at {[x.shape for x in inputs.values()]}")


class Builder:
    """Nodes with names of their own; constants by their arrays."""

    def __init__(self, seed=0):
        self.rng, self.nodes, self.constants = np.random.default_rng(seed), [], {}

    def add(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        given = [item if isinstance(item, str) else self.constant(item) for item in inputs]
        self.nodes.append(helper.make_node(kind, given, names, name=f"{kind}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def weights(self, *shape):
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def extent(self, x, dim):
        """An extent of x, as an i64 vector of one element."""
        return self.add("Unsqueeze", self.add("Gather", self.add("Shape", x), np.int64(dim)), np.array([0]))

    def name(self, x, output):
        self.nodes.append(helper.make_node("Identity", [x], [output], name=f"result_{output}"))

    def model(self, inputs, outputs):
        return make_model(self.nodes, inputs, [value(name, shape) for name, shape in outputs.items()], self.constants)


def norm(b, x):
    return b.add("LayerNormalization", x, b.weights(WIDTH), b.weights(WIDTH))


def by_heads(b, x, keys=False):
    shape = b.add("Concat", b.extent(x, 0), b.extent(x, 1), np.array([HEADS, WIDTH // HEADS]), axis=0)
    return b.add("Transpose", b.add("Reshape", x, shape), perm=[0, 2, 3, 1] if keys else [0, 2, 1, 3])


def attention(b, x, masked):
    """`masked` makes the masked scores of scores."""
    q, k, v = (b.add("Add", b.add("MatMul", x, b.weights(WIDTH, WIDTH)), b.weights(WIDTH)) for _ in range(3))
    scores = b.add("Div", b.add("MatMul", by_heads(b, q), by_heads(b, k, keys=True)), np.float32(np.sqrt(WIDTH // HEADS)))
    mixed = b.add("MatMul", b.add("Softmax", masked(scores), axis=-1), by_heads(b, v))
    shape = b.add("Concat", b.extent(x, 0), b.extent(x, 1), np.array([WIDTH]), axis=0)
    return b.add("MatMul", b.add("Reshape", b.add("Transpose", mixed, perm=[0, 2, 1, 3]), shape), b.weights(WIDTH, WIDTH))


def layer(b, x, masked):
    x = norm(b, b.add("Add", x, attention(b, x, masked)))
    wide = b.add("MatMul", x, b.weights(WIDTH, 2 * WIDTH))
    active = b.add("Mul", wide, b.add("Sigmoid", wide))
    return norm(b, b.add("Add", x, b.add("MatMul", active, b.weights(2 * WIDTH, WIDTH))))


def encoder(layers=2):
    """BERT's kind: words, positions from a table, a mask of the keys; all states, the first one, their mean, the mean of those that the
    mask names."""
    b = Builder(1)
    positions = b.add("Slice", b.weights(1, MOST, WIDTH), np.array([0]), b.extent("ids", 1), np.array([1]))
    x = norm(b, b.add("Add", b.add("Gather", b.weights(WORDS, WIDTH), "ids"), positions))
    mask = b.add("Cast", b.add("Unsqueeze", "mask", np.array([1, 2])), to=TensorProto.FLOAT)
    hidden = b.add("Mul", b.add("Sub", np.float32(1), mask), np.float32(np.finfo(np.float32).min))
    for _ in range(layers):
        x = layer(b, x, lambda scores: b.add("Add", scores, hidden))
    named = b.add("Unsqueeze", b.add("Cast", "mask", to=TensorProto.FLOAT), np.array([2]))
    count = b.add("ReduceSum", named, np.array([1]), keepdims=0)
    b.name(x, "states")
    b.name(b.add("Tanh", b.add("MatMul", b.add("Gather", x, np.int64(0), axis=1), b.weights(WIDTH, 4))), "first")
    b.name(b.add("ReduceMean", x, axes=[1], keepdims=0), "mean")
    b.name(b.add("Div", b.add("ReduceSum", b.add("Mul", x, named), np.array([1]), keepdims=0), count), "named_mean")
    return b.model([value("ids", ("batch", "seq"), TensorProto.INT64), value("mask", ("batch", "seq"), TensorProto.INT64)],
                   {"states": ("batch", "seq", WIDTH), "first": ("batch", 4), "mean": ("batch", WIDTH), "named_mean": ("batch", WIDTH)})


def decoder(layers=2):
    """GPT's kind: positions and the causal mask by Range; the logits of all tokens and of the last one."""
    b = Builder(2)
    count = b.add("Gather", b.add("Shape", "ids"), np.int64(1))
    places = b.add("Range", np.int64(0), count, np.int64(1))
    x = b.add("Add", b.add("Gather", b.weights(WORDS, WIDTH), "ids"), b.add("Gather", b.weights(MOST, WIDTH), places))
    seen = b.add("LessOrEqual", b.add("Unsqueeze", places, np.array([0])), b.add("Unsqueeze", places, np.array([1])))
    for _ in range(layers):
        x = layer(b, x, lambda scores: b.add("Where", seen, scores, np.float32(np.finfo(np.float32).min)))
    logits = b.add("MatMul", x, b.weights(WIDTH, WORDS))
    b.name(logits, "logits")
    b.name(b.add("Gather", logits, np.int64(-1), axis=1), "last")
    b.name(b.add("Slice", x, np.array([-1]), np.array([2**31]), np.array([1])), "state")
    return b.model([value("ids", ("batch", "seq"), TensorProto.INT64)],
                   {"logits": ("batch", "seq", WORDS), "last": ("batch", WORDS), "state": ("batch", 1, WIDTH)})


def decoder_with_past(window=None):
    """A step of generation: keys and values of what came before are inputs, and results with the new ones behind them, or the last ones of these."""
    b = Builder(3)
    new, past = b.add("Gather", b.add("Shape", "ids"), np.int64(1)), b.add("Gather", b.add("Shape", "past_k"), np.int64(2))
    total = b.add("Add", past, new)
    rows = b.add("Range", past, total, np.int64(1))
    x = b.add("Add", b.add("Gather", b.weights(WORDS, WIDTH), "ids"), b.add("Gather", b.weights(MOST, WIDTH), rows))
    q, k, v = (by_heads(b, b.add("MatMul", x, b.weights(WIDTH, WIDTH))) for _ in range(3))
    k, v = b.add("Concat", "past_k", k, axis=2), b.add("Concat", "past_v", v, axis=2)
    scores = b.add("MatMul", q, b.add("Transpose", k, perm=[0, 1, 3, 2]))
    columns = b.add("Range", np.int64(0), total, np.int64(1))
    seen = b.add("LessOrEqual", b.add("Unsqueeze", columns, np.array([0])), b.add("Unsqueeze", rows, np.array([1])))
    weights = b.add("Softmax", b.add("Where", seen, scores, np.float32(np.finfo(np.float32).min)), axis=-1)
    shape = b.add("Concat", b.extent(x, 0), b.extent(x, 1), np.array([WIDTH]), axis=0)
    y = b.add("Reshape", b.add("Transpose", b.add("MatMul", weights, v), perm=[0, 2, 1, 3]), shape)
    b.name(b.add("MatMul", y, b.weights(WIDTH, WORDS)), "logits")
    if window:
        k, v = (b.add("Slice", x, np.array([-window]), np.array([2**31]), np.array([2])) for x in (k, v))
    b.name(k, "present_k")
    b.name(v, "present_v")
    cache = ("batch", HEADS, "past_len", WIDTH // HEADS)
    present = ("batch", HEADS, "last" if window else "past_len + seq", WIDTH // HEADS)
    return b.model([value("ids", ("batch", "seq"), TensorProto.INT64), value("past_k", cache), value("past_v", cache)],
                   {"logits": ("batch", "seq", WORDS), "present_k": present, "present_v": present})


def network():
    """A residual network of two blocks with sides that may vary."""
    b = Builder(4)
    x = b.add("Relu", b.add("Conv", "x", b.weights(8, 3, 3, 3), b.weights(8), pads=[1] * 4, strides=[2, 2]))
    x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for _ in range(2):
        y = b.add("Relu", b.add("Conv", x, b.weights(8, 8, 3, 3), b.weights(8), pads=[1] * 4))
        x = b.add("Relu", b.add("Add", x, b.add("Conv", y, b.weights(8, 8, 3, 3), b.weights(8), pads=[1] * 4)))
    b.name(x, "map")
    flat = b.add("Flatten", b.add("GlobalAveragePool", x))
    b.name(b.add("Gemm", flat, b.weights(5, 8), b.weights(5), transB=1), "scores")
    return b.model([value("x", ("N", 3, "H", "W"))], {"map": ("N", 8, "h", "w"), "scores": ("N", 5)})


def speech():
    """Recurrent nets over a sequence, one after the other: both directions, reversed, forward; what they return of all steps, of the last."""
    b = Builder(6)
    y, h, c = b.add("LSTM", "x", b.weights(2, 24, 4), b.weights(2, 24, 6), b.weights(2, 48), outputs=3, hidden_size=6, direction="bidirectional")
    rows = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]), np.array([0, 0, 12]))
    z, last = b.add("GRU", rows, b.weights(1, 15, 12), b.weights(1, 15, 5), outputs=2, hidden_size=5, direction="reverse", linear_before_reset=1)
    state = b.add("RNN", b.add("Squeeze", z, np.array([1])), b.weights(1, 3, 5), b.weights(1, 3, 3), outputs=2, hidden_size=3)[1]
    for value_of, name in ((rows, "both"), (h, "h"), (c, "c"), (z, "reversed"), (last, "last"), (state, "state")):
        b.name(value_of, name)
    return b.model([value("x", ("seq", "batch", 4))],
                   {"both": ("seq", "batch", 12), "h": (2, "batch", 6), "c": (2, "batch", 6), "reversed": ("seq", 1, "batch", 5), "last": (1, "batch", 5),
                    "state": (1, "batch", 3)})


def speech_of_lengths():
    """Recurrent nets over a sequence of which each row has its own part, from given states."""
    b = Builder(8)
    y, h, c = b.add("LSTM", "x", b.weights(2, 24, 4), b.weights(2, 24, 6), b.weights(2, 48), "lengths", "first_h", "first_c", outputs=3, hidden_size=6,
                    direction="bidirectional")
    rows = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]), np.array([0, 0, 12]))
    z, last = b.add("GRU", rows, b.weights(1, 15, 12), b.weights(1, 15, 5), "", "lengths", outputs=2, hidden_size=5)
    for value_of, name in ((rows, "both"), (h, "h"), (c, "c"), (z, "forward"), (last, "last")):
        b.name(value_of, name)
    state = (2, "batch", 6)
    return b.model([value("x", ("seq", "batch", 4)), value("lengths", ("batch",), TensorProto.INT32), value("first_h", state), value("first_c", state)],
                   {"both": ("seq", "batch", 12), "h": state, "c": state, "forward": ("seq", 1, "batch", 5), "last": (1, "batch", 5)})


def speech_inputs(rng, seq, batch):
    """Those of speech_of_lengths()."""
    random = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("x", (seq, batch, 4)), ("first_h", (2, batch, 6)), ("first_c", (2, batch, 6)))}
    return {**random, "lengths": rng.integers(1, seq + 1, batch).astype(np.int32)}


def detector(count=20, width=1):
    """YOLO's kind, `width` times as wide as tests need: maps of strides 8, 16 and 32, enlarged to the size of the one before and joined with it; all cells as one list, with
    places by Shape and Range; then the best boxes."""
    b = Builder(7)

    def conv(x, channels, stride=1, size=3, width=width):
        given, channels = b.channels[x], channels * width
        y = b.add("Conv", x, b.weights(channels, given, size, size), b.weights(channels), pads=[size // 2] * 4, strides=[stride] * 2)
        y = b.add("Mul", y, b.add("Sigmoid", y))
        b.channels[y] = channels
        return y

    def joined(*maps):
        y = b.add("Concat", *maps, axis=1)
        b.channels[y] = sum(b.channels[one] for one in maps)
        return y

    def enlarged(x, like):
        size = b.add("Concat", b.extent(x, 0), b.extent(x, 1), b.extent(like, 2), b.extent(like, 3), axis=0)
        y = b.add("Resize", x, "", "", size, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        b.channels[y] = b.channels[x]
        return y

    b.channels = {"x": 3}
    maps, y = [], conv("x", 4, 2)
    for channels in (6, 8, 8, 8):
        y = conv(y, channels, 2)
        maps.append(y)
    maps = maps[1:]
    pools = [maps[2]]
    for _ in range(2):
        pools.append(b.add("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
        b.channels[pools[-1]] = b.channels[maps[2]]
    low = conv(joined(*pools), 8, size=1)
    middle = conv(joined(enlarged(low, maps[1]), maps[1]), 8)
    high = conv(joined(enlarged(middle, maps[0]), maps[0]), 8)
    boxes, logits = [], []
    for one, stride in ((high, 8), (middle, 16), (low, 32)):
        flat = b.add("Reshape", conv(one, 7, size=1, width=1), np.array([0, 7, -1]))
        side = b.add("Squeeze", b.extent(one, 3), np.array([0]))
        cells = b.add("Range", np.int64(0), b.add("Squeeze", b.extent(flat, 2), np.array([0])), np.int64(1))
        corner = b.add("Concat", *(b.add("Unsqueeze", b.add("Cast", place, to=TensorProto.FLOAT), np.array([0]))
                                   for place in (b.add("Mod", cells, side), b.add("Div", cells, side))), axis=0)
        near = b.add("Mul", b.add("Sub", b.add("Add", corner, np.float32(0.5)), b.add("Slice", flat, np.array([0]), np.array([2]), np.array([1]))),
                     np.float32(stride))
        size = b.add("Mul", b.add("Add", b.add("Abs", b.add("Slice", flat, np.array([2]), np.array([4]), np.array([1]))), np.float32(1)), np.float32(stride))
        boxes.append(b.add("Concat", near, b.add("Add", near, size), axis=1))
        logits.append(b.add("Slice", flat, np.array([4]), np.array([7]), np.array([1])))
    # Boxes are chosen by logits: many of their scores are 1.
    boxes, logits = b.add("Concat", *boxes, axis=2), b.add("Concat", *logits, axis=2)
    scores = b.add("Sigmoid", logits)
    b.name(boxes, "boxes")
    b.name(scores, "scores")
    best, at = b.add("TopK", b.add("ReduceMax", logits, axes=[1], keepdims=0), np.array([count]), outputs=2, axis=1)
    b.name(best, "best")
    b.name(b.add("Cast", at, to=TensorProto.FLOAT), "at")
    rows = b.add("Transpose", boxes, perm=[0, 2, 1])
    selected = b.add("NonMaxSuppression", rows, logits, np.array([5]), np.array([0.4], np.float32), np.array([0.3], np.float32))
    b.name(b.add("Cast", selected, to=TensorProto.FLOAT), "selected")
    return b.model([value("x", ("N", 3, "height", "width"))],
                   {"boxes": ("N", 4, "cells"), "scores": ("N", 3, "cells"), "best": ("N", count), "at": ("N", count), "selected": ("found", 3)})


def boxes_of_maps():
    """SSD's kind: what is predicted at the cells of three maps of any sides, joined to one list, whose length is a sum of products of quotients."""
    b = Builder(9)
    x, channels, lists = "x", 3, []
    for made in (6, 8, 8):
        x = b.add("Relu", b.add("Conv", x, b.weights(made, channels, 3, 3), b.weights(made), pads=[1] * 4, strides=[2, 2]))
        channels = made
        y = b.add("Conv", x, b.weights(10, channels, 1, 1), b.weights(10))
        by_box = b.add("Reshape", y, b.add("Concat", b.extent(y, 0), np.array([2, 5]), b.extent(y, 2), b.extent(y, 3), axis=0))
        lists.append(b.add("Reshape", b.add("Transpose", by_box, perm=[0, 3, 4, 1, 2]), b.add("Concat", b.extent(y, 0), np.array([-1, 5]), axis=0)))
    boxes = b.add("Concat", *lists, axis=1)
    b.name(boxes, "boxes")
    b.name(b.add("Softmax", boxes, axis=1), "shares")
    b.name(b.add("Gather", boxes, np.int64(-1), axis=1), "last")
    return b.model([value("x", ("N", 3, "height", "width"))], {"boxes": ("N", "boxes", 5), "shares": ("N", "boxes", 5), "last": ("N", 5)})


def recurrent():
    """An LSTM over five steps of a batch that varies."""
    b = Builder(5)
    y = b.add("LSTM", "x", b.weights(1, 24, 4), b.weights(1, 24, 6), b.weights(1, 48), outputs=1, hidden_size=6)
    b.name(b.add("Squeeze", y, np.array([1])), "y")
    return b.model([value("x", (5, "batch", 4))], {"y": (5, "batch", 6)})
