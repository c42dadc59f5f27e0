#!/usr/bin/env python3
"""Latency of a model over the seconds of one `hone tune`, against what ONNX Runtime and OpenVINO take.

    build/venv/bin/python benchmarks/curves.py --hone build/release/tools/hone/hone --output docs/studies/curves [--models resnet50 ...]
        [--budget 60] [--threads 2] [--cost without_resnet50.model] [--keep databases]

One run of `hone tune` with an empty database; its trials say when they were stored. For each of a few moments the model is compiled from the
trials that were stored by then, and at the end of the curve stands the library that the run itself wrote. All these libraries and the rivals
are then timed in turns, loaded anew for each (see interleaved.py), so the curve is measured latency of the whole model, not a sum of kernels. Writes a drawing
MODEL.svg and every sample MODEL.json per model; --redraw makes the drawings from such files again, without measuring.
"""
import argparse
import contextlib
import functools
import json
import math
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import compare
import cores
import engines
import interleaved
import model_files
from drawing import COLOURS, Frame, document, polyline, ticks
from tuning_curves import spread

RIVALS = {"onnxruntime": ("ONNX Runtime", engines.OnnxRuntime), "openvino": ("OpenVINO", engines.OpenVino)}
WIDTH, HEIGHT = 640, 330
FRAME = Frame(left=56, top=34, width=570, height=256)


def moments(budget):
    """Seconds to look at: 0, and from 1 on each about 1.6 times the one before."""
    count = max(1, round(math.log(max(budget, 1.01)) / math.log(1.6)))
    return [0.0] + sorted({round(min(budget, budget ** (i / count)), 1) for i in range(count + 1)})


def hone(options, *arguments):
    """(wall seconds, what it printed as JSON)."""
    return compare.build([options.hone, *arguments, "--threads", options.threads, "--cost", options.cost, "--json"], f"hone {arguments[0]} {arguments[1]}")


@contextlib.contextmanager
def copied(db, copy):
    """A connection to a new copy of a database."""
    with contextlib.closing(sqlite3.connect(db)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        yield target


def database_until(db, copy, start, seconds):
    """A copy with the trials of the first seconds only; how many."""
    with copied(db, copy) as target:
        rows = target.execute("SELECT id, unix_time FROM trial ORDER BY id").fetchall()
        moment = spread([row[1] for row in rows], start)
        late = [(row[0],) for row, at in zip(rows, moment) if at > seconds or seconds == 0]
        target.executemany("DELETE FROM trial WHERE id = ?", late)
        target.execute("DELETE FROM choice")  # of the end
        target.commit()
    return len(rows) - len(late)


def libraries(options, model, folder):
    """[{"seconds", "trials", "path"}]: compiled from what was known at each moment; the last one is the run's own."""
    db, tuned = folder / "trials.db", folder / "tuned.so"
    start = time.time()
    wall, report = hone(options, "tune", model, "-o", tuned, "--db", db, "--no-shipped", "--budget", f"{options.budget}s", "--seed", options.seed)
    points = []
    for seconds in moments(options.budget):
        if seconds >= wall:
            break  # it ended early: every kernel is at its limit
        copy, library = folder / f"{seconds}.db", folder / f"{seconds}.so"
        trials = database_until(db, copy, start, seconds)
        if points and trials == points[-1]["trials"]:
            continue  # it would be the same library
        hone(options, "compile", model, "-o", library, "--db", copy, "--no-shipped", "--seed", options.seed)
        points.append({"seconds": seconds, "trials": trials, "path": library})
    return [*points, {"seconds": wall, "trials": report["trials"], "path": tuned}]


def measure(options, name):
    """Everything that is known of a model in the end: the curve, the rivals, all samples."""
    label, model, inputs = model_files.load(name)
    with tempfile.TemporaryDirectory(prefix="hone-curves", dir=options.folder) as folder:
        points = libraries(options, model, Path(folder))
        if options.keep:
            with copied(Path(folder) / "trials.db", options.keep / f"{label}.db"):
                pass
        loaders = {f"hone {i}": functools.partial(engines.Hone, point["path"], inputs, options.threads) for i, point in enumerate(points)}
        loaders |= {key: functools.partial(RIVALS[key][1], model, inputs, options.threads) for key in options.rivals}
        samples = interleaved.measure_anew(loaders, options.rounds, interleaved.samples, options.threads)
    latency = {key: statistics.median(statistics.median(turn) for turn in turns) for key, turns in samples.items()}
    return {"model": label, "threads": options.threads, "budget": options.budget, "cpu": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "curve": [{"seconds": round(point["seconds"], 1), "trials": point["trials"], "latency": latency[f"hone {i}"]}
                      for i, point in enumerate(points)],
            "rivals": {key: latency[key] for key in options.rivals},
            "samples": {key: [[float(f"{s:.4g}") for s in turn] for turn in turns] for key, turns in samples.items()}}


def svg(result):
    """Latency in milliseconds over seconds; the seconds' axis is logarithmic from 1 on, what was known at 0 stands at its left end."""
    curve = [(max(point["seconds"], 0.5), 1e3 * point["latency"]) for point in result["curve"]]
    rivals = {RIVALS[key][0]: 1e3 * latency for key, latency in result["rivals"].items()}
    values = [y for _, y in curve] + list(rivals.values())
    top, right = 1.08 * max(values), max(x for x, _ in curve)
    low = min(0.85 * min(values), 0.6 * top)

    def place(x, y):
        return FRAME.left + FRAME.width * math.log(x / 0.5) / math.log(right / 0.5), FRAME.top + FRAME.height * (1 - (y - low) / (top - low))

    parts = [FRAME.title(f'{result["model"]}, {result["threads"]} thread{"s" if result["threads"] > 1 else ""}: ms a run over seconds of tuning')]
    parts += [FRAME.row(place(1, y)[1], f"{y:g}") for y in ticks(low, top)]
    for x in [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600]:
        if x <= right:
            parts.append(FRAME.column(place(x, low)[0], "0" if x == 0.5 else f"{x:g}"))
    parts.append(FRAME.below("seconds"))
    for i, (name, y) in enumerate(sorted(rivals.items())):
        at, colour = place(1, y)[1], COLOURS[i + 1]
        parts.append(f'<path d="M{FRAME.left} {at:.1f}h{FRAME.width}" stroke="{colour}" stroke-width="1.5" stroke-dasharray="6 4"/>'
                     f'<text x="{FRAME.left + FRAME.width - 4}" y="{at - 5:.1f}" text-anchor="end" fill="{colour}">{name} {y:.2f} ms</text>')
    parts.append(polyline([place(*point) for point in curve], COLOURS[0]))
    for point in curve:
        x, y = place(*point)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[0]}"/>')
    x, y = place(*curve[-1])
    parts.append(f'<text x="{x - 4:.1f}" y="{y + 16:.1f}" text-anchor="end" fill="{COLOURS[0]}">Hone {curve[-1][1]:.2f} ms</text>')
    return document(WIDTH, HEIGHT, parts)


