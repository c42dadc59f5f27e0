"""Curves of tuning runs that differ in one thing (contenders): latency against trials and seconds, what it takes to come near the best known.

A task is an ONNX model. The contenders take turns, each run with an empty database, so that a disturbance of the machine meets them all. A
trial's time is the centre that was stored. A model's latency after a trial is the sum over its kernels of the fastest until then, each as often
as it occurs; before its first trial a kernel counts with that one's time, and without any as predicted. Every run begins at what `hone compile` takes, which a
baseline that is told nothing (random search) would have to find: of such a contender each kernel's first trial is not counted. In the end the libraries of all runs
are timed in turns (interleaved.py), and each curve is scaled to end at its library's time: the same code takes up to a fifth longer in one
process than in another. The best known of a task is the fastest of these libraries.
"""
import collections
import dataclasses
import functools
import html
import json
import math
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cores
import engines
import interleaved
import model_files
from drawing import COLOURS, document

WIDTH, HEIGHT, MARGIN = 420, 220, 45  # of a panel
WORST = 2.5  # latency / best known at the top of a panel


@dataclasses.dataclass
class Contender:
    name: str
    arguments: list  # of `hone tune`
    told: bool = True  # where to begin; if not, each kernel's first trial is not counted
    store: Path = None  # a database file that each run begins with a copy of; none: an empty one
    state: Path = None  # what its strategy has learned before (--policy-state): each run begins with a copy


