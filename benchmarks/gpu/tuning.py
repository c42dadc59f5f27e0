"""The parts that search: a model that is tuned from nothing, and a data set for cost models."""
import contextlib
import sqlite3
import subprocess
import time

import ahead
import background
import networks
import parts
import rivals
import timing

NAMES = ("resnet18", "bert_base_s128")
LEAST_BUDGET, MOST_BUDGET = 25, 100  # seconds of `hone tune`
END_SECONDS = 12  # which it may take beside its budget: it links and writes the library
TIMING_SECONDS = 10  # to load PyTorch and to time the library
ROUNDS = 5  # of the engines in turns
DATA_END_SECONDS = 12  # of a data set beside its budget, and for the copy


def budget_of(setting):
    """The seconds to tune a model in, so that its library is timed before the part ends."""
    if setting.small:
        return 10
    budget = int(min(MOST_BUDGET, setting.left - END_SECONDS - TIMING_SECONDS))
    if budget < LEAST_BUDGET:
        raise parts.NoTime(f"tuning a model takes {LEAST_BUDGET + END_SECONDS + TIMING_SECONDS} s")
    return budget


def tune(setting, name, budget):
    """Tunes the model, while nothing else is compiled, and returns the columns that say what it took."""
    begin = time.monotonic()
    with background.stopped():
        report = parts.hone(setting, "tune", networks.model_file(name, setting), "-o", library_file(setting, name), "--device", setting.device,
                            "--budget", f"{budget}s", "--db", setting.folder("tuning") / f"{name}.db", "--no-check")
    seconds = time.monotonic() - begin
    return {"seconds": round(seconds, 1), "trials": report["trials"], "trials_per_second": round(report["trials"] / seconds, 1), "compiled": report["compiled"],
            "compiled_per_second": round(report["compiled"] / max(report["compile_seconds"], 1e-9), 1)}


def library_file(setting, name):
    return setting.folder("tuning") / f"{name}.so"


def in_turns(measures):
    """{name: the least of its times}, of functions that each measure once, one after the other in each round."""
    found = {name: [] for name in measures}
    with background.stopped():
        for _ in range(ROUNDS):
            for name, measure in measures.items():
                found[name].append(measure())
    return {name: min(times) for name, times in found.items()}


def speed(setting, name, torch):
    """Columns: times of the tuned library, of the one that was compiled without measuring, and of PyTorch eager, in turns."""
    row = f"{name}, batch 1"
    ahead.take(setting, row, lambda: networks.prepare(setting, name, 1))
    inputs = networks.batched_inputs(name, 1)
    on_device = torch if setting.kind == "cuda" else None
    setting.begin(name)
    engines = {"tuned": timing.OnDevice(library_file(setting, name), inputs, on_device),
               "compiled": timing.OnDevice(networks.library_file(setting, name, 1), inputs, on_device)}
    try:
        columns = networks.check(engines["tuned"], networks.library_file(setting, name, 1))
        measures = {f"{how}_seconds": lambda engine=engine: timing.of_hone(engine) for how, engine in engines.items()}
        if torch:
            call = rivals.caller(torch, name, inputs, setting.rivals)
            measures["torch_seconds"] = lambda: timing.of_torch(torch, call, setting.rivals)
        columns |= in_turns(measures)
    finally:
        for engine in engines.values():
            engine.close()
    columns["compiled_over_tuned"] = columns["compiled_seconds"] / columns["tuned_seconds"]
    if torch:
        columns["torch_over_tuned"] = columns["torch_seconds"] / columns["tuned_seconds"]
    return columns


def tuning(result, setting):
    """A whole model tuned from nothing: seconds until the library is on disk, how fast candidates are compiled and measured, and how fast it is."""
    parts.described(setting)
    torch, reason = parts.torch_or_none(setting)
    for name in ("small",) if setting.small else NAMES:
        if result.has(name):
            continue
        budget = budget_of(setting)
        columns = {"budget_seconds": budget}
        try:
            columns |= tune(setting, name, budget)
            result.add(name, **columns, unfinished="its library was not timed")
            columns |= speed(setting, name, torch)
        except subprocess.TimeoutExpired:
            trials = count_trials(setting.folder("tuning") / f"{name}.db")
            result.add(name, **columns, trials=trials, unfinished="its time was over before the library was there")
            raise
        except RuntimeError as problem:
            parts.row_failed(result, name, problem, **columns)
            continue
        result.add(name, **columns, rival=reason or "PyTorch eager")


def count_trials(db):
    """How many trials a database has that its program was perhaps stopped with."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as opened:
        return opened.execute("SELECT count(*) FROM trial").fetchone()[0]
    return 0


def copy_database(db, target):
    """A whole copy, also of what a program that was stopped left in the write-ahead log; its bytes, or 0 without a database."""
    if not db.exists():
        return 0
    with contextlib.closing(sqlite3.connect(db)) as source, contextlib.closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    return target.stat().st_size


def data(result, setting):
    """A data set for cost models; it comes back as far as it is, also if its time is over."""
    parts.described(setting)
    if result.has("data set"):
        return
    model = networks.model_file("small" if setting.small else "resnet18", setting)
    db, begin = setting.folder("data") / "data.db", time.monotonic()
    budget = 10 if setting.small else max(2, int(setting.left - DATA_END_SECONDS))
    columns = {"budget_seconds": budget}
    try:
        parts.hone(setting, "dataset", "make", model, "--db", db, "--device", setting.device, "--budget", f"{budget}s", limit=setting.left - 3)
    except subprocess.TimeoutExpired:
        columns["unfinished"] = "its time was over before hone dataset make ended"
        raise
    except RuntimeError as problem:
        columns["problem"] = str(problem)[:300]
    finally:
        size = copy_database(db, setting.out / "data.db")
        result.add("data set", **columns, seconds=round(time.monotonic() - begin, 1), bytes=size, trials=count_trials(db))
