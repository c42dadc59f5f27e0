"""python -m hone.fleet: the functions of hone.fleet as commands."""
import argparse
import ast
import inspect
import json
import re
import sys
from typing import Any, NamedTuple

from hone import fleet
from hone._option_docs import DATASET_OPTIONS, OPTIONS
from hone.errors import Error, InputError
from hone.fleet import _dataset, _sweep, _tune


class Command(NamedTuple):
    """A function as a command.

    Attributes:
        function: of hone.fleet.
        options: names of those that the function takes as **options.
        described: what describes the values of --option.
    """

    function: Any
    options: set
    described: str


COMMANDS = {"tune": Command(fleet.tune, set(OPTIONS) - _tune.NOT_TAKEN, "hone.options() and help(hone.fleet.tune)"),
            "dataset": Command(fleet.make_dataset, set(DATASET_OPTIONS) - _dataset.NOT_TAKEN,
                               "hone.options(of='make_dataset') and help(hone.fleet.make_dataset)"),
            "sweep": Command(fleet.sweep, set(), "help(hone.fleet.sweep)")}
# What the command line has of its own for an argument of the functions; None: nothing, as it is a Python function.
FLAGS = {"models": "MODEL", "configurations": "FILE.json", "output": "-o", "db": "--db", "address": "--address", "budget_seconds": "--budget",
         "workers": "--workers", "device": "--device", "slice_seconds": "--slice", "finish_seconds": "--finish", "on_progress": None,
         "on_result": None}
UNITS = {"": 1, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}


def duration(text):
    """Seconds of a text such as 90s or 1h."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(ms|s|min|m|h|)", text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is no time, expected one such as 90s, 10m or 1h")
    return float(match[1]) * UNITS[match[2]]


def arguments_of(command):
    """Names of the arguments that a command's function takes by name, besides its **options."""
    parameters = inspect.signature(COMMANDS[command].function).parameters
    return {name for name, parameter in parameters.items() if parameter.kind is not inspect.Parameter.VAR_KEYWORD}


def option_names(command):
    """What --option may name."""
    return sorted((COMMANDS[command].options | arguments_of(command)) - set(FLAGS))


def pairs(command, texts):
    """The options of NAME=VALUE texts; a value that is no Python literal is a text."""
    options = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise InputError(f"--option {text}: expected NAME=VALUE")
        if FLAGS.get(name) and name in arguments_of(command):
            raise InputError(f"--option {name}: expected {FLAGS[name]} instead, which is the same")
        if name not in option_names(command):
            raise InputError(f"--option {name}: there is no such option of {command}, expected one of "
                             f"{', '.join(option_names(command))}")
        if name in options:
            raise InputError(f"--option {name}: it is given twice, expected it once")
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            options[name] = value
    return options


def read_configurations(path):
    """The configurations of a sweep's file."""
    try:
        with open(path, encoding="utf-8") as file:
            return _sweep.checked_configurations(json.load(file))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}, expected a JSON file with a list of objects of options") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}; expected JSON, a list of objects of options") from None


def add_common(parser, command, budget):
    parser.add_argument("--db", required=True, help="the store that all workers share: postgres://user@host/name, or a file on one machine")
    parser.add_argument("--address", help="the Ray cluster, HOST:PORT or auto; default: this machine alone")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help=f"an option, described by {COMMANDS[command].described} in Python: one of {', '.join(option_names(command))}; "
                             "repeat for more")
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
    add_common(tune, "tune", "60s")
    dataset = commands.add_parser("dataset", help="make a data set for cost models")
    dataset.add_argument("models", nargs="+", metavar="MODEL")
    add_common(dataset, "dataset", "1h")
    sweep = commands.add_parser("sweep", help="train cost models by several configurations")
    sweep.add_argument("configurations", metavar="FILE.json", help="a list of objects of options, which hone.options(of='train') in Python describes")
    sweep.add_argument("-o", "--output", required=True, help="the folder for the models")
    add_common(sweep, "sweep", None)
    return parser


def run(arguments):
    """The report of a command, and its lines."""
    common = {"db": arguments.db, "address": arguments.address, **pairs(arguments.command, arguments.option)}
    if arguments.command == "sweep":
        results = fleet.sweep(read_configurations(arguments.configurations), arguments.output, **common)
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
    except OSError as error:  # The disk may be full, for example.
        what = f"{error.filename}: {error.strerror}, expected a file that can be read and written" if error.filename else error
        print(f"hone.fleet: {what}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("hone.fleet: interrupted; what was measured is stored", file=sys.stderr)
        return 130
    print(json.dumps(as_json(report)) if arguments.json else "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
