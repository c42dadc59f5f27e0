"""Hone makes neural networks run fast on the machine at hand.

    import hone, numpy as np
    model = hone.tune("resnet18.onnx", "resnet18.so", budget_seconds=60)
    logits = model(np.zeros((1, 3, 224, 224), np.float32))

`hone.compile` takes seconds and measures nothing, `hone.tune` measures candidates until its budget is spent, and
`hone.load` opens what either of them wrote. `hone.options()` describes all their options.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from hone import _native
from hone._model import Model
from hone._native import (CheckSummary, CompileSummary, DatasetSummary, Decision, Evaluation, FailureSummary, Score, SizeTable, Sketch,
                          Space, StepTime, Task, TaskProgress, TaskScheduler, TaskSummary, TaskTuning, TensorInfo, TrainSummary,
                          TuneProgress, TuneSeconds, TuneSummary)
from hone._option_docs import DATASET_OPTIONS as _DATASET_OPTIONS
from hone._option_docs import OPTIONS as _OPTIONS
from hone._option_docs import TRAIN_OPTIONS as _TRAIN_OPTIONS
from hone._progress import ProgressLine
from hone._progress import shown as _shown
from hone._records import Table, dataset, records
from hone._search import Batch, CostModel, Measurements, SearchStrategy, checked_model, checked_strategy
from hone.errors import Error, InputError, InternalError, UnsupportedError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hone import _types
    from hone._option_types import CompileOptions, DatasetOptions, TrainOptions, TuneOptions

__all__ = ["Batch", "CheckSummary", "CompileSummary", "CostModel", "DatasetSummary", "Decision", "Error", "Evaluation", "FailureSummary",
           "InputError", "InternalError", "Measurements", "Model", "ProgressLine", "Score", "SearchStrategy", "Session", "SizeTable",
           "Sketch", "Space", "StepTime", "Table", "Task", "TaskProgress", "TaskScheduler", "TaskSummary", "TaskTuning", "TensorInfo",
           "TrainSummary", "TuneProgress", "TuneSeconds", "TuneSummary", "UnsupportedError", "compile", "cost_models", "dataset", "devices",
           "evaluate", "feature_names", "feature_sets", "load", "make_dataset", "options", "records", "split_dataset", "strategies",
           "tasks", "train", "tune"]
__version__ = _native.version()

atexit.register(_native.end_all_jobs)
os.register_at_fork(after_in_child=_native.forget_jobs)


def options(tune: bool = True, *, of: str | None = None) -> dict[str, str]:
    """The keyword arguments of hone.tune or, with tune=False, those of hone.compile: {name: 'type = default: what it does'}.

    Args:
        tune: as above.
        of: "make_dataset" or "train": those of hone.make_dataset or hone.train instead.
    """
    tables = {None: _OPTIONS, "make_dataset": _DATASET_OPTIONS, "train": _TRAIN_OPTIONS}
    if of not in tables:
        raise InputError(f"of is {of!r}, expected 'make_dataset' or 'train'")
    return {name: f"{kind} = {default}: {text}" for name, (tunes, kind, default, text) in tables[of].items() if tune or not tunes}


@contextlib.contextmanager
def _file_of(model):
    """The path of a model that is given as a path, as bytes or as an onnx.ModelProto."""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        with tempfile.TemporaryDirectory(prefix="hone-") as folder:
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(model)
            try:
                yield path
            except Error as error:  # its message names a file that the caller has not given
                text = str(error).replace(path, "the model")
                if folder in text:
                    text = text.replace(folder + os.sep, "") + ": a model in memory has no folder"
                error.args = (text,) if text != str(error) else error.args
                raise
    else:
        yield _path_of(model, "the model", "a path, bytes or an onnx.ModelProto")


def _path_of(path, what, expected="a path"):
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{what} is of the Python type {type(path).__name__}, expected {expected}")
    path = os.fspath(path)
    if not isinstance(path, str) or "\0" in path or any("\ud800" <= c <= "\udfff" for c in path):
        raise InputError(f"{what} has the path {path!r}, expected a text of Unicode without zero characters")
    return path


def _made(job, model, output, keywords):
    """Runs job(model's path, output's path), and returns the library as a Model."""
    folder = None
    if output is None:
        folder = tempfile.mkdtemp(prefix="hone-")
        output = os.path.join(folder, "model.so")
    try:
        with _file_of(model) as path:
            summary = job(path, _path_of(output, "output"))
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return Model(output, keywords.get("threads", 0), time_limit=keywords.get("time_limit", 0.0), summary=summary, folder=folder)


def compile(model: _types.Model, output: _types.Path | None = None, **options: Unpack[CompileOptions]) -> Model:
    """Compiles an ONNX model without measuring, in seconds.

    Args:
        model: the path of an ONNX file, its bytes, or an onnx.ModelProto (whose weights are inside).
        output: the path of the library to write. None: it goes away with the returned Model.
        **options: see hone.options(tune=False).

    Returns: a Model; its summary is a CompileSummary.
    Raises: InputError, UnsupportedError, InternalError, and KeyboardInterrupt after Ctrl-C; then nothing is written.
    """
    keywords = dict(options)
    return _made(lambda source, target: _native.compile(source, target, keywords), model, output, keywords)


def tune(model: _types.Model, output: _types.Path | None = None, *, on_progress: Callable[[TuneProgress], object] | None = None,
         progress: bool | None = None, search: _types.Strategy | None = None, cost_model: _types.Predictor | None = None,
         **options: Unpack[TuneOptions]) -> Model:
    """Compiles an ONNX model with schedules that are searched for by measuring on this machine.

    Args:
        model, output: as for compile.
        on_progress: called with a TuneProgress a few times a second. If it raises, the search ends, the library is written with
            the best schedules so far, and the exception goes on.
        progress: show a line with how far it is; default: if standard error is a terminal or a notebook.
        search: a search strategy in Python, as SearchStrategy describes it, in the place of the option strategy.
        cost_model: a cost model in Python that guides the search, as CostModel describes it, in the place of the option guide.
        **options: see hone.options(); budget_seconds is the time that it may take.

    Returns: a Model; its summary is a TuneSummary.
    Raises: as compile, and KeyboardInterrupt after Ctrl-C: by then all that was measured is stored, and the library is written
        with the best schedules so far. A second Ctrl-C ends it without a library.
    """
    with _shown(progress, on_progress) as show:
        checked_strategy(search)
        checked_model(cost_model)
        keywords = dict(options)
        return _made(lambda source, target: _native.tune(source, target, keywords, show, search, cost_model), model, output, keywords)


def load(path: _types.Path, threads: int = 0, *, time_limit: float = 0.0) -> Model:
    """Opens a library that compile, tune or the program `hone` wrote.

    Args:
        path: the library.
        threads: how many it runs on; 0: all cores that this process may use.
        time_limit: the most seconds of a run on a GPU; 0: any.
    """
    if not isinstance(threads, int) or not isinstance(time_limit, (int, float)):
        raise InputError(f"threads and time_limit are of the Python types {type(threads).__name__} and {type(time_limit).__name__}, expected numbers")
    if not 0 <= threads <= 1024:
        raise InputError(f"threads is {threads}, expected 0 (all cores) to 1024")
    model = Model(_path_of(path, "the library"), threads, time_limit=time_limit)
    model.inputs  # a file that is no library is an error here
    return model


class Session:
    """Options that several jobs share.

        session = hone.Session(threads=4, db="my.db")
        session.compile("a.onnx", "a.so")
        session.tune("b.onnx", "b.so", budget_seconds=30)
    """

    def __init__(self, **options: Unpack[TuneOptions]) -> None:
        unknown = sorted(set(options) - set(_OPTIONS))
        if unknown:
            raise InputError(f"there is no option '{unknown[0]}', expected one of hone.options()")
        self.options: dict[str, Any] = dict(options)

    def _with(self, options: Any, *, tunes: bool = False) -> Any:
        """The session's options, without those of tune unless it tunes, and these, which come first."""
        shared = {name: value for name, value in self.options.items() if tunes or not _OPTIONS[name][0]}
        return {**shared, **options}

    def compile(self, model: _types.Model, output: _types.Path | None = None, **options: Unpack[CompileOptions]) -> Model:
        """hone.compile with the session's options and these, which come first."""
        return compile(model, output, **self._with(options))

    def tune(self, model: _types.Model, output: _types.Path | None = None, *, on_progress: Callable[[TuneProgress], object] | None = None,
             progress: bool | None = None, search: _types.Strategy | None = None, cost_model: _types.Predictor | None = None,
             **options: Unpack[TuneOptions]) -> Model:
        """hone.tune, likewise."""
        return tune(model, output, on_progress=on_progress, progress=progress, search=search, cost_model=cost_model, **self._with(options, tunes=True))

    def tasks(self, model: _types.Model, **options: Unpack[CompileOptions]) -> list[Task]:
        """hone.tasks, as compile."""
        return tasks(model, **self._with(options))

    def load(self, path: _types.Path) -> Model:
        """hone.load with the session's number of threads."""
        return load(path, self.options.get("threads", 0), time_limit=self.options.get("time_limit", 0.0))


