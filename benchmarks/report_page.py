#!/usr/bin/env python3
"""How large the page of a large database is, how long it takes to open, and how long what a reader does there takes.

    benchmarks/report_page.py DB

makes a database of so many tasks and trials (--tasks, --trials) from DB, a file, whose tasks it repeats under other keys
and whose times it varies, and a page of it by `hone report`. Chromium without a window (Debian's
chromium-headless-shell) opens the page. Each time is the median of --turns, from the request or the event until two
frames are drawn after it.
"""
import argparse
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import Browser, find  # noqa: E402

# A reader does these things, as JavaScript that returns when the event was handled.
ACTIONS = {
    "filter the kernels": """const filter = document.getElementById("kernel-filter");
        filter.value = filter.value ? "" : "conv"; filter.dispatchEvent(new Event("input"));""",
    "sort the kernels": """[...document.querySelectorAll("#kernels th button")].find((button) => button.innerText === "Trials").click();""",
    "show more kernels": """[...document.querySelectorAll("#kernels button")].find((button) => button.innerText.startsWith("Show")).click();""",
    "open a kernel": """document.querySelector("#kernels tbody button").click();""",
    "close it": """document.querySelector("dialog").close();""",
}


def repeat(db, tasks, trials):
    """Fills up the tasks of a database to so many, which share so many trials."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(trial)") if row[1] not in ("id", "task")]
    centre, low, high, at = map(columns.index, ("centre", "low", "high", "unix_time"))
    known = db.execute("SELECT id, kernel_class, text FROM task WHERE id IN (SELECT task FROM trial)").fetchall()
    if not known:
        sys.exit("the database has no trials: tune a model with it first")
    rows = {task: db.execute(f"SELECT {', '.join(columns)} FROM trial WHERE task = ?", (task,)).fetchall() for task, _, _ in known}
    db.execute("DELETE FROM trial")
    insert = f"INSERT INTO trial (task, {', '.join(columns)}) VALUES ({', '.join('?' * (1 + len(columns)))})"
    numbers = random.Random(1)
    for task in range(tasks):
        origin, kernel_class, text = known[task % len(known)]
        if task >= len(known):
            made = db.execute("INSERT INTO task (key, kernel_class, text) VALUES (?, ?, ?)", (f"{task:016x}", kernel_class, text)).lastrowid
        for trial in range(trials * (task + 1) // tasks - trials * task // tasks):
            row, factor = list(rows[origin][trial % len(rows[origin])]), numbers.uniform(0.8, 1.25)
            for place in centre, low, high:
                row[place] *= factor
            row[at] += trial
            db.execute(insert, [origin if task < len(known) else made, *row])
    db.commit()


def timed(browser, action):
    """Milliseconds from an event until what it changes is drawn."""
    return browser.evaluate(f"""new Promise((done) => {{ const start = performance.now(); {action}
        requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start))); }})""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("db", help="a database of measurements, such as one that hone tune has filled")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--hone", default=os.environ.get("HONE", ROOT / "build/release/tools/hone/hone"))
    parser.add_argument("--output", type=Path, help="keep the page in this file")
    arguments = parser.parse_args()
    program = find()
    if program is None:
        sys.exit("there is no Chromium: apt-get install chromium-headless-shell")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = arguments.output or folder / "report.html"
        with sqlite3.connect(arguments.db) as source, sqlite3.connect(folder / "many.db") as db:
            source.backup(db)
            repeat(db, arguments.tasks, arguments.trials)
        start = time.monotonic()
        subprocess.run([arguments.hone, "report", folder / "many.db", "-o", page], check=True)
        print(f"{time.monotonic() - start:.1f} s to make the page, {page.stat().st_size / 1e6:.2f} MB", flush=True)
        browser = Browser(program)
        try:
            opened = [browser.open(page.resolve().as_uri()) for _ in range(arguments.turns)]
            print(f"to open it: {statistics.median(opened):.2f} s ({min(opened):.2f} to {max(opened):.2f})", flush=True)
            times = {what: [] for what in ACTIONS}
            for _ in range(arguments.turns):
                for what, action in ACTIONS.items():
                    times[what].append(timed(browser, action))
            for what, found in times.items():
                print(f"to {what}: {statistics.median(found):.0f} ms ({min(found):.0f} to {max(found):.0f})")
            if browser.complaints():
                sys.exit(f"the page complains: {browser.complaints()}")
        finally:
            browser.close()


if __name__ == "__main__":
    main()
