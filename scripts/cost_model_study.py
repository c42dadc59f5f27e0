#!/usr/bin/env python3
"""Makes the tables of the papers of cost models with Hone's models and data, the papers' figures beside.

    hone dataset split --db data.db -o split.json --by model --hold-out resnet50 --hold-out mobilenet_v2
    scripts/cost_model_study.py --hone H --db data.db --split split.json --folder study --output study.md --json study.json \\
        --tables tasks --families atformer fasor tlp gbdt --sizes 50,100,200,300,500,all --epochs 8 --budget 10m --threads 2

Each cell is a model that is trained, judged and kept as scripts/cost_model_table.py does: whatever ends this script, the same
command goes on from there. --budget caps the training of each net; what it has learnt by then is judged.

  tasks          how many tasks to train on: pairs in order (ATFormer, table 7), for each of --families and --sizes
  losses         ranks or errors (ATFormer, table 4, methods a and b; TLP)
  architectures  heads and encoder layers (ATFormer, table 5)
  features       with and without the tags of operators, the coarse ones of ATFormer's features (ATFormer, table 6)
  batch          families (ATFormer, table 9); wants a data set of kernels of batch 8
  mask           whether statements attend to padding (ATFormer, table 7, its last column)
  networks       the best of one and of five for a whole network (TenSet, TLP on a Xeon Platinum 8272)
  time           R^2 of the times of all schedules together (Fasor, table 8); wants a split --by within
  devices        what was learnt on --from-device, carried to --device by --count tasks (Fasor, table 9), for each of --families,
                 beside no model at all (replay), no adaptation and training from scratch

The papers judge by other data, other programs and, where a latency is given, by tuning: their figures say what gains, not how much.
"""
import argparse
import json
import re
import subprocess
import sys

import cost_model_table as table
from cost_model_table import Failure, Model

# ATFormer, tables 12 and 13; values, not pairs.
PAPER_XGBOOST = "gbdt:trees=300,levels=6,leaves=0,rate=0.2,features=1,pairs=0,leaf_weight=2,gain=0.003"
FAMILIES = ("atformer:mask=0", "fasor", "tlp", "gbdt")
# Table 7 of ATFormer, by the number of tasks.
ATFORMER_PAIRS = {"XGBoost": {50: 0.9131, 300: 0.9224, 500: 0.9308}, "ATFormer-1L": {50: 0.8598, 300: 0.9041, 500: 0.9198},
                  "ATFormer": {50: 0.9348, 300: 0.9382, 500: 0.9406}, "ATFormer-M": {50: 0.9328, 300: 0.9333, 500: 0.9371}}
# What the paper calls it, its figure, our model.
ROWS = {
    "losses": ("latency of ResNet-18 tuned; TLP: network top-1, top-5",
               [("ATFormer, RMSE", "1.42 ms", "atformer:loss=rmse,mask=0"), ("ATFormer, lambdaRank", "1.04 ms", "atformer:loss=lambdarank,mask=0"),
                ("TLP, MSE", "0.913, 0.954", "tlp:loss=rmse"), ("TLP, lambdaRank", "0.919, 0.971", "tlp:loss=lambdarank")]),
    "architectures": ("latency of ResNet-18 tuned",
                      [("MHA, 2 heads", "3.71 ms", "mha:heads=2"), ("MHA, 4 heads", "1.24 ms", "mha:heads=4"), ("MHA, 8 heads", "1.19 ms", "mha:heads=8"),
                       ("ATFormer-1L", "1.25 ms", "atformer:layers=1,mask=0"), ("ATFormer", "1.04 ms", "atformer:layers=2,mask=0"),
                       ("ATFormer-3L", "1.23 ms", "atformer:layers=3,mask=0")]),
    "features": ("latency of ResNet-18 tuned",
                 [("XGBoost without tags", "1.63 ms", PAPER_XGBOOST), ("LSTM", "1.29 ms", "lstm"), ("LSTM without tags", "1.58 ms", "lstm:tags=0"), ("ATFormer", "1.04 ms", "atformer:mask=0"),
                  ("ATFormer without tags", "1.18 ms", "atformer:mask=0,tags=0")]),
    "batch": ("latency of ResNet-18, BERT-Tiny tuned, batch 8",
              [("XGBoost", "3.04, 17.42 ms", PAPER_XGBOOST), ("LSTM", "3.35, 14.83 ms", "lstm"), ("TabNet", "2.88, 16.98 ms", "tabnet"), ("MHA", "2.79, 15.32 ms", "mha"),
               ("ATFormer-1L", "2.51, 15.49 ms", "atformer:layers=1,mask=0"), ("ATFormer", "2.39, 14.37 ms", "atformer:mask=0"), ("", "", "combined")]),
    "mask": ("pairs, 500 tasks", [("ATFormer", "0.941", "atformer:mask=0"), ("ATFormer-M", "0.937", "atformer:mask=1")]),
    "networks": ("network top-1, top-5",
                 [("TenSet-MLP", "0.875, 0.953", "mlp"), ("TLP", "0.919, 0.971", "tlp"), ("", "", "gbdt"), ("", "", "combined"), ("", "", "small")]),
    "time": ("R^2 of the time", [("Fasor", "0.972", "fasor"), ("XGBoost", "0.923", PAPER_XGBOOST), ("", "", "gbdt"), ("LSTM", "0.920", "lstm:loss=multitask,layers=2")]),
}
NAMES = ("tasks", *ROWS, "devices")
FASOR_TRANSFER = "0.951, 0.931, 0.899"
METRICS = table.COLUMNS


