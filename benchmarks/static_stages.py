#!/usr/bin/env python3
"""What a score of machine code is worth as the last stage of choosing without measuring, and between compiling and measuring (Tuna's static model).

    build/venv/bin/python benchmarks/static_stages.py offline --hone build/release/tools/hone/hone --db data.db --score static.model [--cost combined]
    build/venv/bin/python benchmarks/static_stages.py compile --hone build/release/tools/hone/hone --score static.model --models resnet18 mobilenet_v2 --cost without.model
    build/venv/bin/python benchmarks/static_stages.py tune --hone build/release/tools/hone/hone --score static.model --table filter.jsonl --tasks held-out --seconds 60

offline: of the measured schedules of a database that the score was not fitted to, each task's best N by --cost are given to the score (`--refine`), and
a search in batches of 8, in the order that --cost predicts, leaves out what the score says (`--filter`). Nothing is timed. Figures are ratios of sums over
the tasks: the times of the best schedules over those of the chosen ones.
compile: models compiled with and without --refine, their libraries timed in turns (interleaved.py), and the seconds that --refine took.
tune: tuning with and without --filter at equal trials and at equal seconds (tuning_table.py).
"""
import argparse
import functools
import json
import math
import statistics
import sys
import tempfile
from pathlib import Path

import cores
import engines
import interleaved
import model_files
import tuning_curves
import tuning_table
from kernel_report import markdown
from tuning_curves import Contender, run_hone

MARGIN = 0.03  # by which another schedule must seem faster, as hone compile has it
BATCH = 8  # schedules that hone tune measures at a time


def predictions(options, cost, folder):
    """{(task, threads): {schedule: (measured seconds, predicted seconds)}}"""
    path = folder / "predictions.jsonl"
    run_hone(options.hone, "eval", "--db", options.db, "--cost", cost, "--predictions", path, *options.eval)
    found = {}
    for line in path.read_text().splitlines():
        task = json.loads(line)
        found[task["task"], task["threads"]] = dict(zip(task["schedules"], zip(task["measured"], task["predicted"], strict=True), strict=True))
    return found


def joined(first, second, least):
    """A list for each task of (measured, predicted by the first, predicted by the second), the best by the first one first."""
    tasks = []
    for key, schedules in first.items():
        other = second.get(key, {})
        both = [(measured, one, other[name][1]) for name, (measured, one) in schedules.items() if name in other]
        if len(both) >= least:
            tasks.append(sorted(both, key=lambda row: row[1]))
    return tasks


def refined(rows, candidates, weight):
    """The measured seconds of what --refine chooses."""
    def score(row):
        return (1 - weight) * math.log(row[1]) + weight * (math.log(row[2]) if row[2] < math.inf else math.inf)

    few = rows[:candidates]
    best = min(few[1:], key=score, default=few[0])
    return (best if score(best) < score(few[0]) + math.log1p(-MARGIN) else few[0])[0]


def filtered(rows, factor, share):
    """(seconds of the best that a search measures, how many it measures, how many until it has come within 1 % of the best of all)."""
    goal = 1.01 * min(row[0] for row in rows)
    best, measured, reached = None, 0, None
    for start in range(0, len(rows), BATCH):
        batch = rows[start:start + BATCH]
        if best is not None:
            slow = sorted((row for row in batch if row[2] > factor * best[2]), key=lambda row: row[2])
            again = max(0, math.ceil(share * len(batch)) - (len(batch) - len(slow)))
            left_out = {id(row) for row in slow[again:]}
            batch = [row for row in batch if id(row) not in left_out]
        for row in batch:
            measured += 1
            best = row if best is None or row[0] < best[0] else best
            reached = measured if reached is None and row[0] <= goal else reached
    return best[0], measured, reached or len(rows)


def ratio_of_sums(tasks, chosen):
    return sum(min(row[0] for row in rows) for rows in tasks) / sum(chosen(rows) for rows in tasks)


def refine_table(tasks, options):
    rows = [["", "best / chosen, ratio of sums", "mean of the ratios", "tasks whose schedule changed"]]

    def add(name, chosen):
        changed = sum(chosen(task) != task[0][0] for task in tasks)
        mean = statistics.fmean(min(row[0] for row in task) / chosen(task) for task in tasks)
        rows.append([name, f"{ratio_of_sums(tasks, chosen):.4f}", f"{mean:.4f}", f"{changed} of {len(tasks)}"])

    add(f"{options.cost} alone", lambda task: task[0][0])
    add("the score alone, of all", lambda task: min(task, key=lambda row: row[2])[0])
    for candidates in options.candidates:
        for weight in options.weights:
            add(f"candidates={candidates},weight={weight:g}", lambda task, n=candidates, w=weight: refined(task, n, w))
        add(f"the best of {candidates} (measured)", lambda task, n=candidates: min(row[0] for row in task[:n]))
    return markdown(rows)


