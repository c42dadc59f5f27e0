#!/usr/bin/env python3
"""Trains cost models on the training part of a split, judges all by its test part and prints a Markdown table.

    hone dataset split --db data.db -o split.json --by model --hold-out resnet50
    scripts/cost_model_table.py --hone H --db data.db --split split.json --folder models --json table.json \\
        analytic combined combined:lightgbm small atformer:epochs=5,hidden=128 [--tasks 50,100,200,300,500,all] [--jobs 2]

A model is a NAME of `hone train --cost`, or `analytic`, with settings after a colon: the library that fits trees (xgboost,
lightgbm), options of hone train for nets (loss, epochs, batch, lr, weight-decay, patience), and options of trees or of the family. A FILE.model or
FILE.onnx is judged as it is.

Each training has --threads threads. What it wrote is kept in --folder with a FILE.json of its figures, which are used again by the
same command while they are newer than the database and the split; a program that is newer judges anew what was trained. FILE.log has its output. A net whose training was interrupted goes
on with the epoch that it was in. The table and the JSON file are written anew whenever a model is finished. A model that fails is
reported and left out; the exit code is then 1. scripts/cost_model_study.py makes the tables of the papers of these models.
"""
import argparse
import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BOOSTERS = ("xgboost", "lightgbm")
TRAIN_OPTIONS = ("loss", "epochs", "batch", "lr", "weight-decay", "patience")
TREES = ("gbdt", "combined")
SCORES = {"pairs": "pair_accuracy", "clear": "clear_pair_accuracy", "top-1": "top1", "top-5": "top5", "peak-5": "peak5",
          "R^2": "r_squared", "RMSE": "rmse", "R^2 s": "r_squared_seconds", "R^2 ln s": "r_squared_log_seconds"}
COLUMNS = ("pairs", "clear", "top-1", "top-5", "peak-5", "network top-1", "network top-5", "R^2", "RMSE", "R^2 s", "R^2 ln s")


class Failure(Exception):
    """A command that failed, by what it said."""


class Model:
    """One row of the table: what to train, if anything, and on how many tasks (None: all)."""

    def __init__(self, spec, tasks, options, device=None):
        self.spec, self.tasks, self.options = spec, tasks, options
        self.device = device or options.device  # that it is trained for
        self.train, self.file = None, None
        self.lock, self.done = threading.Lock(), None
        if spec.endswith((".model", ".onnx")):
            self.cost, self.file = spec, Path(spec)
        else:
            self.cost, _, settings = spec.partition(":")
            if self.cost == "analytic" and settings:
                raise Failure(f"{spec}: the analytic model has no settings")
            if self.cost != "analytic":
                self.train = self.train_command(settings)
        self.figures = options.folder / f"{self.stem()}.json"
        if self.train:
            self.file = options.folder / (self.stem() + (".model" if self.cost in TREES else ".onnx"))
            self.train += ["-o", str(self.file)]
        self.judge = ["eval", "--db", options.db, "--split-file", str(options.split), "--device", options.device,
                      *self.judged_by(), *(text for network in options.network for text in ("--network", network)), "--json"]

    def stem(self):
        """What its files are called."""
        return re.sub(r"[^\w.=]+", "-", self.spec) + ("" if self.tasks is None else f".{self.tasks}")

    def judged_by(self):
        return ["--cost", str(self.file or self.cost)]

    def train_command(self, settings):
        options = self.options
        command = [*self.base_command(), "--cost", self.cost]
        if self.cost not in TREES:
            command += [*(["--budget", options.budget] if options.budget else []), *(["--train-on", options.train_on] if options.train_on else [])]
        family = []
        for setting in filter(None, settings.split(",")):
            key, equals, value = setting.partition("=")
            trees = self.cost in TREES
            if not equals and not (trees and setting in BOOSTERS):
                raise Failure(f"{self.spec}: found '{setting}', expected {', '.join(BOOSTERS) + ' or ' if trees else ''}NAME=VALUE")
            if not equals:
                command += ["--booster", setting]
            elif not trees and key in TRAIN_OPTIONS:
                command += [f"--{key}", value]
            else:
                family.append(setting)
        if family:
            command += ["--options", ",".join(family)]
        return command if self.tasks is None else [*command, "--tasks", str(self.tasks)]

    def base_command(self):
        options = self.options
        return ["train", "--db", options.db, "--split-file", str(options.split), "--device", self.device,
                "--seed", str(options.seed), "--threads", str(options.threads)]

    def name(self):
        return self.spec if self.tasks is None else f"{self.spec}, {self.tasks} tasks"

    def known(self):
        """The figures of an earlier run, if nothing has changed since."""
        if self.options.again or not self.figures.exists() or (self.file and not self.file.exists()):
            return None
        found = json.loads(self.figures.read_text())
        if (found["train_command"], found["eval_command"]) != (self.train, self.judge):
            return None
        newest = max(path.stat().st_mtime for path in self.inputs() if path.exists())
        made = [self.figures, self.file] if self.train else [self.figures]
        return found if min(path.stat().st_mtime for path in made) > newest else None

    def inputs(self):
        paths = [Path(self.options.db), self.options.split]
        log = Path(self.options.db + "-wal")  # of SQLite; empty where a reader made it
        if log.exists() and log.stat().st_size > 0:
            paths.append(log)
        return paths if self.train or not self.file else [*paths, self.file]

    def result(self):
        with self.lock:
            if self.done is None:
                self.done = self.new_result()
        return self.done

    def new_result(self):
        known = self.known()
        if known and self.figures.stat().st_mtime > Path(self.options.hone).stat().st_mtime:
            print(f"{self.name()}: as judged before", file=sys.stderr, flush=True)
            return known
        result = {"model": self.spec, "tasks_wanted": self.tasks, "file": str(self.file or ""), "train_command": self.train,
                  "eval_command": self.judge}
        if known:  # by a program that was built anew since
            result = known | result
        elif self.train:
            result.update(self.trained())
        done = subprocess.run([self.options.hone, *self.judge], capture_output=True, text=True)
        if done.returncode:
            raise Failure(last_words(done.stderr))
        result["evaluation"] = json.loads(done.stdout)
        write(self.figures, json.dumps(result, indent=1) + "\n")
        print(f"{self.name()}: pairs {result['evaluation']['all']['pair_accuracy']:.3f}", file=sys.stderr, flush=True)
        return result


    def trained(self):
        """Goes on with what an interrupted training has left, if it is of the same command and data."""
        command, log = [self.options.hone, *self.train], self.figures.with_suffix(".log")
        state = Path(f"{self.file}.state")
        if state.exists():
            try:
                return run_training([*command, "--resume"], log)
            except Failure as failure:
                if str(state) not in str(failure):
                    raise
                state.unlink()
        return run_training(command, log)


