"""What tuning in full makes of a model in the time that transferring schedules takes, and when it has as much (transfer.py).

Tuning in full is replayed from its records: a model's latency after a record is the sum over its kernels of the fastest until then, as often as they
occur (tuning_curves.py); pauses between records count with 15 s at most, as in `hone transfer`. The curve is scaled to end at the best that was
timed together with what was transferred: stored times and those of one moment differ.
"""
import contextlib
import json
import sqlite3

import tuning_curves

LONG_PAUSE = 15  # seconds between two records: nobody was tuning


def without_pauses(moments):
    passed, found = 0.0, []
    for i, moment in enumerate(moments):
        passed += min(moment - moments[i - 1], LONG_PAUSE) if i else 0.0
        found.append(passed)
    return found


def full_curve(options, model, name, db):
    """[(trials, seconds, latency)] of the records that were made for the model; from the first one on."""
    shapes = [part for shape in options.shape for part in ("--shape", shape)]
    shown = json.loads(tuning_curves.run_hone(options.hone, "show", model, "--db", db, "--no-shipped", "--threads", options.threads, "--cost", options.cost, *shapes, "--json"))
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT key, unix_time, centre FROM trial JOIN task ON task.id = trial.task WHERE outcome = 'ok' AND verified "
                                  "AND model = ? AND threads = ? ORDER BY unix_time, trial.id", (name, options.threads)).fetchall()
    keys = {row[0] for row in rows}
    kernels = {kernel["key"]: (kernel["times"], kernel["predicted_seconds"]) for kernel in shown["kernels"] if kernel["key"] in keys}
    rows = [row for row in rows if row[0] in kernels]
    if not rows:
        return []
    moments = without_pauses(tuning_curves.spread([row[1] for row in rows], rows[0][1]))
    return tuning_curves.best_so_far([(key, moment, latency) for (key, _, latency), moment in zip(rows, moments, strict=True)], kernels)


def compared(entry, curve):
    """For an entry of transfer.py: the seconds that tuning in full needs for its result (None: more than all), its latency after the same seconds."""
    if not curve:
        return {}
    factor = entry["best_seconds"] / curve[-1][2]
    needed = next((seconds for _, seconds, latency in curve if latency * factor <= entry["transfer_seconds"]), None)
    then = next((latency for _, seconds, latency in reversed(curve) if seconds <= entry["seconds"]), curve[0][2])
    return {"full_needs_seconds": needed, "full_then_seconds": then * factor}


def times_as_long(entry):
    """How many times as long tuning in full needs; None if that is not known, or is not reached."""
    needed = entry.get("full_needs_seconds")
    return needed / entry["seconds"] if needed is not None and entry["seconds"] > 0 else None
