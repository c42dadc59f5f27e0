"""The types of arguments, for type checkers."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    from hone._native import Task
    from hone._search import Batch

Path = Union[str, "os.PathLike[str]"]


class ModelProto(Protocol):
    """An onnx.ModelProto."""

    def SerializeToString(self) -> bytes:  # noqa: N802
        """The bytes of an ONNX file."""


Model = Union[Path, bytes, bytearray, memoryview, ModelProto]


class Strategy(Protocol):
    """What hone.tune asks of a search strategy; SearchStrategy describes the functions."""

    def propose(self, task: Task, n: int, /) -> Any: ...

    def observe(self, task: Task, points: Any, seconds: Any, /) -> Any: ...


class Predictor(Protocol):
    """What is asked of a cost model; CostModel describes the function."""

    def predict(self, batch: Batch, /) -> Any: ...
