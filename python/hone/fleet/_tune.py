"""hone.fleet.tune: slices of the time, handed out to whichever worker is free."""
from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hone._option_docs import OPTIONS
from hone._progress import shown
from hone.errors import Error, InputError
from hone.fleet._cluster import Crew, Job, Queue, check_seconds, check_workers, connected, made_folder, opened_store, resource_of
from hone.fleet._models import SharedTasks, fleet_models, read_tasks
from hone.fleet._progress import FleetLine, FleetProgress

if TYPE_CHECKING:
    from hone import _types

LEAST_SLICE, MOST_SLICE = 3.0, 20.0  # seconds, where a caller gives none
SLICES_OF_A_TASK = 4  # that a slice's length leaves time for
# Options that a fleet decides by itself, or that mean a file of the driver's; a worker measures on its own node only.
NOT_TAKEN = {"db", "use_db", "budget_seconds", "machine", "mode", "policy_state", "max_trials", "exclude_models"}


@dataclasses.dataclass
class ModelReport:
    """What became of a model.

    Attributes:
        name: of its file.
        library: path of the library that was written; None without one.
        tasks: number of its distinct tasks.
        untuned_seconds, seconds: the sum over its tasks of a run with the first and the fastest schedule that was measured; tasks that
            were not measured count as predicted.
    """

    name: str
    library: str | None
    tasks: int
    untuned_seconds: float
    seconds: float


@dataclasses.dataclass
class WorkerReport:
    """What a worker did.

    Attributes:
        name: of its node.
        slices: number of slices that it finished.
        lost: number of slices that gave no result; what they had measured is in the store.
        trials: number of measurements.
    """

    name: str
    slices: int
    lost: int
    trials: int


@dataclasses.dataclass
class SliceReport:
    """A slice of the time: what one worker did for one task.

    Attributes:
        task: the task's key.
        worker: index in FleetReport.workers.
        begin: seconds after the start of the run.
        seconds: what the slice took as the driver saw it.
        opening: seconds of these for reading the model, where the worker had it not.
        searching: seconds of these for the search itself.
        trials: number of measurements.
        best: seconds of the task's fastest schedule.
    """

    task: int
    worker: int
    begin: float
    seconds: float
    opening: float
    searching: float
    trials: int
    best: float


@dataclasses.dataclass
class FleetReport:
    """What hone.fleet.tune did.

    Attributes:
        models: a list of ModelReport.
        workers: a list of WorkerReport, also of those that went away.
        slices: a list of SliceReport, in the order in which they ended.
        tasks: number of distinct tasks of all models.
        trials: number of measurements.
        lost: number of slices that gave no result.
        seconds: that the call took.
        tuning_seconds: of these, from the first slice to the end of the last one.
        device: key of the device that was measured.
    """

    models: list[ModelReport]
    workers: list[WorkerReport]
    slices: list[SliceReport]
    tasks: int
    trials: int
    lost: int
    seconds: float
    tuning_seconds: float
    device: str


class Slices:
    """The slices of a run, as a source of jobs (Crew.run)."""

    def __init__(self, tasks, search, seconds, end, tell):
        self.tasks, self.search, self.seconds, self.end, self.tell = tasks, search, seconds, end, tell
        self.begin = time.monotonic()
        self.untuned = {}  # seconds of the first schedule that was measured, by key
        self.reports, self.lost_count, self.under_way = [], 0, {}

    @property
    def open(self):
        return bool(self.under_way) or (self._left() >= 1 and self.tasks.scheduler.next() >= 0)

    def look(self):
        self.tell()

    def _left(self):
        return self.end - time.monotonic()

    def take(self, member):
        seconds = min(self.seconds, self._left())
        number = self.tasks.scheduler.next()
        if seconds < 1 or number < 0:
            return None
        key = self.tasks.keys[number]
        model = self.tasks.model_for(key, member.models)
        member.models.add(model.sent["name"])
        self.tasks.scheduler.start(number)
        job = Job(lambda worker: worker.actor.tune.remote(model.sent, key, seconds, self.search), seconds, number)
        self.under_way[job] = time.monotonic()
        return job

    def done(self, job, answer, member):
        now, begin = time.monotonic(), self.under_way.pop(job)
        number, scheduler = job.about, self.tasks.scheduler
        key = self.tasks.keys[number]
        measured = answer["seconds"] > 0
        best = answer["seconds"] if measured else scheduler.best(number)
        if key in self.untuned:  # another worker may have found a faster one meanwhile
            best = min(best, scheduler.best(number))
        elif measured:
            self.untuned[key] = answer["untuned_seconds"] or best
        scheduler.set_bound(number, answer["bound_seconds"])
        scheduler.report(number, answer["searching"], best)
        if answer["finished"]:
            scheduler.finish(number)
        member.trials += answer["trials"]
        self.reports.append((member, SliceReport(key, -1, begin - self.begin, now - begin, answer["opening"], answer["searching"],
                                                 answer["trials"], best)))

    def lost(self, job, why):
        self.under_way.pop(job)
        self.tasks.scheduler.withdraw(job.about)
        self.lost_count += 1