def merged(spec, options):
    """The model with what --epochs and --with add; its own settings come first."""
    name, _, own = spec.partition(":")
    if name in table.TREES or name == "analytic":
        return spec
    settings = {"epochs": str(options.epochs)} if options.epochs else {}
    for text in [*(more.partition(":")[2] for more in options.settings if more.partition(":")[0] == name), own]:
        for setting in filter(None, text.split(",")):
            key, equals, value = setting.partition("=")
            if not equals:
                raise Failure(f"{spec}: found '{setting}', expected NAME=VALUE")
            settings[key] = value
    return name + (":" if settings else "") + ",".join(f"{key}={value}" for key, value in settings.items())


class Carried(Model):
    """A model on --device, after what `how` says: "none" (as it was on --from-device), "scratch", "full", "head", "trees", "all"."""

    def __init__(self, spec, how, options, few=None, old=None):
        self.how, self.few, self.old = how, few, old
        super().__init__(spec, None, options, options.from_device if how == "none" else None)

    def stem(self):
        return f"{super().stem()}.{self.how}"

    def name(self):
        return f"{self.spec}, {self.how}"

    def train_command(self, settings):
        command = super().train_command(settings) if self.old is None else [*self.base_command(), "--from", str(self.old.file)]
        if self.how in ("full", "head"):
            command += ["--adapt", self.how]
        return command if self.few is None else [*command, "--only", str(self.few)]

    def inputs(self):
        return [*super().inputs(), *([self.few] if self.few else []), *([self.old.file] if self.old else [])]

    def new_result(self):
        if self.old is not None:
            self.old.result()
        return super().new_result()


class Replayed(Model):
    """No model: the order that the schedules had on --from-device."""

    def __init__(self, options):
        super().__init__("analytic", None, options)
        self.spec = "replay"

    def stem(self):
        return "replay"

    def judged_by(self):
        return ["--replay", self.options.from_device]


def representatives(options):
    """The file of the tasks to measure on the new device."""
    few = options.folder / "few.json"
    options.folder.mkdir(parents=True, exist_ok=True)
    split = json.loads(options.split.read_text())
    left_out = [text for name in (split["held_out"] if split["by"] == "model" else []) for text in ("--exclude-model", name)]
    command = ["dataset", "representatives", "--db", options.db, "--device", options.from_device, "--count", str(options.count), *left_out]
    new = options.folder / "few.new.json"
    done = subprocess.run([options.hone, *command, "-o", str(new)], capture_output=True, text=True)
    if done.returncode:
        raise Failure(table.last_words(done.stderr))
    # Models that were adapted by the same tasks stay.
    if few.exists() and few.read_text() == new.read_text():
        new.unlink()
    else:
        new.replace(few)
    return few


def sizes_of(options):
    """Those that the split has tasks for."""
    split = json.loads(options.split.read_text())
    most = len(split["schedules"] if split["by"] == "within" else split["tasks"]["train"])
    for size in options.sizes:
        if size is not None and size > most:
            print(f"--sizes: {size} is left out, the split has {most} tasks to train on", file=sys.stderr)
    return [size for size in options.sizes if size is None or size <= most]


def make_models(options):
    """By table; small sizes first, so that every family is in it early."""
    families = [merged(spec, options) for spec in options.families]
    models = {}
    for name in options.tables:
        if name == "tasks":
            models[name] = [Model(spec, size, options) for size in sizes_of(options) for spec in families]
        elif name == "devices":
            few = representatives(options)
            models[name] = [Model("analytic", None, options), Replayed(options)]
            for spec in families:
                old = Carried(spec, "none", options)
                ways = ("trees",) if old.cost in table.TREES else ("full", "head")
                models[name] += [old, Carried(spec, "scratch", options, few), *(Carried(spec, how, options, few, old) for how in ways),
                                 Carried(spec, "all", options)]
        else:
            models[name] = [Model(merged(spec, options), None, options) for _, _, spec in ROWS[name][1]]
    return models


def figures_of(result):
    """By the names of METRICS."""
    row, order = table.cells(result, False)
    return dict(zip(order, row[3:]))


