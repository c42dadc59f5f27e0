"""Divides graphs into parts for Hone and operators that stay PyTorch's."""
import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from hone.torch._convert import is_size, value_of, why_unsupported
from hone.torch._part import Part

# These compute nothing: a part of only such operators is left to PyTorch.
_MOVES = {
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "squeeze", "unsqueeze", "slice", "select", "clone", "alias", "detach",
    "full", "full_like", "arange", "split", "split_with_sizes", "unbind", "lift_fresh_copy", "scalar_tensor", "_to_copy", "zeros", "ones", "zeros_like",
    "ones_like", "eye",
}


class Division:
    """A graph of which Hone computes parts.

    Attributes:
        parts: the Parts.
        left: {name of a node: (its operator, why PyTorch runs it)}.
        call: runs the graph on its arguments.
    """

    def __init__(self, module, settings, static, refused=None):
        self.parts, self.left = [], {}
        self._settings, self._static = settings, static
        nodes = [node for node in module.graph.nodes if node.op == "call_function"]
        for node in nodes:
            why = (refused or {}).get(node.name) or why_unsupported(node)
            if why is not None:
                self.left[node.name] = str(node.target), why
        if any(map(_reads_memory, nodes)):
            self.left = {node.name: (str(node.target), "the graph reads memory by strides") for node in nodes if not is_size(node)}
        if not any(computes(node) and node.name not in self.left for node in nodes):
            self.call = module.forward
        elif not self.left:
            self.call = self._part(module)
        else:
            self.call = self._divide(module)

    def _part(self, module):
        part = Part(module, self._settings, self._static, self._split)
        self.parts.append(part)
        return part

    def _split(self, module, refused):
        """What is called in place of a part of which Hone refuses a node."""
        inner = Division(module, self._settings, self._static, refused)
        self.parts += inner.parts
        self.left.update(inner.left)
        return inner.call

    def _divide(self, module):
        left = self.left

        class Support(OperatorSupportBase):
            def is_node_supported(self, submodules, node):
                return node.op == "call_function" and node.name not in left

        partitioner = CapabilityBasedPartitioner(module, Support(), allows_single_node_partition=True)
        partitions = [partition for partition in partitioner.propose_partitions() if any(computes(node) for node in partition.nodes)]
        divided = partitioner.fuse_partitions(partitions, prefix="hone_")
        for node in divided.graph.nodes:
            if node.op == "call_module" and node.target.startswith("hone_"):
                setattr(divided, node.target, _Submodule(self._part(getattr(divided, node.target))))
        divided.recompile()
        return divided.forward


class _Submodule(torch.nn.Module):
    """A part as torch.fx calls it."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, *arguments):
        return self.part(*arguments)


def _reads_memory(node):
    """Whether a node reads what may lie beside the elements of its tensor, or in another order, which only PyTorch's memory has."""
    if node.target is not torch.ops.aten.as_strided.default:
        return False
    base, made = value_of(node.args[0]), value_of(node)
    offsets, size = (base.storage_offset(), made.storage_offset()), base.untyped_storage().nbytes()
    # To compare sizes that vary would add guards.
    if not all(isinstance(known, int) for known in (*base.shape, *base.stride(), *offsets, size)):
        return True
    return not base.is_contiguous() or offsets != (0, 0) or base.numel() * base.element_size() != size


def computes(node):
    return not is_size(node) and "." in str(node.target) and str(node.target).split(".")[1] not in _MOVES
