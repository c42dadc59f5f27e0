"""EfficientNet-B4 as a weightless graph in torchvision's form, batch normalisation folded into convolutions (make_graphs.py)."""
import math

from weightless import Graph

# Each row describes a stage of B0: expansion, kernel, stride, channels before and after, blocks.
STAGES = ((1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3), (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1))
WIDTH, DEPTH = 1.4, 1.8  # of B4, relative to B0
SIDE, CLASSES = 224, 1000


def channels(base):
    """A multiple of 8 near WIDTH times as many, not below nine tenths of that."""
    wanted = base * WIDTH
    rounded = max(8, int(wanted + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * wanted else rounded + 8


class Net(Graph):
    def conv(self, x, name, inner, outer, kernel=1, stride=1, groups=1, gain=1.0):
        fan_in = inner // groups * kernel**2
        weights = [self.weight(f"{name}.weight", [outer, inner // groups, kernel, kernel], gain * fan_in**-0.5), self.weight(f"{name}.bias", [outer], 0.3)]
        return self.node("Conv", [x, *weights], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups)

    def silu(self, x):
        return self.node("Mul", [x, self.node("Sigmoid", [x])])

    def block(self, x, name, expansion, kernel, stride, inner, outer):
        """Expanded, depthwise, squeezed and excited, projected; with what went in added if it has the same shape."""
        middle, value = inner * expansion, x
        if expansion > 1:
            value = self.silu(self.conv(value, f"{name}.expand", inner, middle, gain=1.6))
        value = self.silu(self.conv(value, f"{name}.depthwise", middle, middle, kernel, stride, middle, gain=1.6))
        squeezed = max(1, inner // 4)
        scale = self.silu(self.conv(self.node("GlobalAveragePool", [value]), f"{name}.squeeze", middle, squeezed, gain=1.6))
        scale = self.node("Sigmoid", [self.conv(scale, f"{name}.excite", squeezed, middle)])
        added = stride == 1 and inner == outer  # a smaller part, so that sums of many blocks do not grow
        value = self.conv(self.node("Mul", [scale, value]), f"{name}.project", middle, outer, gain=0.4 if added else 1.2)
        return self.node("Add", [value, x]) if added else value


def efficientnet_b4(name, side=SIDE, most_blocks=None):
    """`most_blocks` of a stage, for tests."""
    g = Net(name)
    inner = channels(32)
    x = g.silu(g.conv(g.input("input", [1, 3, side, side]), "stem", 3, inner, 3, 2, gain=1.6))
    for i, (expansion, kernel, stride, _, after, blocks) in enumerate(STAGES):
        outer = channels(after)
        for j in range(min(math.ceil(blocks * DEPTH), most_blocks or 99)):
            x = g.block(x, f"stage.{i}.{j}", expansion, kernel, stride if j == 0 else 1, inner, outer)
            inner = outer
    last = 4 * inner
    x = g.node("GlobalAveragePool", [g.silu(g.conv(x, "head", inner, last, gain=1.6))])
    flat = g.node("Flatten", [x], axis=1)
    weights = [g.weight("classifier.weight", [CLASSES, last], 2 * last**-0.5), g.weight("classifier.bias", [CLASSES], 0.1)]
    g.output(g.node("Gemm", [flat, *weights], transB=1), "output", [1, CLASSES])
    return g.model()
