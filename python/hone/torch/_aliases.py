"""Results of a graph that share memory: PyTorch's would be views of one tensor, and so are these."""
import torch
from torch import fx

from hone.torch._convert import memory_order, results_of, value_of
from hone.torch._symbols import Symbols


def _memory(node):
    """What nodes whose tensors share memory have in common; None for a node that has no tensor."""
    value = value_of(node) if isinstance(node, fx.Node) else None
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) and value.layout is torch.strided else None


def _covers(node):
    """Whether the tensor of a node is dense and begins where its memory does, so that all others in it are views of it."""
    value = value_of(node)
    if any(isinstance(size, torch.SymInt) for size in (*value.shape, *value.stride())):
        return value.storage_offset() == 0 and value.is_contiguous()
    return value.storage_offset() == 0 and value.permute(memory_order(value)).is_contiguous() and \
        value.numel() * value.element_size() == value.untyped_storage().nbytes()


class Results:
    """The results of a graph from those that it computes; makes the graph compute only one of several that share memory."""

    def __init__(self, module):
        output = next(node for node in module.graph.nodes if node.op == "output")
        results = list(results_of(output))
        self._symbols = Symbols(module)
        bases = self._bases(module, results)
        kept, self._makers = [], []
        for result in results:
            base = bases.get(_memory(result)) if _memory(result) is not None else None
            node = result if base is None else base
            if not any(node is other for other in kept):
                kept.append(node)
            place = next(i for i, other in enumerate(kept) if other is node)
            self._makers.append((place, None if node is result else self._view(value_of(result))))
        self._plain = [place for place, view in self._makers] == list(range(len(kept))) and not any(view for _, view in self._makers)
        if not self._plain:
            output.args = (tuple(kept),)
            module.graph.eliminate_dead_code()
            module.recompile()

    def _bases(self, module, results):
        """{memory: the first node that covers it} of memory that several results share."""
        memories = [memory for memory in map(_memory, results) if memory is not None]
        shared = {memory for memory in memories if memories.count(memory) > 1}
        bases = {}
        for node in module.graph.nodes:
            if node.op == "call_function" and _memory(node) in shared and _memory(node) not in bases and _covers(node):
                bases[_memory(node)] = node
        return bases

    def _view(self, tensor):
        """A function of (base, values of the symbols)."""
        shape, strides = ([self._symbols.function(size) for size in sizes] for sizes in (tensor.shape, tensor.stride()))
        offset = self._symbols.function(tensor.storage_offset())
        return lambda base, values: torch.as_strided(base, [size(values) for size in shape], [stride(values) for stride in strides], offset(values))

    def sizes(self, arguments):
        """What `make` wants to know of the arguments of a call."""
        return None if self._plain else self._symbols.values(arguments)

    def make(self, computed, sizes):
        """All results, from those that the graph computes."""
        if self._plain:
            return computed
        return [computed[place] if view is None else view(computed[place], sizes) for place, view in self._makers]
