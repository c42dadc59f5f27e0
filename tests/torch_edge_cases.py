"""Values and shapes at the edge of what operators take, by torch.compile(backend="hone"); torch_backend_test.py runs them."""
import torch
import torch.nn.functional as F

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

    def test_samples_of_a_grid(self):
        x, grid = torch.rand(1, 2, 5, 6), torch.rand(1, 4, 3, 2) * 3 - 1.5
        self.assert_left(lambda x, grid: F.grid_sample(x, grid, mode="bicubic", padding_mode="border", align_corners=False) + 1, x, grid,
                         reason="a cubic sample with the border repeated")
