"""Libraries of parts of PyTorch's graphs: how they are made, whether they fit a call, and how they run."""
import re
import tempfile
import weakref
from pathlib import Path

import torch

import hone
from hone.errors import InputError, InternalError, UnsupportedError


class Refused(Exception):
    """Hone does not compile a part, because of the node `origin` if that is known."""

    def __init__(self, message, origin=None):
        super().__init__(message)
        self.origin = origin


class Static:
    """The tensors that PyTorch takes from a module, parameters and buffers, and that no graph changes."""

    def __init__(self, tensors):
        self._references = {id(tensor): weakref.ref(tensor) for tensor in tensors}

    def holds(self, tensor):
        reference = self._references.get(id(tensor))
        return reference is not None and reference() is tensor

    def remove(self, tensor):
        self._references.pop(id(tensor), None)


class Constants:
    """The tensors that a library has as constants, as they were when this was made.

    Attributes:
        tensors: {place among the arguments: tensor}, until `forget`.
        alive: whether all of them still exist.
    """

    def __init__(self, tensors):
        self.tensors = tensors
        self.alive = True
        self._places = list(tensors)
        self._ids = [id(tensor) for tensor in tensors.values()]
        self._addresses = [tensor.data_ptr() for tensor in tensors.values()]
        # Tensors made under torch.inference_mode() count no changes.
        self._counted = [place for place, tensor in tensors.items() if not tensor.is_inference()]
        self._versions = [tensors[place]._version for place in self._counted]
        self._watch = [weakref.ref(tensor, self._end) for tensor in tensors.values()]

    def _end(self, _):
        self.alive = False

    def forget(self):
        """Lets go of the tensors, once they have been read."""
        self.tensors = None

    def are(self, arguments):
        """Whether the arguments of a call are the same objects, which may have changed."""
        return self.alive and [id(arguments[place]) for place in self._places] == self._ids

    def hold(self, arguments):
        """Whether they are, and have not changed, as far as PyTorch counts changes."""
        if not self.alive:
            return False
        tensors = [arguments[place] for place in self._places]
        return list(map(id, tensors)) == self._ids and list(map(torch.Tensor.data_ptr, tensors)) == self._addresses and \
            [arguments[place]._version for place in self._counted] == self._versions

    def changed(self, arguments):
        """The places where the same objects have changed."""
        moved = {place for place, address in zip(self._places, self._addresses) if arguments[place].data_ptr() != address}
        return moved | {place for place, version in zip(self._counted, self._versions) if arguments[place]._version != version}


class Library:
    """A part that was compiled with certain constants and for certain sizes, (least, most) of each symbol."""

    def __init__(self, model, converted, constants, bounds):
        self.model, self.constants = model, constants
        self._bounds = bounds
        self._inputs = [(place, order, order == sorted(order)) for place, order in converted.inputs]
        self._orders = [None if order == sorted(order) else [order.index(axis) for axis in range(len(order))] for _, order in converted.outputs]
        self._loaded = [model]

    def fits(self, arguments, sizes):
        """Whether a call has these constants, and sizes in range."""
        return all(least <= size <= most for (least, most), size in zip(self._bounds, sizes)) and self.constants.hold(arguments)

    def run(self, arguments):
        """The tensors of the results."""
        inputs = []
        for place, order, plain in self._inputs:
            tensor = arguments[place]
            if tensor.requires_grad:
                tensor = tensor.detach()
            inputs.append((tensor if plain else tensor.permute(order)).contiguous())
        # One loaded model is for one thread at a time; those of one library share the weights.
        try:
            model = self._loaded.pop()
        except IndexError:
            model = self._load()
        try:
            results = model.run(inputs)
        finally:
            self._loaded.append(model)
        return [result if order is None else result.permute(order) for result, order in zip(results, self._orders)]

    def _load(self):
        return hone.Model(self.model.path, self.model._threads, time_limit=self.model._time_limit)

    def after_fork(self):
        self._loaded = []


def ranges_of(converted, varying):
    """The option `ranges` of hone.compile: {input: [extents]}, and the range of each symbol."""
    ranges = {}
    for proto in converted.graph.inputs:
        dims = [(*varying[dim.dim_param], dim.dim_param) if dim.dim_param in varying else dim.dim_param or dim.dim_value
                for dim in proto.type.tensor_type.shape.dim]
        if any(not isinstance(dim, int) for dim in dims):
            ranges[proto.name] = dims
    return ranges


def build(converted, job, options):
    """The compiled hone.Model. What Hone cannot compile is Refused."""
    try:
        with tempfile.TemporaryDirectory(prefix="hone-torch-") as folder:
            return job(converted.graph.write([value for value, _ in converted.outputs], Path(folder)), **options)
    except UnsupportedError as error:
        raise Refused(str(error), _origin(converted, error)) from error
    except InputError as error:
        if _origin(converted, error) is None and "ranges" not in options:
            raise  # an option
        raise Refused(str(error), _origin(converted, error)) from error
    except (InternalError, MemoryError) as error:
        raise Refused(str(error)) from error


def _origin(converted, error):
    """The operator of PyTorch that an error of Hone is about: such a message has node 'NAME'."""
    for name in re.findall(r"node '([^'#]+)", str(error)):
        if name in converted.graph.origins:
            return converted.graph.origins[name]
    return None
