#!/usr/bin/env python3
"""Every kernel of a model with every schedule of another one, as it is: Transfer-Tuning's figure 4.

    build/venv/bin/python benchmarks/transfer_matrix.py --hone build/release/tools/hone/hone --db trials.db --to resnet18 --from resnet50
        --output docs/studies/transfer [--threads 1]

The schedules are the fastest records of each kernel that the database has of the source, by its name there. Each is measured (`hone explain
--measure`) for every kernel of the same class, whatever the cost model thinks; schedules of other classes are left out, as in the paper. A step that does
not apply, or a wrong answer, makes the pair invalid. Writes TO_from_FROM.json after each kernel, where the same command goes on, and
TO_from_FROM.svg; prints a row per kernel.
"""
import argparse
import contextlib
import html
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import model_files
from drawing import document
from kernel_report import markdown
from trials import RAN
from tuning_curves import run_hone

CELL, LEFT, TOP = 16, 250, 60
FASTEST, SLOWEST = 0.25, 4  # times of the default's at the ends of the colours


def schedules(db, model, threads, device):
    """[(name, kernel class, steps, seconds)]: of each task the fastest record that was made for the model; by class, the slowest task first."""
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            f"SELECT task.key, kernel_class, steps, min(centre) FROM trial JOIN task ON task.id = trial.task JOIN device ON device.id = trial.device "
            f"WHERE {RAN} AND verified AND centre > 0 AND model = ? AND threads = ? AND device.key = ? GROUP BY task.id", (model, threads, device)).fetchall()
        names = [row[0] for row in connection.execute("SELECT DISTINCT model FROM trial ORDER BY model")]
    if not rows:
        sys.exit(f"{db}: no records of '{model}' on {device} with {threads} threads; it has {', '.join(names) or 'none'}")
    return sorted(rows, key=lambda row: (row[1], -row[3]))


def kernels(options, model):
    """Those of the target that have a schedule to choose, as `hone show` lists them."""
    found = json.loads(run_hone(options.hone, "show", model, "--no-db", "--cost", options.cost, "--threads", options.threads, "--json"))
    return found["kernels"]


