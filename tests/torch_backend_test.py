"""torch.compile(backend="hone") of the installed package, against PyTorch itself. Needs torch >= 2.4 (scripts/setup.sh --with-torch)."""
import copy
import faulthandler
import importlib.util
import logging
import math
import os
import re
import sys
import tempfile
import threading
import unittest
from pathlib import Path

SKIPPED = 77  # the exit code that CTest takes for a test that did not run
ROOT = Path(__file__).resolve().parent.parent


def missing():
    """Why the tests cannot run, or None."""
    if importlib.util.find_spec("torch") is None:
        return "there is no torch"
    import torch as found
    version = tuple(int(part) for part in re.findall(r"\d+", found.__version__)[:2])
    return None if version >= (2, 4) else f"torch is of version {found.__version__}, expected 2.4 or later"


WHY_SKIPPED = missing()
if WHY_SKIPPED is not None:
    print(f"skipped: {WHY_SKIPPED}: run scripts/setup.sh --with-torch")
    sys.exit(SKIPPED)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

sys.path.insert(0, str(ROOT / "benchmarks"))
import python_package_test  # noqa: E402
import torch_zoo  # noqa: E402

OPTIONS = {"use_db": False, "threads": 1}


class Small(nn.Module):
    """A convolution, a normalization and a product."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x):
        return self.head(F.relu(self.norm(self.conv(x))).mean((2, 3)))


class Backend(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()

    def compiled(self, function, dynamic=None, **options):
        return torch.compile(function, backend="hone", dynamic=dynamic, options={**OPTIONS, "strict": True, **options})

    def assert_same(self, found, wanted, tolerance=1e-4):
        self.assertLess(torch_zoo.error(found, wanted), tolerance)

    def check(self, function, *inputs, **options):
        """Compiles a function, all of it by Hone, and compares its results with PyTorch's on copies of the inputs."""
        with torch.no_grad():
            wanted = function(*copy.deepcopy(inputs))
            found = self.compiled(function, **options)(*inputs)
        self.assert_same(found, wanted)
        return found, wanted

    def last_report(self):
        return hone.torch.reports()[-1]


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


