#!/usr/bin/env python3
"""How much of ten kernels' best known time is reached without measuring, and by a few measurements that start from other networks' schedules.

    build/venv/bin/python benchmarks/best_known.py --hone build/release/tools/hone/hone --db best.db --sources others.db [--seconds 300]
        [--measure 0 10] [--only REGEX] [--threads 1] [--cost without_them.model] [--json results.json]

First each kernel is tuned for --seconds into --db (0: it has been), alone in a model whose data have the order that they have in its network. Then
`hone transfer` times together what compiling with an empty database takes (default), what N candidates of each kernel lead to whose search starts
from the schedules of --sources, and the best of all records of --db. Records of a kernel itself are never a source; that --sources and --cost
know nothing of the kernels' networks is up to them (`hone db export --model`, `hone train --exclude-model`).
"""
import argparse
import json
import re
import statistics
import sys
import tempfile
from pathlib import Path

import onnx

import kernel_models
import kernel_rows
from kernel_report import markdown
from tuning_curves import run_hone

# Of resnet50, mobilenet_v2 and bert_base_s128.
KERNELS = (
    "conv 64x56x56 -> 64x56x56 3x3 relu",
    "conv 256x14x14 -> 256x14x14 3x3 relu",
    "conv 128x56x56 -> 128x28x28 3x3 s2 relu",
    "conv 256x56x56 -> 64x56x56 1x1 relu",
    "conv 1024x14x14 -> 256x14x14 1x1 relu",
    "conv 2048x7x7 -> 512x7x7 1x1 relu",
    "depthwise 144x56x56 -> 144x56x56 3x3 clip",
    "depthwise 96x112x112 -> 96x56x56 3x3 s2 clip",
    "gemm 128x768x3072 bias",
    "attention 128 tokens, 12x64",
)


def write_model(row, folder):
    """The kernel alone, named after itself."""
    kernel = kernel_models.Model(row, 1)
    model = kernel.channels_last()[0] if row.kind in kernel_rows.WITH_REORDERS else kernel.onnx()
    model.graph.name = re.sub(r"[^a-z0-9]+", "_", row.name)
    path = folder / f"{model.graph.name}.onnx"
    onnx.save_model(model, path)
    return path


def write_models(folder):
    """All of KERNELS, each alone."""
    rows = {row.name: row for row in kernel_rows.rows()}
    return [write_model(rows[name], folder) for name in KERNELS]


def reached(options, path, measured):
    """(default, transferred, best) seconds, timed together; the means of --repeats runs."""
    runs = [json.loads(run_hone(options.hone, "transfer", "--to", path, "--from", options.sources, "--measure", measured, "--json", *shared(options)))
            for _ in range(options.repeats)]
    sources = [run["sources"][0] for run in runs]
    return [statistics.fmean(source[key] for source in sources) for key in ("default_seconds", "transfer_seconds", "best_seconds")]


def shared(options):
    return ["--db", options.db, "--no-shipped", "--threads", options.threads, "--cost", options.cost]


def row_of(name, found):
    """Of the table: microseconds, and shares of the best known."""
    cells = [name]
    for default, transferred, best in found.values():
        cells += [f"{1e6 * default:.1f}", f"{1e6 * transferred:.1f}", f"{1e6 * best:.1f}", f"{best / transferred:.3f}"]
    return cells


def table(results, counts):
    rows = [["kernel", *(cell for n in counts for cell in (f"N = {n}: default us", "transferred", "best", "of the best"))]]
    rows += [row_of(name, found) for name, found in results.items()]
    if results:
        means = [statistics.geometric_mean(found[n][2] / found[n][1] for found in results.values()) for n in counts]
        rows.append(["geometric mean", *(cell for mean in means for cell in ("", "", "", f"{mean:.3f}"))])
    return markdown(rows)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", type=Path, required=True, help="the hone program")
    parser.add_argument("--db", type=Path, required=True, help="the database that the kernels are tuned into")
    parser.add_argument("--sources", type=Path, help="a database of other networks' records; without it the kernels are only tuned")
    parser.add_argument("--seconds", type=float, default=300, help="of tuning each kernel; 0: none")
    parser.add_argument("--measure", nargs="+", type=int, default=[0, 10], help="candidates measured per kernel; 0: the best predicted is believed")
    parser.add_argument("--repeats", type=int, default=1, help="of each run of hone transfer; the figures are averages over them")
    parser.add_argument("--only", metavar="REGEX", default="", help="only kernels whose name has it")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cost", default="auto", help="the cost model: a file of hone train --exclude-model knows nothing of the kernels")
    parser.add_argument("--json", type=Path, help="{kernel: {N: [default, transferred, best seconds]}}, written here")
    options = parser.parse_args()
    options.hone = options.hone.resolve()
    return options


def main():
    options = parse()
    rows = {row.name: row for row in kernel_rows.rows()}
    names = list(filter(re.compile(options.only).search, KERNELS))
    if not names:
        sys.exit(f"--only {options.only}: none of {'; '.join(KERNELS)}")
    results = {}
    with tempfile.TemporaryDirectory(prefix="hone-best-known") as temporary:
        for name in names:
            path = write_model(rows[name], Path(temporary))
            if options.seconds > 0:
                run_hone(options.hone, "tune", path, "-o", path.with_suffix(".so"), "--budget", f"{options.seconds:g}s", *shared(options))
                print(f"{name}: tuned", flush=True)
            if options.sources:
                results[name] = {n: reached(options, path, n) for n in options.measure}
    if results:
        print(table(results, options.measure))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