def measured(options, model, task, steps):
    """Seconds of a kernel with these steps (None: its default), or why there are none."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(steps or "")
        file.flush()
        chosen = ["--default"] if steps is None else ["--schedule", f"@{file.name}"]
        command = [options.hone, "explain", model, "--task", task, *chosen, "--measure", "--no-db", "--cost", options.cost, "--threads", options.threads, "--json"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode in (130, 143):
        sys.exit("interrupted")
    seconds = json.loads(done.stdout)["seconds"] if done.returncode == 0 else 0
    return seconds if seconds > 0 else (done.stderr.strip().splitlines() or ["it was not measured"])[-1]


def row(options, model, kernel, known):
    """The cells of a kernel: null for another class, seconds, or -1 for an invalid pair, as the paper draws it."""
    cells, reasons = [], {}
    for i, (_, kind, steps, _) in enumerate(known):
        if kind != kernel["kernel"]:
            cells.append(None)
            continue
        found = measured(options, model, kernel["task"], steps)
        cells.append(found if isinstance(found, float) else -1)
        if not isinstance(found, float):
            reasons[i] = found
    default = measured(options, model, kernel["task"], None)
    if not isinstance(default, float):
        sys.exit(f"{kernel['name']}: the default schedule does not run: {default}")
    return {"kernel": kernel["name"], "key": kernel["key"], "class": kernel["kernel"], "times": kernel["times"], "default_seconds": default,
            "seconds": cells, "reasons": reasons}


def table(result):
    rows = [["kernel", "class", "schedules", "invalid", "default us", "best us", "speed-up", "by"]]
    default = best_of_all = 0
    for found in result["rows"]:
        cells = [(seconds, i) for i, seconds in enumerate(found["seconds"]) if seconds is not None]
        valid = [cell for cell in cells if cell[0] > 0]
        best, by = min([*valid, (found["default_seconds"], None)], key=lambda cell: cell[0])
        default += found["times"] * found["default_seconds"]
        best_of_all += found["times"] * best
        rows.append([found["kernel"], found["class"], str(len(cells)), str(len(cells) - len(valid)), f"{1e6 * found['default_seconds']:.1f}", f"{1e6 * best:.1f}",
                     f"{found['default_seconds'] / best:.2f}", "default" if by is None else str(by + 1)])
    rows.append([f"{result['to']} from {result['from']}", "", "", "", f"{1e6 * default:.0f}", f"{1e6 * best_of_all:.0f}", f"{default / best_of_all:.2f}", ""])
    return markdown(rows)


def colour(ratio):
    """Green: faster than the default; red: slower."""
    place = (math.log(min(max(ratio, FASTEST), SLOWEST)) - math.log(FASTEST)) / (math.log(SLOWEST) - math.log(FASTEST))
    strength = abs(2 * place - 1)
    weak = round(235 * (1 - strength))
    return f"rgb({weak},{160 + round(75 * (1 - strength))},{weak})" if place < 0.5 else f"rgb(235,{weak},{weak})"


def svg(result):
    """A row per kernel, a column per schedule; invalid pairs are crossed, other classes empty."""
    parts = [f'<text x="10" y="20" font-size="13">{html.escape(result["to"])}: its kernels with the schedules of {html.escape(result["from"])}, '
             "time over the default's (green: faster, red: slower, crossed: invalid)</text>"]
    for i in range(len(result["schedules"])):
        parts.append(f'<text x="{LEFT + (i + 0.5) * CELL:.0f}" y="{TOP - 4}" font-size="8" text-anchor="middle">{i + 1}</text>')
    for y, found in enumerate(result["rows"]):
        top = TOP + y * CELL
        parts.append(f'<text x="{LEFT - 6}" y="{top + 12}" text-anchor="end">{html.escape(found["kernel"][-38:])}</text>')
        for x, seconds in enumerate(found["seconds"]):
            if seconds is None:
                continue
            left = LEFT + x * CELL
            if seconds < 0:
                parts.append(f'<path d="M{left + 3} {top + 3}l10 10m0 -10l-10 10" stroke="#888"><title>{html.escape(found["reasons"][str(x)])}</title></path>')
                continue
            ratio = seconds / found["default_seconds"]
            parts.append(f'<rect x="{left}" y="{top}" width="{CELL - 1}" height="{CELL - 1}" fill="{colour(ratio)}"><title>{1e6 * seconds:.1f} us, {ratio:.2f}</title></rect>')
    return document(LEFT + len(result["schedules"]) * CELL + 20, TOP + len(result["rows"]) * CELL + 20, parts)


def host_device(hone):
    return next(device["key"] for device in json.loads(run_hone(hone, "devices", "--json")) if device["name"] == "host")


def measure(options, path):
    label, model, _ = model_files.load(options.to)
    known = schedules(options.db, options.source, options.threads, host_device(options.hone))
    names = [{"key": key, "class": kind, "seconds": seconds} for key, kind, _, seconds in known]
    result = {"to": label, "from": options.source, "threads": options.threads, "schedules": names, "rows": []}
    if path.exists():
        before = json.loads(path.read_text())
        if before["schedules"] == names and before["threads"] == options.threads:
            result = before
    done = {found["key"] for found in result["rows"]}
    for kernel in kernels(options, model):
        if kernel["key"] in done or kernel["kernel"] not in {kind for _, kind, _, _ in known}:
            continue
        found = row(options, model, kernel, known)
        result["rows"].append(found | {"reasons": {str(i): reason for i, reason in found["reasons"].items()}})
        path.write_text(json.dumps(result) + "\n")
        print(f"{kernel['name']}: {len([s for s in found['seconds'] if s is not None])} schedules", file=sys.stderr, flush=True)
    if not result["rows"]:
        sys.exit(f"{options.source} has no schedule of a class that {label} has")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", type=Path, required=True, help="the hone program")
    parser.add_argument("--db", type=Path, required=True, help="a database file that has records of the source; it is only read")
    parser.add_argument("--to", required=True, help="of models/, or an ONNX file")
    parser.add_argument("--from", dest="source", required=True, help="a model, as the database names it")
    parser.add_argument("--output", type=Path, required=True, help="the folder of TO_from_FROM.json and .svg")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cost", default="analytic", help="the cost model that decides which kernels there are")
    options = parser.parse_args()
    if not options.db.is_file():
        sys.exit(f"--db: no file {options.db}")
    options.hone = options.hone.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"{os.path.basename(options.to).removesuffix('.onnx')}_from_{os.path.basename(options.source)}.json"
    result = measure(options, path)
    path.with_suffix(".svg").write_text(svg(result))
    print(table(result))


if __name__ == "__main__":
    main()