def tasks(model: _types.Model, **options: Unpack[CompileOptions]) -> list[Task]:
    """The distinct tasks of a model, each with the space of its schedules. Nothing is compiled or stored.

    Args:
        model: as for compile.
        **options: see hone.options(tune=False); threads, device, accuracy and seed matter here.

    Returns: a list of Task, in the order of their first nodes.
    Raises: InputError, UnsupportedError, InternalError; KeyboardInterrupt after Ctrl-C.
    """
    with _file_of(model) as path:
        return _native.tasks(path, dict(options))


def make_dataset(models: _types.Path | Iterable[_types.Path], db: _types.Path, **options: Unpack[DatasetOptions]) -> DatasetSummary:
    """Measures samples of the schedules of all kernels of models, to train cost models on (hone dataset make).

    Args:
        models: paths of ONNX files; what each is besides its own size, the options batches, sides and sequences say.
        db: the database of the data set, which is made if it does not exist; what it has counts.
        **options: see hone.options(of="make_dataset").

    Returns: a DatasetSummary.
    Raises: InputError, UnsupportedError, InternalError; KeyboardInterrupt after Ctrl-C: all measurements are stored, and the same call
        goes on.
    """
    paths = [_path_of(model, "a model") for model in ([models] if isinstance(models, (str, os.PathLike)) else models)]
    keywords = dict(options)
    return _native.make_dataset(_native.collect_tasks(paths, keywords), _path_of(db, "the database"), keywords)


