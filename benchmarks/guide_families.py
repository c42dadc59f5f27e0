"""Cost models as guides of one search: which files are trained for it, and which contenders they make (guide_curves.py).

ATFormer (Bai et al., EMNLP 2023) tunes networks with each family of cost models, from scratch on line and pre-trained with 50 to 500 tasks of
another device (its figure 6, tables 1 to 3 and 10). Here a family's net begins with random weights (`--adapt scratch`) or with what
`hone train --tasks N` left in a file, and then stays as it is (`none`) or learns on line (`head`, `full`, `momentum`). Trees (`gbdt`)
always learn on line; from scratch is the name alone.
"""
import sys
from pathlib import Path

from tuning_curves import run_hone

TREES = ("gbdt", "combined")
SCRATCH = "scratch"


def path_of(options, family, size):
    name = family.replace(":", "_").replace(",", "_").replace("=", "")
    return options.nets / f"{name}_{size}{'.model' if family in TREES else '.onnx'}"


def train(options, family, size):
    """The file of a family that learned from so many tasks; trained unless it is there."""
    path = path_of(options, family, size)
    if not path.exists():
        name, _, settings = family.partition(":")
        command = ["train", "--db", options.train_db, "--cost", name, "--tasks", size, "--seed", options.first_seed, "-o", path]
        command += ["--options", settings] if settings else []
        for option, value in (("--device", options.train_device), ("--split-file", options.train_split)):
            command += [option, value] if value else []
        if name not in TREES:
            command += ["--epochs", options.epochs] if options.epochs else []
            command += ["--budget", options.train_budget] if options.train_budget else []
        options.nets.mkdir(parents=True, exist_ok=True)
        print(f"training {path.name}", file=sys.stderr, flush=True)
        run_hone(options.hone, *command)
    return path


def costs(options):
    """What `--costs` of guide_curves.py takes, of all --families, --sizes and --adapts."""
    found = []
    for family in options.families:
        trained = [train(options, family, size) for size in options.sizes]
        if family in TREES:
            found += [f"{options.decides},{family}", *(f"{options.decides},{path}" for path in trained)]
            continue
        for how in options.adapts:
            found += [f"{options.decides},{path}+{how}" for path in (trained[:1] if how == SCRATCH else trained)]
    return found


def add_options(parser):
    parser.add_argument("--families", nargs="+", default=[], help="of hone train --cost, with options as atformer:layers=1; each is a guide, trained with each of --sizes")
    parser.add_argument("--train-db", help="of the data set that they are trained on")
    parser.add_argument("--train-device", help="the device of its records, as hone train takes it: another one than this machine is ATFormer's transfer")
    parser.add_argument("--train-split", help="a file of hone dataset split; without the networks that are tuned, --tasks are held out")
    parser.add_argument("--sizes", nargs="+", type=int, default=[50, 300], help="tasks that they are trained on")
    parser.add_argument("--adapts", nargs="+", choices=["none", "head", "full", "momentum", SCRATCH], default=[SCRATCH, "none", "full"],
                        help="how nets learn while they guide; scratch: from random weights, once a family")
    parser.add_argument("--nets", type=Path, help="the folder of trained files; what is there is not trained again")
    parser.add_argument("--epochs", type=int, help="of each training; default: the family's")
    parser.add_argument("--train-budget", help="of each training, as hone train --budget takes it")
    parser.add_argument("--decides", default="analytic", help="the cost model that decides which kernels there are, the same for all families")
