"""Whether the threads of a run get a core each.

A virtual machine's CPUs may be the two hardware threads of one core for seconds at a time, and a figure of several threads measured then is that
of one core. Nothing in the guest says so; arithmetic does: as many threads as are asked for take as long as one only if each has a core.
"""
import argparse
import os
import threading
import time

import numpy as np

COUNT, ATTEMPTS = 1 << 20, 6  # long enough that how the threads start counts little
SLOWER = 1.5  # times a thread alone: shared. Own cores: 1.0 to 1.2, one core for two: 1.9 to 2.0


def work(values, cpu, start):
    """Square roots, for which a core has one unit; in one call, as between calls threads wait for the interpreter. Linux may wake a thread on
    the CPU of the one that wakes it, so each has its own."""
    os.sched_setaffinity(0, {cpu})  # of this thread
    start.wait()
    np.sqrt(values, out=values)


def seconds(cpus):
    """Of a thread on each of these CPUs at once, the least of some attempts."""
    best = float("inf")
    arrays = np.full((len(cpus), COUNT), 2.0, np.float32)
    for _ in range(ATTEMPTS):
        start = threading.Barrier(len(cpus) + 1)
        threads = [threading.Thread(target=work, args=(values, cpu, start)) for values, cpu in zip(arrays, cpus, strict=True)]
        for thread in threads:
            thread.start()
        start.wait()
        begin = time.perf_counter()
        for thread in threads:
            thread.join()
        best = min(best, time.perf_counter() - begin)
    return best


def apart(threads):
    """Whether as many threads as are asked for have a core each now, as far as there are CPUs for them."""
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    return len(cpus) < 2 or seconds(cpus) < SLOWER * seconds(cpus[:1])


class Patience:
    """Waits for cores; who once waited in vain, on a machine where threads never have a core each, waits no more."""

    def __init__(self, limit=60.0):
        self.limit = limit  # seconds

    def wait(self, threads):
        """Returns once so many threads have a core each, or after `limit`."""
        begin = time.perf_counter()
        while self.limit and not apart(threads):
            if time.perf_counter() - begin >= self.limit:
                self.limit = 0.0
                return
            time.sleep(0.1)

    def satisfied(self, threads):
        """Whether they have, or nothing is to be expected any more."""
        return not self.limit or apart(threads)


patience = Patience()


def add_option(parser):
    """--patience, which parse_args() sets."""

    class Set(argparse.Action):
        def __call__(self, parser, namespace, values, option_string=None):
            patience.limit = values

    parser.add_argument("--patience", type=float, action=Set, metavar="SECONDS",
                        help="how long to wait at a time, at most, until each thread has a core of its own (default: 60); once in vain, no more")
