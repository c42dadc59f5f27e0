"""What tests of torch.compile(backend="hone") share. Where torch >= 2.4 is missing, importing this ends the program."""
import copy
import importlib.util
import re
import sys
import unittest
from pathlib import Path

from support import SKIPPED

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
        import hone.torch
        return hone.torch.reports()[-1]

    def part_of(self, call):
        """The part of a graph that call() compiles."""
        import hone.torch
        before = set(hone.torch._part._parts)
        call()
        return next(part for part in hone.torch._part._parts if part.libraries and part not in before)