def summary(result):
    first, last = result["curve"][0]["latency"], result["curve"][-1]["latency"]
    text = f"{result['model']}, {result['threads']} threads: {1e3 * first:.3f} ms untuned, {1e3 * last:.3f} ms after {result['curve'][-1]['seconds']:.0f} s"
    for key, latency in result["rivals"].items():
        reached = next((f"reached by {point['seconds']:g} s" for point in result["curve"] if point["latency"] <= latency), "not reached")
        text += f"; {RIVALS[key][0]} {1e3 * latency:.3f} ms, {reached}"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", type=Path, help="the hone program")
    parser.add_argument("--models", nargs="+", default=["resnet50", "mobilenet_v2", "efficientnet_b0", "bert_base_s128", "googlenet"],
                        help="of models/, or ONNX files")
    parser.add_argument("--budget", type=float, default=60, help="seconds of the run of hone tune")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, required=True, help="the folder of MODEL.svg and MODEL.json")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each library and rival")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="for libraries and databases while they are needed; default: the system's")
    parser.add_argument("--cost", default="auto", help="the cost model: a file of hone train --exclude-model knows nothing of the model")
    parser.add_argument("--keep", type=Path, help="a folder that the database of each run is copied to, as MODEL.db")
    parser.add_argument("--no-openvino", dest="openvino", action="store_false", default=engines.openvino_installed())
    parser.add_argument("--redraw", action="store_true", help="draw the MODEL.json of --output again, measure nothing")
    options = parser.parse_args()
    options.rivals = ["onnxruntime"] + (["openvino"] if options.openvino else [])
    options.output.mkdir(parents=True, exist_ok=True)
    if options.redraw:
        for path in sorted(options.output.glob("*.json")):
            path.with_suffix(".svg").write_text(svg(json.loads(path.read_text())))
        return
    if options.hone is None:
        parser.error("--hone is required to measure")
    options.hone = options.hone.resolve()
    cores.patience.hone = options.hone
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    for name in options.models:
        result = measure(options, name)
        (options.output / f"{result['model']}.json").write_text(json.dumps(result) + "\n")
        (options.output / f"{result['model']}.svg").write_text(svg(result))
        print(summary(result), flush=True)


if __name__ == "__main__":
    main()
