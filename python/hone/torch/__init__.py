"""torch.compile(model, backend="hone"): Hone compiles the parts of a PyTorch program that it can, PyTorch runs the rest.

    import torch
    compiled = torch.compile(model.eval(), backend="hone", options={"budget_seconds": 60, "threads": 2})
    with torch.no_grad():
        result = compiled(image)

Options are those of hone.tune if one of its own (budget_seconds, ...) is among them, else those of hone.compile, and

    strict: bool = False: raise UnsupportedError where PyTorch would run a part.
    ranges: bool or None = None: one library for a range of sizes (True), or one for each size (False). None: ranges, but for
        graphs with convolutions only where torch._dynamo.mark_dynamic gives the bounds.
"""
try:
    import onnx  # noqa: F401
    import torch
    from torch._dynamo.backends.common import aot_autograd
except ImportError as error:
    raise ImportError(f"{error}: torch.compile with Hone needs the packages torch (2.4 or later) and onnx: pip install 'hone[torch]'") from error

from hone.torch._backend import Report, backend, reports

__all__ = ["Report", "backend", "reports"]