def checked_options(options):
    """The options of hone.tune that are given, as those that open tasks and those of a search."""
    for name in options:
        if name in NOT_TAKEN or name not in OPTIONS:
            raise InputError(f"there is no option '{name}' of a fleet, expected one of hone.options() besides {', '.join(sorted(NOT_TAKEN))}")
    opening = {name: value for name, value in options.items() if not OPTIONS[name][0]}
    search = {name: value for name, value in options.items() if OPTIONS[name][0]}
    return opening, search


def tune(models: _types.Model | Sequence[_types.Model], output: _types.Path | None = None, *, db: _types.Path, budget_seconds: float = 60.0,
         address: str | None = None, workers: int | None = None, device: str = "host", slice_seconds: float | None = None,
         finish_seconds: float | None = None, on_progress: Callable[[FleetProgress], object] | None = None, progress: bool | None = None,
         null_seconds: float | None = None, **options: Any) -> FleetReport:
    """Tunes models on many machines: all nodes of a Ray cluster that have the device as a resource.

    Each such node has a worker for each unit of the resource "hone:DEVICE", which gets slices of the time: a task to tune on its device
    for some seconds. The task is the one whose next second gains most, over all models. What is measured is in the store at once, so
    workers may come and go: one that is lost costs what its last batch had not stored yet.

    Args:
        models: a path, bytes, an onnx.ModelProto, or several of them. Weights in files of their own must be at the same path everywhere.
        output: the folder for the libraries, NAME.so for NAME.onnx; None: none are written, the store has what was found.
        db: the store that all workers share: postgres://user@host/name, or a file if all nodes are on this machine.
        budget_seconds: the time for all of it.
        address: of the cluster, HOST:PORT or, on one of its nodes, "auto". None: the one that this process is connected to, else one of this
            machine alone, for this call.
        workers: the most workers; None: as many as there are. With no address it is how many the machine has, by default 1.
        device: what is measured on, as the option of hone.tune; all nodes must have the same one.
        slice_seconds: of a slice; None: 3 to 20, so that each task can have four.
        finish_seconds: of the budget for each model at the end, in which hone.tune compares schedules inside the model, and the tuned
            model with the untuned one. 0: it is compiled with the fastest schedules of the store. None: a tenth of the budget, 20 at most.
        on_progress: called with a FleetProgress about once a second. If it raises, the run ends as after Ctrl-C.
        progress: show a line with how far it is; default: if standard error is a terminal or a notebook.
        null_seconds: for tests of a fleet: nothing is measured, each candidate takes so many seconds of waiting instead. The store then
            has times that mean nothing.
        **options: see hone.options(); they hold for all models.

    Returns: a FleetReport.
    Raises: InputError for what a node lacks (the package hone in the same version, the device, a way to the store) before anything is
        measured, and as hone.tune; InternalError if no worker is left; KeyboardInterrupt after Ctrl-C: by then all that was measured is
        stored, and the libraries are written with the best schedules so far. A second Ctrl-C ends it without them.
    """
    begin = time.monotonic()
    check_seconds(budget_seconds=budget_seconds, slice_seconds=slice_seconds, finish_seconds=finish_seconds, null_seconds=null_seconds)
    check_workers(workers)
    opening, search = checked_options(options)
    seed = opening.pop("seed", 1)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(f"seed is {seed!r}, expected a whole number")
    resource = resource_of(device)
    with connected(address, {resource: workers or 1}) as ray:
        settings = {"db": opened_store(db), "options": {**opening, "device": device}, "null_seconds": null_seconds, "seed": seed}
        sent = fleet_models(ray, models)
        if output is not None:
            made_folder(output)
        crew = Crew(ray, resource, settings, device, workers)
        try:
            crew.open()
            run = Run(crew, sent, output, search, begin, budget_seconds)
            run.plan(slice_seconds, finish_seconds)
            with shown(progress, on_progress, FleetLine) as show:
                return run.all(show)
        finally:
            crew.close()


