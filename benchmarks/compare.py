#!/usr/bin/env python3
"""Latency and outputs of Hone against ONNX Runtime and, if installed, OpenVINO.

    benchmarks/compare.py --hone build/release/tools/hone/hone [--models resnet18 ...] [--threads 1 2] [--budget 60s]

For each model and number of threads it builds two artifacts (or those of --kinds), each with an empty database: `hone compile` and
`hone tune --budget`; `--kinds fast` is the latter with `--accuracy fast`. It checks their outputs against ONNX Runtime's on the manifest's inputs; then times all engines interleaved (see interleaved.py). A ratio is Hone's
latency over the rival's: below 1 Hone is faster. Needs numpy, onnx, onnxruntime and optionally openvino.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cores
import engines
import interleaved
import model_files


# What is built of a model, by name of the column: a command and its options.
KINDS = {"compile": ["compile"], "tune": ["tune"], "fast": ["tune", "--accuracy", "fast"]}


def build(command, label):
    """Runs hone; (wall seconds, what it printed as JSON)."""
    start = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    wall = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{label}: exit code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    return wall, json.loads(done.stdout or "{}")


def artifacts(options, name, threads, folder):
    """Builds those of --kinds; {"compile": {...}, "tune": {...}} with path, wall seconds, trials."""
    model = model_files.filled(name)
    built = {}
    for kind in options.kinds:
        path = folder / f"{name}.{threads}t.{kind}.so"
        found = {"path": str(path)}
        if not (options.reuse and path.exists()):
            command = [options.hone, KINDS[kind][0], model, "-o", path, "--threads", threads, "--seed", options.seed, "--json",
                       "--cost", options.cost.replace("{model}", name),
                       *KINDS[kind][1:]]
            if kind == "compile":
                command += ["--no-db"]
            else:
                db = folder / f"{name}.{threads}t.{kind}.db"
                for old in folder.glob(f"{db.name}*"):
                    old.unlink()
                command += ["--db", db, "--no-shipped", "--budget", options.budget]
            found["wall_seconds"], report = build(command, f"hone {kind} {name}")
            found["trials"] = report.get("trials", 0)
        built[kind] = found
    return built


def compare(options, name, threads, folder):
    inputs = model_files.inputs(name)
    built = artifacts(options, name, threads, folder)
    rivals = {"onnxruntime": engines.OnnxRuntime(model_files.filled(name), inputs, threads)}
    if options.openvino:
        rivals["openvino"] = engines.OpenVino(model_files.filled(name), inputs, threads)
    ours = {kind: engines.Hone(found["path"], inputs, threads) for kind, found in built.items()}
    expected = rivals["onnxruntime"].run()
    result = {"model": name, "threads": threads, "artifacts": built,
              "relative_error": {kind: engines.relative_error(e.run(), expected) for kind, e in ours.items()}}
    seconds = interleaved.measure({**ours, **rivals}, options.rounds, threads=threads)
    result["seconds"] = {key: interleaved.median(values) for key, values in seconds.items()}
    result["rounds"] = seconds
    result["ratio"] = {f"{kind}/{rival}": interleaved.ratio(seconds[kind], seconds[rival])
                       for kind in ours for rival in rivals}
    for engine in [*ours.values(), *rivals.values()]:
        engine.close()
    return result


def row(result, rivals):
    kinds = list(result["artifacts"])
    tune = result["artifacts"].get("tune", {})
    rate = f"{tune['trials'] / tune['wall_seconds']:.1f}" if tune.get("wall_seconds") else "-"
    cells = [result["model"], str(result["threads"])]
    cells += [f"{1e3 * result['seconds'][key]:.2f}" for key in (*kinds, *rivals)]
    cells += [f"{result['ratio'][f'{kind}/{rival}']:.2f}" for rival in rivals for kind in kinds]
    return cells + [f"{max(result['relative_error'].values()):.1e}", rate]


def table(results, rivals):
    kinds = list(results[0]["artifacts"])
    header = ["model", "threads", *[f"{kind} ms" for kind in kinds], *[f"{rival} ms" for rival in rivals]]
    header += [f"{kind}/{rival}" for rival in rivals for kind in kinds] + ["max error", "trials/s"]
    rows = [header, ["---"] * len(header)] + [row(result, rivals) for result in results]
    widths = [max(len(r[i]) for r in rows) for i in range(len(header))]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(r, widths)) + " |" for r in rows)


def verdicts(results, budget):
    """The figures to reach; lines of text."""
    lines = []
    for threads in sorted({r["threads"] for r in results}):
        rows = [r for r in results if r["threads"] == threads]
        kinds = list(rows[0]["artifacts"])
        checks = []
        for goal, rounding in ((1e-4, set(kinds) - {"fast"}), (1e-2, set(kinds) & {"fast"})):
            if not rounding:
                continue
            error = max(r["relative_error"][kind] for r in rows for kind in rounding)
            checks.append((error <= goal, f"outputs of {', '.join(sorted(rounding))}: worst relative error {error:.1e} (goal {goal:g})"))
        if "tune" in kinds:
            tuned = [r["ratio"]["tune/onnxruntime"] for r in rows]
            checks.append((max(tuned) <= 1.0, f"tuned in {budget}: worst {max(tuned):.2f} of ONNX Runtime (goal 1.0)"))
        if "tune" in kinds and "openvino" in rows[0]["seconds"]:
            best = {r["model"]: 1 / max(r["ratio"]["tune/onnxruntime"], r["ratio"]["tune/openvino"]) for r in rows}
            mean = statistics.geometric_mean([ratio for model, ratio in best.items() if model != "ssdlite320_full"] or [1])
            least = min(best, key=best.get)
            checks += [(best[least] >= 1.0, f"the faster rival's time / tuned: least {best[least]:.2f} ({least}) (goal 1.0)"),
                       (mean >= 1.35, f"the faster rival's time / tuned: geometric mean {mean:.2f} without ssdlite320_full (goal 1.35)")]
        if "compile" in kinds:
            compiled = [r["ratio"]["compile/onnxruntime"] for r in rows]
            checks.append((max(compiled) <= 1.2, f"compiled without measuring: worst {max(compiled):.2f} of ONNX Runtime (goal 1.2), "
                           f"geometric mean {statistics.geometric_mean(compiled):.2f}"))
        lines += [f"{'reached' if ok else 'MISSED '}  {threads} thread{'s' if threads > 1 else ''}: {text}" for ok, text in checks]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path, help="the hone program")
    parser.add_argument("--models", nargs="+", default=list(model_files.NAMES), help="`all`: every model of models/")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["compile", "tune"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--budget", default="60s", help="of hone tune")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cost", default="auto", help="the cost model; FOLDER/{model}.model: of each model its own, of hone train --exclude-model")
    parser.add_argument("--folder", type=Path, help="for artifacts and databases; default: a temporary one")
    parser.add_argument("--reuse", action="store_true", help="don't build artifacts that are in --folder")
    parser.add_argument("--no-openvino", dest="openvino", action="store_false", default=engines.openvino_installed())
    cores.add_option(parser)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    options.hone = options.hone.resolve()
    cores.patience.hone = options.hone
    if options.models == ["all"]:
        options.models = [entry["name"] for entry in model_files.entries()]
    with tempfile.TemporaryDirectory(prefix="hone-compare") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = []
        for name in options.models:
            for threads in options.threads:
                results.append(compare(options, name, threads, folder))
                print(" ".join(row(results[-1], list(results[-1]["rounds"])[len(options.kinds):])), file=sys.stderr, flush=True)
    rivals = ["onnxruntime"] + (["openvino"] if options.openvino else [])
    print(table(results, rivals))
    print("\n".join(verdicts(results, options.budget)))
    if options.json:
        machine = {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
        options.json.write_text(json.dumps({"machine": machine, "budget": options.budget, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
