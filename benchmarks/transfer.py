#!/usr/bin/env python3
"""What the schedules of other models are worth for a model that was tuned, by Hone's ways and by Transfer-Tuning's own procedure.

    build/venv/bin/python benchmarks/transfer.py --hone build/release/tools/hone/hone --db trials.db [more.db ...] --output docs/studies/transfer
        [--models googlenet ...] [--measure 0 10] [--search-times 36s] [--repeats 3] [--full-time 30m] [--threads 2] [--cost without_googlenet.model]

The databases have the records of tuning the model in full, which say what the best is, and those of other models; of several the trials are
merged into a new one. Ways:

    pool        the schedules of all models, as `hone compile` and `hone tune` use them
    one         those of the other model that the paper's rule ranks first
    sizes       those of the model itself at other shapes: another sequence length, resolution or batch
    paper       the paper's: every schedule of the model as in `one`, of the same kernel class, as it is; all are measured
    paper-pool  the same with the schedules of all models

--from adds more sources, --records-of what was measured on another device. Each of these but the paper's with every N of --measure, the
candidates measured per kernel: with 0 the model's ranking is believed; and, but for the paper's, with every time of --search-times, which is spent
where the model gains most. Writes MODEL.json per model; then prints the table and draws transfer.svg
of all such files in the folder. --redraw does only the latter.
"""
import argparse
import json
import os
import platform
import re
import statistics
import sys
import tempfile
from pathlib import Path

import model_files
import transfer_figures
import transfer_time
from tuning_curves import run_hone

WAYS = ("pool", "one", "sizes", "paper", "paper-pool")
ALL = 49  # the default and every record that is tried for a kernel, at most 48
TIMES = ("default_seconds", "transfer_seconds", "best_seconds")
LEAST_GAIN = 1e-3  # of the default's time; as in hone transfer, of less nobody asks for a share


def one_database(options, folder):
    """That of --db; of several a new one with the trials of all. None of them is written to."""
    if len(options.db) == 1:
        return options.db[0]
    merged = folder / "merged.db"
    run_hone(options.hone, "db", "merge", *options.db, "--db", merged)
    return merged


def records_of(options, device, db, folder):
    """A database of the records of a device only."""
    own = folder / f"{re.sub(r'[^A-Za-z0-9]', '-', device)}.db"
    lines = own.with_suffix(".jsonl")
    run_hone(options.hone, "db", "export", lines, "--device", device, "--db", db)
    run_hone(options.hone, "db", "import", lines, "--db", own)
    lines.unlink()
    return own


def average(runs):
    """A source or a class of several runs: seconds and shares of the time on average, and the share of the speed-up that follows."""
    found = dict(runs[0])
    for key in ("used", "seconds", "time_share", *TIMES):
        if found.get(key) is not None:
            found[key] = statistics.fmean(run[key] for run in runs)
    default, transferred, best = (found[key] for key in TIMES)
    found["speedup_share"] = (default - transferred) / (default - best) if default - best > LEAST_GAIN * default else None
    if "classes" in found:
        found["classes"] = [average(classes) for classes in zip(*(run["classes"] for run in runs), strict=True)]
        found["runs"] = [{key: run[key] for key in ("seconds", "speedup_share", *TIMES)} for run in runs]
    return found


def report(options, model, db, effort, sources=(), as_in_paper=False):
    """What `hone transfer` says, on average over --repeats."""
    arguments = ["--to", model, "--db", db, "--no-shipped", "--threads", options.threads, "--seed", options.seed, "--cost", options.cost,
                 *(("--search-time", effort) if isinstance(effort, str) else ("--measure", effort))]
    if options.full_time:
        arguments += ["--full-time", options.full_time]
    for name, values in (("--shape", options.shape), ("--from", sources)):
        arguments += [part for value in values for part in (name, value)]
    if as_in_paper:
        arguments.append("--as-in-paper")
    found = [json.loads(run_hone(options.hone, "transfer", *arguments, "--json")) for _ in range(options.repeats)]
    return found[0] | {"sources": [average(runs) for runs in zip(*(one["sources"] for one in found), strict=True)]}


def entry(way, effort, source, rank=1):
    """A source that was tried, named without the folder that it lies in; `effort`: candidates per kernel or a time, as `hone transfer` takes it;
    `rank`: which choice of the paper's rule it is."""
    return {"way": way, "measure": effort, "rank": rank} | source | {"source": os.path.basename(source["source"])}


def of_ranking(ranking, ways):
    """What `hone transfer` tries by itself, nothing measured: the models that the rule ranks first, and the pool."""
    entries, rank = [], 0
    for source in ranking["sources"]:
        way = {"pool": "pool", ranking["model"]: "sizes"}.get(source["source"], "one")
        if way == "one" and not source["source"]:
            continue  # records that no model is known of
        rank += way == "one"
        entries.append(entry(way, 0, source, rank if way == "one" else 1))
    return [found for found in entries if found["way"] in ways]