class Semantics(Backend):
    def test_an_input_that_changes_is_seen_by_the_caller(self):
        def change(x, y):
            x.add_(1)
            y[0] = 5
            return x * y

        def ran(function):
            x, y = torch.ones(3, 4), torch.full((3, 4), 2.0)
            result = function(x, y)
            return x, y, result

        self.assert_same(ran(self.compiled(change)), ran(change))

    def test_a_buffer_that_a_call_changes_is_no_constant(self):
        class Count(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls += 1
                return x * self.calls

        module = Count()
        function = self.compiled(module)
        with torch.no_grad():
            for call in range(1, 4):
                self.assert_same(function(torch.ones(4)), torch.full((4,), float(call)))
        self.assertEqual(float(module.calls), 3)
        self.assertEqual(self.last_report().libraries, 1)

    def test_results_share_memory_as_in_pytorch(self):
        def share(x):
            y = x * 2
            return x.view(-1), y, y[1:], y.t(), x

        x = torch.randn(4, 4)
        found = self.compiled(share)(x)
        self.assert_same(found, share(x))
        self.assertEqual(found[0].data_ptr(), x.data_ptr())
        self.assertIs(found[4], x)
        found[1].zero_()
        self.assertEqual(float(found[2].abs().sum() + found[3].abs().sum()), 0)

    def test_inputs_and_results_lie_as_pytorch_has_them(self):
        def lay(x):
            return F.relu(x), (x + 1).transpose(0, 1), (x * 2).to(memory_format=torch.channels_last)

        image = torch.randn(2, 3, 4, 5)
        for x in (image, image.to(memory_format=torch.channels_last), image.permute(0, 2, 3, 1), torch.randn(2, 3, 4, 10)[..., ::2], image[:1].expand(2, 3, 4, 5)):
            torch._dynamo.reset()
            found, wanted = self.check(lay, x)
            self.assertEqual([tensor.stride() for tensor in found], [tensor.stride() for tensor in wanted])

    def test_numbers_as_inputs(self):
        def scale(x, factor, times, flag):
            return (x * factor, x + times, x.size(0) * 2) if flag else (x - factor, x / times, None)

        function, x = self.compiled(scale), torch.randn(3)
        for numbers in ((2.5, 3, True), (1.5, 3, True), (0.5, 4, False), (2.0, 7, True), (-1.0, 2, False)):
            found, wanted = function(x, *numbers), scale(x, *numbers)
            self.assert_same(found, wanted)
            self.assertEqual([type(part) for part in found], [type(part) for part in wanted])
            self.assertEqual(found[2], wanted[2])

    def test_types_and_numbers_without_dimensions(self):
        def mix(flags, bytes_, ints, doubles, number):
            return flags.logical_not(), bytes_.float() / 255, ints * 2 + 1, doubles + 1, number * 2, {"sum": (ints > 1).sum(), "nothing": None}

        inputs = torch.tensor([True, False]), torch.tensor([0, 255], dtype=torch.uint8), torch.tensor([1, 2**40]), torch.tensor([1.5], dtype=torch.float64), torch.tensor(4.0)
        found, wanted = self.check(mix, *inputs)
        self.assertEqual([tensor.dtype for tensor in torch_zoo.tensors(found)], [tensor.dtype for tensor in torch_zoo.tensors(wanted)])
        self.assertIsNone(found[5]["nothing"])
        for dtype in (torch.float16, torch.bfloat16):
            torch._dynamo.reset()
            found, wanted = nn.Linear(8, 4).to(dtype), torch.randn(2, 8).to(dtype)
            with torch.no_grad():
                result = self.compiled(found)(wanted)
                self.assertEqual(result.dtype, dtype)
                self.assert_same(result, found(wanted), 2e-2)

    def test_a_graph_that_breaks(self):
        seen = []

        def breaks(x):
            y = torch.relu(x @ x)
            seen.append(float(y.sum()))  # PyTorch has to know the number here
            return torch.tanh(y) if seen[-1] > 0 else y

        x = torch.randn(6, 6)
        with torch.no_grad():
            self.assert_same(self.compiled(breaks)(x), breaks(x))
        self.assertGreater(len(hone.torch.reports()), 1)

    def test_what_hone_does_not_know_stays_pytorchs(self):
        def partly(x):
            y = torch.relu(x @ x)
            z = torch.special.i0(y) + 1
            return torch.fft.rfft(z).abs(), torch.tanh(z @ y)

        x = torch.randn(8, 8) / 8
        self.assert_same(self.compiled(partly, strict=False)(x), partly(x))
        report = self.last_report()
        self.assertIn("aten.i0.default", {operator for operator, _ in report.left.values()})
        self.assertGreaterEqual(report.libraries, 2)
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "the operator aten.i0.default"):
            self.compiled(partly)(x)

    def test_what_hone_refuses_stays_pytorchs(self):
        def far(x):  # more results between two elements of the data than docs/user/limits.md allows
            return torch.tanh(F.conv_transpose2d(torch.relu(x) + 1, torch.ones(1, 1, 1, 1), stride=70)) * 2

        x = torch.randn(1, 1, 2, 3)
        function = self.compiled(far, strict=False)
        for _ in range(2):
            self.assert_same(function(x), far(x))
        report = self.last_report()
        self.assertEqual([operator for operator, _ in report.left.values()], ["aten.convolution.default"])
        self.assertEqual(report.libraries, 2)

    def test_gradients_are_pytorchs(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        with self.assertLogs("hone.torch", logging.WARNING) as logged:
            result = self.compiled(module, strict=False)(x)
        self.assertIn("torch.no_grad()", logged.output[0])
        result.sum().backward()
        self.assertIsNotNone(module.conv.weight.grad)
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "gradients are wanted"):
            self.compiled(module)(x)
        torch._dynamo.reset()
        with torch.inference_mode():
            self.assert_same(self.compiled(module)(x), module(x))
            self.assert_same(self.compiled(module)(x.requires_grad_(False).clone()), module(x))

    def test_training_statistics_are_pytorchs_or_right(self):
        module, other = nn.BatchNorm2d(3).train(), nn.BatchNorm2d(3).train()
        x = torch.randn(2, 3, 4, 4)
        with torch.no_grad():
            function = self.compiled(module, strict=False)
            for _ in range(2):
                self.assert_same(function(x), other(x))
        self.assert_same(list(module.buffers()), list(other.buffers()))