def chain(op, copies, x, w, **attributes):
    """A model of copies of one operator, each of the last one's result, so that the reorders at the ends count little."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array((rng.standard_normal(w) / math.sqrt(np.prod(w[1:]))).astype(np.float32), f"w{i}") for i in range(copies)]
    nodes = [helper.make_node(op, [f"x{i}", f"w{i}"], [f"x{i + 1}"], **attributes) for i in range(copies)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x) for name in ("x0", f"x{copies}")]
    return helper.make_model(helper.make_graph(nodes, op, ends[:1], ends[1:], weights), opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


TASKS = {
    "conv3x3_28x28x128": lambda: chain("Conv", 4, [1, 128, 28, 28], [128, 128, 3, 3], pads=[1] * 4),
    "depthwise_56x56x144": lambda: chain("Conv", 8, [1, 144, 56, 56], [144, 1, 3, 3], pads=[1] * 4, group=144),
    "matmul_128x768x768": lambda: chain("MatMul", 2, [1, 128, 768], [768, 768]),
}


def find_task(name, folder):
    """(short name, path, {input name: array}) of a task of TASKS, an ONNX file or a model of models/."""
    if name in TASKS:
        path = folder / f"{name}.onnx"
        onnx.save(TASKS[name](), path)
        return model_files.load(str(path))
    known = [entry["name"] for entry in model_files.entries(large=True)]
    if name.endswith(".onnx"):
        if not Path(name).is_file():
            sys.exit(f"--tasks: no file {name}")
    elif name not in known:
        sys.exit(f"--tasks: '{name}' is none of {', '.join([*TASKS, 'held-out', *known])} and no ONNX file")
    return model_files.load(name)


def find_tasks(names, folder):
    """Those of find_task(); of "held-out" the ten kernels of best_known.py."""
    import best_known  # it imports this module

    paths = best_known.write_models(folder) if "held-out" in names else []
    return [find_task(str(name), folder) for given in names for name in (paths if given == "held-out" else [given])]


def spread(stored, start):
    """Seconds since `start` of each trial, of the times stored: those are whole seconds, so the trials of one second are spread over it, or over
    what is left of it after the start."""
    counts, before, moments = collections.Counter(stored), collections.Counter(), []
    for second in stored:
        first, end = max(second, start), max(second + 1, start)
        moments.append(first - start + (end - first) * before[second] / counts[second])
        before[second] += 1
    return moments


def run_hone(*arguments):
    done = subprocess.run([str(part) for part in arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"hone {' '.join(map(str, arguments[1:3]))}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def state_arguments(contender, db):
    """Those of `hone tune` for a copy of the contender's state, beside the run's database, as the run writes it."""
    if not contender.state:
        return []
    return ["--policy-state", shutil.copy(contender.state, db.with_suffix(".state"))]


def build_alone(options, model, library):
    """Compiles a model without a database, or tunes it for options.tune with an empty one beside the library."""
    how = ["tune", "--budget", options.tune, "--db", library.with_suffix(".db"), "--no-shipped"] if options.tune else ["compile", "--no-db"]
    run_hone(options.hone, how[0], model, "-o", library, "--threads", options.threads, *how[1:])


def tune(options, model, contender, seed, folder, budget=None):
    """(what best_so_far() makes of one run with a database of its own in `folder`, the latency that it ends at with all trials counted, the
    library that it wrote)."""
    db = folder / f"{model.stem}_{contender.name.replace('/', '_')}_{seed}.db"
    library = db.with_suffix(".so")
    if contender.store:
        shutil.copy(contender.store, db)
    shared = ["--db", db, "--no-shipped", "--threads", options.threads]
    start = time.time()
    run_hone(options.hone, "tune", model, "-o", library, *shared, "--budget", f"{budget or options.budget}s", "--seed", seed,
             *contender.arguments, *state_arguments(contender, db))
    kernels = json.loads(run_hone(options.hone, "show", model, *shared, "--json"))["kernels"]
    with sqlite3.connect(db) as connection:
        rows = connection.execute("SELECT key, unix_time, centre FROM trial JOIN task ON task.id = trial.task "
                                  "WHERE outcome = 'ok' AND verified ORDER BY trial.id").fetchall()
    moments = spread([row[1] for row in rows], start)
    trials = [(key, seconds, latency) for (key, _, latency), seconds in zip(rows, moments)]
    kernels = {kernel["key"]: (kernel["times"], kernel["predicted_seconds"]) for kernel in kernels}
    curve = best_so_far(trials, kernels)
    end = curve[-1][2] if curve else math.inf
    return curve if contender.told else best_so_far(without_starts(trials), kernels), end, library


def without_starts(trials):
    """All but the first of each kernel."""
    begun = set()
    return [trial for trial in trials if trial[0] in begun or begun.add(trial[0])]


def best_so_far(trials, kernels):
    """[(trials, seconds, latency)] wherever the latency falls, and at the end. `trials`: (kernel, seconds, latency) in order; `kernels`: how often
    each occurs, and its predicted latency."""
    best = {key: predicted for key, (_, predicted) in kernels.items()}
    for key, _, latency in reversed(trials):
        if key in best:
            best[key] = latency  # of its first trial
    curve, total = [], math.inf
    for i, (key, seconds, latency) in enumerate(trials):
        if key in best:
            best[key] = min(best[key], latency)
        now = sum(times * best[key] for key, (times, _) in kernels.items())
        if now < total:
            curve.append((i + 1, seconds, now))
        total = now
    if curve and curve[-1][0] < len(trials):
        curve.append((len(trials), trials[-1][1], total))
    return curve


def retime(libraries, inputs, threads, rounds=7):
    """Seconds of each library, timed in turns: the median over the rounds."""
    seconds = interleaved.measure_anew({library: functools.partial(engines.Hone, library, inputs, threads) for library in libraries}, rounds,
                                       threads=threads)
    return {library: statistics.median(found) for library, found in seconds.items()}


def scaled(curve, end, measured):
    """The curve with latencies in proportion, such that `end` becomes what was `measured` in its place."""
    return [(trials, seconds, latency / end * measured) for trials, seconds, latency in curve]


def first_good(curve, latency):
    """(trials, seconds) until the latency is reached; None if it is not."""
    return next(((trials, seconds) for trials, seconds, found in curve if found <= latency), None)


def median_end(runs):
    """The latency in the end, median over the runs; inf without any."""
    return statistics.median(curve[-1][2] if curve else math.inf for curve in runs)


def summarise(runs, best_known, goals, budget, first_end):
    """Of one contender at one task, medians over its runs, until shares of the best known and the first contender's end. Where one was not
    reached, a run counts with all its trials and seconds."""
    row = {"runs": len(runs), "trials": statistics.median(curve[-1][0] if curve else 0 for curve in runs),
           "share": statistics.median(best_known / curve[-1][2] if curve else 0 for curve in runs), "goals": []}
    for latency in [best_known / goal for goal in goals] + [first_end]:
        reached = [first_good(curve, latency) for curve in runs]
        ends = [found or (curve[-1][0] if curve else 0, budget) for found, curve in zip(reached, runs)]
        row["goals"].append({"reached": sum(found is not None for found in reached), "trials": statistics.median(end[0] for end in ends),
                             "seconds": statistics.median(end[1] for end in ends)})
    return row


def ratio(pairs, value):
    """Geometric mean of a row's value over another's."""
    return math.exp(statistics.fmean(math.log(value(a) / value(b)) for a, b in pairs))


def table(report):
    """Markdown: a row per task and contender; then means over tasks, relative to the first contender."""
    first = report["contenders"][0]
    goals = [f"{goal:g}" for goal in report["goals"]] + [f"{first}'s end"]
    lines = ["| task | " + report["what"] + " | " + " | ".join(f"s to {goal} | trials to {goal}" for goal in goals) + " | trials | best known / end |",
             "|---|---|" + "--:|" * (2 * len(goals) + 2)]
    for task, rows in report["summary"].items():
        for name, row in rows.items():
            cells = []
            for found in row["goals"]:  # where not all runs came so far, the median is of what they took at least
                more = "" if found["reached"] == row["runs"] else f" ({found['reached']} of {row['runs']})"
                cells += [f"{found['seconds']:.1f}{more}", f"{found['trials']:.0f}"]
            lines.append(f"| {task} | {name} | {' | '.join(cells)} | {row['trials']:.0f} | {row['share']:.3f} |")
    for name in report["contenders"]:
        pairs = [(rows[name], rows[first]) for rows in report["summary"].values()]
        cells = [f"{ratio(pairs, lambda row: max(row['goals'][i][unit], least)):.2f}x"  # noqa: B023
                 for i in range(len(goals)) for unit, least in (("seconds", 0.1), ("trials", 1))]
        cells.append(f"{ratio(pairs, lambda row: max(row['trials'], 1)):.2f}x")
        cells.append(f"{ratio(pairs, lambda row: max(row['share'], 1e-3)):.3f}x")
        lines.append(f"| mean, relative to {first} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def panel(left, top, task, axis, contenders, best_known, goal):
    """Latency over the best known against trials or seconds, a line a run."""
    width, height = WIDTH - MARGIN - 15, HEIGHT - 60
    place = 0 if axis == "trials" else 1
    right = max([point[place] for runs in contenders.values() for curve in runs for point in curve] or [1]) or 1

    def at(point):
        share = (min(point[2] / best_known, WORST) - 1) / (WORST - 1)
        return left + width * point[place] / right, top + height * (1 - share)

    parts = [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>'
             f'<text x="{left}" y="{top - 6}">{html.escape(task)}: latency / best known against {axis} (0 to {right:.0f})</text>']
    for y in (1, 1 / goal, 1.5, 2, WORST):
        line = at((0, 0, y * best_known))[1]
        parts.append(f'<path d="M{left} {line:.1f}h{width}" stroke="#ddd"/><text x="{left - 32}" y="{line + 4:.1f}">{y:.2f}</text>')
    for n, (name, runs) in enumerate(contenders.items()):
        colour = COLOURS[n % len(COLOURS)]
        for curve in filter(None, runs):
            x, y = at(curve[0])
            path = f"M{x:.1f} {y:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in map(at, curve[1:]))
            parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{left + width - 4}" y="{top + 14 + 13 * n}" text-anchor="end" fill="{colour}">{html.escape(name)}</text>')
    return "".join(parts)


def svg(report):
    """A row of two panels per task."""
    parts = []
    for row, (task, contenders) in enumerate(report["curves"].items()):
        for column, axis in enumerate(("trials", "seconds")):
            parts.append(panel(column * WIDTH + MARGIN, row * HEIGHT + 25, task, axis, contenders, report["best_known"][task],
                               max(report["goals"])))
    return document(2 * WIDTH, HEIGHT * len(report["curves"]) + 10, parts)


def page(report):
    """The drawing above its table, as HTML."""
    title = f"Tuning curves by {report['what']}"
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>\n{svg(report)}'
            f"<pre>{html.escape(table(report))}</pre></body></html>\n")


def add_options(parser):
    parser.add_argument("--hone", required=True, type=Path)
    parser.add_argument("--output", type=Path, help="write the curves to this file, .svg or .html (with the table)")
    parser.add_argument("--json", type=Path, help="write curves and table to this file, too")
    parser.add_argument("--budget", "--seconds", type=float, default=30, help="seconds of each run")
    parser.add_argument("--runs", "--seeds", type=int, default=1, help="of each contender, with the seeds that follow each other")
    parser.add_argument("--first-seed", type=int, default=1, help="the first of them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--goals", type=float, nargs="+", default=[0.95], help="shares of the best known speed")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS),
                        help=f"{', '.join(TASKS)}, held-out (the ten kernels of best_known.py), a model of models/ or an ONNX file")


def write(report, options):
    if options.output:
        options.output.write_text(page(report) if options.output.suffix == ".html" else svg(report))
    if options.json:
        options.json.write_text(json.dumps(report) + "\n")


def compare(what, contenders, options):
    """Runs all, prints the table; the files are written after each task. `what` the contenders are: "search", "cost model"."""
    options.hone = options.hone.resolve()
    cores.patience.hone = options.hone
    if not all(0 < goal <= 1 for goal in options.goals):
        sys.exit("--goals: expected shares above 0, at most 1")
    report = {"what": what, "budget": options.budget, "threads": options.threads, "goals": options.goals,
              "contenders": [contender.name for contender in contenders], "best_known": {}, "summary": {}, "curves": {}}
    with tempfile.TemporaryDirectory(prefix="hone-curves") as name:
        folder = Path(name)
        tasks = find_tasks(options.tasks, folder)
        # A net is compiled at its first use. And what is wrong with a contender is known before the first minute.
        onnx.save(chain("MatMul", 1, [1, 8, 8], [8, 8]), folder / "first.onnx")
        for contender in contenders:
            tune(options, folder / "first.onnx", contender, 0, folder, budget=1)
        for task, model, inputs in tasks:
            runs = []  # (contender, curve, end, library)
            for seed in range(options.first_seed, options.first_seed + options.runs):
                turn = seed % len(contenders)
                runs += [(contender.name, *tune(options, model, contender, seed, folder)) for contender in contenders[turn:] + contenders[:turn]]
            if not any(curve for _, curve, _, _ in runs):
                sys.exit(f"{task}: no kernel was measured in {options.budget:g} s, expected a longer --budget")
            ends = retime([library for *_, library in runs], inputs, options.threads)
            best = min(ends[library] for _, curve, _, library in runs if curve)
            curves = {contender.name: [] for contender in contenders}
            for contender, curve, end, library in runs:
                curves[contender].append(scaled(curve, end, ends[library]))
            first_end = median_end(curves[contenders[0].name])
            report["curves"][task], report["best_known"][task] = curves, best
            report["summary"][task] = {key: summarise(own, best, options.goals, options.budget, first_end) for key, own in curves.items()}
            print(f"{task}: best known {best * 1e3:.4f} ms", file=sys.stderr, flush=True)
            write(report, options)
    print(table(report), end="")
