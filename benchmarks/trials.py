#!/usr/bin/env python3
"""Trials per second over a whole run of `hone tune`, from the start of the process to its end.

    benchmarks/trials.py --hone build/release/tools/hone/hone [--model resnet18] [--budget 60s] [--threads 2]

A trial is distinct code that ran at full shape and is in the database; they are counted there, not taken from what the tool says.
"""
import argparse
import json
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import model_files

RAN = "outcome IN ('ok', 'wrong answer', 'timeout', 'crash')"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hone-trials") as folder:
        db = f"{folder}/trials.db"
        model = model_files.filled(options.model)
        start = time.perf_counter()
        subprocess.run([str(options.hone.resolve()), "tune", str(model), "-o", f"{folder}/model.so", "--db", db, "--no-shipped", "--budget",
                        options.budget, "--threads", options.threads], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall = time.perf_counter() - start
        with sqlite3.connect(db) as connection:
            count = lambda what: connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0]  # noqa: E731
            ran = count(f"(SELECT DISTINCT task, steps FROM trial WHERE {RAN})")
            ok = count("(SELECT DISTINCT task, steps FROM trial WHERE outcome = 'ok')")
            tasks = count("(SELECT DISTINCT task FROM trial)")
    result = {"model": options.model, "threads": int(options.threads), "seconds": wall, "tasks": tasks, "trials": ran, "ok": ok,
              "trials_per_second": ran / wall}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{options.model}: {ran} trials ({ok} ok) of {tasks} tasks in {wall:.1f} s: {ran / wall:.1f} per second (goal 15)")


if __name__ == "__main__":
    main()
