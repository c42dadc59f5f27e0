"""hone.fleet.make_dataset: the tasks of a data set, divided among workers."""
from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hone._option_docs import DATASET_OPTIONS
from hone._progress import shown
from hone.errors import InputError
from hone.fleet._cluster import Crew, Job, Queue, check_seconds, check_workers, connected, opened_store, resource_of
from hone.fleet._models import fleet_models
from hone.fleet._progress import FleetLine, FleetProgress

if TYPE_CHECKING:
    from hone import _types

PARTS_OF_A_WORKER = 4  # so that the last parts end at about the same time, and a lost worker costs little
# Options that a fleet decides by itself; a worker measures on its own node only.
NOT_TAKEN = {"budget_seconds", "devices", "machine", "only"}


@dataclasses.dataclass
class DatasetReport:
    """What hone.fleet.make_dataset did.

    Attributes:
        tasks: number of tasks.
        records: number of measurements of this call; those of lost parts are in the store, but not counted.
        failed: number of these without a time.
        complete: whether all samples exist now.
        lost: number of parts that gave no result and were done again.
        workers: number of workers that took part.
        seconds: that the call took.
    """

    tasks: int
    records: int
    failed: int
    complete: bool
    lost: int
    workers: int
    seconds: float


class Parts(Queue):
    """Parts of the tasks, each of which a worker measures until all its samples exist or the time is over."""

    def __init__(self, parts, start, end, tell):
        super().__init__(Job(lambda member, keys=keys: start(member, keys, max(1.0, end - time.monotonic())), end - time.monotonic(), keys)
                         for keys in parts)
        self.end, self.tell, self.lost_count = end, tell, 0

    def look(self):
        self.tell()

    def take(self, member):
        return super().take(member) if self.end - time.monotonic() >= 1 else None

    @property
    def open(self):
        return self.under_way > 0 or (bool(self.jobs) and self.end - time.monotonic() >= 1)

    def lost(self, job, why):
        self.lost_count += 1
        super().lost(job, why)


def make_dataset(models: _types.Model | Sequence[_types.Model], *, db: _types.Path, budget_seconds: float = 3600.0,
                 address: str | None = None, workers: int | None = None, device: str = "host",
                 on_progress: Callable[[FleetProgress], object] | None = None, progress: bool | None = None,
                 null_seconds: float | None = None, **options: Any) -> DatasetReport:
    """Measures samples of the schedules of all kernels of many models on many machines, as hone.make_dataset does on one.

    The tasks are divided into parts, four for each worker there is at the start. A part that is lost with its worker is done again: what
    it stored counts.

    Args:
        models: paths or bytes, as for hone.fleet.tune.
        db, budget_seconds, address, workers, device, on_progress, progress, null_seconds: as for hone.fleet.tune.
        **options: see hone.options(of="make_dataset").

    Returns: a DatasetReport.
    Raises: as hone.fleet.tune; after Ctrl-C all measurements are stored, and the same call goes on.
    """
    begin = time.monotonic()
    check_seconds(budget_seconds=budget_seconds, null_seconds=null_seconds)
    check_workers(workers)
    for name in options:
        if name in NOT_TAKEN or name not in DATASET_OPTIONS:
            raise InputError(f"there is no option '{name}' of a fleet's data set, expected one of hone.options(of='make_dataset') besides "
                             f"{', '.join(sorted(NOT_TAKEN))}")
    resource = resource_of(device)
    with connected(address, {resource: workers or 1}) as ray:
        settings = {"db": opened_store(db), "options": {}, "null_seconds": null_seconds, "seed": 1}
        sent = [model.sent for model in fleet_models(ray, models)]
        crew = Crew(ray, resource, settings, device, workers)
        try:
            crew.open()
            given = {**options, "devices": [device]}
            listing = Queue([Job(lambda member: member.actor.dataset_keys.remote(sent, given), 600)])
            crew.run(listing)
            keys = listing.results[0][1]
            with shown(progress, on_progress, FleetLine) as show:
                parts = _measured(crew, sent, given, keys, begin + budget_seconds, Teller(crew, begin, budget_seconds, show))
            answers = [answer for _, answer in parts.results if answer is not None]
            return DatasetReport(len(keys), sum(answer["records"] for answer in answers), sum(answer["failed"] for answer in answers),
                                 len(answers) == parts.count and all(answer["complete"] for answer in answers), parts.lost_count,
                                 sum(member.finished > 0 for member in crew.members + crew.left), time.monotonic() - begin)
        except BaseException:
            crew.stop()
            raise
        finally:
            crew.close()


class Teller:
    """Tells the caller how far a data set is, about once a second."""

    def __init__(self, crew, begin, budget, show):
        self.crew, self.begin, self.budget, self.show = crew, begin, budget, show
        self.parts, self.last_told = None, 0.0

    def __call__(self):
        now = time.monotonic()
        if self.parts is None or now - self.last_told < 1:
            return
        self.last_told = now
        answers = [answer for _, answer in self.parts.results]
        self.show(FleetProgress(now - self.begin, self.budget, len(self.crew.ready), sum(answer["records"] for answer in answers), len(answers),
                                self.parts.lost_count, 1.0))


def _measured(crew, sent, options, keys, end, tell):
    count = min(len(keys), PARTS_OF_A_WORKER * max(1, len(crew.ready)))
    divided = [keys[number::count] for number in range(count)]
    parts = Parts(divided, lambda member, part, seconds: member.actor.dataset.remote(sent, options, part, seconds), end, tell)
    parts.count = count
    tell.parts = parts
    crew.run(parts, end)
    return parts