class Parameters(Backend):
    def test_new_values_are_used(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        function = self.compiled(module)
        with torch.no_grad():
            self.assert_same(function(x), module(x))
            module.load_state_dict(Small().state_dict())
            self.assert_same(function(x), module(x))
            module.head.weight.data = torch.randn(5, 8)
            self.assert_same(function(x), module(x))
            module.norm.running_mean.fill_(0.5)
            self.assert_same(function(x), module(x))
            module.head = nn.Linear(8, 5)
            self.assert_same(function(x), module(x))

    def test_values_that_change_again_and_again_are_left_to_pytorch(self):
        module, x = nn.Linear(4, 4), torch.randn(2, 4)
        function = self.compiled(module, strict=False)
        with torch.no_grad(), self.assertLogs("hone.torch", logging.WARNING) as logged:
            for _ in range(12):
                module.weight.mul_(0.5)
                self.assert_same(function(x), module(x))
        self.assertIn("parameters have changed", " ".join(logged.output))

    def test_layers_of_one_class_have_their_own(self):
        layers = [nn.Linear(4, 4) for _ in range(3)]
        x = torch.randn(2, 4)
        functions = [self.compiled(layer) for layer in layers]
        with torch.no_grad():
            for _ in range(2):
                for layer, function in zip(layers, functions):
                    self.assert_same(function(x), layer(x))

    def test_a_module_that_is_gone_takes_its_library_along(self):
        module = Small().eval()
        with torch.no_grad():
            self.compiled(module)(torch.randn(2, 3, 8, 8))
        part = next(part for part in hone.torch._part._parts if part.libraries)
        path = Path(part.libraries[0].model.path)
        self.assertTrue(path.exists())
        del module, part
        torch._dynamo.reset()
        import gc
        gc.collect()
        self.assertFalse(path.exists())


class Sizes(Backend):
    def test_two_batches(self):
        module = Small().eval()
        function = self.compiled(module)
        with torch.no_grad():
            for batch in (1, 2, 5, 3, 1):
                x = torch.randn(batch, 3, 8, 8)
                self.assert_same(function(x), module(x))

    def test_a_range_is_one_library(self):
        module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
        function = self.compiled(module)
        with torch.no_grad():
            for batch in (4, 2, 7, 16):
                x = torch.randn(batch, 5, 8)
                torch._dynamo.mark_dynamic(x, 0, min=2, max=16)
                self.assert_same(function(x), module(x))
        self.assertEqual(self.last_report().libraries, 1)

    def test_a_size_outside_of_the_range_gets_another_library(self):
        module = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
        function = self.compiled(module, dynamic=True)
        with torch.no_grad():
            for length in (5, 9, 3, 40):
                x = torch.randn(2, length, 16)
                self.assert_same(function(x), module(x))
        self.assertEqual(self.last_report().libraries, 2)

    def test_sizes_as_numbers(self):
        def sizes(x):
            return x.view(x.size(0) * x.size(1), -1) + 1, x.size(0) + x.size(1), torch.arange(x.size(1)) + x[0, :, 0], x.new_zeros(x.size(1), 2) + 1

        function = self.compiled(sizes, dynamic=True, ranges=False)
        for shape in ((2, 3, 4), (3, 5, 4), (4, 2, 4)):
            x = torch.randn(shape)
            found, wanted = function(x), sizes(x)
            self.assert_same(found, wanted)
            self.assertEqual(found[1], wanted[1])


class Running(Backend):
    def test_threads(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        function = self.compiled(module)
        with torch.no_grad():
            wanted = module(x)
            function(x)
        errors = []

        def run():
            with torch.no_grad():
                errors.extend(torch_zoo.error(function(x), wanted) for _ in range(50))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(errors), 200)
        self.assertLess(max(errors), 1e-4)

    def test_a_fork(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        function = self.compiled(module)
        with torch.no_grad():
            wanted = module(x)
            function(x)
            child = os.fork()
            if child == 0:
                os._exit(0 if torch_zoo.error(function(x), wanted) < 1e-4 else 1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assert_same(function(x), wanted)

    def test_tuning(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        with torch.no_grad():
            self.assert_same(self.compiled(module, budget_seconds=4, max_trials=4)(x), module(x))
        part = next(part for part in hone.torch._part._parts if part.libraries)
        self.assertGreater(part.libraries[0].model.summary.trials, 0)

    def test_wrong_options(self):
        def refused(message, mode=None, **options):
            torch._dynamo.reset()
            with self.assertRaisesRegex(Exception, message):
                torch.compile(lambda x: x + 1, backend="hone", mode=mode, options=None if mode else {**OPTIONS, **options})(torch.ones(2))

        refused("there is no option 'speed'", speed=3)
        refused("there is no option 'shapes'", shapes={})
        refused("'threads' is of the Python type str", threads="many")
        refused("'strict' is of the Python type int", strict=1)
        refused("no device 'toaster'|toaster", device="toaster")
        refused("argument 'mode' means nothing", mode="max-autotune")


class Models(Backend):
    def run_model(self, name):
        model, inputs, keywords = torch_zoo.make(name)
        with torch.no_grad():
            self.assert_same(self.compiled(model)(*inputs, **keywords), model(*inputs, **keywords), 1e-3)

    @unittest.skipUnless(importlib.util.find_spec("torchvision"), "there is no torchvision")
    def test_torchvision(self):
        self.run_model("mobilenet_v3_small")

    @unittest.skipUnless(importlib.util.find_spec("timm"), "there is no timm")
    def test_timm(self):
        self.run_model("timm/pit_ti_224")

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "there is no transformers")
    def test_transformers(self):
        self.run_model("text/bert")
        torch._dynamo.reset()
        self.run_model("text/llama")


class Documentation(Backend):
    def test_the_examples_run(self):
        text = (ROOT / "docs" / "user" / "torch.md").read_text()
        found = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        self.assertTrue(found)
        exec(re.sub(r'"budget_seconds": \d+', '"budget_seconds": 4', "\n".join(found)), {})  # noqa: S102


if __name__ == "__main__":
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="hone-torch") as temporary:
        site = os.environ.get("HONE_SITE") or python_package_test.install(Path(temporary))
        sys.path.insert(0, str(site))
        os.environ["XDG_DATA_HOME"] = temporary
        import hone
        import hone.torch  # noqa: F401
        unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