def split_dataset(db: _types.Path, path: _types.Path, *, by: str = "task", held_out: Iterable[str] = (), fraction: float = 0.1,
                  validation: float = 0.1, seed: int = 1) -> tuple[int, int, int]:
    """Divides a data set into parts for training, for choosing among models and for judging them (hone dataset split).

    Args:
        db: the database of the data set.
        path: the file to write, for the options split_file.
        by: what is divided: "within" (the schedules of each task), "task", "model" or "device".
        held_out: names of the networks or devices to judge by, for by="model" and by="device".
        fraction: share of the schedules or tasks to judge by, for by="within" and by="task".
        validation: share of the others to choose by.
        seed: of the division.

    Returns: the numbers of schedules for training, choosing and judging.
    Raises: InputError, also if nothing would be left for training or judging.
    """
    return _native.split_dataset(os.fspath(db), _path_of(path, "the split"), by, list(held_out), fraction, validation, seed)


def train(db: _types.Path, output: _types.Path, **options: Unpack[TrainOptions]) -> TrainSummary:
    """Trains a cost model on a data set (hone train).

    Args:
        db: the database of the data set.
        output: the file to write: FILE.model for trees, FILE.onnx for a net.
        **options: see hone.options(of="train").

    Returns: a TrainSummary.
    Raises: InputError, UnsupportedError, InternalError, also where this installation has not what nets need; KeyboardInterrupt after
        Ctrl-C.
    """
    return _native.train(os.fspath(db), _path_of(output, "output"), dict(options))


def evaluate(db: _types.Path = "", cost: _types.Path = "", *, cost_model: _types.Predictor | None = None, device: str = "host",
             split: str = "none", split_file: _types.Path = "", except_tasks: Iterable[int] = ()) -> Evaluation:
    """Judges a cost model on the measured schedules of a database, by tasks with 8 schedules or more.

    Args:
        db: as for records.
        cost: a name of cost_models() or a file; "": "analytic".
        cost_model: a cost model in Python, as CostModel describes it, in the place of `cost`. It is judged as it is.
        device: a device's name or key, and then "/THREADS" or nothing.
        split: how models that learn are trained anew: "none", "by-model", "by-task" or "within", as `hone eval --split`.
        split_file: a file of split_dataset, in the place of `split`: it is judged by the schedules that this holds out.
        except_tasks: keys of tasks that are not judged, such as those that the model was trained on.

    Returns: an Evaluation, with the figures of `hone eval`.
    Raises: InputError, also if no task can be judged, and what cost_model raises; KeyboardInterrupt after Ctrl-C.
    """
    return _native.evaluate(os.fspath(db), os.fspath(cost), checked_model(cost_model), device, split, os.fspath(split_file),
                            {int(key) for key in except_tasks})


def feature_sets() -> list[str]:
    """The names of the sets of features that Space.features computes and cost models read."""
    return _native.feature_sets()


def feature_names(set: str = "combined") -> list[str]:
    """The name of each number of a row of this set, a list; InputError if there is no such set."""
    names = _native.feature_names(set)
    if not names:
        raise InputError(f"there are no features '{set}', expected one of {', '.join(feature_sets())}")
    return names


def devices() -> list[str]:
    """The names that the option `device` takes."""
    return _native.device_names()


def strategies() -> list[str]:
    """The names of the search strategies, for the option `strategy`."""
    return _native.strategy_names()


def cost_models() -> list[str]:
    """The names of the cost models, for the options `cost` and `guide`; they also take files of hone train."""
    return _native.cost_model_names()
