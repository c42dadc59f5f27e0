"""How far a fleet scales: hone.fleet.tune simulated with up to 200 workers, by service times that fleet.py measured.

    PYTHONPATH=SITE benchmarks/fleet_scaling.py fleet.json [--tasks 25 100 400] [--trial 0.2] [--slice 10]

The simulation is a queue of events. A worker asks for a slice; the driver, one server, takes its measured CPU time for each; the
slice opens with the measured time besides the search, and then is batches, each of which takes the trials' time and waits for the
store, some cores that take the measured CPU time for each trial. The task of a slice is chosen by hone.TaskScheduler itself, which
hone.fleet asks, too. Tasks have made-up curves: the best time falls from its start to a floor as 1 / (1 + trials / pace). Workers
that share a task do not know of each other's trials until the slice ends, so of their trials a share counts twice (--repeated).
"""
import argparse
import heapq
import json
import random
import statistics
from pathlib import Path

import hone


class Times:
    """What fleet.py measured."""

    def __init__(self, path):
        found = json.loads(path.read_text())
        runs = [run for run in found["runs"] if len(run["workers"]) > 1]
        slices = [one for run in found["runs"] for one in run["slices"] if one["trials"]]
        self.batch = found["batch"]
        self.driver = sum(run["driver_seconds"] for run in runs) / sum(len(run["slices"]) for run in runs)
        self.store = sum(run["store_seconds"] for run in runs) / sum(run["trials"] for run in runs)
        self.between = statistics.median(one["seconds"] - one["searching"] - one["opening"] for one in slices)
        self.opening = max(statistics.median([one["opening"] for one in slices if one["opening"] > 0.05] or [0.0]), 0.0)
        self.own = statistics.median((one["searching"] - found["null"] * one["trials"]) / one["trials"] for one in slices)

    def __str__(self):
        return (f"driver {1e3 * self.driver:.2f} ms a slice, store {1e3 * self.store:.2f} ms a trial, slice {self.between:.3f} s besides its "
                f"search, model {self.opening:.2f} s when it is opened, trial {self.own:.3f} s besides its measurement")


class Server:
    """Cores that serve requests in the order of their arrival."""

    def __init__(self, cores):
        self.free, self.busy = [0.0] * cores, 0.0

    def serve(self, now, seconds):
        """When a request that arrives now is done."""
        begin = max(now, heapq.heappop(self.free))
        heapq.heappush(self.free, begin + seconds)
        self.busy += seconds
        return begin + seconds


class Tasks:
    """Tasks whose best time falls with their trials."""

    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.start = [10 ** rng.uniform(-4, -2.5) for _ in range(count)]
        self.floor = [start * rng.uniform(0.2, 0.8) for start in self.start]
        self.pace = [rng.uniform(30, 300) for _ in range(count)]
        self.trials, self.at_work = [0.0] * count, [0] * count
        self.scheduler = hone.TaskScheduler([1.0 / sum(self.start)] * count, self.start)
        for task, floor in enumerate(self.floor):
            self.scheduler.set_bound(task, floor * 0.8)

    def best(self, task):
        return self.floor[task] + (self.start[task] - self.floor[task]) / (1 + self.trials[task] / self.pace[task])

    def gained(self):
        """The share of what can be gained that was."""
        count = range(len(self.start))
        return (sum(self.start) - sum(map(self.best, count))) / (sum(self.start) - sum(self.floor))


def simulate(times, workers, count, arguments):
    """Trials a second, the shares of time that driver and store are busy, that of slices of shared tasks, and the seconds until half and
    nine tenths of the gain."""
    tasks, driver, store = Tasks(count, arguments.seed), Server(1), Server(arguments.store_cores)
    events = [(0.0, worker, "ask", None) for worker in range(workers)]
    trials = shared = slices = 0
    opened, reached = set(), {}
    end = arguments.seconds
    while events:
        now, worker, what, state = heapq.heappop(events)
        if now >= end:
            break
        if what == "ask":
            task = tasks.scheduler.next()
            if task < 0:
                continue
            tasks.scheduler.start(task)
            shared += tasks.at_work[task] > 0
            slices += 1
            tasks.at_work[task] += 1
            begin = driver.serve(now, times.driver) + times.between + (times.opening if worker not in opened else 0.0)
            opened.add(worker)
            heapq.heappush(events, (begin, worker, "batch", (task, begin + arguments.slice, begin)))
        elif what == "batch":
            task, over, begin = state
            if now >= over:
                heapq.heappush(events, (now, worker, "end", state))
                continue
            done = store.serve(now + times.batch * (arguments.trial + times.own), times.batch * times.store)
            trials += times.batch
            repeated = arguments.repeated if tasks.at_work[task] > 1 else 0.0
            tasks.trials[task] += times.batch * (1 - repeated * (tasks.at_work[task] - 1) / tasks.at_work[task])
            heapq.heappush(events, (done, worker, "batch", state))
        else:
            task, _, begin = state
            tasks.at_work[task] -= 1
            tasks.scheduler.report(task, now - begin, tasks.best(task))
            gained = tasks.gained()
            for share in (0.5, 0.9):
                if gained >= share:
                    reached.setdefault(share, now)
            heapq.heappush(events, (now, worker, "ask", None))
    return trials / end, driver.busy / end, store.busy / end / arguments.store_cores, shared / max(1, slices), reached


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--tasks", type=int, nargs="+", default=[25, 100, 400])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64, 100, 150, 200])
    parser.add_argument("--trial", type=float, default=0.1, help="seconds of a measurement on the device")
    parser.add_argument("--slice", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=3600, help="of a run")
    parser.add_argument("--store-cores", type=int, default=2)
    parser.add_argument("--repeated", type=float, default=0.0, help="share of the trials of workers with one task that another one of them makes, too")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    times = Times(arguments.measured)
    print(times)
    for count in arguments.tasks:
        print(f"{count} tasks\n workers  trials/s  of linear  driver   store  shared  s to half  s to 0.9")
        one = None
        for workers in arguments.workers:
            rate, driver, store, shared, reached = simulate(times, workers, count, arguments)
            one = one or rate
            seconds = [f"{reached[share]:8.0f}" if share in reached else "       -" for share in (0.5, 0.9)]
            print(f"{workers:8}  {rate:8.1f}  {rate / one / workers:9.3f}  {driver:6.1%}  {store:6.1%}  {shared:6.1%}  {seconds[0]:>9}  {seconds[1]:>8}")


if __name__ == "__main__":
    main()
