"""Latencies of several engines in one process, such that a disturbance of the machine meets them all.

In each round every engine has its turn. Before a turn the process is quiet: threads that other engines left spinning have gone to sleep
(the process's CPU time stands still over 2 ms). In its turn an engine first runs for 40 ms or more, which wakes its threads and fills the
caches, and then a timed burst, of which the median counts. The result is the median over the rounds; ratios are taken per round.
"""
import functools
import statistics
import time

import cores

WARM_SECONDS = 0.04
BURST_SECONDS = 0.06
MOST_ATTEMPTS = 4
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}  # the latter adds up the time of all threads


def wait_until_quiet(limit=1.0):
    """Returns once the threads of this process sleep; how long that took in seconds."""
    start = time.perf_counter()
    while time.perf_counter() - start < limit:
        used = time.process_time()
        time.sleep(0.002)
        if time.process_time() - used < 0.0003:
            break
    return time.perf_counter() - start


def samples(run, warm=WARM_SECONDS, seconds=BURST_SECONDS, clock=time.perf_counter):
    """Seconds of each run of one turn: those that run() returns, if it does."""
    start = clock()
    runs = 0
    while clock() - start < warm or runs < 1:
        run()
        runs += 1
    each = (clock() - start) / runs
    times = []
    for _ in range(max(3, int(seconds / each))):
        begin = clock()
        own = run()
        times.append(own if isinstance(own, float) else clock() - begin)
    return times


def burst(run, clock=time.perf_counter):
    return statistics.median(samples(run, clock=clock))


def measure(engines, rounds, turn=burst, threads=1):
    """{name: object with run()} -> {name: [what `turn` finds in each round; the median seconds of a run]}. A round of several threads that did not
    have a core each (cores.py) is measured anew, some times."""
    seconds = {name: [] for name in engines}
    names = list(engines)
    cores.patience.wait(threads)
    for r in range(rounds):
        first = r % len(names)
        for _ in range(MOST_ATTEMPTS):
            found = {}
            for name in names[first:] + names[:first]:
                wait_until_quiet()
                found[name] = turn(engines[name].run)
            if cores.patience.satisfied(threads):
                break
            cores.patience.wait(threads)
        for name in names:
            seconds[name].append(found[name])
    return seconds


def measure_anew(loaders, rounds, turn=burst, threads=1):
    """The same of {name: function that gives an object with run() and close()}, loaded anew for each round: where memory lies changes the time of
    the same code by up to a fifth."""
    seconds = {name: [] for name in loaders}
    names = list(loaders)
    for r in range(rounds):
        first = r % len(names)
        loaded = {name: loaders[name]() for name in names[first:] + names[:first]}
        for name, (found,) in measure(loaded, 1, turn, threads).items():
            seconds[name].append(found)
        for engine in loaded.values():
            engine.close()
    return seconds


def add_clock(parser):
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu: libraries by the process's time, for one thread on a busy machine")


def turn_of(options):
    """What measure() does in a turn, by the clock of add_clock(); None if it adds up several threads."""
    return None if options.clock == "cpu" and options.threads != 1 else functools.partial(burst, clock=CLOCKS[options.clock])


def median(values):
    return statistics.median(values)


def ratio(a, b):
    """Median of the ratios of each round."""
    return statistics.median(x / y for x, y in zip(a, b, strict=True))
