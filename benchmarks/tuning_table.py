"""Tuning runs that differ in one thing (contenders), compared at equal trials and at equal seconds; each run is kept, so that a script goes on.

A run is one `hone tune` of a task with an empty database. It ends when it has --trials trials and --seconds seconds have passed, at the latest after
--limit. The order is seed by seed, task by task, and there one contender after another, another one first each time, so that a drift of the machine meets all.
Each run is a line of JSON in a file, written when it ends; the same command leaves out what the file has. Its database stays in a folder beside, FILE.work. What a contender had found by so many trials, or seconds,
is compiled from the trials of that moment, and when all contenders of a task and seed have run, these libraries and that of `hone compile` without any
trial are timed in turns (interleaved.py), which is a line, too: only times of one turn are compared.
A trial is code that was run, whatever it answered. A contender may begin with a copy of a database (Contender.store) instead of an empty one; its
records are no trials.
"""
import collections
import contextlib
import functools
import json
import math
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cores
import engines
import interleaved
import tuning_curves
from kernel_report import markdown
from trials import RAN

SETTINGS = ("threads", "trials", "seconds", "limit")  # what all runs of a file share
START = ""  # the library of `hone compile` without any trial
REPORTED = ("trials", "search_seconds", "compile_seconds", "waited_seconds", "spent")  # of `hone tune --json`, where it has them


class Runs:
    """The lines of a file: those of runs by (task, contender, seed), those of timed turns by (task, seed)."""

    def __init__(self, path, settings):
        self.path, self.settings = path, settings
        self.found, self.timed = {}, {}
        lines = path.read_text().splitlines() if path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines):
                    break  # cut off when a run was killed; it is run again
                sys.exit(f"{path} line {number}: no line of tuning runs ({error})")
        self._write_all()

    def _take(self, line):
        if "settings" in line:
            if line["settings"] != self.settings:
                raise ValueError(f"runs with {line['settings']}, expected {self.settings}: use another file")
        elif "turns" in line:
            self.timed[line["task"], line["seed"]] = line["turns"]
        else:
            self.found[line["task"], line["contender"], line["seed"]] = line

    def _write_all(self):
        lines = [{"settings": self.settings}, *self.found.values(), *({"task": task, "seed": seed, "turns": turns} for (task, seed), turns in self.timed.items())]
        self.path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def add(self, line):
        self._take(line)
        with open(self.path, "a") as file:
            file.write(json.dumps(line) + "\n")


def last_trial(db):
    """The number of a store's last record; what comes later is of a run."""
    if db is None:
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT coalesce(max(id), 0) FROM trial").fetchone()[0]


def stored(db, after=0):
    """[(id, kernel or None if the answer was none, second, latency)] in order, of the records behind that number."""
    if not db.exists():
        return []
    with contextlib.closing(sqlite3.connect(db)) as connection:
        try:
            rows = connection.execute(f"SELECT trial.id, key, unix_time, centre, outcome = 'ok' AND verified FROM trial JOIN task ON task.id = trial.task "
                                      f"WHERE {RAN} AND trial.id > ? ORDER BY trial.id", (after,)).fetchall()
        except sqlite3.OperationalError:
            return []  # it is just being made
    return [(number, key if good else None, second, latency) for number, key, second, latency, good in rows]


def tune(options, model, contender, seed, db):
    """What `hone tune --json` says; ended as soon as there are enough trials and seconds."""
    budget = options.limit if options.trials else options.seconds
    command = [options.hone, "tune", model, "-o", db.with_suffix(".so"), "--db", db, "--no-shipped", "--no-check", "--threads", options.threads,
               "--budget", f"{budget:g}s", "--seed", seed, "--json", *contender.arguments,
               *tuning_curves.state_arguments(contender, db)]
    start, before = time.monotonic(), last_trial(contender.store)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=errors)
        try:
            while process.poll() is None:
                time.sleep(0.1)
                passed = time.monotonic() - start
                if options.trials and passed >= options.seconds and len(stored(db, before)) >= options.trials:
                    process.send_signal(signal.SIGINT)
                    process.wait(timeout=600)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        out.seek(0)
        errors.seek(0)
        if process.returncode not in (0, 130):
            sys.exit(f"hone tune {model.name} ({contender.name}): exit code {process.returncode}: {errors.read().strip()}")
        return json.loads(out.read())


