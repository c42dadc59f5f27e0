"""Operators of PyTorch by torch.compile(backend="hone"), in groups of one library each; torch_backend_test.py runs them."""
import math

import torch
import torch.nn.functional as F
from torch import nn

import torch_zoo
from torch_case import Backend


class Operators(Backend):
    """Groups of operators, each group one library."""

    def test_of_one_number(self):
        x = torch.rand(3, 5) * 0.8 + 0.1

        def of_numbers(x):
            y = x * 2 - 1
            return (y.abs(), torch.acos(x), torch.asin(x), torch.atan(y), torch.cos(y), torch.sin(y), torch.tan(x), torch.tanh(y), torch.cosh(y),
                    torch.sinh(y), torch.exp(y), torch.log(x), torch.sqrt(x), torch.rsqrt(x), torch.reciprocal(x), torch.sigmoid(y), torch.erf(y),
                    -y, torch.sign(y), torch.ceil(9 * y), torch.floor(9 * y), torch.round(9 * y), torch.trunc(9 * y), torch.log1p(x),
                    torch.log2(x), torch.log10(x), torch.expm1(x), torch.exp2(y), torch.erfc(x), torch.square(y), y**2, y**3, x**0.5, x**-1, x**1.7,
                    torch.isnan(y), ~(y > 0), torch.logical_not(y))

        self.check(of_numbers, x)

    def test_activations(self):
        def activations(x):
            return (F.relu(x), F.relu6(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.hardswish(x), F.hardsigmoid(x),
                    F.leaky_relu(x, 0.2), F.elu(x, 0.7), F.selu(x), F.celu(x, 0.5), F.softplus(x), F.softplus(x, 2), F.softsign(x), F.hardtanh(x, -0.5, 2),
                    F.prelu(x, torch.tensor([0.1])), F.glu(x, 1), F.softmax(x, 1), F.log_softmax(x, 0), F.logsigmoid(x), F.tanhshrink(x),
                    x.clamp(-1, 1), x.clamp(min=0.5), x.clamp(max=torch.zeros(6)))

        self.check(activations, torch.randn(4, 6) * 3)

    def test_of_two(self):
        a, b, i, j = torch.randn(4, 5), torch.rand(5) + 0.5, torch.randint(-9, 9, (4, 5)), torch.randint(1, 5, (5,))

        def of_two(a, b, i, j):
            return (a + b, torch.add(a, b, alpha=2), a - b, 3 - a, a * b, a / b, a // b, torch.div(a, b, rounding_mode="trunc"), a % b, torch.fmod(a, b),
                    torch.maximum(a, b), torch.minimum(a, b), b**a, 2.0**a, torch.pow(b, 1.5), a == b, a != b, a < b, a <= b, a > b, a >= 0.5,
                    i + j, i * 2, i - j, i // j, torch.div(i, j, rounding_mode="trunc"), i % j, i / j, i & j, i | j, i ^ j, ~i, i == j, i > 2, i + 0.5, i * b,
                    (a > 0) & (b > 1), (a > 0) | (b > 1), (a > 0) ^ (b > 1), torch.where(a > 0, a, b), torch.where(a > 0, 1.0, a),
                    a.masked_fill(a > 0, -1.0), torch.lerp(a, a * 2, 0.3), torch.addcmul(a, a, a, value=0.5), a.to(torch.int32), i.float(), a > i)

        self.check(of_two, a, b, i, j)

    def test_reductions(self):
        def reductions(x, i):
            return (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(), x.mean(-1), x.prod(1), x.amax(1), x.amin((0, 1)), x.max(), x.min(),
                    *x.max(1), *x.min(2, keepdim=True), x.argmax(), x.argmax(1), x.argmin(2, keepdim=True), (x > 1).any(), (x > 1).any(1), (x > -9).all(),
                    (x > 0).all(2, keepdim=True), x.var(1), x.std(), x.var(2, correction=0), *torch.var_mean(x, 1), x.norm(), x.norm(1, 1), torch.logsumexp(x, 1),
                    x.cumsum(1), *x.topk(2, 1), *x.sort(2), *x.sort(1, descending=True), i.sum(), i.sum(1), i.amax(1), x.norm(math.inf, 1))

        self.check(reductions, torch.randn(3, 4, 5), torch.randint(-9, 9, (3, 4)))

    def test_shapes(self):
        def shapes(x, y):
            a, b, c = x.split([1, 2, 3], 1)
            return (x.view(4, 30), x.reshape(-1), x.permute(2, 0, 1), x.transpose(0, 1), y.t(), x.unsqueeze(1), x.unsqueeze(0).squeeze(), x[:, :1].squeeze(1),
                    x[1], x[:, 2:4], x[..., ::2], x[:, -1], x[0, 1, 2], y.expand(2, 3, 4), y.repeat(2, 3), torch.cat([x, x * 2], 1), torch.stack([y, y]), a + 1,
                    b + 1, c + 1, *y.chunk(2, 1), *y.unbind(0), y.flip(0, 1), y.roll(1, 0), F.pad(y, (1, 2)), F.pad(y, (1, 0, 2, 1), value=3.0),
                    F.pad(x, (1, 1), mode="reflect"), F.pad(x, (1, 2), mode="replicate"), y.tril(), y.triu(1), y.diagonal(), x.diagonal(1, 0, 2), x.unfold(2, 3, 2),
                    torch.arange(5) + y[0, 0], torch.zeros(2, 3) + y[0, 0], torch.ones_like(y) + y, torch.full((2,), 3.0) + y[0, 0], torch.eye(3) + y[0, 0],
                    F.pixel_shuffle(x.view(1, 4, 5, 6), 2), torch.meshgrid(y[0], y[1], indexing="ij")[0] + 1, x.flatten(1) + 1)

        self.check(shapes, torch.randn(4, 6, 5), torch.randn(3, 4))

    def test_places(self):
        x, y, i, j = torch.randn(5, 6, 4), torch.randn(3, 4), torch.tensor([[0, 2, 4], [1, -1, 3]]), torch.tensor([0, 3, 1])

        def places(x, y, i, j):
            written = x.clone()
            written[:, 1:3] = 7
            written[2] = y[0]
            put = x.clone()
            put[j, j] = y
            return (F.embedding(i.abs(), x[:, 0]), x[i], x[:, i], x[i, j], x[:, j, j], x[j, :, j], x.index_select(1, j), x.gather(1, i.abs().view(2, 3, 1) % 4),
                    written, put, torch.zeros(6, 4).index_add(0, j, y), torch.zeros(3, 4).scatter(1, j.view(3, 1), 2.0),
                    torch.zeros(3, 4).scatter_add(1, j.view(3, 1).expand(3, 4), y), y.masked_fill(y > 0, 0), torch.take_along_dim(y, j.view(3, 1), 1))

        self.check(places, x, y, i, j)

    def test_layers(self):
        modules = nn.ModuleList([
            nn.Conv2d(4, 6, 3, 2, 1), nn.Conv2d(4, 8, 3, padding=2, dilation=2, groups=4, bias=False), nn.ConvTranspose2d(4, 3, 3, 2, 1, 1),
            nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(3, 2, 1), nn.AvgPool2d(2, ceil_mode=True),
            nn.AdaptiveAvgPool2d(1), nn.AdaptiveAvgPool2d((3, 2)), nn.AdaptiveAvgPool2d(5), nn.Linear(8, 5), nn.LayerNorm(8), nn.LayerNorm((9, 8), elementwise_affine=False),
            nn.Upsample(scale_factor=2), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Upsample((5, 7), mode="bilinear", align_corners=True), nn.Upsample(scale_factor=2, mode="bicubic"),
            nn.PReLU(4), nn.LocalResponseNorm(3), nn.Dropout(0.5), nn.RMSNorm(8), nn.ReflectionPad2d(2), nn.ZeroPad2d(1), nn.MaxPool2d(2, return_indices=False)]).eval()
        torch_zoo.spread(modules)
        self.check(lambda x: tuple(module(x) for module in modules), torch.randn(2, 4, 9, 8))

    def test_layers_of_one_and_three_dimensions(self):
        one = nn.ModuleList([nn.Conv1d(4, 6, 3), nn.BatchNorm1d(4), nn.MaxPool1d(2), nn.AvgPool1d(3), nn.ConvTranspose1d(4, 2, 2, 2), nn.AdaptiveAvgPool1d(1)]).eval()
        three = nn.ModuleList([nn.Conv3d(2, 3, 3), nn.BatchNorm3d(2), nn.MaxPool3d(2), nn.AvgPool3d(2), nn.AdaptiveAvgPool3d(1)]).eval()
        self.check(lambda x, y: (*(module(x) for module in one), *(module(y) for module in three)), torch.randn(2, 4, 12), torch.randn(1, 2, 6, 6, 6))

    def test_products_and_attention(self):
        q, k, v, mask = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 8), torch.rand(2, 1, 6, 7) > 0.4
        mask[0, 0, 2] = False  # a query that sees nothing

        def products(q, k, v, mask):
            return (q @ k.transpose(-2, -1), torch.einsum("bhqd,bhkd->bqhk", q, k), torch.bmm(q[0], k[0].transpose(1, 2)), q[0, 0] @ k[0, 0].t(), q[0, 0] @ k[0, 0, 0],
                    torch.baddbmm(q[0], q[0] @ q[0].transpose(1, 2), q[0]), F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, mask),
                    F.scaled_dot_product_attention(q, k, v, mask.float()), F.scaled_dot_product_attention(q, q, q, is_causal=True, scale=0.3),
                    F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True))

        self.check(products, q, k, v, mask)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
        self.check(layer, torch.randn(2, 5, 16))
        self.check(nn.MultiheadAttention(16, 4, batch_first=True).eval(), *(torch.randn(2, 5, 16) for _ in range(3)))
