"""Compiled models."""
from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hone import _native
from hone.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

    from hone import _types


def _remove(folder, process):
    """Removes a folder, unless this is a fork of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


class Model:
    """A model that was compiled to a native library.

    The library is loaded when it is first needed, so one that was compiled for another machine can be handled, but not
    run. Calls of one object must not overlap; several objects run side by side, and those of one library share its
    weights.

    Attributes:
        path: the library's file.
        summary: what hone.compile (CompileSummary) or hone.tune (TuneSummary) did; None for hone.load.
    """

    def __init__(self, path: _types.Path, threads: int = 0, *, time_limit: float = 0.0, summary: Any = None,
                 folder: str | None = None) -> None:
        self.path = os.fspath(path)
        self.summary = summary
        self._threads = threads
        self._time_limit = time_limit
        if folder is not None:  # of a library that goes away with this object
            weakref.finalize(self, _remove, folder, os.getpid())
        self._loaded = None
        self._closed = False
        self._loading = threading.Lock()

    @property
    def _model(self):
        if self._loaded is None:
            with self._loading:
                if self._closed:
                    raise InputError(f"the model {self.path} is closed: load it again")
                if self._loaded is None:
                    self._loaded = _native.load(self.path, self._threads, self._time_limit)
        return self._loaded

    def close(self) -> None:
        """Gives back memory and threads, at the end of a call that still runs. Later calls raise InputError."""
        with self._loading:
            self._closed, self._loaded = True, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def inputs(self) -> list[_native.TensorInfo]:
        """The inputs, in their order: objects with name, dtype ('f32') and shape (a tuple)."""
        return self._model.inputs

    @property
    def outputs(self) -> list[_native.TensorInfo]:
        """The outputs, likewise."""
        return self._model.outputs

    @property
    def device(self) -> str:
        """The name of the GPU that it runs on; '' for a CPU."""
        return self._model.device

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Runs the model; inputs by position or by name, as dense arrays of NumPy, PyTorch or another library that has
        DLPack.

        The arrays are read in place. Where a model takes ranges of shapes (TensorInfo.dims), each call may have others.
        Returns an array, or a tuple of them if the model has several outputs: of PyTorch if an input is, else of NumPy.
        Raises InputError for a wrong name, type, shape, device or order of elements.
        """
        return self._model(*arrays, **named)

    def run(self, inputs: list[Any] | tuple[Any, ...] | dict[str, Any], out: Sequence[Any] | None = None) -> list[Any]:
        """Runs the model on a list, tuple or dict of arrays; a list of all outputs.

        Args:
            inputs: arrays in the order of the inputs, or by name.
            out: None, or for each output an array of its type and shape to write into, or None. Arrays whose memory is
                aligned to 64 bytes, as that of the results of calls, are written in place. Where an output's shape
                depends on the data, its array has the largest shape, and the result is the part of it that there is.
        """
        return self._model.run(inputs, out)

    def profile(self, enable: bool = True) -> None:
        """While this is enabled, each run records the times of its steps."""
        self._model.profile(enable)

    def step_times(self) -> list[_native.StepTime]:
        """The times of the steps of the last recorded run, a list of StepTime."""
        return self._model.step_times()

    def __repr__(self) -> str:
        return f"hone.Model({self.path!r})"
