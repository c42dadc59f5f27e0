"""How far a fleet is: what callers get, and the line that is shown."""
from typing import NamedTuple

from hone._progress import WIDTH, ProgressLine


class FleetProgress(NamedTuple):
    """How far hone.fleet.tune or hone.fleet.make_dataset has come.

    Attributes:
        elapsed: seconds since the start.
        budget: seconds that it may take.
        workers: number of workers at work.
        trials: measurements of the slices that have ended.
        slices: number of slices that have ended.
        lost: number of slices that gave no result.
        gain: how many times as fast the models are as at the start, the geometric mean; 1 for data sets.
    """

    elapsed: float
    budget: float
    workers: int
    trials: int
    slices: int
    lost: int
    gain: float


class FleetLine(ProgressLine):
    """The line of a fleet."""

    @staticmethod
    def text(progress):
        """What the line shows for a FleetProgress."""
        full = round(WIDTH * min(1.0, progress.elapsed / progress.budget))
        lost = f", {progress.lost} lost" if progress.lost else ""
        return (f"[{'#' * full}{'.' * (WIDTH - full)}] {progress.elapsed:.0f} of {progress.budget:.0f} s, {progress.workers} workers, "
                f"{progress.trials} trials{lost}, {progress.gain:.2f}x")