def further_runs(options, known, extra):
    """(N or a time, as in the paper, [(way, choice, source)]) of each further run of `hone transfer`: those of one run are timed together. `known`: the
    entries of ways, where there are any; `extra`: {way: source} of those that were asked for."""
    ranked = [(found["way"], found["rank"], found["source"]) for way in ("pool", "one", "sizes") for found in known if found["way"] == way]
    added = [(way, 1, source) for way, source in extra.items()]
    for effort in options.measure + options.search_times:
        sources = added if effort == 0 else [found for found in ranked if found[0] in options.ways] + added
        if sources:
            yield effort, False, sources
    likes = (("paper", "one"), ("paper-pool", "pool"))
    theirs = [(way, rank, source) for way, like in likes if way in options.ways for ours, rank, source in ranked if ours == like]
    if theirs:
        yield ALL, True, theirs


def measure(options, name, db, extra):
    """Everything that is known of a model in the end."""
    label, model, _ = model_files.load(name)
    ranking = report(options, model, db, 0)
    entries = of_ranking(ranking, options.ways) if 0 in options.measure else []
    known = [found for found in of_ranking(ranking, WAYS) if found["rank"] <= options.choices]
    for effort, as_in_paper, sources in further_runs(options, known, extra):
        found = report(options, model, db, effort, [source for _, _, source in sources], as_in_paper)
        entries += [entry(way, effort, source, rank) for (way, rank, _), source in zip(sources, found["sources"], strict=True)]
        print(f"{label}: {effort} measured{', as in the paper' if as_in_paper else ''}", file=sys.stderr, flush=True)
    if not str(db).startswith("postgres"):
        curve = transfer_time.full_curve(options, model, ranking["model"], db)
        entries = [found | transfer_time.compared(found, curve) for found in entries]
    extents = dict.fromkeys(shape.rpartition("=")[2] for shape in options.shape)
    return {"model": "_".join([label, *extents]), "threads": options.threads, "cpu": platform.processor() or platform.machine(),
            "cores": os.cpu_count(), **{key: ranking[key] for key in ("kernels", "untuned", "full_trials", "full_seconds")}, "entries": entries}


def show(folder):
    """The table of all results in a folder, and their drawing into it."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    results = [result for result in found if "entries" in result]
    if not results:
        sys.exit(f"no results in {folder}")
    print("\n".join([transfer_figures.table(results), "", *transfer_figures.verdicts(results)]), flush=True)
    (folder / "transfer.svg").write_text(transfer_figures.svg(results))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", type=Path, help="the hone program")
    parser.add_argument("--db", nargs="+", default=[], help="databases, as hone takes them; they are only read")
    parser.add_argument("--models", nargs="+", default=["resnet50", "mobilenet_v2", "efficientnet_b0", "bert_base_s128", "googlenet"],
                        help="of models/, or ONNX files")
    parser.add_argument("--output", type=Path, required=True, help="the folder of MODEL.json and transfer.svg")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["pool", "one", "sizes", "paper"])
    parser.add_argument("--measure", nargs="+", type=int, default=[0, 10], help="candidates measured per kernel, of each way but the paper's")
    parser.add_argument("--search-times", nargs="+", default=[], metavar="TIME", help="of a search, likewise, as hone transfer takes them: 36s")
    parser.add_argument("--choices", type=int, default=1, help="how many of the rule's first choices the ways one and paper try; the paper shows three")
    parser.add_argument("--from", dest="sources", nargs="+", default=[], help="more sources, as hone transfer takes them")
    parser.add_argument("--records-of", nargs="+", default=[], metavar="DEVICE", help="what was measured on these devices, each as a source")
    parser.add_argument("--shape", action="append", default=[], help="of an input, as hone takes it; repeat")
    parser.add_argument("--full-time", help="what tuning a model in full took; default: as its records say")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1, help="of each run of hone transfer; the figures are averages over them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cost", default="auto", help="the cost model: a file of hone train --exclude-model knows nothing of the model")
    parser.add_argument("--folder", type=Path, help="for databases while they are needed; default: the system's")
    parser.add_argument("--redraw", action="store_true", help="print and draw the MODEL.json of --output again, measure nothing")
    options = parser.parse_args()
    if not options.redraw and not (options.hone and options.db):
        parser.error("--hone and --db are required to measure")
    names = [os.path.basename(source) for source in options.sources]
    if len(set(names)) < len(names):
        parser.error(f"--from {' '.join(options.sources)}, expected sources with different names")
    if options.choices < 1:
        parser.error(f"--choices {options.choices}, expected 1 or more")
    if options.repeats < 1:
        parser.error(f"--repeats {options.repeats}, expected 1 or more")
    return options


def main():
    options = parse()
    options.output.mkdir(parents=True, exist_ok=True)
    if options.redraw:
        show(options.output)
        return
    options.hone = options.hone.resolve()
    with tempfile.TemporaryDirectory(prefix="hone-transfer", dir=options.folder) as temporary:
        folder = Path(temporary)
        db = one_database(options, folder)
        extra = {f"from {os.path.basename(source)}": source for source in options.sources}
        extra |= {f"records of {device}": str(records_of(options, device, db, folder)) for device in options.records_of}
        for name in options.models:
            result = measure(options, name, db, extra)
            (options.output / f"{result['model']}.json").write_text(json.dumps(result) + "\n")
    show(options.output)


if __name__ == "__main__":
    main()
