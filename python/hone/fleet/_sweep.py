"""hone.fleet.sweep: cost models of many configurations, trained as tasks of a cluster."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

import hone
from hone._option_docs import TRAIN_OPTIONS
from hone.errors import InputError
from hone.fleet import _actor
from hone.fleet._cluster import connected, first_line, is_server, made_folder

if TYPE_CHECKING:
    from hone import _types

NOT_TAKEN = {"from_", "resume", "split_file"}
RETRIES = 3  # of a training whose node is lost


@dataclasses.dataclass
class SweepResult:
    """A cost model that hone.fleet.sweep trained.

    Attributes:
        configuration: the options that it was trained with.
        problem: why there is none; empty if there is one.
        path: its file.
        top1, top5, pair_accuracy: how well it ranks the schedules that were held out, as a Score has them; 0 with a problem.
        tasks: number of tasks that it was judged by.
        seconds: that the training took.
        host: where.
    """

    configuration: dict[str, Any]
    problem: str = ""
    path: str = ""
    top1: float = 0.0
    top5: float = 0.0
    pair_accuracy: float = 0.0
    tasks: int = 0
    seconds: float = 0.0
    host: str = ""


def sweep(configurations: Iterable[dict[str, Any]], output: _types.Path, *, db: _types.Path, by: str = "task",
          held_out: Collection[str] = (), fraction: float = 0.1, seed: int = 1, judged: str = "host", address: str | None = None,
          cpus: float = 1, on_result: Callable[[SweepResult], object] | None = None) -> list[SweepResult]:
    """Trains cost models by several configurations on the nodes of a Ray cluster, and judges each by the same held-out schedules.

    A training whose node is lost is begun anew elsewhere. All nodes need the package hone and a way to the data set.

    Args:
        configurations: a list of dicts of options, see hone.options(of="train").
        output: the folder for the models: 0.model, 1.model, ... (.onnx for nets), and the split, split.json.
        db: the data set, as for hone.fleet.tune.
        by, held_out, fraction, seed: what is held out to judge by, as for hone.split_dataset.
        judged: the device whose schedules it is judged by, as for hone.evaluate.
        address: as for hone.fleet.tune.
        cpus: CPUs of the cluster that a training takes.
        on_result: called with each SweepResult when it is there.

    Returns: a list of SweepResult, the largest top1 first, those with a problem last.
    Raises: InputError, InternalError; KeyboardInterrupt after Ctrl-C: models that were trained by then are in the folder.
    """
    chosen = checked_configurations(configurations)
    _check_arguments(by, held_out, fraction, seed, judged, cpus)
    folder = made_folder(output)
    text = os.fspath(db) if is_server(db) else os.path.abspath(os.fspath(db))
    split = _split(text, folder, by, held_out, fraction, seed)
    with connected(address, None) as ray:
        trainer = ray.remote(_actor.train).options(num_cpus=cpus, max_retries=RETRIES)
        calls = {trainer.remote(text, one, split, judged): number for number, one in enumerate(chosen)}
        results = []
        try:
            while calls:
                done, _ = ray.wait(list(calls), timeout=1.0)
                for call in done:
                    number = calls.pop(call)
                    results.append(_result(ray, call, chosen[number], os.path.join(folder, str(number))))
                    if on_result is not None:
                        on_result(results[-1])
        finally:
            for call in calls:
                ray.cancel(call, force=True)
    return sorted(results, key=lambda result: (bool(result.problem), -result.top1))


def checked_configurations(configurations):
    """The configurations as a list of dicts, or the InputError that says which one is wrong."""
    if isinstance(configurations, (str, bytes, dict)) or not hasattr(configurations, "__iter__"):
        raise InputError(f"the configurations are of the Python type {type(configurations).__name__}, expected a list of objects of options, "
                         'such as [{"cost": "gbdt"}]')
    configurations = list(configurations)
    if not configurations:
        raise InputError("there are no configurations, expected one or more")
    for number, one in enumerate(configurations):
        if not isinstance(one, dict):
            raise InputError(f"configuration {number} is {one!r}, expected an object of options, such as {{\"cost\": \"gbdt\"}}")
        for name in one:
            if name in NOT_TAKEN or name not in TRAIN_OPTIONS:
                raise InputError(f"configuration {number}: there is no option '{name}' of a sweep, expected one of hone.options(of='train') "
                                 f"besides {', '.join(sorted(NOT_TAKEN))}")
    return [dict(one) for one in configurations]


def _check_arguments(by, held_out, fraction, seed, judged, cpus):
    """Refuses arguments of wrong types; what their values mean is checked where they are used."""
    def is_number(value, kinds):
        return isinstance(value, kinds) and not isinstance(value, bool)

    checks = {"by": (by, isinstance(by, str), "'within', 'task', 'model' or 'device'"),
              "held_out": (held_out, isinstance(held_out, (list, tuple, set)) and all(isinstance(name, str) for name in held_out),
                           "a list of names, such as ['bert']"),
              "fraction": (fraction, is_number(fraction, (int, float)), "a number"),
              "seed": (seed, is_number(seed, int), "a whole number"),
              "judged": (judged, isinstance(judged, str), "the name of a device"),
              "cpus": (cpus, is_number(cpus, (int, float)) and cpus > 0, "a number above 0")}
    for name, (value, good, expected) in checks.items():
        if not good:
            raise InputError(f"{name} is {value!r}, expected {expected}")


def _split(db, folder, by, held_out, fraction, seed):
    path = os.path.join(folder, "split.json")
    hone.split_dataset(db, path, by=by, held_out=held_out, fraction=fraction, seed=seed)
    with open(path, "rb") as file:
        return file.read()


def _result(ray, call, configuration, path):
    """What a training came to; a problem of one configuration leaves the others alone."""
    try:
        kind, answer = ray.get(call)
    except ray.exceptions.RayError as error:
        return SweepResult(configuration, problem=first_line(error))
    if kind:
        return SweepResult(configuration, problem=answer)
    if answer["version"] != hone.__version__:
        return SweepResult(configuration, problem=f"its node has version {answer['version']} of hone, expected {hone.__version__}")
    path += ".onnx" if answer["is_net"] else ".model"
    with open(path, "wb") as file:
        file.write(answer["model"])
    return SweepResult(configuration, "", path, answer["top1"], answer["top5"], answer["pair_accuracy"], answer["tasks"], answer["seconds"],
                       answer["host"].split("/")[0])