def filter_table(tasks, options):
    rows = [["", "schedules measured", "best of all / best found, ratio of sums", "measured until 1 % above the best"]]
    everything = sum(map(len, tasks))
    for factor, share in [(math.inf, 1), *((factor, share) for factor in options.factors for share in options.shares)]:
        found = [filtered(task, factor, share) for task in tasks]
        name = "without" if factor == math.inf else f"factor={factor:g},share={share:g}"
        rows.append([name, f"{100 * sum(count for _, count, _ in found) / everything:.1f} %",
                     f"{sum(min(row[0] for row in task) for task in tasks) / sum(best for best, _, _ in found):.4f}",
                     f"{statistics.fmean(reached for _, _, reached in found):.1f}"])
    return markdown(rows)


def offline(options):
    with tempfile.TemporaryDirectory(prefix="hone-static") as name:
        first = predictions(options, options.cost, Path(name))
        second = predictions(options, options.score, Path(name))
    tasks = joined(first, second, options.least)
    if not tasks:
        sys.exit(f"{options.db}: no task has {options.least} schedules (--least)")
    print(f"{len(tasks)} tasks of {statistics.fmean(map(len, tasks)):.0f} schedules in the mean\n")
    print(refine_table(tasks, options), end="\n\n")
    print(filter_table(tasks, options))


def compile_models(options):
    cores.patience.hone = options.hone
    ways = {"without": [], **{text: ["--refine", f"{options.score}:{text}"] for text in options.refine}}
    rows, sums = [["", "network", "ms", "of without", "--refine s", "kernels changed"]], dict.fromkeys(ways, 0.0)
    with tempfile.TemporaryDirectory(prefix="hone-static") as folder:
        for name in options.models:
            label, model, inputs = model_files.load(name)
            libraries, reports = {}, {}
            for i, (way, arguments) in enumerate(ways.items()):
                libraries[way] = Path(folder) / f"{label}_{i}.so"
                reports[way] = json.loads(run_hone(options.hone, "compile", model, "-o", libraries[way], "--no-db", "--no-check", "--threads", options.threads,
                                                   "--cost", options.cost, "--json", *arguments))["refined"]
            loaders = {way: functools.partial(engines.Hone, path, inputs, options.threads) for way, path in libraries.items()}
            seconds = {way: statistics.median(found) for way, found in interleaved.measure_anew(loaders, options.rounds, threads=options.threads).items()}
            for way, found in seconds.items():
                sums[way] += found
                rows.append([way, label, f"{found * 1e3:.4f}", f"{found / seconds['without']:.4f}", f"{reports[way]['seconds']:.2f}",
                             f"{reports[way]['changed']} of {reports[way]['compared']}"])
            print(f"{label}: {', '.join(f'{way} {found * 1e3:.3f} ms' for way, found in seconds.items())}", file=sys.stderr, flush=True)
    rows += [[way, "sum of all", f"{found * 1e3:.4f}", f"{found / sums['without']:.4f}", "", ""] for way, found in sums.items()]
    print(markdown(rows))


def tune(options):
    shared = ["--cost", options.cost]
    contenders = [Contender("without", shared), *(Contender(text, [*shared, "--filter", f"{options.score}:{text}"]) for text in options.filter)]
    tuning_table.compare(contenders, options)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    judged = commands.add_parser("offline")
    judged.add_argument("--hone", required=True, type=Path)
    judged.add_argument("--db", required=True, type=Path, help="schedules of tasks that the score was not fitted to")
    judged.add_argument("--eval", nargs="*", default=[], help="more arguments of hone eval, such as --device=host/1 or --except=few.json")
    judged.add_argument("--candidates", nargs="+", type=int, default=[4, 8, 16])
    judged.add_argument("--weights", nargs="+", type=float, default=[0.25, 0.5, 0.75, 1])
    judged.add_argument("--factors", nargs="+", type=float, default=[1.25, 1.5, 2, 3])
    judged.add_argument("--shares", nargs="+", type=float, default=[0.25])
    judged.add_argument("--least", type=int, default=16, help="schedules that a task must have")
    judged.set_defaults(run=offline)
    compiled = commands.add_parser("compile")
    compiled.add_argument("--hone", required=True, type=Path)
    compiled.add_argument("--models", nargs="+", default=list(model_files.NAMES))
    compiled.add_argument("--refine", nargs="+", default=["candidates=8,weight=0.5", "candidates=8,weight=1"], help="options of --refine, each a row")
    compiled.add_argument("--threads", type=int, default=1)
    compiled.add_argument("--rounds", type=int, default=7)
    compiled.set_defaults(run=compile_models)
    tuned = commands.add_parser("tune")
    tuning_curves.add_options(tuned)
    tuning_table.add_options(tuned)
    tuned.add_argument("--filter", nargs="+", default=["factor=2,share=0.25", "factor=1.5,share=0.25"], help="options of --filter, each a contender")
    tuned.set_defaults(run=tune)
    for command in (judged, compiled, tuned):
        command.add_argument("--score", required=True, type=Path, help="a file of hone train --cost static")
        command.add_argument("--cost", default="auto", help="the cost model that ranks all schedules first")
    options = parser.parse_args()
    options.hone, options.score = options.hone.resolve(), options.score.resolve()
    if not options.score.is_file():
        parser.error(f"--score: no file {options.score}")
    if options.run is tune and not options.table:
        parser.error("--table: the file of the runs is required")
    return options


def main():
    options = parse()
    options.run(options)


if __name__ == "__main__":
    main()
