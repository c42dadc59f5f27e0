#!/usr/bin/env python3
"""How fast each search strategy finds fast code: trials and seconds until 0.95 of the best known, and curves of latency against both.

    build/venv/bin/python benchmarks/search_curves.py --hone build/release/tools/hone/hone --output curves.svg [--budget 30] [--runs 1]

Each task is an ONNX model of one operator. The strategies take turns, each with an empty database, so that a disturbance of the machine
meets them all. A trial's time is the centre that was stored; the best known of a task is the fastest of all strategies and runs.
"""
import argparse
import collections
import json
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GOOD = 0.95  # of the best known: best / latency
COLOURS = ["#1b6ca8", "#d1495b", "#3a7d44", "#8d5fd3", "#e09f3e", "#555555"]


def one_operator(op, x, w, y, **attributes):
    weights = numpy_helper.from_array(np.random.default_rng(0).standard_normal(w).astype(np.float32), "w")
    info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
    graph = helper.make_graph([helper.make_node(op, ["x", "w"], ["y"], **attributes)], op, [info("x", x)], [info("y", y)], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


TASKS = {
    "conv3x3_28x28x128": lambda: one_operator("Conv", [1, 128, 28, 28], [128, 128, 3, 3], [1, 128, 28, 28], pads=[1] * 4),
    "depthwise_56x56x144": lambda: one_operator("Conv", [1, 144, 56, 56], [144, 1, 3, 3], [1, 144, 56, 56], pads=[1] * 4, group=144),
    "matmul_128x768x768": lambda: one_operator("MatMul", [1, 128, 768], [768, 768], [1, 128, 768]),
}


def spread(stored, start):
    """Seconds since `start` of each trial, of the times stored: those are whole seconds, so the trials of one second are spread over it."""
    counts, before, moments = collections.Counter(stored), collections.Counter(), []
    for second in stored:
        moments.append(max(0.0, second - start) + before[second] / counts[second])
        before[second] += 1
    return moments


def tune(hone, model, strategy, seed, options, folder):
    """[(seconds since the start, latency)] of each trial that ran, in order."""
    db = folder / f"{model.stem}_{strategy}_{seed}.db"
    start = time.time()
    subprocess.run([hone, "tune", model, "-o", folder / "model.so", "--db", db, "--no-shipped", "--budget", f"{options.budget}s",
                    "--threads", str(options.threads), "--search", strategy, "--seed", str(seed)],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with sqlite3.connect(db) as connection:
        rows = connection.execute("SELECT unix_time, centre FROM trial WHERE outcome = 'ok' AND verified ORDER BY id").fetchall()
    return list(zip(spread([second for second, _ in rows], start), (latency for _, latency in rows)))


def best_so_far(points):
    best, curve = float("inf"), []
    for seconds, latency in points:
        best = min(best, latency)
        curve.append((seconds, best))
    return curve


def first_good(curve, goal):
    """(trials, seconds) until the goal; None if it was not reached."""
    for i, (seconds, latency) in enumerate(curve):
        if latency <= goal:
            return i + 1, seconds
    return None


def svg(results, best_known):
    """A row of two panels per task: latency over the best known against trials and against seconds."""
    width, height, margin = 420, 220, 45
    parts = []
    for row, (task, strategies) in enumerate(results.items()):
        for column, axis in enumerate(("trials", "seconds")):
            left, top = column * width + margin, row * height + 25
            w, h = width - margin - 15, height - 60
            curves = {name: [[(i + 1 if axis == "trials" else s, latency / best_known[task]) for i, (s, latency) in enumerate(c)]
                             for c in runs] for name, runs in strategies.items()}
            x_max = max((x for runs in curves.values() for c in runs for x, _ in c), default=1)
            y_max = 2.5
            parts.append(f'<rect x="{left}" y="{top}" width="{w}" height="{h}" fill="none" stroke="#999"/>'
                         f'<text x="{left}" y="{top - 6}">{task}: latency / best known against {axis} (0 to {x_max:.0f})</text>')
            for y in (1, 1 / GOOD, 1.5, 2, 2.5):
                place = top + h * (1 - (y - 1) / (y_max - 1))
                parts.append(f'<path d="M{left} {place:.1f}h{w}" stroke="#ddd"/><text x="{left - 32}" y="{place + 4:.1f}">{y:.2f}</text>')
            for n, (name, runs) in enumerate(curves.items()):
                colour = COLOURS[n % len(COLOURS)]
                for curve in runs:
                    path = " ".join(f"{left + w * x / x_max:.1f},{top + h * (1 - (min(y, y_max) - 1) / (y_max - 1)):.1f}" for x, y in curve)
                    parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
                parts.append(f'<text x="{left + w - 90}" y="{top + 14 + 13 * n}" fill="{colour}">{name}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * width}" height="{height * len(results) + 10}" font-family="sans-serif" '
            f'font-size="11"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path)
    parser.add_argument("--output", type=Path, help="write the curves to this SVG file")
    parser.add_argument("--budget", type=int, default=30, help="seconds of each run")
    parser.add_argument("--runs", type=int, default=1, help="of each strategy, with seeds 1, 2, ...")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--search", nargs="+", default=["mixed", "evolutionary", "random"])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--json", type=Path, help="write the curves to this file, too")
    options = parser.parse_args()
    results, best_known = {}, {}
    with tempfile.TemporaryDirectory(prefix="hone-search") as name:
        folder = Path(name)
        for task in options.tasks:
            model = folder / f"{task}.onnx"
            onnx.save(TASKS[task](), model)
            results[task] = {strategy: [] for strategy in options.search}
            for seed in range(1, options.runs + 1):
                for strategy in options.search:
                    results[task][strategy].append(best_so_far(tune(options.hone.resolve(), model, strategy, seed, options, folder)))
            best_known[task] = min((curve[-1][1] for runs in results[task].values() for curve in runs if curve), default=0)
            print(f"{task}: best known {best_known[task] * 1e3:.4f} ms")
            for strategy, runs in results[task].items():
                for curve in runs:
                    reached = first_good(curve, best_known[task] / GOOD)
                    text = f"{reached[0]:4d} trials, {reached[1]:5.1f} s" if reached else "not reached"
                    share = best_known[task] / curve[-1][1] if curve else 0
                    print(f"  {strategy:13} to {GOOD} of it: {text}; {len(curve)} trials end at {share:.3f}", flush=True)
    if options.output:
        options.output.write_text(svg(results, best_known))
    if options.json:
        options.json.write_text(json.dumps({"best_known": best_known, "curves": results}))


if __name__ == "__main__":
    main()
