#!/usr/bin/env python3
"""hone dataset make, stopped or killed while it measures: what was measured stays, and the same command goes on without measuring anything twice."""
import collections
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dataset_test import hone, model

SCHEDULES = 48


def trials(db):
    """(task, threads, steps) of every record, in the order in which they were stored."""
    if not db.exists():
        return []
    with sqlite3.connect(db, timeout=20) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trial'").fetchone():
            return []
        return connection.execute("SELECT task, threads, steps FROM trial ORDER BY id").fetchall()


def counts(records):
    return collections.Counter((task, threads) for task, threads, _ in records)


def check_stopped(how, make, db):
    """Once some batches are stored; what is there afterwards."""
    process = subprocess.Popen([os.environ["HONE"], *make], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 120
    while process.poll() is None and len(trials(db)) < SCHEDULES and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(how)
    said, _ = process.communicate(timeout=120)
    kept = trials(db)
    assert process.returncode == (130 if how == signal.SIGINT else -how), (process.returncode, said)
    assert len(kept) >= SCHEDULES, said
    if how == signal.SIGINT:
        assert "interrupted" in said, said
    return kept


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        models = [folder / "first.onnx", folder / "second.onnx"]
        model(models[0], "first", 16)
        model(models[1], "second", 32)

        def make(db):
            return list(map(str, ["dataset", "make", *models, "--db", db, "--threads", "1", "--round", "8", "--schedules", SCHEDULES]))

        whole = folder / "whole.db"
        hone(*make(whole))
        expected = counts(trials(whole))
        assert max(expected.values()) == SCHEDULES, expected
        for how in (signal.SIGINT, signal.SIGKILL):
            db = folder / f"stopped{int(how)}.db"
            kept = check_stopped(how, make(db), db)
            assert len(kept) < sum(expected.values()), "it had ended before it was stopped"
            hone(*make(db))
            records = trials(db)
            assert records[:len(kept)] == kept, "a record was lost"
            assert len(set(records)) == len(records), "a schedule was measured twice"
            assert set(counts(records)) == set(expected) and max(counts(records).values()) == SCHEDULES, counts(records)
            hone("eval", "--db", db)
    return 0


if __name__ == "__main__":
    sys.exit(main())
