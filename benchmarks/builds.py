#!/usr/bin/env python3
"""Models built in several ways, their libraries timed in turns (interleaved.py), and the seconds that each build took.

    build/venv/bin/python benchmarks/builds.py --hone build/release/tools/hone/hone --models resnet18 mobilenet_v2
        --ways 'compile=compile --no-db' 'efficient=tune --no-db --mode efficient' 'quality=tune --db NEW --mode quality --budget 2m'

A way is NAME=COMMAND, the command of `hone` with its options; the model, the library and the number of threads are added. NEW stands for a database that is
not there yet. Latencies are medians over rounds in each of which every library is loaded anew; ratios are to the first way.
"""
import argparse
import functools
import json
import shlex
import statistics
import sys
import tempfile
import time
from pathlib import Path

import cores
import engines
import interleaved
import model_files
from kernel_report import markdown
from tuning_curves import run_hone
from tuning_table import geomean

RIVAL = "ONNX Runtime"


def build(options, model, command, library):
    """(seconds until the library was there, what the model is predicted to take; None if something was measured)"""
    arguments = [str(library.with_suffix(".db")) if word == "NEW" else word for word in shlex.split(command)]
    start = time.perf_counter()
    shared = ["-o", library, "--threads", options.threads, "--no-check", "--seed", options.seed, "--json"]
    report = run_hone(options.hone, arguments[0], model, *shared, *arguments[1:])
    seconds = time.perf_counter() - start
    kernels = json.loads(report)["kernels"]
    is_predicted = not any(kernel["trials"] for kernel in kernels)
    return seconds, sum(kernel["times"] * kernel["predicted_seconds"] for kernel in kernels) if is_predicted else None


def measure(options, name):
    label, model, inputs = model_files.load(name)
    loaders, seconds, predicted = {}, {}, {}
    with tempfile.TemporaryDirectory(prefix="hone-builds") as folder:
        for i, (way, command) in enumerate(options.ways.items()):
            library = Path(folder) / f"{i}.so"
            seconds[way], predicted[way] = build(options, model, command, library)
            loaders[way] = functools.partial(engines.Hone, library, inputs, options.threads)
        if options.rival:
            loaders[RIVAL] = functools.partial(engines.OnnxRuntime, model, inputs, options.threads)
        rounds = interleaved.measure_anew(loaders, options.rounds, interleaved.turn_of(options), options.threads)
    return {"network": label, "rounds": rounds, "seconds": seconds, "predicted": predicted}


def table(lines):
    """A row for each network and way; the last ones are geometric means. Speeds are the first way's time over that of each."""
    rows, speeds = [["network", "way", "ms", "speed", "predicted speed", "seconds to build"]], {}
    for line in lines:
        first = next(iter(line["rounds"]))
        for way, found in line["rounds"].items():
            predicted = [line["predicted"].get(name) for name in (first, way)]
            speed = interleaved.ratio(line["rounds"][first], found) if found else None
            pair = (speed, predicted[0] / predicted[1] if all(predicted) else None)
            speeds.setdefault(way, []).append(pair)
            built = line["seconds"].get(way)
            rows.append([line["network"], way, f"{1e3 * statistics.median(found):.3f}" if found else "", *map(shown, pair), "" if built is None else f"{built:.1f}"])
    if len(lines) > 1:
        for way, pairs in speeds.items():
            means = [None if None in column else geomean(column) for column in zip(*pairs, strict=True)]
            rows.append(["mean", way, "", *map(shown, means), ""])
    return markdown(rows)


def shown(speed):
    return "" if speed is None else f"{speed:.3f}"


def named(text):
    name, separator, command = text.partition("=")
    if not separator or not name or not command:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=COMMAND, as in 'quality=tune --mode quality'")
    return name, command


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path)
    parser.add_argument("--models", required=True, nargs="+", help="of models/, or ONNX files")
    parser.add_argument("--ways", required=True, nargs="+", type=named, metavar="NAME=COMMAND")
    parser.add_argument("--rival", action="store_true", help=f"time {RIVAL}, too")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7, help="0: nothing is timed, predictions are compared")
    interleaved.add_clock(parser)
    parser.add_argument("--table", type=Path, metavar="FILE.jsonl", help="keep each network as a line, and do not do it again")
    options = parser.parse_args()
    if interleaved.turn_of(options) is None:
        parser.error("--clock cpu: expected --threads 1, as the time of several threads is added up")
    options.hone, options.ways = options.hone.resolve(), dict(options.ways)
    cores.patience.hone = options.hone
    lines = [json.loads(line) for line in options.table.read_text().splitlines()] if options.table and options.table.exists() else []
    for name in options.models:
        if any(line["network"] == Path(name).stem for line in lines):
            continue
        lines.append(measure(options, name))
        if options.table:
            with open(options.table, "a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
        print(f"{lines[-1]['network']}: done", file=sys.stderr, flush=True)
    print(table(lines))


if __name__ == "__main__":
    main()
