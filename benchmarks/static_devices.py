#!/usr/bin/env python3
"""What the coefficients of one processor are worth on another one of the same instruction set (Tuna, section V).

    PYTHONPATH=SITE benchmarks/static_devices.py --hone build/release/tools/hone/hone --db held_out.db --device KEY
        [--models squeezenet1_1 bert_base_s128]

SITE is the folder of an installed package (pip install --target SITE ./python). The schedules that Hone ships for
this machine's vectors were measured on another machine, with two threads. Those of the models' tasks are measured
here, too, and a static score is fitted to each list of times: the schedules are the same, the processors differ. Both
judge --db, records of this machine (`hone dataset make --threads 1`), whose tasks are left out; so are tasks with one
shipped schedule, as a score needs two of each.
"""
import argparse
import json
import tempfile
from pathlib import Path

import hone
import model_files
import numpy as np
from kernel_report import markdown
from tuning_curves import run_hone

RECORDS = Path(__file__).resolve().parent.parent / "data" / "records"
MODELS = ["squeezenet1_1", "mnasnet1_0", "efficientnet_b0", "googlenet", "bert_base_s128", "mobilebert_s128", "inception_v3", "resnet50"]
THREADS = 2  # of the shipped schedules
COLUMNS = ("pairs", "clear", "top-1", "top-5", "sum-10")


def shipped(path):
    """{task: its records}, of tasks with two or more"""
    found = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        found.setdefault(record["task"], []).append(record)
    return {task: records for task, records in found.items() if len(records) > 1}


def exported(options, db, folder):
    """{task: a line of `hone db export` of it}"""
    lines = folder / "exported.jsonl"
    run_hone(options.hone, "db", "export", "--db", db, lines)
    return {line["task"]: line for line in map(json.loads, lines.read_text().splitlines())}


def texts(options, paths, folder):
    """{task: such a line} of the tasks that are measured: an import wants to know more of a task than its key."""
    db = folder / "texts.db"
    run_hone(options.hone, "dataset", "make", *paths, "--db", db, "--schedules", 1, "--task-time", "100ms", "--threads", 1)
    judged_by = exported(options, options.db, folder)
    return {task: line for task, line in exported(options, db, folder).items() if task not in judged_by}


def line_of(known, record, device, seconds):
    """A line for `hone db import`: the record's schedule with this time on this device."""
    exact = record["algorithm"].startswith(("winograd", "strassen"))
    fields = {name: record[name] for name in ("threads", "version", "algorithm", "steps", "decisions", "model")}
    return json.dumps({**known, **fields, "device": device, "accuracy": "default" if exact else "strict", "times": [seconds] * 3,
                       "centre": seconds, "low": seconds, "high": seconds})


def measured(options, paths, folder):
    """({device: lines for an import}, number of tasks): every shipped schedule of the models' tasks as it was measured there, and here."""
    records, known = shipped(options.records), texts(options, paths, folder)
    lines, tasks = {}, set()
    for path in paths:
        for task in hone.tasks(path, threads=THREADS):
            key = f"{task.key:016x}"
            if key in tasks or key not in records or key not in known:
                continue
            tasks.add(key)
            space = task.space()
            here = space.measure(np.array([space.locate(record["steps"]) for record in records[key]]))
            for record, seconds in zip(records[key], here.seconds, strict=True):
                if np.isfinite(seconds):
                    lines.setdefault(record["device"], []).append(line_of(known[key], record, record["device"], record["seconds"]))
                    lines.setdefault(task.device, []).append(line_of(known[key], record, task.device, float(seconds)))
    return lines, len(tasks)


def fitted(options, device, lines, tasks, folder):
    """The file of a score that was fitted to these times."""
    text, db, score = folder / "lines.jsonl", folder / f"{device}.db", folder / f"{device}.model"
    text.write_text("\n".join(lines) + "\n")
    run_hone(options.hone, "db", "import", text, "--db", db)
    run_hone(options.hone, "train", "--db", db, "--device", device, "--cost", "static", "--tasks", tasks, "-o", score)
    return score


def judged(options, score):
    """The columns of `hone eval` in its line of all tasks."""
    table = [line.split() for line in run_hone(options.hone, "eval", "--db", options.db, "--device", options.device, "--cost", score).splitlines()]
    heads = next(line for line in table if line[:1] == ["kernel"])
    values = next(line for line in table if line[:1] == ["all"])
    return [values[heads.index(name)] for name in COLUMNS]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", type=Path, required=True, help="the hone program")
    parser.add_argument("--db", type=Path, required=True, help="a database of this machine's records, by which both are judged; it is only read")
    parser.add_argument("--device", required=True, help="of its records, as `hone db show` prints it")
    parser.add_argument("--records", type=Path, default=RECORDS / "avx2.jsonl", help="shipped records of another machine")
    parser.add_argument("--models", nargs="+", default=MODELS, help="of models/, or ONNX files, whose shipped schedules are measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hone-static") as name:
        folder = Path(name)
        lines, tasks = measured(options, [model_files.load(model)[1] for model in options.models], folder)
        rows = [["fitted to times of", "schedules", "tasks", *COLUMNS]]
        for device, own in lines.items():
            rows.append([device, str(len(own)), str(tasks), *judged(options, fitted(options, device, own, tasks, folder))])
        rows.append(["the analytic model", "", "", *judged(options, "analytic")])
    print(markdown(rows))


if __name__ == "__main__":
    main()
