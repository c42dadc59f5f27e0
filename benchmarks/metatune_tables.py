#!/usr/bin/env python3
"""MetaTune's tables: how well cost models predict after a few samples of a task (table 4, figure 9), and what searches with them reach (figures 5 and 6, table 3).

    build/venv/bin/python benchmarks/metatune_tables.py errors --hone build/release/tools/hone/hone --db held_out.db --output errors.json
        --contenders xgb=gbdt xgb-Xfer=without.model net=plain.onnx meta=maml.onnx meta-T=template_maml.onnx --samples 0 32 64 128 256
    build/venv/bin/python benchmarks/metatune_tables.py rates --hone build/release/tools/hone/hone --table rates.jsonl
        --contenders xgb=gbdt xgb-Xfer=without.model RL=gbdt/ppo meta-RL=maml.onnx/ppo meta-RL-T=template_maml.onnx/ppo meta-BO=maml.onnx/bayes meta-BO-T=template_maml.onnx/bayes
        --models resnet18 vgg16 squeezenet1_1 alexnet --seconds 600 --trials 1000 --seeds 3

A contender is NAME=FAMILY (trained from scratch on the samples alone), NAME=FILE.model or NAME=FILE.onnx of `hone train` (adapted to the samples);
for `rates` a search may follow, /STRATEGY, by default annealing, as TVM's.

errors: the database has many schedules of each of a few tasks that no file knows (`hone dataset make`; docs/user/dataset.md). Of each task N samples are drawn by
--seed, the others are predicted by the model that has learned from those N of every task. The error is of rates relative to the task's fastest schedule,
best / time, where the best is that of the schedules that are judged, once measured and once predicted, as of `hone eval --adapt-samples`: a net that predicts
rates knows no seconds. MSE is over all others, MSE(D) over those in the top quarter of the task.
rates: tuning_table.py runs them; the rate is FLOP of the model over its time, relative to the first contender's.
"""
import argparse
import contextlib
import json
import random
import sqlite3
import statistics
import sys
import tempfile
from pathlib import Path

import tuning_curves
import tuning_table
from kernel_report import markdown
from tuning_curves import Contender, run_hone

# MSE and MSE(D) of table 4, on an RTX 2080 Ti.
PAPER = {"alexnet": {"xgb": (0.1329, 0.5884), "xgb-Xfer": (0.1394, 0.5289), "meta-BO": (0.1342, 0.5888), "meta-BO-T": (0.1134, 0.4733)},
         "resnet-18": {"xgb": (0.1175, 0.6318), "xgb-Xfer": (0.1281, 0.5666), "meta-BO": (0.1048, 0.5720), "meta-BO-T": (0.1061, 0.5373)},
         "vgg-16": {"xgb": (0.1223, 0.5859), "xgb-Xfer": (0.1388, 0.5415), "meta-BO": (0.1075, 0.5150), "meta-BO-T": (0.1198, 0.4754)},
         "squeezenet": {"xgb": (0.1225, 0.6058), "xgb-Xfer": (0.1268, 0.5442), "meta-BO": (0.1288, 0.4212), "meta-BO-T": (0.1485, 0.4044)}}
TOP = 0.25  # of a task's schedules count for MSE(D)


def parse_contenders(texts):
    """[(name, model, strategy or "")]"""
    found = []
    for text in texts:
        name, equals, model = text.partition("=")
        if not equals or not name or not model:
            sys.exit(f"--contenders {text}: expected NAME=MODEL")
        path, slash, strategy = model.rpartition("/")
        known = slash and not strategy.endswith((".onnx", ".model"))
        found.append((name, path if known else model, strategy if known else ""))
    if len({name for name, _, _ in found}) < len(found):
        sys.exit("--contenders: one name is given twice")
    return found


