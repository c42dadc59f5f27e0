"""A fleet of one worker and one of several, in turns: trials a second of hone.fleet.tune on null machines.

    PYTHONPATH=SITE benchmarks/fleet.py MODEL.onnx ...

SITE is the folder of an installed package (pip install --target SITE ./python), and Ray is installed. A null machine measures
nothing: a candidate takes so many seconds of waiting (--null). Everything else is real: Ray's processes, the driver, a PostgreSQL
server, and the search of each worker, which compiles its candidates. So the figure is what a fleet costs beside the measuring, and
says nothing about how many cores measure. The workers' own work must leave cores idle, else it says how many cores there are:
--null has to be well above the CPU seconds of a trial, which the last lines give.
"""
import argparse
import dataclasses
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import hone  # noqa: E402
from hone import fleet  # noqa: E402
from postgres_server import Server  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def tree_seconds(pid):
    """CPU seconds of a process and of those that it started, with those that have ended."""
    seconds, waiting = 0.0, [pid]
    while waiting:
        process = waiting.pop()
        try:
            stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            waiting += [int(child) for task in Path(f"/proc/{process}/task").iterdir() for child in (task / "children").read_text().split()]
        except OSError:
            continue
        seconds += sum(map(int, stat[11:15])) / TICKS
    return seconds


def driver_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(server, name, workers, arguments):
    """A run with so many workers, and what it cost beside the workers."""
    db = server.create(name)
    before = driver_seconds(), tree_seconds(server.process.pid)
    report = fleet.tune(arguments.models, db=db, workers=workers, budget_seconds=arguments.seconds, slice_seconds=arguments.slice,
                        null_seconds=arguments.null, threads=1, strategy=arguments.strategy, cost="analytic", batch=arguments.batch, progress=False)
    after = driver_seconds(), tree_seconds(server.process.pid)
    found = dataclasses.asdict(report)
    records = hone.records(db)
    found.update(records=records.rows, distinct=len(set(zip(records["task"], records["steps"]))))
    found.update(rate=report.trials / report.tuning_seconds, driver_seconds=after[0] - before[0], store_seconds=after[1] - before[1])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40, help="of a run")
    parser.add_argument("--slice", type=float, default=5)
    parser.add_argument("--null", type=float, default=0.5, help="seconds that a candidate takes")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--strategy", default="random")
    parser.add_argument("--output", type=Path, help="all runs as JSON, for fleet_scaling.py")
    arguments = parser.parse_args()
    runs = {1: [], arguments.workers: []}
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        for turn in range(arguments.turns):
            for workers, found in runs.items():
                found.append(run(server, f"run{turn}_{workers}", workers, arguments))
                one = found[-1]
                print(f"  {workers} workers: {one['trials']} trials in {one['tuning_seconds']:.1f} s, {one['rate']:.2f} a second, "
                      f"{len(one['slices'])} slices of {one['tasks']} tasks", flush=True)
                time.sleep(1)
    if arguments.output:
        arguments.output.write_text(json.dumps({"null": arguments.null, "batch": arguments.batch, "runs": sum(runs.values(), [])}))
    rates = {workers: statistics.median(one["rate"] for one in found) for workers, found in runs.items()}
    slices = [one for found in runs.values() for report in found for one in report["slices"]]
    many = runs[arguments.workers]
    print(f"{arguments.workers} workers: {rates[arguments.workers]:.2f} trials a second, one: {rates[1]:.2f}, "
          f"ratio {rates[arguments.workers] / rates[1]:.2f}")
    between = sum(one["seconds"] - one["searching"] - one["opening"] for one in slices) / len(slices)
    own = sum(one["searching"] - arguments.null * one["trials"] for one in slices) / max(1, sum(one["trials"] for one in slices))
    print(f"a trial: {arguments.null:.3f} s of waiting and {own:.3f} s of the worker's own; a slice: {between:.3f} s besides its search")
    for workers, found in runs.items():
        repeated = 1 - sum(one["distinct"] for one in found) / sum(one["records"] for one in found)
        print(f"{workers} workers: {repeated:.1%} of the records are of a schedule that was measured before")
    print(f"driver: {1e3 * sum(one['driver_seconds'] for one in many) / sum(len(one['slices']) for one in many):.1f} ms of CPU a slice, "
          f"store: {1e3 * sum(one['store_seconds'] for one in many) / sum(one['trials'] for one in many):.2f} ms of CPU a trial")


if __name__ == "__main__":
    main()
