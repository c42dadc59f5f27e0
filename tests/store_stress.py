#!/usr/bin/env python3
"""Many tuners on one store, killed (kill -9) at random moments and started again: no record may be lost or torn, none may wait for ever.

    tests/store_stress.py --program build/dev/tests/hone_store_stress [--seconds 600] [--tuners 8] [--postgres] [--seed 1]

Every second tuner is the tuning loop with made-up times, the others write made-up records as fast as they can.
"""
import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--tuners", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server started for this instead of one SQLite file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hone-stress") as folder:
        if not options.postgres:
            return stress(options, Path(folder), str(Path(folder) / "trials.db"))
        from postgres_server import Server
        with Server() as server:
            return stress(options, Path(folder), server.uri)


def stress(options, folder, db):
    rng = random.Random(options.seed)
    logs = [folder / f"{i}.log" for i in range(options.tuners)]
    starts = 0

    def start(i, batches=0):
        nonlocal starts
        starts += 1
        command = "tune" if i % 2 == 0 else "write"
        seed = options.seed * 1_000_000 + starts
        return subprocess.Popen([options.program.resolve(), command, db, logs[i], str(seed), str(batches)], stderr=subprocess.PIPE,
                                text=True)

    tuners = [start(i) for i in range(options.tuners)]
    kills, end = 0, time.monotonic() + options.seconds
    while time.monotonic() < end:
        time.sleep(rng.uniform(0.005, 0.25))
        i = rng.randrange(options.tuners)
        if tuners[i].poll() is not None:
            break
        tuners[i].kill()
        tuners[i].communicate()
        kills += 1
        tuners[i] = start(i)
    failed = []
    for i, tuner in enumerate(tuners):
        ended = tuner.poll() is not None
        tuner.kill()
        error = tuner.communicate()[1]
        failed += [f"{i} ended by itself: {error}"] if ended else []
    # Whatever the killed ones left behind: every tuner still gets its turn.
    last = [start(i, batches=2) for i in range(options.tuners)]
    for i, tuner in enumerate(last):
        try:
            _, error = tuner.communicate(timeout=120)
            failed += [f"{i}: {error}"] if tuner.returncode != 0 else []
        except subprocess.TimeoutExpired:
            tuner.kill()
            failed.append(f"{i} waited for ever")
    done = subprocess.run([options.program, "check", db, *[log for log in logs if log.exists()]], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    print(f"{options.tuners} tuners, {kills} killed: {done.stdout.strip()}")
    if failed:
        print("failed:", *failed)
    return 1 if failed or done.returncode != 0 or kills == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
