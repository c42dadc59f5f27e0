"""python -m hone.fleet: the functions of hone.fleet as commands."""
import argparse
import ast
import json
import re
import sys

from hone import fleet
from hone.errors import Error, InputError

UNITS = {"": 1, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}


def duration(text):
    """Seconds of a text such as 90s or 1h."""
    match = re.fullmatch(r"([0-9.]+)(ms|s|min|m|h|)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is no time, expected one such as 90s, 10m or 1h")
    return float(match[1]) * UNITS[match[2]]


def pairs(texts):
    """The options of NAME=VALUE texts; a value that is no Python literal is a text."""
    options = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise InputError(f"--option {text}: expected NAME=VALUE")
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    return options


def add_common(parser, budget):
    parser.add_argument("--db", required=True, help="the store that all workers share: postgres://user@host/name, or a file on one machine")
    parser.add_argument("--address", help="the Ray cluster, HOST:PORT or auto; default: this machine alone")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of docs/user/fleet.md; repeat for more")
    if budget:
        parser.add_argument("--budget", type=duration, default=duration(budget), help=f"the time for all of it; default: {budget}")
        parser.add_argument("--workers", type=int, help="the most workers; default: as many as the cluster has")
        parser.add_argument("--device", default="host", help="what is measured on; default: host")


def make_parser():
    parser = argparse.ArgumentParser(prog="python -m hone.fleet", description="Tunes, measures and trains on the nodes of a Ray cluster.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    tune = commands.add_parser("tune", help="tune models")
    tune.add_argument("models", nargs="+", metavar="MODEL")
    tune.add_argument("-o", "--output", default=".", help="the folder for the libraries; default: the current one")
    tune.add_argument("--slice", type=duration, dest="slice_seconds", help="the time that a worker spends on a task before it gets the next one")
    tune.add_argument("--finish", type=duration, dest="finish_seconds", help="the time at the end for comparing whole models; 0: none")
    add_common(tune, "60s")
    dataset = commands.add_parser("dataset", help="make a data set for cost models")
    dataset.add_argument("models", nargs="+", metavar="MODEL")
    add_common(dataset, "1h")
    sweep = commands.add_parser("sweep", help="train cost models by several configurations")
    sweep.add_argument("configurations", metavar="FILE.json", help="a list of objects of options")
    sweep.add_argument("-o", "--output", required=True, help="the folder for the models")
    add_common(sweep, None)
    return parser


def run(arguments):
    """The report of a command, and its lines."""
    common = {"db": arguments.db, "address": arguments.address, **pairs(arguments.option)}
    if arguments.command == "sweep":
        try:
            with open(arguments.configurations) as file:
                configurations = json.load(file)
        except (OSError, ValueError) as error:
            raise InputError(f"{arguments.configurations}: {error}") from None
        results = fleet.sweep(configurations, arguments.output, **common)
        return results, [f"{one.path or one.problem}: top1 {one.top1:.3f}, top5 {one.top5:.3f}, pairs {one.pair_accuracy:.3f}, "
                         f"{one.configuration}" for one in results]
    common.update(budget_seconds=arguments.budget, workers=arguments.workers, device=arguments.device)
    if arguments.command == "dataset":
        report = fleet.make_dataset(arguments.models, **common)
        return report, [f"{report.records} records of {report.tasks} tasks by {report.workers} workers in {report.seconds:.0f} s; "
                        f"{report.failed} gave no time, {report.lost} parts were lost"]
    report = fleet.tune(arguments.models, arguments.output, slice_seconds=arguments.slice_seconds, finish_seconds=arguments.finish_seconds, **common)
    lines = [f"{model.name}: {model.untuned_seconds * 1e3:.3f} ms before, {model.seconds * 1e3:.3f} ms now; wrote {model.library}"
             for model in report.models]
    return report, [*lines, f"{report.trials} trials of {report.tasks} tasks by {len(report.workers)} workers in {report.seconds:.0f} s; "
                            f"{report.lost} slices were lost"]


def as_json(report):
    """A report as an object of JSON."""
    if isinstance(report, list):
        return [vars(one) for one in report]
    return json.loads(json.dumps(vars(report), default=vars))


def main(texts=None):
    arguments = make_parser().parse_args(texts)
    try:
        report, lines = run(arguments)
    except Error as error:
        print(f"hone.fleet: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("hone.fleet: interrupted; what was measured is stored", file=sys.stderr)
        return 130
    print(json.dumps(as_json(report)) if arguments.json else "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