def run(options, task, model, contender, seed, db):
    """The line of one run."""
    for old in (db, Path(f"{db}-wal"), Path(f"{db}-shm")):
        old.unlink(missing_ok=True)
    if contender.store:
        with contextlib.closing(sqlite3.connect(f"file:{contender.store}?mode=ro", uri=True)) as source, contextlib.closing(sqlite3.connect(db)) as target:
            source.backup(target)
    start = time.time()
    report = tune(options, model, contender, seed, db)
    wall = time.time() - start
    rows = stored(db, last_trial(contender.store))
    moments = tuning_curves.spread([row[2] for row in rows], start)
    kernels = json.loads(tuning_curves.run_hone(options.hone, "show", model, "--db", db, "--no-shipped", "--threads", options.threads, "--json", *cost_of(contender)))
    kernels = {kernel["key"]: (kernel["times"], kernel["predicted_seconds"]) for kernel in kernels["kernels"]}
    trials = [(key, moment, latency) for (_, key, _, latency), moment in zip(rows, moments, strict=True)]
    begun = set()
    counted = [trial if contender.told or trial[0] in begun or begun.add(trial[0]) else (None, *trial[1:]) for trial in trials]
    return {"task": task, "contender": contender.name, "seed": seed, "arguments": [str(part) for part in contender.arguments], "trials": len(rows),
            "start": start, "seconds": round(wall, 2), "curve": tuning_curves.best_so_far(counted, kernels), "report": {key: report[key] for key in REPORTED if key in report}}


def safe(name):
    return re.sub(r"[^A-Za-z0-9_.+-]", "-", name)


def cost_of(contender):
    """The cost model that decides which kernels there are."""
    arguments = [str(part) for part in contender.arguments]
    return ["--cost", arguments[arguments.index("--cost") + 1]] if "--cost" in arguments else []