def divided(db, samples, seed, folder):
    """Copies of a database: with `samples` trials of each task, and with the others; in the second only tasks that the first has."""
    few, rest = folder / f"few_{samples}.db", folder / f"rest_{samples}.db"
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as source:
        rows = source.execute("SELECT id, task || '/' || threads FROM trial WHERE outcome = 'ok' AND verified AND centre > 0 ORDER BY id").fetchall()
        tasks = {}
        for number, task in rows:
            tasks.setdefault(task, []).append(number)
        chosen = set()
        for task, numbers in sorted(tasks.items()):
            if len(numbers) < 2 * samples + 8:
                sys.exit(f"{db}: a task has {len(numbers)} schedules, expected at least {2 * samples + 8} for {samples} samples")
            chosen |= set(random.Random(f"{seed} {task}").sample(numbers, samples))
        for path, kept in ((few, chosen), (rest, {number for number, _ in rows} - chosen)):
            path.unlink(missing_ok=True)
            with contextlib.closing(sqlite3.connect(path)) as target:
                source.backup(target)
                target.executemany("DELETE FROM trial WHERE id = ?", [(number,) for number, in target.execute("SELECT id FROM trial").fetchall() if number not in kept])
                target.commit()
    return few, rest


def adapted(options, model, few, samples, folder):
    """The model after the samples: a file, or the name of a family without any. None: without samples a family knows nothing."""
    known = model.endswith((".onnx", ".model"))
    if samples == 0:
        return model if known else None
    suffix = Path(model).suffix if known else (".model" if model.partition(":")[0] in ("gbdt", "combined") else ".onnx")
    path = folder / f"adapted{suffix}"
    path.unlink(missing_ok=True)
    family, _, settings = model.partition(":")
    command = ["train", "--db", few, "--device", options.device, "--seed", options.seed, "-o", path]
    command += ["--from", model] if known else ["--cost", family, *(["--options", settings] if settings else [])]
    if suffix == ".onnx":
        command += ["--validation", 0, "--epochs", options.epochs]
        command += ["--adapt", options.adapt] if known and options.adapt else []
    run_hone(options.hone, *command)
    return path


def errors_of(predictions, top=TOP):
    """(MSE, MSE(D)) of lines as `hone eval --predictions` writes them: each has the seconds of a task's schedules, measured and predicted."""
    squares, best = [], []
    for line in predictions:
        measured, predicted = line["measured"], line["predicted"]
        fastest, foremost = min(measured), min(predicted)
        found = [(fastest / seconds - foremost / guess) ** 2 for seconds, guess in zip(measured, predicted, strict=True)]
        squares += found
        order = sorted(range(len(measured)), key=lambda i: measured[i])
        best += [found[i] for i in order[:max(1, round(top * len(order)))]]
    return statistics.fmean(squares), statistics.fmean(best)


def judged(options, model, rest, folder):
    path = folder / "predictions.jsonl"
    run_hone(options.hone, "eval", "--db", rest, "--device", options.device, "--cost", model, "--predictions", path)
    return errors_of([json.loads(line) for line in path.read_text().splitlines()])


def errors(options):
    """{contender: {samples: [(MSE, MSE(D)) of each seed]}}, written after each."""
    found = json.loads(options.output.read_text()) if options.output.exists() else {}
    with tempfile.TemporaryDirectory(prefix="hone-metatune") as name:
        folder = Path(name)
        for seed in range(options.seed, options.seed + options.seeds):
            for samples in options.samples:
                few, rest = divided(options.db, samples, seed, folder)
                for contender, model, _ in options.contenders:
                    known = found.setdefault(contender, {}).setdefault(str(samples), {})
                    if str(seed) in known:
                        continue
                    learned = adapted(options, model, few, samples, folder)
                    known[str(seed)] = None if learned is None else judged(options, learned, rest, folder)
                    options.output.write_text(json.dumps(found) + "\n")
                    print(f"seed {seed}, {samples} samples: {contender}", file=sys.stderr, flush=True)
    return found


def errors_table(found, samples):
    """A row per contender; the mean over the seeds of MSE and MSE(D) after each number of samples."""
    rows = [["", *(cell for n in samples for cell in (f"MSE, {n} samples", "MSE(D)"))]]
    for name, by_samples in found.items():
        row = [name]
        for n in samples:
            pairs = [pair for pair in by_samples.get(str(n), {}).values() if pair]
            row += [f"{statistics.fmean(pair[i] for pair in pairs):.4f}" if pairs else "-" for i in (0, 1)]
        rows.append(row)
    lines = [markdown(rows), "", "The paper's table 4, after 1,000 iterations of tuning (MSE / MSE(D)):", ""]
    names = list(PAPER["alexnet"])
    lines.append(markdown([["", *names], *([network, *(f"{own[name][0]} / {own[name][1]}" for name in names)] for network, own in PAPER.items())]))
    return "\n".join(lines)


