"""Checks and measures a device in parts, within a number of seconds.

Each part runs as a process of its own with a time limit. It writes PART.json and PART.csv after each row, so what it had when it was stopped
is there. A second run skips parts that are done and rows that are there. A part that cannot run says why in its result.
"""
import argparse
import contextlib
import csv
import json
import math
import os
import signal
import site
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import ahead
import background
import parts

# The parts share one budget, tier after tier. A tier has the sum of its weights, or what is left; its parts divide that by their weights, and
# whatever a part does not need is the next one's. The last tier that has something to do divides all that is left. A part that is done in an earlier run takes nothing.
# The first tier has the figures, so that a run of 480 s has some of each.
TIERS = ({"machine": 8, "products": 50, "memory": 25, "models": 110, "compiled": 80, "tuning": 75}, {"tests": 50, "sanitizer": 40}, {"watchdog": 20},
         {"data": 60, "kernels": 15, "products_tuned": 100, "memory_tuned": 50})
# With less, a part is left to a later run.
LEAST = {"tuning": 50, "data": 20, "compiled": 30, "sanitizer": 12, "watchdog": 10, "products_tuned": 12, "memory_tuned": 12}
FEWEST_SECONDS = 3  # the same of the others
ROW_SECONDS = 60  # for which a row may use a GPU: then a kernel hangs
SECONDS_TO_END = 2  # to stop a part and to pack
FINISHED = ("done", "skipped")


