"""Values and shapes at the edge of what operators take, by torch.compile(backend="hone"); torch_backend_test.py runs them."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from torch_case import Backend


class Edges(Backend):
    """Each against PyTorch, special values included."""

    def assert_close(self, function, *inputs, tolerance=1e-5, **options):
        with torch.no_grad():
            found, wanted = self.compiled(function, **options)(*inputs), function(*inputs)
        torch.testing.assert_close(found, wanted, rtol=tolerance, atol=0, equal_nan=True)

    def assert_left(self, function, *inputs, reason):
        """That PyTorch computes an operator, for a reason, and that the results are right."""
        self.assert_close(function, *inputs, strict=False)
        self.assertIn(reason, {why for _, why in self.last_report().left.values()})

    def test_products_of_what_hone_does_not_know(self):
        self.assert_close(nn.Linear(4, 4), torch.zeros(0, 3, 4), strict=False)
        x, y = torch.randn(2, 3, 4, dtype=torch.complex64), torch.randn(4, 5, dtype=torch.complex64)
        self.assert_close(lambda x, y, z: (x @ y, z + 1), x, y, torch.ones(3), strict=False)

    def test_antialiasing(self):
        x = torch.rand(1, 2, 9, 8) + 1

        def resized(x):
            return tuple(F.interpolate(x, size, mode=mode, antialias=True)
                         for mode in ("bilinear", "bicubic") for size in ((4, 3), (5, 14), (20, 19)))

        self.assert_close(resized, x)
        self.assert_left(lambda x: F.interpolate(x + 1, (4, 3), mode="bilinear", antialias=True, align_corners=True), x,
                         reason="resizing with antialiasing and aligned corners")

    def test_a_factor_that_rounds(self):
        # Of 10 elements, PyTorch makes 17, and float32 says 18.
        self.assert_left(lambda x: F.interpolate(x + 1, scale_factor=1.7999999999, mode="bilinear", antialias=True), torch.rand(1, 2, 10, 10),
                         reason="a factor that rounds to another size")

    def test_rounding_down(self):
        x = torch.tensor([1e8, 1.0, 1.0, -1.0, 7.0, -7.0, 7.0, -7.0, 6.0, -6.0, 1.0, 0.0, -1.0, math.inf, math.nan, 0.3, 1.0])
        y = torch.tensor([3.0, 0.1, math.inf, math.inf, 3.0, 3.0, -3.0, -3.0, -3.0, 3.0, 0.0, 0.0, 0.0, 3.0, 3.0, -0.1, -math.inf])
        self.assert_close(lambda x, y: (x % y, torch.remainder(x, 0.1), x // y, torch.div(x, 0.1, rounding_mode="floor"), torch.fmod(x, y)), x, y)
        self.assert_close(lambda x, y: (x % y, x // y), x.double(), y.double())
        self.assert_close(lambda x, y: (x % y, x // y), x[1:].half(), y[1:].half())

    def test_views_by_strides_read_memory(self):
        whole = torch.arange(24.0)

        def strided(x):
            return torch.as_strided(x, (2, 3), (3, 1)) * 2 + 1

        for x in (whole[6:12].view(2, 3), whole[:6].view(2, 3), whole[:6].view(3, 2).t(), whole.view(4, 6)[:2, ::2]):
            torch._dynamo.reset()
            self.assert_left(strided, x, reason="the graph reads memory by strides")
        for of in (lambda x: torch.as_strided((x + 1).t(), (1, 6), (6, 1)) * 2, lambda x: torch.as_strided((x + 1)[1:], (2, 2), (2, 1), 0) * 2):
            torch._dynamo.reset()
            self.assert_left(of, torch.randn(2, 3), reason="the graph reads memory by strides")
        torch._dynamo.reset()
        self.assert_close(lambda x: torch.as_strided(x + 1, (1, 6), (9, 1)) * 2, torch.randn(1, 6))

    def test_views_by_strides_add_no_guard(self):
        function = self.compiled(lambda x: torch.as_strided(x, (1, x.shape[1]), (x.shape[1], 1)) * 2, dynamic=True, strict=False)
        counters = torch._dynamo.utils.counters
        counters.clear()
        for extent in (5, 6, 11):
            x = torch.randn(1, extent)
            self.assert_same(function(x), x * 2)
        self.assertEqual(counters["stats"]["unique_graphs"], 1)
        self.assertTrue(self.last_report().left)

    def test_a_split_with_an_empty_part(self):
        x = torch.randn(2, 4)
        self.assert_close(lambda x: (x + 1).split([0, 4], 1)[1] * 2, x)
        self.assert_close(lambda x: [part * 2 for part in (x + 1).split([1, 0, 3], 1)[::2]], x)
        self.assert_close(lambda x: [part * 2 for part in (x + 1).split([1, 0, 3], 1)], x, strict=False)

    def test_samples_of_a_grid(self):
        x, grid = torch.rand(1, 2, 5, 6), torch.rand(1, 4, 3, 2) * 3 - 1.5
        self.assert_left(lambda x, grid: F.grid_sample(x, grid, mode="bicubic", padding_mode="border", align_corners=False) + 1, x, grid,
                         reason="a cubic sample with the border repeated")

    def test_extremes_of_nan(self):
        x = torch.randn(3, 4)
        x[1, 2] = math.nan

        def extremes(x):
            return (x.max(), x.min(), x.amax(1), x.amin((0, 1)), x.amax(0, keepdim=True), x.max(1).values, x.min(0, keepdim=True).values,
                    x.norm(math.inf, 1))

        self.assert_close(extremes, x)
        self.assert_close(extremes, x.half())

    def test_logarithms_and_powers_near_one(self):
        x = torch.tensor([0.0, 1e-10, -1e-10, 1e-4, -1e-4, 3e-8, 0.5, -0.9, -1.0, -2.0, 20.0, 1e30, math.inf, -math.inf, math.nan])
        self.assert_close(lambda x: (torch.log1p(x), torch.expm1(x)), x)