def rate_contenders(options):
    made = []
    for name, model, strategy in options.contenders:
        adapt = ["--adapt", options.adapt or "full"] if model.endswith(".onnx") else []
        made.append(Contender(name, ["--search", strategy or options.search, "--cost", options.cost, "--guide", model, *adapt]))
    return made


def minutes(runs, name, first, labels, options):
    """Mean over seeds of the minutes until each network is at what the first contender has in the end, all networks together: table 3 by another yardstick, as
    all have the same time here."""
    found = []
    for seed in range(options.first_seed, options.first_seed + options.runs):
        for label in labels:
            wanted = tuning_table.at(runs.found[label, first, seed]["curve"], "seconds", options.seconds)
            reached = next((point[1] for point in runs.found[label, name, seed]["curve"] if wanted is not None and point[2] <= wanted), options.seconds)
            found.append(min(reached, options.seconds))
    return sum(found) / options.runs / 60


def rates(options):
    options.tasks, options.budget, options.runs = options.models, options.seconds, options.seeds
    made = rate_contenders(options)
    tuning_table.compare(made, options)
    runs = tuning_table.Runs(options.table, {key: getattr(options, key) for key in tuning_table.SETTINGS})
    names = [Path(name).stem for name in options.models]
    rows = [["", *(f"{name}: GFLOP/s" for name in names), *(f"{name}: of {made[0].name}" for name in names), "minutes"]]
    flops = {}
    for name in options.models:
        label, model, _ = tuning_curves.model_files.load(name)
        flops[label] = json.loads(run_hone(options.hone, "show", model, "--no-db", "--cost", options.cost, "--json"))["flops"]
    ends = {}
    for contender in made:
        for label in flops:
            found = [tuning_table.latency(runs, label, contender.name, seed, ("seconds", options.seconds)) for seed in range(options.first_seed, options.first_seed + options.runs)]
            ends[contender.name, label] = tuning_table.geomean(found)
        own = [(flops[label], ends[made[0].name, label], ends[contender.name, label]) for label in flops]
        rows.append([contender.name, *(f"{work / end / 1e9:.1f}" if end else "-" for work, _, end in own),
                     *(f"{first / end:.3f}" if first and end else "-" for _, first, end in own),
                     f"{minutes(runs, contender.name, made[0].name, flops, options):.2f}"])
    print()
    print(markdown(rows))


def add_errors(parser):
    parser.add_argument("--db", type=Path, required=True, help="a database file of schedules of tasks that no contender knows; it is only read")
    parser.add_argument("--output", type=Path, required=True, help="the file of figures; what it has is not made again")
    parser.add_argument("--samples", nargs="+", type=int, default=[0, 32, 64, 128], help="of each task")
    parser.add_argument("--device", default="host", help="of the records, as hone train takes it")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--epochs", type=int, default=20, help="of adapting a net")


def add_rates(parser):
    tuning_table.add_options(parser)
    parser.add_argument("--models", nargs="+", default=["resnet18", "vgg16", "squeezenet1_1", "alexnet"], help="of models/, or ONNX files")
    parser.add_argument("--seconds", type=float, default=600, help="of each run")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--search", default="annealing", help="the strategy of contenders that name none")
    parser.add_argument("--cost", default="analytic", help="the cost model that decides which kernels there are, for all")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="table_of", required=True)
    for name, add in (("errors", add_errors), ("rates", add_rates)):
        command = commands.add_parser(name, help=f"see the description of {Path(__file__).name}")
        command.add_argument("--hone", type=Path, required=True)
        command.add_argument("--contenders", nargs="+", required=True, metavar="NAME=MODEL", help="what is compared; the first is what others are relative to")
        command.add_argument("--seeds", type=int, default=3)
        command.add_argument("--adapt", help="how nets learn: of hone train (errors) or hone tune (rates); default: full")
        add(command)
    options = parser.parse_args()
    options.hone = options.hone.resolve()
    options.contenders = parse_contenders(options.contenders)
    if options.table_of == "rates":
        if not options.table:
            parser.error("--table: the file of the runs is required")
        rates(options)
        return
    if not options.db.is_file():
        parser.error(f"--db: no file {options.db}")
    print(errors_table(errors(options), options.samples))


if __name__ == "__main__":
    main()