class Result:
    """The result of a part in a folder, written whole after each change."""

    def __init__(self, folder, part):
        self.json, self.csv = folder / f"{part}.json", folder / f"{part}.csv"
        self.data = {"part": part, "status": "started", "reason": "", "seconds": 0, "rows": []}
        if self.json.exists():
            self.data = json.loads(self.json.read_text())
        self.earlier, self.begin = self.data["seconds"], time.monotonic()

    def has(self, name):
        """Whether the row is there, and whole."""
        return any(row["name"] == name and "unfinished" not in row for row in self.data["rows"])

    def start(self):
        """A process of the part begins. One before it may have been stopped while it used the device."""
        self.data.pop("at", None)
        self.save("started")

    def mark(self, name):
        """The device is used for the row from now on."""
        self.data["at"] = [name, time.time()]
        self.save("started")

    def add(self, name, **columns):
        """Adds the row, in the place of what an earlier run, or this one, left unfinished."""
        self.data.pop("at", None)
        self.data["rows"] = [row for row in self.data["rows"] if row["name"] != name or "unfinished" not in row] + [{"name": name, **columns}]
        self.save("started")

    def save(self, status, reason=""):
        self.data |= {"status": status, "reason": " ".join(reason.split())[:500], "seconds": round(self.earlier + time.monotonic() - self.begin, 1)}
        self._replace(self.json, json.dumps(self.data, indent=1) + "\n")
        columns = list(dict.fromkeys(key for row in self.data["rows"] for key in row))
        if columns:
            temporary = self.csv.with_suffix(".tmp")
            with temporary.open("w", newline="") as file:
                writer = csv.DictWriter(file, columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(self.data["rows"])
            temporary.replace(self.csv)

    @staticmethod
    def _replace(path, text):
        temporary = path.with_suffix(".tmp")
        temporary.write_text(text)
        temporary.replace(path)


def run_part(options):
    """In the process of the part."""
    result = Result(options.out, options.part)
    result.start()
    try:
        end = time.monotonic() + options.seconds
        parts.PARTS[options.part](result, parts.Setting(options.device, options.out, options.small, end, options.rivals, result.mark))
    except parts.CannotRun as reason:
        result.save("skipped", str(reason))
    except parts.NoTime as reason:
        result.save("partial", str(reason))
    except parts.LostDevice as problem:
        result.save("lost", str(problem))
        os._exit(1)  # the driver may wait for the kernel when a process ends
    except subprocess.TimeoutExpired as late:
        result.save("partial", f"its time was over in {Path(late.cmd[0]).name} {' '.join(late.cmd[1:3])}")
    except Exception as problem:  # noqa: BLE001: whatever it is, the other parts run
        result.save("failed", f"{type(problem).__name__}: {problem}")
        raise
    else:
        failed = [row["name"] for row in result.data["rows"] if row.get("problem")]
        result.save("done", f"{len(failed)} rows have a problem: {', '.join(failed)}" if failed else "")


def wait_for(child, part, out, seconds, row_seconds):
    """Waits for the process of a part, as long as it may take and a row may use the device; returns what is wrong if it did not say so itself."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return "failed", f"its process ended with code {child.wait(max(0, min(1, end - time.monotonic())))}"
        result = Result(out, part)
        row, begun = result.data.get("at") or ("", math.inf)
        if time.time() - begun > row_seconds:
            result.add(row, problem=f"it did not end within {row_seconds} s")
            return "lost", f"{row} did not end"
        if time.monotonic() >= end:
            return "partial", f"its {seconds:.0f} s were over"


def start_part(part, options, seconds):
    """Runs the part in a process; stops it and its children when its time is over."""
    Result(options.out, part).start()
    command = [sys.executable, __file__, "--device", options.device, "--out", options.out, "--seconds", str(seconds), "--rivals", options.rivals, "--part", part]
    child = subprocess.Popen([*map(str, command), *(["--small"] if options.small else [])], start_new_session=True)
    problem = wait_for(child, part, options.out, seconds + 1, ROW_SECONDS if options.device.startswith("cuda") else math.inf)
    with contextlib.suppress(ProcessLookupError):  # whatever is left of it
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    background.go_on_if_stopped()
    result = Result(options.out, part)
    if result.data["status"] == "started":
        result.save(*problem)


def run_processes(part, options, seconds):
    """One process after another, as long as each loses the device, which costs the row that it was at."""
    end = time.monotonic() + seconds
    while True:
        start_part(part, options, max(FEWEST_SECONDS, end - time.monotonic()))
        if Result(options.out, part).data["status"] != "lost" or end - time.monotonic() < FEWEST_SECONDS:
            return


class Budget:
    """The clock of a run, which says what each part may take, in the order of the parts."""

    def __init__(self, options, clock=time.monotonic):
        self.options, self.clock, self.tier = options, clock, None
        self.end = self.tier_end = clock() + options.seconds - SECONDS_TO_END

    @property
    def left(self):
        return max(0, self.end - self.clock())

    def _waiting(self, tier):
        return [part for part in tier if part in self.options.only and Result(self.options.out, part).data["status"] not in FINISHED]

    def limit(self, part):
        """The seconds that the part may take; 0 if it is left to a later run."""
        tier = next(tier for tier in TIERS if part in tier)
        waiting = self._waiting(tier)
        if tier is not self.tier:
            self.tier, self.tier_end = tier, self.end
            if any(self._waiting(later) for later in TIERS[TIERS.index(tier) + 1:]):
                self.tier_end = min(self.end, self.clock() + sum(tier[other] for other in waiting))
        if self.options.small:
            return self.left
        waiting = waiting[waiting.index(part):]
        left = max(0, self.tier_end - self.clock())
        limit = left * tier[part] / sum(tier[other] for other in waiting)
        least = LEAST.get(part, FEWEST_SECONDS)
        if limit < least <= left:
            limit = least
        return limit if limit >= least else 0


def pack(folder, archive):
    """All results as one file: lent machines give back few files."""
    if archive is None:
        return
    temporary = archive.with_suffix(".tmp")
    with tarfile.open(temporary, "w:gz") as tar:
        for path in sorted(folder.iterdir()):
            if path.suffix in (".json", ".csv", ".txt", ".db"):
                tar.add(path, path.name)
    temporary.replace(archive)


def run_within(part, options, budget):
    """Runs the part, unless it is done, and prints a line; returns whether nothing is wrong."""
    result = Result(options.out, part)
    if result.data["status"] not in FINISHED:
        limit = budget.limit(part)
        if limit > 0:
            run_processes(part, options, limit)
        else:
            result.save("partial", f"left to a later run, with {budget.left:.0f} s of this one")
        pack(options.out, options.pack)
    data = Result(options.out, part).data
    print(f"{part:14} {data['status']:8} {data['seconds']:6.1f} s  {len(data['rows']):3} rows  {data['reason']}", flush=True)
    return data["status"] not in ("failed", "lost") and not any(row.get("problem") for row in data["rows"])


NVRTC = "libnvrtc.so.1[23]"


def python_nvrtc(folders):
    """The newest NVRTC among Python's packages in the folders, or None."""
    found = [file for folder in folders for file in Path(folder).glob(f"nvidia/**/{NVRTC}")]
    return max(found, key=lambda file: int(file.name.rsplit(".", 1)[1]), default=None)


def name_nvrtc():
    """Names the NVRTC of Python's packages to hone, which by itself looks in CUDA's toolkit and in a virtual environment."""
    toolkits = [Path(os.environ.get(name) or "/usr/local/cuda") / "lib64" for name in ("CUDA_HOME", "CUDA_PATH")]
    environment = Path(os.environ.setdefault("VIRTUAL_ENV", sys.prefix)) / "lib"
    if "HONE_NVRTC" in os.environ or any(list(folder.glob(NVRTC)) for folder in toolkits) or python_nvrtc(environment.glob("python3*/site-packages")):
        return
    if file := python_nvrtc([*site.getsitepackages(), site.getusersitepackages(), *Path("/usr/local/lib").glob("python3*/dist-packages")]):
        os.environ["HONE_NVRTC"] = str(file)


def main():
    parser = argparse.ArgumentParser(prog="device_check.sh", description="Check and measure a device.")
    parser.add_argument("--device", default="cuda", help="a name of hone devices")
    parser.add_argument("--seconds", type=float, default=480, help="time of all parts together")
    parser.add_argument("--out", type=Path, default=Path("device_check"), help="folder of the results; a run goes on with what is there")
    parser.add_argument("--pack", type=Path, help="also write all results as one .tar.gz after each part")
    parser.add_argument("--only", nargs="+", choices=list(parts.PARTS), help="only these parts")
    parser.add_argument("--small", action="store_true", help="few rows and small shapes: a test of this script")
    parser.add_argument("--rivals", choices=("cuda", "cpu", "none"), help="where PyTorch runs; the default is cuda for devices of CUDA, else none")
    parser.add_argument("--part", choices=list(parts.PARTS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    name_nvrtc()
    options.rivals = options.rivals or ("cuda" if options.device.startswith("cuda") else "none")
    options.only = options.only or list(parts.PARTS)
    if options.part:
        run_part(options)
        return
    ahead.forget_unfinished(options.out)
    budget = Budget(options)
    compilers = background.start(options.device, options.out, options.seconds, int(options.small))
    try:
        bad = [part for part in parts.PARTS if part in options.only and not run_within(part, options, budget)]
    finally:
        background.end(compilers)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
