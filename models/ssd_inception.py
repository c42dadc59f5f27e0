"""SSD on Inception v2 as a weightless graph: the layers of TensorFlow's ssd_inception_v2, batch normalisation folded (make_graphs.py).

Padding is TensorFlow's SAME: what is odd of it comes behind.
"""
import math

import numpy as np

from weightless import Graph

SIDE, CLASSES = 300, 91  # with the background
# A mixed block: channels of a 1x1; of a 1x1 and a 3x3; of a 1x1 and two 3x3; of the 1x1 behind the pool, and which pool.
MIXED = {
    "3b": (64, (64, 64), (64, 96), 32, "AveragePool"), "3c": (64, (64, 96), (64, 96), 64, "AveragePool"),
    "4b": (224, (64, 96), (96, 128), 128, "AveragePool"), "4c": (192, (96, 128), (96, 128), 128, "AveragePool"),
    "4d": (160, (128, 160), (128, 160), 96, "AveragePool"), "4e": (96, (128, 192), (160, 192), 96, "AveragePool"),
    "5b": (352, (192, 320), (160, 224), 128, "AveragePool"), "5c": (352, (192, 320), (192, 224), 128, "MaxPool")}
REDUCED = {"4a": ((128, 160), (64, 96)), "5a": ((128, 192), (192, 256))}  # of stride 2, beside a pool
EXTRA = (512, 256, 256, 128)  # channels of the maps behind the last block


class Map:
    """A value [1, channels, side, side]."""

    def __init__(self, value, channels, side):
        self.value, self.channels, self.side = value, channels, side


class Net(Graph):
    def windows(self, side, kernel, stride):
        """Attributes of a window, and how many there are."""
        out = math.ceil(side / stride)
        padding = max(0, (out - 1) * stride + kernel - side)
        return {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [padding // 2] * 2 + [padding - padding // 2] * 2}, out

    def bare(self, x, name, outer, kernel, stride=1, groups=1, gain=2**0.5):
        attributes, side = self.windows(x.side, kernel, stride)
        inner = x.channels // groups
        weights = [self.weight(f"{name}.weight", [outer, inner, kernel, kernel], gain * (inner * kernel**2) ** -0.5), self.weight(f"{name}.bias", [outer], 0.2)]
        return Map(self.node("Conv", [x.value, *weights], group=groups, **attributes), outer, side)

    def conv(self, x, name, outer, kernel=1, stride=1):
        found = self.bare(x, name, outer, kernel, stride)
        limits = [self.constant(np.float32(limit), f"limit_{limit}") for limit in (0, 6)]
        return Map(self.node("Clip", [found.value, *limits]), outer, found.side)

    def pool(self, x, kind, stride):
        attributes, side = self.windows(x.side, 3, stride)
        return Map(self.node(kind, [x.value], **attributes), x.channels, side)

    def joined(self, maps):
        return Map(self.node("Concat", [part.value for part in maps], axis=1), sum(part.channels for part in maps), maps[0].side)

    def mixed(self, x, name):
        if name in REDUCED:
            (first, second), (third, fourth) = REDUCED[name]
            middle = self.conv(self.conv(x, f"{name}.b1.0", third), f"{name}.b1.1", fourth, 3)
            return self.joined([self.conv(self.conv(x, f"{name}.b0.0", first), f"{name}.b0.1", second, 3, 2), self.conv(middle, f"{name}.b1.2", fourth, 3, 2),
                                self.pool(x, "MaxPool", 2)])
        single, (one, two), (three, four), behind, kind = MIXED[name]
        double = self.conv(self.conv(x, f"{name}.b2.0", three), f"{name}.b2.1", four, 3)
        return self.joined([self.conv(x, f"{name}.b0", single), self.conv(self.conv(x, f"{name}.b1.0", one), f"{name}.b1.1", two, 3),
                            self.conv(double, f"{name}.b2.2", four, 3), self.conv(self.pool(x, kind, 1), f"{name}.b3", behind)])

    def predicted(self, x, name, anchors, numbers):
        """[1, places and anchors, numbers] of a map."""
        found = self.bare(x, name, anchors * numbers, 3, gain=1.0)
        last = self.node("Transpose", [found.value], perm=[0, 2, 3, 1])
        return self.node("Reshape", [last, self.constant(np.array([0, -1, numbers], dtype=np.int64), f"boxes_of_{numbers}")])


def ssd_inception_v2(name, side=SIDE, blocks=("3b", "3c", "4a", "4b", "4c", "4d", "4e", "5a", "5b", "5c")):
    """`blocks`: fewer for tests. Maps are of 4c, of the last block and of what follows."""
    g = Net(name)
    x = Map(g.input("input", [1, 3, side, side]), 3, side)
    x = g.conv(g.bare(x, "1a.depthwise", 24, 7, 2, groups=3, gain=1.0), "1a.pointwise", 64)
    x = g.conv(g.conv(g.pool(x, "MaxPool", 2), "2b", 64), "2c", 192, 3)
    x = g.pool(x, "MaxPool", 2)
    maps = []
    for block in blocks:
        x = g.mixed(x, block)
        maps += [x] if block == "4c" else []
    maps.append(x)
    for i, outer in enumerate(EXTRA):
        x = g.conv(g.conv(x, f"extra.{i}.0", outer // 2), f"extra.{i}.1", outer, 3, 2)
        maps.append(x)
    anchors = [3] + [6] * (len(maps) - 1)
    count = sum(each * part.side**2 for each, part in zip(anchors, maps, strict=True))
    for output, numbers in (("bbox_regression", 4), ("cls_logits", CLASSES)):
        parts = [g.predicted(part, f"{output}.{i}", each, numbers) for i, (each, part) in enumerate(zip(anchors, maps, strict=True))]
        g.output(g.node("Concat", parts, axis=1), output, [1, count, numbers])
    return g.model()