def last_words(text):
    errors = [line for line in text.splitlines() if line.startswith("hone: ")]
    return errors[-1] if errors else (text.splitlines() or ["no message"])[-1]


def run_training(command, log):
    """Seconds of a core and of the clock, the size of the model, what it was trained on."""
    start = time.monotonic()
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text()
    if process.returncode:
        raise Failure(last_words(text))
    size = re.search(r"(\d+) (trees|weights)", text)
    data = re.search(r"(\d+) schedules of (\d+) tasks", text)
    epochs = re.findall(r"^epoch (\d+)/", text, re.MULTILINE)
    return {"epochs": int(epochs[-1]) if epochs else None, "size": int(size[1]), "unit": size[2], "schedules": int(data[1]), "tasks": int(data[2]),
            "cpu_seconds": usage.ru_utime + usage.ru_stime, "seconds": time.monotonic() - start}


def write(path, text):
    """All or nothing."""
    part = Path(f"{path}.{os.getpid()}.part")
    part.write_text(text)
    part.replace(path)


def cells(result, with_tasks):
    trained = result["train_command"] is not None
    score, networks = result["evaluation"]["all"], result["evaluation"]["networks"]
    row = [f"`{result['model']}`"]
    if with_tasks:
        row.append(f"{result['tasks']:,}" if trained else "")
    row += [f"{result['size']:,} {result['unit']}", f"{result['cpu_seconds']:.0f}"] if trained else ["", ""]
    numbers = {column: score.get(key) for column, key in SCORES.items()}  # what an earlier version judged may lack some
    for column, key in (("network top-1", "top1"), ("network top-5", "top5")):
        numbers[column] = statistics.mean(network[key] for network in networks) if networks else None
    return row + ["" if numbers[column] is None else f"{numbers[column]:.3f}" for column in COLUMNS], COLUMNS


