"""Search strategies and cost models in Python: what hone.tune calls, and what it gives them."""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hone.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from hone._native import Task


class Batch(NamedTuple):
    """Candidates of one task, which a cost model predicts or learns from.

    Attributes:
        features: float32 [n, f], the features that the model reads (hone.feature_names).
        estimates: float64 [n], seconds by the analytic model.
        task: int, the key of the task.
        threads: threads that its kernels run on.
    """

    features: NDArray[np.float32]
    estimates: NDArray[np.float64]
    task: int
    threads: int


class Measurements(NamedTuple):
    """What Space.measure returns for n points.

    Attributes:
        seconds: float64 [n], the robust centre of a point's times; inf if it failed.
        low, high: float64 [n], the interval of the centre with 95 % confidence.
        outcomes: a list of n texts: "ok", "compile", "load", "crash", "timeout" or "wrong answer".
        messages: a list of n texts: why a point failed.
    """

    seconds: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    outcomes: list[str]
    messages: list[str]


class SearchStrategy:
    """What a search strategy has; any object with these functions is one, too.

        class Random(hone.SearchStrategy):
            def propose(self, task, n):
                return task.space().sample(n)

        hone.tune("model.onnx", "model.so", search=Random())

    The thread that called hone.tune calls them, a batch at a time. An exception ends the search as one of on_progress
    does.

    Attributes:
        batch_size: how many points propose is asked for at least. If these are more than are measured next, the rest
            waits: propose is called again when all have been taken. What was measured meanwhile is observed right
            before, and the rest when the search has ended. None: as many as are measured next, which is some, and what
            was measured is observed at once.
    """

    batch_size: int | None = None

    def propose(self, task: Task, n: int) -> ArrayLike | None:
        """The points to measure next.

        Args:
            task: a hone.Task, the same object whenever it is about the same task.
            n: the most points that are wanted.

        Returns: whole numbers [m, task.space().width], m <= n, the most promising first; no points, or None, if there
            is nothing left to try. Illegal points are observed as failures when their turn comes, and those that were
            proposed before are left out. A row that is no point of the space, or more than n rows, is an InputError of
            hone.tune.
        """
        raise NotImplementedError

    def observe(self, task: Task, points: NDArray[np.int32], seconds: NDArray[np.float64]) -> None:
        """Told what was measured: also in earlier runs, and points of other origin, such as the default one.

        Args:
            task: as in propose.
            points: int32 [m, task.space().width].
            seconds: float64 [m]; inf for those that failed.
        """


class CostModel:
    """What a cost model has; any object with predict is one, too. It learns if it has an update of its own.

        class Analytic(hone.CostModel):
            def predict(self, batch):
                return batch.estimates

        hone.tune("model.onnx", "model.so", cost_model=Analytic())

    The thread that called hone.tune or hone.evaluate calls the functions. An exception ends the search as one of
    on_progress does.

    Attributes:
        features: a name of hone.feature_sets(); None: "combined" for CPUs, "gpu" for GPUs.
    """

    features: str | None = None

    def predict(self, batch: Batch) -> ArrayLike:
        """The seconds of candidates.

        Args:
            batch: a Batch of n candidates.

        Returns: n numbers above 0. Only their ratios within a task matter. Another number of them, NaN, or one that is
            not above 0 is an InputError of hone.tune.
        """
        raise NotImplementedError

    def update(self, batch: Batch, seconds: NDArray[np.float64]) -> bool | None:
        """Learns from candidates that were measured. A model that has no update of its own is never asked to.

        Args:
            batch: a Batch of the n candidates of a task that were measured together.
            seconds: float64 [n], the time of each; inf for those that failed.

        Returns: False if the same candidates are predicted as before, so that those that were kept need not be
            predicted again; anything else, such as None, if they may not be.
        """
        return False


def checked_strategy(search):
    """The strategy, or the InputError that it is none."""
    return _with_functions(search, "search", ("propose", "observe"))


def checked_model(model):
    """The cost model, or the InputError that it is none."""
    return _with_functions(model, "cost_model", ("predict",))


def learns(model: object) -> bool:
    """Returns whether a cost model has a function `update` other than that of CostModel, which does nothing."""
    update = getattr(model, "update", None)
    return update is not None and getattr(update, "__func__", None) is not CostModel.update


def _with_functions(thing, what, names):
    missing = [name for name in names if not callable(getattr(thing, name, None))]
    if thing is not None and (missing or isinstance(thing, type)):
        found = f"the class {thing.__name__}" if isinstance(thing, type) else f"the Python type {type(thing).__name__}"
        raise InputError(f"{what} is {found}, expected an object with the functions {' and '.join(names)}")
    return thing
