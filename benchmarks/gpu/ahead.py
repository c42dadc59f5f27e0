"""Makes ahead, in the background, what needs no GPU: models with weights, reference results, compiled libraries.

Each job belongs to whoever creates its .begun file first: a process here, or the part that needs its result and finds it not begun. The file has the
number of that process, so that a job whose process was killed is taken by another one.
"""
import json
import multiprocessing
import multiprocessing.connection
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
    begun, own = file.with_suffix(".begun"), file.with_suffix(f".{os.getpid()}")
    own.write_text(str(os.getpid()))
    try:
        os.link(own, begun)  # with its text at once
    except FileExistsError:
        return False
    finally:
        own.unlink()
    return True


def is_abandoned(file):
    """Whether the job's process is gone without a result."""
    try:
        process = int(file.with_suffix(".begun").read_text())
    except FileNotFoundError:
        return not file.exists()
    if Path(f"/proc/{process}").exists():
        return False
    return not file.exists()


def work(file, make):
    """Runs the job that was begun and writes its columns, or its problem, whole. A job whose time is over is free again."""
    try:
        columns = make()
    except subprocess.TimeoutExpired:
        file.with_suffix(".begun").unlink()
        raise
    except Exception as problem:  # noqa: BLE001: it is told where the result is taken
        columns = {"problem": str(problem)[:500] if isinstance(problem, parts.OtherProcessError) else f"{type(problem).__name__}: {problem}"[:500]}
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(columns))
    temporary.replace(file)


def take(setting, key, make):
    """The columns of a job, made now if nobody began it. A failed job is an error."""
    file = job_file(setting, key)
    if is_abandoned(file):
        file.with_suffix(".begun").unlink(missing_ok=True)
    if begin(file):
        work(file, make)
    while not file.exists():
        if is_abandoned(file):
            return take(setting, key, make)
        if setting.left <= 1:
            raise parts.NoTime(f"its time was over while {key} was made")
        time.sleep(0.05)
    columns = json.loads(file.read_text())
    if "problem" in columns:
        raise parts.OtherProcessError(columns["problem"])
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


def run_jobs(jobs, most):
    """Runs each of the jobs, (function, arguments), in a process of its own, so many at a time. One that is killed costs its job."""
    waiting, running = list(reversed(jobs)), []
    while waiting or running:
        while waiting and len(running) < most:
            function, arguments = waiting.pop()
            running.append(multiprocessing.get_context("fork").Process(target=function, args=arguments))
            running[-1].start()
        multiprocessing.connection.wait([process.sentinel for process in running])
        for process in [process for process in running if process.exitcode is not None]:
            process.join()
            running.remove(process)


def main():
    """Arguments: device, folder of results, seconds, 1 for small shapes."""
    import networks
    import operators

    os.nice(10)
    device, out, seconds, small = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "1"
    setting = parts.Setting(device, out, small, time.monotonic() + seconds)
    run_jobs([(run_job, (kind, device, out, small, seconds, index)) for kind, module in (("operators", operators), ("networks", networks))
              for index in range(len(module.jobs(setting)))], max(1, len(os.sched_getaffinity(0)) - 2))


if __name__ == "__main__":
    main()