class Run:
    """A call of tune, from the first worker on."""

    def __init__(self, crew, models, output, search, begin, budget):
        self.crew, self.models, self.output, self.search = crew, models, output, search
        self.begin, self.budget = begin, budget
        self.libraries = {}
        self.last_told = 0.0
        self.show = lambda progress: None

    def plan(self, slice_seconds, finish_seconds):
        """Reads the models, and divides the budget."""
        read_tasks(self.crew, self.models)
        self.tasks = SharedTasks(self.models)
        workers = max(1, len(self.crew.ready))
        self.finish = 0.0
        if self.output is not None and self.crew.settings["null_seconds"] is None:
            self.finish = min(20.0, self.budget / 10) if finish_seconds is None else finish_seconds
        rounds = -(-len(self.models) // workers)
        end = self.begin + self.budget - self.finish * rounds
        if slice_seconds is None:
            each = (end - time.monotonic()) * workers / (SLICES_OF_A_TASK * len(self.tasks.keys))
            slice_seconds = min(MOST_SLICE, max(LEAST_SLICE, each))
        self.slices = Slices(self.tasks, self.search, slice_seconds, end, self.tell)

    def all(self, show):
        """Hands out the slices, then writes the libraries; after an interruption, too."""
        self.show = show
        interruption = None
        try:
            self.crew.run(self.slices, self.slices.end)
        except Error:
            raise
        except BaseException as raised:  # Ctrl-C, or what on_progress raises
            interruption = raised
            self.crew.stop()
            self.finish = 0.0
        ended = time.monotonic()
        if self.output is not None:
            self._write_libraries(interruption is not None)
        if interruption is not None:
            raise interruption
        return self._report(ended)

    def tell(self):
        """Tells the caller how far it is, about once a second."""
        now = time.monotonic()
        if now - self.last_told < 1:
            return
        self.last_told = now
        reports = [report for _, report in self.slices.reports]
        self.show(FleetProgress(now - self.begin, self.budget, len(self.crew.ready), sum(report.trials for report in reports),
                                len(reports), self.slices.lost_count, self._gain()))

    def _gain(self):
        """How many times as fast the models are, their geometric mean."""
        product = 1.0
        for model in self.models:
            untuned, seconds = self._seconds(model)
            product *= untuned / seconds if seconds > 0 else 1.0
        return product ** (1 / len(self.models))

    def _seconds(self, model):
        """(untuned, tuned) seconds of a run of a model's tasks."""
        untuned = seconds = 0.0
        for row in model.tasks:
            best = self.tasks.scheduler.best(self.tasks.keys.index(row["key"]))
            seconds += row["multiplicity"] * best
            untuned += row["multiplicity"] * self.slices.untuned.get(row["key"], best)
        return untuned, seconds

    def _write_libraries(self, stopped):
        if stopped:  # their workers have been told to end
            self.crew.close()
            self.crew.look()
        search = {name: value for name, value in self.search.items() if name not in ("batch", "overlap")}
        jobs = Queue(Job(lambda member, model=model: member.actor.library.remote(model.sent, self.finish, search), self.finish + 600, model)
                     for model in self.models)
        self.crew.run(jobs)
        for model, answer in jobs.results:
            path = os.path.join(os.fspath(self.output), model.name + ".so")
            with open(path + ".part", "wb") as file:
                file.write(answer["library"])
            os.chmod(path + ".part", 0o755)
            os.replace(path + ".part", path)
            self.libraries[model] = path

    def _report(self, ended):
        members = self.crew.left + self.crew.members
        slices = [dataclasses.replace(report, worker=members.index(member)) for member, report in self.slices.reports]
        return FleetReport(
            models=[ModelReport(model.name, self.libraries.get(model), len(model.tasks), *self._seconds(model)) for model in self.models],
            workers=[WorkerReport(member.name, sum(report.worker == i for report in slices), member.lost, member.trials)
                     for i, member in enumerate(members)],
            slices=slices, tasks=len(self.tasks.keys), trials=sum(report.trials for report in slices), lost=self.slices.lost_count,
            seconds=time.monotonic() - self.begin, tuning_seconds=ended - self.slices.begin, device=self.crew.key)

