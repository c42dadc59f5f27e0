#!/usr/bin/env python3
"""Whole networks chosen by a score of machine code without measuring, as Tuna's tables I to III have them (Wang et al. 2021, section V.A).

    build/venv/bin/python benchmarks/tuna_tables.py --hone build/release/tools/hone/hone --score static.model --full 300 --price 1.53 --table tuna.jsonl

Each network is built from an empty database in five ways, and their libraries and ONNX Runtime are timed in turns (interleaved.py):

    compile    hone compile: the best that --cost predicts
    refined    the same with --refine: the score chooses among the best few
    tuna       evolution strategies guided by the score alone, nothing measured (hone tune --no-db --mode efficient --search es --guide SCORE)
    partial    hone tune for the seconds that `tuna` took, but --partial at most
    full       hone tune for --full seconds

Printed are the latencies (table I), the seconds until the library was written (table II), and these times --price (table III). A network that was built and
timed is a line of --table and is not done again.
"""
import argparse
import functools
import json
import math
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

NETWORKS = ("ssdlite320_full", "ssd_inception_v2", "resnet50", "bert_base_s128")  # or their nearest open graphs: those of the paper
RIVAL = "ONNX Runtime"
PAPER = "In the paper (Xeon 8124M) Tuna takes 0.013, 0.020, 0.011 and 0.004 of the hours of full tuning, and has 0.915 of its speed on average."


def build(options, model, folder, *arguments):
    """(library, seconds until it was there)"""
    library = folder / f"{len(list(folder.glob('*.so')))}.so"
    start = time.perf_counter()
    run_hone(options.hone, arguments[0], model, "-o", library, "--threads", options.threads, "--no-check", *arguments[1:])
    return library, time.perf_counter() - start


def tune(options, model, folder, seconds):
    store = folder / f"{len(list(folder.glob('*.db')))}.db"
    return build(options, model, folder, "tune", "--cost", options.cost, "--seed", options.seed, "--budget", f"{seconds:.1f}s", "--no-shipped", "--db", store)


def ways(options, model, folder):
    """{way: (library, seconds)}"""
    compiled = ("compile", "--no-db", "--cost", options.cost)
    found = {"compile": build(options, model, folder, *compiled),
             "refined": build(options, model, folder, *compiled, "--refine", f"{options.score}:candidates=8,weight=0.5"),
             "tuna": build(options, model, folder, "tune", "--no-db", "--cost", options.cost, "--seed", options.seed, "--mode", "efficient", "--search", "es",
                           "--guide", options.score)}
    found["partial"] = tune(options, model, folder, min(max(found["tuna"][1], 1), options.partial))
    found["full"] = tune(options, model, folder, options.full)
    return found


def measure(options, name):
    label, model, inputs = model_files.load(name)
    with tempfile.TemporaryDirectory(prefix="hone-tuna") as folder:
        found = ways(options, model, Path(folder))
        loaders = {way: functools.partial(engines.Hone, library, inputs, options.threads) for way, (library, _) in found.items()}
        loaders[RIVAL] = functools.partial(engines.OnnxRuntime, model, inputs, options.threads)
        times = interleaved.measure_anew(loaders, options.rounds, threads=options.threads)
    return {"network": label, "latency": {way: statistics.median(seconds) for way, seconds in times.items()},
            "seconds": {way: seconds for way, (_, seconds) in found.items()}}


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def tables(lines, options):
    names = [line["network"] for line in lines]
    latency, seconds, cost = [["ms", *names, "speed / full"]], [["seconds", *names, "of full"]], [["dollar", *names]]
    for way in lines[0]["latency"]:
        own = [line["latency"][way] for line in lines]
        ratio = geomean([line["latency"]["full"] / line["latency"][way] for line in lines])
        latency.append([way, *(f"{1e3 * found:.2f}" for found in own), f"{ratio:.3f}"])
        if way == RIVAL:
            continue
        own = [line["seconds"][way] for line in lines]
        seconds.append([way, *(f"{found:.1f}" for found in own), f"{sum(own) / sum(line['seconds']['full'] for line in lines):.3f}"])
        cost.append([way, *(f"{found / 3600 * options.price:.4f}" for found in own)])
    return "\n\n".join(map(markdown, (latency, seconds, cost)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path)
    parser.add_argument("--score", required=True, type=Path, help="a file of hone train --cost static")
    parser.add_argument("--cost", default="auto", help="the cost model of all ways; that of `tuna` decides which kernels there are, but not their schedules")
    parser.add_argument("--models", nargs="+", default=list(NETWORKS), help="of models/, or ONNX files")
    parser.add_argument("--full", type=float, default=300, help="seconds of tuning in full")
    parser.add_argument("--partial", type=float, default=math.inf, help="the most seconds of tuning for as long as `tuna`")
    parser.add_argument("--price", type=float, default=1.53, help="dollars of an hour of the machine; the paper's Xeon: 1.53")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--table", required=True, type=Path, metavar="FILE.jsonl")
    options = parser.parse_args()
    options.hone, options.score = options.hone.resolve(), options.score.resolve()
    if not options.score.is_file():
        parser.error(f"--score: no file {options.score}")
    cores.patience.hone = options.hone
    lines = [json.loads(line) for line in options.table.read_text().splitlines()] if options.table.exists() else []
    for name in options.models:
        if any(line["network"] == Path(name).stem for line in lines):
            continue
        lines.append(measure(options, name))
        with open(options.table, "a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
        print(f"{lines[-1]['network']}: {lines[-1]['latency']}", file=sys.stderr, flush=True)
    print(tables(lines, options), PAPER, sep="\n\n")


if __name__ == "__main__":
    main()