def cut(options, db, contender, start, limit, copy):
    """A copy of a database with the trials of a moment: `limit` is ("trials", N) or ("seconds", S). How many they are."""
    with contextlib.closing(sqlite3.connect(db)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        rows = stored(copy, last_trial(contender.store))
        moments = tuning_curves.spread([row[2] for row in rows], start)
        what, bound = limit
        late = [row[0] for i, (row, moment) in enumerate(zip(rows, moments, strict=True)) if (i >= bound if what == "trials" else moment > bound)]
        if not contender.told:
            begun = set()
            late += [row[0] for row in rows if not (row[1] in begun or begun.add(row[1]))]
        target.executemany("DELETE FROM trial WHERE id = ?", [(number,) for number in set(late)])
        target.execute("DELETE FROM choice")  # of the end
        target.commit()
    return len(rows) - len(set(late))


def limits(options):
    return [("trials", options.trials)] * bool(options.trials) + [("seconds", options.seconds)]


def measured(options, loaders):
    return interleaved.measure_anew(loaders, options.rounds, interleaved.turn_of(options), options.threads)


def time_in_turns(options, model, inputs, contenders, databases, starts):
    """{contender: {"trials": seconds of a run, "seconds": likewise}}, and of START one number."""
    with tempfile.TemporaryDirectory(prefix="hone-table") as name:
        folder, libraries = Path(name), {}
        shared = ["--no-shipped", "--no-check", "--threads", options.threads]
        tuning_curves.run_hone(options.hone, "compile", model, "-o", folder / "start.so", "--no-db", *shared[1:], *cost_of(contenders[0]))
        libraries[START, ""] = folder / "start.so"
        for i, contender in enumerate(contenders):
            counts = {}
            for limit in limits(options):
                copy = folder / f"{i}_{limit[0]}.db"
                count = cut(options, databases[contender.name], contender, starts[contender.name], limit, copy)
                if count not in counts:  # the same trials: the same library
                    counts[count] = copy.with_suffix(".so")
                    tuning_curves.run_hone(options.hone, "compile", model, "-o", counts[count], "--db", copy, *shared, *cost_of(contender))
                libraries[contender.name, limit[0]] = counts[count]
        loaders = {path: functools.partial(engines.Hone, path, inputs, options.threads) for path in dict.fromkeys(libraries.values())}
        seconds = {path: statistics.median(found) for path, found in measured(options, loaders).items()}
    turns = {contender.name: {} for contender in contenders}
    for (contender, what), path in libraries.items():
        turns.setdefault(contender, {})[what] = seconds[path]
    return turns


def group(options, runs, task, contenders, seed, work):
    """All runs of a task and seed, those that are missing; then their turns, which need the databases of all."""
    label, model, inputs = task
    turn = seed % len(contenders)
    databases = {contender.name: work / f"{label}_{safe(contender.name)}_{seed}.db" for contender in contenders}
    wanted = bool(options.rounds) and not set(databases) <= set(runs.timed.get((label, seed), {}))
    for contender in contenders[turn:] + contenders[:turn]:
        known = runs.found.get((label, contender.name, seed))
        if known and known["arguments"] != [str(part) for part in contender.arguments]:
            sys.exit(f"{runs.path}: {contender.name} was run with {' '.join(known['arguments'])}, expected {' '.join(map(str, contender.arguments))}: use another file")
        if known and (databases[contender.name].exists() or not wanted):
            continue
        runs.add(run(options, label, model, contender, seed, databases[contender.name]))
        print(f"{label}, seed {seed}: {contender.name}", file=sys.stderr, flush=True)
    if wanted:
        starts = {name: runs.found[label, name, seed]["start"] for name in databases}
        runs.add({"task": label, "seed": seed, "turns": time_in_turns(options, model, inputs, contenders, databases, starts)})


def at(curve, what, bound):
    """The latency that a curve had by so many trials or seconds; None before the first."""
    place = 0 if what == "trials" else 1
    return next((point[2] for point in reversed(curve) if point[place] <= bound), None)


def latency(runs, task, contender, seed, limit):
    """By the turns if there are, else by what was stored."""
    turns = runs.timed.get((task, seed))
    if turns and contender in turns:
        return turns[contender][limit[0]]
    return at(runs.found[task, contender, seed]["curve"], *limit)


def geomean(values):
    values = [value for value in values if value]
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def spread(values):
    """Mean over seeds, the least and the most."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    return f"{statistics.fmean(values):.3f}" + (f" ({min(values):.3f} to {max(values):.3f})" if len(values) > 1 else "")


def needed(runs, task, contender, first, seed, options):
    """(trials, seconds) that a contender needs for what the first one has in the end, over those of the first; both by what was stored. What is never reached
    counts with the whole time and all trials."""
    own, goal = (runs.found[task, name, seed] for name in (contender, first))
    wanted = at(goal["curve"], "seconds", options.seconds)
    if wanted is None:
        return None, None
    least = (1, 0.1)
    ends = [next((point[:2] for point in run["curve"] if point[2] <= wanted), (run["trials"], options.seconds)) for run in (own, goal)]
    return tuple(max(bound, mine) / max(bound, its) for bound, mine, its in zip(least, *ends, strict=True))


def summary(runs, tasks, names, options):
    """{contender: {column: [a figure per seed]}}: geometric means over the tasks."""
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    whole = [(task, seed) for task in tasks for seed in seeds if all((task, name, seed) in runs.found for name in names)]
    found = {name: collections.defaultdict(list) for name in names}
    for seed in seeds:
        here = [task for task, s in whole if s == seed]
        for name in names:
            for limit in limits(options):
                pairs = [(latency(runs, task, names[0], seed, limit), latency(runs, task, name, seed, limit)) for task in here]
                found[name][f"speed at equal {limit[0]}"].append(geomean([first / own for first, own in pairs if first and own]))
                best = [min(filter(None, (latency(runs, task, other, s, limit) for other in names for t, s in whole if t == task and s == seed)), default=None)
                        for task in here]
                found[name][f"of the best at equal {limit[0]}"].append(geomean([b / own for b, (_, own) in zip(best, pairs, strict=True) if b and own]))
            starts = [runs.timed[task, seed][START][""] / latency(runs, task, name, seed, ("seconds", options.seconds)) for task in here if (task, seed) in runs.timed]
            found[name]["over the default schedule"].append(geomean(starts))
            ends = [needed(runs, task, name, names[0], seed, options) for task in here]
            for i, what in ((1, "seconds"), (0, "trials")):
                found[name][f"{what} to {names[0]}'s end"].append(geomean([end[i] for end in ends]))
            found[name]["trials"].append(geomean([runs.found[task, name, seed]["trials"] for task in here]))
    return found


def table(found):
    names = list(found)
    columns = list(found[names[0]])
    return markdown([["", *columns], *([name, *(spread(found[name][column]) for column in columns)] for name in names)])


def add_options(parser):
    parser.add_argument("--table", type=Path, metavar="FILE.jsonl", help="compare at equal trials and seconds; every run is kept in this file, and what it has is not run again")
    parser.add_argument("--trials", type=int, default=200, help="with --table: trials of a run; 0: only --budget counts")
    parser.add_argument("--limit", type=float, help="with --table: the most seconds of a run; default: three times --budget")
    parser.add_argument("--rounds", type=int, default=5, help="with --table: turns of each library in the end; 0: times as they were stored")
    interleaved.add_clock(parser)


def compare(contenders, options, tasks=None):
    """Runs what is missing, prints the table and returns its figures. `options`: of add_options() here and in tuning_curves; `tasks`: as find_task() there gives."""
    if options.trials < 0 or options.rounds < 0 or options.runs < 1 or options.budget <= 0:
        sys.exit("--trials, --rounds, --runs, --budget: expected numbers above 0, of the first two 0 or more")
    if interleaved.turn_of(options) is None:
        sys.exit("--clock cpu: expected --threads 1, as the time of several threads is added up")
    options.hone = options.hone.resolve()
    options.seconds, options.seeds = options.budget, options.runs
    options.limit = options.limit or 3 * options.budget
    cores.patience.hone = options.hone
    runs = Runs(options.table, {key: getattr(options, key) for key in SETTINGS})
    work = options.table.with_suffix(".work")
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hone-tasks") as name:
        tasks = tasks or tuning_curves.find_tasks(options.tasks, Path(name))
        for seed in range(options.first_seed, options.first_seed + options.runs):
            for task in tasks:
                group(options, runs, task, contenders, seed, work)
    found = summary(runs, [label for label, _, _ in tasks], [contender.name for contender in contenders], options)
    print(table(found))
    return found