def table(results, with_tasks):
    rows = [cells(result, with_tasks) for result in results]
    if not rows:
        return ""
    head = ["model", *(["tasks"] if with_tasks else []), "size", "CPU s of training", *rows[0][1]]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *(row for row, _ in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def parse_tasks(text):
    if not re.fullmatch(r"([1-9]\d*|all)(,([1-9]\d*|all))*", text):
        raise argparse.ArgumentTypeError(f"found '{text}', expected numbers and all, such as 50,100,all")
    return [None if word == "all" else int(word) for word in dict.fromkeys(text.split(","))]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="NAME[:SETTING,...], FILE.model or FILE.onnx")
    add_options(parser)
    parser.add_argument("--tasks", type=parse_tasks, help="train on so many tasks each, such as 50,100,200,300,500,all")
    options = parser.parse_args()
    check_options(parser, options)
    return parser, options


def add_options(parser):
    """The data, the trainings and where results go."""
    parser.add_argument("--hone", default=str(REPOSITORY / "build" / "release" / "tools" / "hone" / "hone"), help="the program")
    parser.add_argument("--db", required=True, help="the data set")
    parser.add_argument("--split", required=True, type=Path, help="what hone dataset split wrote")
    parser.add_argument("--folder", type=Path, default=Path("cost_models"), help="where trained models and their figures are kept")
    parser.add_argument("--device", default="host", help="whose records are used")
    parser.add_argument("--network", action="append", default=[], metavar="MODEL.onnx",
                        help="networks to judge, each task as often as it occurs; repeat per network")
    parser.add_argument("--seed", type=int, default=1, help="of the trainings")
    parser.add_argument("--jobs", type=int, default=1, help="so many models at a time")
    parser.add_argument("--threads", type=int, default=1, help="of each training")
    parser.add_argument("--train-on", metavar="WHERE", help="of nets: what computes, as of hone train; default: cpu")
    parser.add_argument("--budget", metavar="TIME", help="of the epochs of each net, such as 10m; what it has learnt by then is judged")
    parser.add_argument("--again", action="store_true", help="train and judge anew what is there")
    parser.add_argument("--output", type=Path, help="a file for the table, too")
    parser.add_argument("--json", type=Path, help="a file for all figures")


def check_options(parser, options):
    for path in (options.hone, options.db, options.split):
        if not Path(path).exists():
            parser.error(f"{path}: no such file")
    for name in ("jobs", "threads"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: found {getattr(options, name)}, expected 1 or more")


def make_models(options):
    models = []
    for spec in options.models:
        trained = spec != "analytic" and not spec.endswith((".model", ".onnx"))
        models += [Model(spec, tasks, options) for tasks in ((options.tasks or [None]) if trained else [None])]
    check_names(models)
    return models


def check_names(models):
    names = [model.figures.name for model in models]
    for model in models:
        if names.count(model.figures.name) > 1:
            raise Failure(f"{model.name()}: two models are called {model.figures.stem}")


def report(models, results, failed, options, make_text):
    """Writes what there is so far; the text."""
    done = [results[i] for i in range(len(models)) if i in results]
    text = make_text(done)
    if options.output:
        write(options.output, text)
    if options.json:
        split = json.loads(options.split.read_text())
        about = {key: split[key] for key in ("by", "held_out", "fraction", "validation_fraction", "seed", "space_version")}
        everything = {"database": options.db, "split_file": str(options.split), "split": about, "seed": options.seed, "results": done,
                      "failed": [{"model": models[i].name(), "error": message} for i, message in sorted(failed.items())]}
        write(options.json, json.dumps(everything, indent=1) + "\n")
    return text


def main():
    parser, options = parse_options()
    try:
        models = make_models(options)
    except Failure as failure:
        parser.error(str(failure))
    return run_all(models, options, lambda results: table(results, options.tasks is not None))


def run_all(models, options, make_text):
    """Trains and judges all, prints what make_text(results) says of those that are done; the exit code."""
    options.folder.mkdir(parents=True, exist_ok=True)
    results, failed, text, code = {}, {}, "", 0
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    waiting = {pool.submit(model.result): i for i, model in enumerate(models)}
    try:
        for done in concurrent.futures.as_completed(waiting):
            i = waiting[done]
            try:
                results[i] = done.result()
            except Failure as failure:
                failed[i], code = str(failure), 1
                print(f"{models[i].name()}: {failure}", file=sys.stderr, flush=True)
            text = report(models, results, failed, options, make_text)
    except KeyboardInterrupt:
        code = 130
    pool.shutdown(cancel_futures=True)
    print(text, end="")
    return code


if __name__ == "__main__":
    sys.exit(main())
