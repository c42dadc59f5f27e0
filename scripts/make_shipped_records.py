#!/usr/bin/env python3
"""Makes the records that come with Hone (data/records/ISA.jsonl): tunes models, then keeps the fastest schedule of each kernel.

    scripts/make_shipped_records.py --hone build/tools/hone/hone --db FILE --budget 600s MODEL.onnx ...
    scripts/make_shipped_records.py --db FILE            # only writes what the database has

What is already in the database is not lost: the same command goes on. The file is sorted, so that two runs on one database
write the same bytes."""
import argparse
import json
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

# Fields of db/json_lines.h; the raw times are shortened to the centre, which is what is read of them.
QUERY = """
SELECT task.key, trial.outcome, trial.seed, task.kernel_class, task.text, device.key, trial.threads, trial.version, trial.algorithm,
       trial.steps, trial.decisions, trial.message, trial.times, trial.centre, trial.low, trial.high, trial.verified, trial.unix_time,
       trial.host_load, trial.model
FROM trial JOIN task ON task.id = trial.task JOIN device ON device.id = trial.device
WHERE trial.verified = 1 ORDER BY trial.centre, trial.id
"""
FIELDS = ("task outcome seed kernel text device threads version algorithm steps decisions message times centre low high verified unix_time "
          "host_load model").split()


def fastest(database):
    """By instruction set, the fastest record of each task, device and number of threads."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    seen, by_isa = set(), {}
    for row in connection.execute(QUERY):
        record = dict(zip(FIELDS, row))
        group = (record["task"], record["device"], record["threads"])
        if group in seen:
            continue
        seen.add(group)
        if len(record["times"]) % 8 or not record["times"]:
            raise ValueError(f"trial of task {record['task']} has torn times")
        record["times"] = list(struct.unpack("<d", record["times"][:8]))
        record["verified"] = True
        record["host_load"] = round(record["host_load"], 2)
        by_isa.setdefault(record["device"].split("-")[0], []).append(record)
    connection.close()
    return by_isa


def write(by_isa, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for isa, records in sorted(by_isa.items()):
        records.sort(key=lambda r: (r["kernel"], r["text"], r["device"], r["threads"]))
        path = folder / f"{isa}.jsonl"
        path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
        print(f"{path}: {len(records)} records")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, help="ONNX models to tune first")
    parser.add_argument("--hone", default="build/tools/hone/hone", help="the program")
    parser.add_argument("--db", required=True, type=Path, help="where the trials are kept")
    parser.add_argument("--budget", default="300s", help="of tuning each model, per number of threads")
    parser.add_argument("--threads", default="0", help="numbers of threads to tune for: 1,2; 0: all cores")
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent.parent / "data" / "records", help="the folder")
    options = parser.parse_args()
    library = options.db.with_suffix(".so")
    for threads in options.threads.split(","):
        for model in options.models:
            command = [options.hone, "tune", model, "-o", library, "--db", options.db, "--budget", options.budget, "--threads", threads]
            print(" ".join(map(str, command)), flush=True)
            if subprocess.run(command).returncode != 0:
                sys.exit(f"tuning {model} failed")
    library.unlink(missing_ok=True)
    write(fastest(options.db), options.output)


if __name__ == "__main__":
    main()