def markdown(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def in_the_paper(spec):
    """What ATFormer's table 7 calls the model, or nothing."""
    name, _, settings = spec.partition(":")
    if name in table.TREES:
        return "XGBoost"
    if name != "atformer":
        return None
    return "ATFormer-1L" if re.search(r"\blayers=1\b", settings) else "ATFormer" if re.search(r"\bmask=0\b", settings) else "ATFormer-M"


def tasks_table(models, known, options):
    """Rows are numbers of tasks; a cell has our share of pairs and the paper's."""
    specs = list(dict.fromkeys(model.spec for model in models))
    text = ""
    for metric in options.metrics:
        rows = []
        for size in dict.fromkeys(model.tasks for model in models):
            cells = {model.spec: known(model) for model in models if model.tasks == size}
            done = [result for result in cells.values() if result]
            row = [f"all ({done[0]['tasks']:,})" if size is None and done else "all" if size is None else str(size)]
            for spec in specs:
                ours = figures_of(cells[spec])[metric] if cells[spec] else ""
                paper = ATFORMER_PAIRS.get(in_the_paper(spec), {}).get(size) if metric == "pairs" else None
                row.append(ours + (f" ({paper:.3f})" if paper and ours else ""))
            rows.append(row)
        text += f"{metric}{' (ATFormer, table 7)' if metric == 'pairs' else ''}:\n\n"
        text += markdown(["tasks", *(f"`{spec}`" for spec in specs)], rows) + "\n"
    return text + table.table([result for result in map(known, models) if result], True)


def rows_table(name, models, known):
    """The paper's rows, its figures, ours."""
    what, rows = ROWS[name]
    order = [column for column in table.COLUMNS if column != "peak-5"]
    lines = []
    for (paper, figure, _), model in zip(rows, models):
        result = known(model)
        if result:
            figures = figures_of(result)
            lines.append([paper or "-", figure, f"`{model.spec}`", *(figures[metric] for metric in order)])
    return markdown(["in the paper", what, "here", *order], lines)


def devices_table(models, known):
    words = {"none": "no adaptation", "scratch": "from scratch, the few tasks", "full": "all weights, the few tasks",
             "head": "the last layers, the few tasks", "trees": "more trees, the few tasks", "all": "trained on all tasks there"}
    order = [column for column in table.COLUMNS if column not in ("peak-5", "RMSE")]
    lines = []
    for model in models:
        result = known(model)
        if result:
            how = getattr(model, "how", None)
            paper = FASOR_TRANSFER if how == "full" and model.cost == "fasor" else ""
            figures = figures_of(result)
            lines.append([f"`{model.spec}`", words.get(how, ""), *(figures[metric] for metric in order), paper])
    return markdown(["model", "", *order, "R^2 in the paper"], lines)


def text_of(models, known, options):
    parts = []
    for name, some in models.items():
        if name == "tasks":
            text = tasks_table(some, known, options)
        else:
            text = devices_table(some, known) if name == "devices" else rows_table(name, some, known)
        parts.append(f"## {name}\n\n{text}")
    return "\n".join(parts)


def parse_list(known):
    def parse(text):
        names = list(dict.fromkeys(text.split(",")))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"found '{name}', expected some of {','.join(known)}")
        return names
    return parse


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=parse_list(NAMES), default=["tasks"], help=f"some of {','.join(NAMES)}; default: tasks")
    parser.add_argument("--families", nargs="+", default=FAMILIES, metavar="MODEL",
                        help=f"NAME[:SETTING,...] as of cost_model_table.py; default: {' '.join(FAMILIES)}")
    parser.add_argument("--sizes", type=table.parse_tasks, default=table.parse_tasks("50,100,200,300,500,all"),
                        help="numbers of tasks; default: 50,100,200,300,500,all")
    parser.add_argument("--epochs", type=int, help="of every net; default: as the papers of each")
    parser.add_argument("--with", dest="settings", action="append", default=[], metavar="NAME:SETTING,...",
                        help="settings of all models of this name, such as tlp:epochs=6,batch=256; repeat per name")
    parser.add_argument("--metrics", type=parse_list(METRICS), default=["pairs", "network top-1"],
                        help=f"a table of tasks each, some of {','.join(METRICS)}; default: pairs,network top-1")
    parser.add_argument("--from-device", metavar="NAME", help="of devices: where much was measured, such as host/1")
    parser.add_argument("--count", type=int, default=10, help="of devices: tasks that are measured on the new one")
    table.add_options(parser)
    options = parser.parse_args()
    table.check_options(parser, options)
    if "devices" in options.tables and not options.from_device:
        parser.error("--tables devices: expected --from-device, too")
    if options.epochs is not None and options.epochs < 1:
        parser.error(f"--epochs: found {options.epochs}, expected 1 or more")
    return parser, options


def main():
    parser, options = parse_options()
    try:
        models = make_models(options)
        each = {}
        for model in (model for some in models.values() for model in some):
            each.setdefault(model.figures, model)  # what several tables have is trained once
    except Failure as failure:
        parser.error(str(failure))

    def make_text(results):
        done = {(result["model"], *map(str, result["eval_command"])): result for result in results}
        return text_of(models, lambda model: done.get((model.spec, *map(str, model.judge))), options)

    return table.run_all(list(each.values()), options, make_text)


if __name__ == "__main__":
    sys.exit(main())
