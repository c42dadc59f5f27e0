"""Makes ahead, in the background, what needs no GPU: models with weights, reference results, compiled libraries.

Each job belongs to whoever creates its .begun file first: a process here, or the part that needs its result and finds it not begun.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import parts


def job_file(setting, key):
    return setting.folder("ahead") / f"{parts.file_name(key)}.json"


def begin(file):
    """Whether the job is the caller's."""
    try:
        os.close(os.open(file.with_suffix(".begun"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def work(file, make):
    """Runs the job that was begun and writes its columns, or its problem, whole. A job whose time is over is free again."""
    try:
        columns = make()
    except subprocess.TimeoutExpired:
        file.with_suffix(".begun").unlink()
        raise
    except Exception as problem:  # noqa: BLE001: it is told where the result is taken
        columns = {"problem": f"{type(problem).__name__}: {problem}"[:500]}
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(columns))
    temporary.replace(file)


def take(setting, key, make):
    """The columns of a job, made now if nobody began it. A failed job is an error."""
    file = job_file(setting, key)
    if begin(file):
        work(file, make)
    while not file.exists():
        if setting.left <= 1:
            raise parts.NoTime(f"its time was over while {key} was made")
        time.sleep(0.05)
    columns = json.loads(file.read_text())
    if "problem" in columns:
        raise RuntimeError(columns["problem"])
    return columns


def forget_unfinished(out):
    """Jobs that an earlier run began and did not end are free again."""
    for begun in (out / "files" / "ahead").glob("*.begun"):
        if not begun.with_suffix(".json").exists():
            begun.unlink()


def run_job(kind, device, out, small, seconds, index):
    import networks
    import operators

    setting = parts.Setting(device, out, small, time.monotonic() + seconds)
    key, make = (operators if kind == "operators" else networks).jobs(setting)[index]
    file = job_file(setting, key)
    if begin(file):
        work(file, make)


def main():
    """Arguments: device, folder of results, seconds, 1 for small shapes."""
    import networks
    import operators

    os.nice(10)
    device, out, seconds, small = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "1"
    setting = parts.Setting(device, out, small, time.monotonic() + seconds)
    with concurrent.futures.ProcessPoolExecutor(max(1, len(os.sched_getaffinity(0)) - 2)) as pool:
        for kind, module in (("operators", operators), ("networks", networks)):
            for index in range(len(module.jobs(setting))):
                pool.submit(run_job, kind, device, out, small, seconds, index)


if __name__ == "__main__":
    main()
