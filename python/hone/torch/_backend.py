"""The backend of torch.compile."""
import dataclasses
import logging
import weakref
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext

import hone
from hone.errors import InputError, UnsupportedError
from hone.torch._aliases import Results
from hone.torch._library import Static
from hone.torch._partition import Division
from hone.torch._rewrite import take_apart, restore_products

log = logging.getLogger("hone.torch")

# Core operators of ATen, but these stay whole: Hone has kernels for them. Of those that resize, PyTorch takes all without antialiasing
# apart before it looks here, in the versions in which they have such a definition of their own.
_WHOLE = ("silu", "hardswish", "hardsigmoid", "mish", "softplus", "_prelu_kernel", "upsample_linear1d", "upsample_bilinear2d",
          "upsample_trilinear3d", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_bicubic2d",
          "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d",
          "replication_pad2d", "replication_pad3d", "logsumexp", "linalg_vector_norm", "baddbmm", "tril", "triu", "square", "rsub", "_fused_rms_norm",
          "grid_sampler_2d", "masked_fill", "split", "eye", "mv", "dot", "hardtanh")

_divisions = []  # weak references, in the order in which graphs came


@dataclasses.dataclass(frozen=True)
class Settings:
    """What `options` of torch.compile says."""
    job: Callable[..., Any]  # hone.tune or hone.compile
    options: dict
    strict: bool
    ranges: Optional[bool]


@dataclasses.dataclass(frozen=True)
class Report:
    """What became of one graph of PyTorch.

    Attributes:
        operators: how many operators Hone computes.
        left: {name of a node: (its operator, why PyTorch computes it)}.
        libraries: how many libraries were made so far; each needs a first call.
        seconds: the time that this took.
        reasons: why PyTorch runs whole parts.
    """
    operators: int
    left: dict[str, tuple[str, str]]
    libraries: int
    seconds: float
    reasons: list[str]


def reports() -> list[Report]:
    """A Report for each graph that is in use, in the order in which they were made."""
    found = [reference() for reference in _divisions]
    _divisions[:] = [reference for reference, division in zip(_divisions, found) if division is not None]
    return [_report(division) for division in found if division is not None]


def _report(division):
    used = [part for part in division.parts if part.libraries]
    return Report(sum(part.operators for part in used), dict(division.left), sum(len(part.libraries) for part in used),
                  sum(part.seconds for part in division.parts), [part.reason for part in division.parts if part.reason is not None])


def _settings(options):
    """The Settings of an options dict."""
    options = dict(options or {})
    strict, ranges = options.pop("strict", False), options.pop("ranges", None)
    if not isinstance(strict, bool):
        raise InputError(f"the option 'strict' is of the Python type {type(strict).__name__}, expected True or False")
    if ranges not in (True, False, None):
        raise InputError("the option 'ranges' of torch.compile: expected True, False or None, as shapes come from the tensors")
    known = hone.options()
    for name in options:
        if name not in known or name in ("shapes", "bind", "available"):
            raise InputError(f"there is no option '{name}', expected one of hone.options() without shapes, bind and available, or strict")
    tunes = any(name not in hone.options(tune=False) for name in options)
    options.setdefault("threads", torch.get_num_threads())
    if tunes:
        options.setdefault("progress", False)
    return Settings(hone.tune if tunes else hone.compile, options, strict, ranges)


def _decompositions():
    table = core_aten_decompositions()
    return {op: function for op, function in table.items() if op.__name__.split(".")[0] not in _WHOLE}


def _static_tensors(module, inputs):
    """The parameters and buffers among the inputs of a graph, and those that the module itself has."""
    found = [tensor for tensor in (*module.parameters(), *module.buffers())]
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, tensor in zip(placeholders, inputs):
        marked = "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {})
        if isinstance(tensor, torch.nn.Parameter) or (marked and isinstance(tensor, torch.Tensor)):
            found.append(tensor)
    return found


def backend(module: torch.fx.GraphModule, inputs: Sequence[Any], *, options: Optional[dict[str, Any]] = None,
            **others: Any) -> Callable[..., Any]:
    """Compiles a graph of TorchDynamo; torch.compile(model, backend="hone", options={...}) calls it."""
    settings = _settings(options)
    for name in others:
        raise InputError(f"torch.compile's argument '{name}' means nothing to the backend hone: use options")
    static = _static_tensors(module, inputs)
    if torch.is_grad_enabled() and any(isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in (*inputs, *static)):
        message = "gradients are wanted, which Hone does not compute: call the model under torch.no_grad() or torch.inference_mode()"
        if settings.strict:
            raise UnsupportedError(message)
        log.warning("PyTorch runs a graph: %s", message)
        return module.forward
    take_apart(module)
    compiler = _Compiler(settings, Static(static))
    return aot_autograd(fw_compiler=compiler, inference_compiler=compiler, decompositions=_decompositions(), keep_inference_input_mutations=False)(module, inputs)


def _list(left):
    """One line about operators that PyTorch would run."""
    found = dict(reversed(list(left.values())))
    return "; ".join(why if operator in why else f"{operator}: {why}" for operator, why in reversed(found.items()))


class _Compiler:
    """Compiles what AOTAutograd makes of a graph: operators of ATen that change nothing in place."""

    def __init__(self, settings, static):
        self._settings, self._static = settings, static

    def __call__(self, module, inputs):
        context = TracingContext.try_get()
        metadata = context.fw_metadata if context is not None else None
        mutated = list(getattr(metadata, "mutated_inp_runtime_indices", ()))
        results = Results(module)
        restore_products(module)
        division = Division(module, self._settings, self._static)
        if self._settings.strict and division.left:
            raise UnsupportedError(_list(division.left))
        _divisions.append(weakref.ref(division))
        return _Runner(division, results, self._static, mutated)


class _Runner:
    """Runs a division on a list of arguments."""
    _boxed_call = True

    def __init__(self, division, results, static, mutated):
        self._division, self._results, self._static, self._mutated = division, results, static, mutated

    def __call__(self, arguments):
        for place in self._mutated:  # what a graph changes is no constant of it
            if place < len(arguments):
                self._static.remove(arguments[place])
        arguments, given = list(arguments), arguments
        given.clear()
        sizes = self._results.sizes(arguments)
        return self._results.make(self._division.call(*arguments), sizes)
