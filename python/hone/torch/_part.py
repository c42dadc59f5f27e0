"""Parts of PyTorch's graphs as libraries of Hone."""
import logging
import os
import threading
import time
import weakref

import sympy
import torch
from torch import fx

from hone.errors import UnsupportedError
from hone.torch._convert import convert, is_size, results_of, tables, value_of
from hone.torch._graph import Sizes
from hone.torch._library import Constants, Library, Refused, build, ranges_of
from hone.torch._symbols import Symbols

log = logging.getLogger("hone.torch")

# A part that has so many libraries, for different sizes or parameters, leaves further ones to PyTorch.
MOST_LIBRARIES = 16
# So often a part is compiled anew because parameters have changed.
MOST_CHANGES = 8

_parts = weakref.WeakSet()


def _forget_models():
    for part in _parts:
        part.after_fork()


os.register_at_fork(after_in_child=_forget_models)


class Part:
    """A graph of operators that Hone knows, called with the arguments of its placeholders.

    Attributes:
        module: the torch.fx.GraphModule, which PyTorch runs where Hone does not.
        operators: the number of its operators.
        libraries: those that were made.
        seconds: the time that this took.
        reason: why PyTorch runs it, if it does.
    """

    def __init__(self, module, settings, static, split):
        self.module, self.reason, self.seconds = module, None, 0.0
        self._settings, self._static, self._split = settings, static, split
        self.operators = sum(node.op == "call_function" and not is_size(node) for node in module.graph.nodes)
        self.libraries = []
        self._instead = None  # what is called in place of libraries
        self._changes = 0
        self._full = False  # whether it has as many libraries as it may
        self._places = None  # of parameters and buffers that become constants
        self._shared = ()  # those of them whose rows are read where PyTorch has them
        self._one_size = settings.ranges is False
        self._lock = threading.Lock()
        self._last = None
        self._symbols = Symbols(module)
        output = next(node for node in module.graph.nodes if node.op == "output")
        self._single = not isinstance(output.args[0], (list, tuple))
        self._results = [self._result(result) for result in results_of(output)]
        _parts.add(self)

    def _result(self, result):
        """A function of the sizes for a result that is no tensor, else None."""
        if not isinstance(result, fx.Node):
            return lambda sizes: result
        return self._symbols.function(value_of(result)) if is_size(result) else None

    def after_fork(self):
        self._lock = threading.Lock()
        for library in self.libraries:
            library.after_fork()

    def __call__(self, *arguments):
        sizes = self._symbols.values(arguments)
        library = self._last
        if library is None or not library.fits(arguments, sizes):
            library = self._find(arguments, sizes)
        if library is None:
            return (self._instead or self.module.forward)(*arguments)
        tensors = library.run(arguments)
        if self._single:
            return tensors[0]
        remaining = iter(tensors)
        return tuple(next(remaining) if result is None else result(sizes) for result in self._results)

    def _find(self, arguments, sizes):
        """A library for these arguments, which is made if there is none; None if PyTorch is to run them."""
        with self._lock:
            if self._instead is not None or self.reason is not None:
                return None
            self.libraries = [library for library in self.libraries if library.constants.alive]
            found = next((library for library in self.libraries if library.fits(arguments, sizes)), None)
            if found is None:
                self._note_changes(arguments)
                found = self._make_or_leave(arguments, sizes)
            self._last = found
            return found

    def _leave(self, reason):
        """From now on, PyTorch runs this part."""
        if self._settings.strict:
            raise UnsupportedError(reason)
        self.reason = reason
        log.warning("PyTorch runs a part of %d operators: %s", self.operators, reason)

    def _note_changes(self, arguments):
        """Buffers that have changed since a library was made become inputs; parameters are taken anew."""
        if self._places is None:
            tensors = [place for place, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)]
            self._places = [place for place in tensors if self._static.holds(arguments[place])]
            # A device has its own memory, to which inputs are copied in each call.
            read = tables(self.module, arguments) if self._settings.options.get("device", "host") == "host" else {}
            self._places = [place for place in self._places if not read.get(place, False)]
            self._shared = read.keys() & set(self._places)
            if len(self._places) == len(tensors) and not self._shared:  # a library has to read something
                self._places = []
        for library in list(self.libraries):
            changed = library.constants.changed(arguments) if library.constants.are(arguments) else ()
            if changed:
                self.libraries.remove(library)
                self._changes += 1
                self._places = [place for place in self._places if place not in changed or isinstance(arguments[place], torch.nn.Parameter)]

    def _make_or_leave(self, arguments, sizes):
        if self._changes > MOST_CHANGES:
            self._leave(f"its parameters have changed {self._changes} times")
            return None
        if len(self.libraries) >= MOST_LIBRARIES:
            if not self._full:
                log.warning("PyTorch runs a part of %d operators where its sizes or parameters are new: there are %d libraries of it",
                            self.operators, len(self.libraries))
            self._full = True
            return None
        while True:
            bounds = self._bounds(sizes)
            try:
                made = self._make(arguments, sizes, bounds)
            except Refused as error:
                if any(least != most for least, most in bounds):
                    log.info("a library for each size: %s", error)
                    self._one_size = True
                    continue
                self._give_up(error)
                return None
            self.libraries.append(made)
            return made

    def _give_up(self, error):
        if self._settings.strict:
            raise UnsupportedError(str(error)) from error
        instead = None if error.origin is None else self._split(self.module, {error.origin: str(error)})
        if instead is None:
            self._leave(str(error))
        else:
            log.warning("PyTorch runs the operator of node '%s': %s", error.origin, error)
            self._instead = instead

    def _bounds(self, sizes):
        """The range of each symbol: that of torch._dynamo.mark_dynamic, or one with room around the size at hand."""
        bounds = []
        for symbol, size in zip(self._symbols.names, sizes):
            least, most = self._symbols.bounds(symbol)
            if self._one_size or (most is None and self._settings.ranges is None and self._has_convolutions()):
                bounds.append((size, size))
                continue
            bounds.append((min(max(least or 1, 1), size), max(size, 8, 1 << (2 * size - 1).bit_length()) if most is None else most))
        return bounds

    def _has_convolutions(self):
        return any(node.target is torch.ops.aten.convolution.default for node in self.module.graph.nodes)

    def _make(self, arguments, sizes, bounds):
        start = time.monotonic()
        constants = Constants({place: arguments[place] for place in self._places})
        fixed = {symbol: sympy.Integer(least) for symbol, (least, most) in zip(self._symbols.names, bounds) if least == most}
        try:
            converted = convert(self.module, constants.tensors, Sizes(fixed), self._shared)
        except UnsupportedError as error:
            raise Refused(str(error)) from error
        except (TypeError, KeyError, IndexError, ValueError) as error:  # as in why_unsupported
            raise Refused(f"{type(error).__name__}: {error}") from error
        if not converted.inputs or not converted.outputs:
            raise Refused("it has no tensors that it reads or makes")
        options = dict(self._settings.options)
        varying = {str(symbol): (least, most) for symbol, (least, most) in zip(self._symbols.names, bounds) if least != most}
        if varying:
            options["ranges"] = ranges_of(converted, varying)
        model = build(converted, self._settings.job, options)
        constants.forget()
        self.seconds += time.monotonic() - start
        log.info("compiled %d operators in %.1f s", self.operators, time.monotonic() - start)
        return Library(model, converted, constants, bounds)
