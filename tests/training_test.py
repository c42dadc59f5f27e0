#!/usr/bin/env python3
"""hone train and hone eval: what cannot be learnt from is refused in one line, an interrupted training goes on to the same net, a budget
ends it early, fewer schedules of a task are judged by, and options that would do nothing are refused."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
from dataset_test import hone
from few_shot_test import notes_of
from measured_data import make_data


def with_torch():
    return (Path(os.environ["HONE"]).parent / "../lib/hone/libhone_torch.so").exists()


def database(folder, name, records):
    """A database of these records."""
    lines, db = folder / f"{name}.jsonl", folder / f"{name}.db"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records))
    hone("db", "import", lines, "--db", db)
    return db


def check_refused(folder, db, message):
    """By everything that reads a data set; nothing is written."""
    outputs = {"train": folder / "no.model", "split": folder / "no.json", "few": folder / "few.no.json"}
    commands = [["eval"], ["eval", "--cost", "combined", "--split", "by-task"], ["train", "-o", outputs["train"]],
                ["dataset", "split", "-o", outputs["split"]], ["dataset", "stat"],
                ["dataset", "representatives", "--count", "2", "-o", outputs["few"]], ["dataset", "export", folder / "no.npz"]]
    if with_torch():
        commands.append(["train", "--cost", "small", "-o", folder / "no.onnx"])
    for command in commands:
        error = hone(*command, "--db", db, code=2)
        assert message in error and db.name in error, (command, error)
    assert not [path for path in folder.iterdir() if path.name.startswith("no.") or path.name.startswith("few.no")]


def check_bad_data(folder, records):
    check_refused(folder, database(folder, "old", [dict(record, version="0.0") for record in records]), "version 0.0")
    # A single schedule of each task, and none that ran.
    single = list({record["task"]: record for record in records}.values())
    check_refused(folder, database(folder, "single", single), "no task with two measured schedules")
    failed = [dict(record, outcome="crash", times=[], centre=0, low=0, high=0, verified=False) for record in records]
    check_refused(folder, database(folder, "failed", failed), "no task with two measured schedules")
    elsewhere = database(folder, "elsewhere", [dict(record, device="another") for record in records])
    ran = len([record for record in records if record["outcome"] == "ok"])
    for command in (["eval"], ["train", "-o", folder / "no.model"]):
        assert f"{ran} of another/1 (ok)" in hone(*command, "--db", elsewhere, code=2)

    # A network that no record is of.
    known, small = database(folder, "known", records), ["--cost", "small", "-o", folder / "no.onnx"]
    error = hone("train", "--db", known, *small, "--hold-out", records[0]["model"], "--hold-out", "third", code=2)
    assert "--hold-out: no task of 'third' on " in error, error

    # A device of which nothing can be used beside one that is good.
    both = database(folder, "both", [*records, *(dict(record, device="another", version="0.0") for record in records)])
    done = subprocess.run([os.environ["HONE"], "dataset", "stat", "--db", both], capture_output=True, text=True)
    assert done.returncode == 0 and "device another is left out: no task with two measured schedules" in done.stderr, done.stderr

    # What is left out of a good database: another version, a step that nobody knows, a time far off, a task of a single schedule.
    first = records[0]["task"]
    others = [record for record in records if record["task"] != first]
    odd = [record for record in others if record["outcome"] == "ok"][:3]
    old = [dict(record, version="0.0") for record in odd]
    unknown, slow = dict(odd[0], steps="a step of long ago"), dict(odd[1], times=[100 * time for time in odd[1]["times"]])
    mixed = database(folder, "mixed", [*others, records[0], *old, unknown, slow])
    why = ["3 records are left out: of space version '0.0', expected ", "1 record is left out: more than 1.5 times off",
           "1 schedule is left out: this version can make nothing of it", "1 task is left out: measured with a single schedule"]
    for command in (["eval"], ["dataset", "split", "--fraction", "0.5", "-o", folder / "mixed.json"]):
        done = subprocess.run([os.environ["HONE"], *command, "--db", mixed], capture_output=True, text=True)
        warnings = done.stderr.splitlines()
        assert done.returncode == 0 and len(warnings) == len(why), done.stderr
        assert all(reason in line for reason, line in zip(why, warnings)), warnings
    stat = json.loads(hone("dataset", "stat", "--db", mixed, "--json"))
    assert (stat["single_schedules"], stat["left_out"], stat["outliers"]) == (1, 1, 1), stat

    # Files that are cut, mixed or hold what is no time.
    good = json.dumps(records[0])
    texts = {"nan": (json.dumps(dict(records[0], times=[float("nan")])), "expected a JSON object"),
             "null": (json.dumps(dict(records[0], times=[None])), "field 'times': expected a list of numbers"),
             "negative": (json.dumps(dict(records[0], centre=-1.0)), "expected a positive time"),
             "cut": (good[:-9], "expected a JSON object"),
             "mixed": (json.dumps(dict(records[1], version="0.0")), "space version '0.0'")}
    for name, (text, message) in texts.items():
        lines, db = folder / f"bad-{name}.jsonl", folder / f"bad-{name}.db"
        lines.write_text(f"{good}\n{text}\n")
        assert message in hone("dataset", "import", lines, "--db", db, code=2), name
        assert not db.exists(), name


def check_schedules(db):
    judged = json.loads(hone("eval", "--db", db, "--device", "host/1", "--schedules", "8,3", "--json"))
    few, more = judged["by_schedules"]
    assert (few["schedules"], more["schedules"]) == (3, 8) and few["tasks"] == more["tasks"] > 2, judged["by_schedules"]
    assert few["trials"] == 3 * few["tasks"] and few["top5"] == 1 and few["top1"] > 0 and few["network_top1"] > 0
    text = hone("eval", "--db", db, "--device", "host/1", "--schedules", "3,8")
    assert "schedules of a task" in text and f"\n{3:>19}" in text, text
    assert "no task has 1000 schedules to judge by" in hone("eval", "--db", db, "--schedules", "1000", code=2)
    for wrong in ("1", "few"):
        assert "--schedules" in hone("eval", "--db", db, "--schedules", wrong, code=2)


def check_adapting(db):
    """What a model learns from schedules of a task is judged only where it learns."""
    judge = ["eval", "--db", db, "--device", "host/1"]
    for more, message in ((["--adapt", "full"], "--adapt full: for learning from schedules, but there is no --adapt-samples"),
                          (["--adapt-samples", "2"], "--adapt-samples: the cost model analytic does not learn from measurements"),
                          (["--cost", "gbdt", "--adapt-samples", "2", "--split", "by-task"], "for a model that is judged as it is, but"),
                          (["--cost", "gbdt", "--adapt-samples", "900"], "no task has the 908 schedules that 900 samples and 8 to judge by take"),
                          (["--adapt-samples", "few"], "--adapt-samples: ")):
        assert message in (said := hone(*judge, *more, code=2)), said


def check_pipe(folder, db, model):
    """What is judged may come through a pipe, which can be read once: its card is as that of the file."""
    pipe = folder / f"pipe{model.suffix}"
    pipe.symlink_to("/dev/stdin")
    judge = ["eval", "--db", db, "--device", "host/1", "--json", "--cost"]
    expected = json.loads(hone(*judge, model))
    assert expected["card"], expected
    done = subprocess.run([os.environ["HONE"], *map(str, judge), str(pipe)], input=model.read_bytes(), capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected
    pipe.unlink()


def check_interruption(folder, db):
    """Killed or asked to stop at any point, it goes on to the net that it would have been."""
    train = ["train", "--db", db, "--device", "host/1", "--cost", "small", "--options", "hidden=8,heads=2,dropout=0.1", "--threads", "1",
             "--epochs", "100"]
    whole = folder / "whole.onnx"
    hone(*train, "-o", whole, "--curve", folder / "curve.html")
    assert "<svg" in (folder / "curve.html").read_text()
    # Before the first epoch has left a state, after it, and late: by how many epochs are done.
    for how, done in ((signal.SIGKILL, 0), (signal.SIGKILL, 1), (signal.SIGINT, 1), (signal.SIGINT, 70)):
        path = folder / f"stopped{int(how)}-{done}.onnx"
        state = Path(f"{path}.state")
        process = subprocess.Popen([os.environ["HONE"], *map(str, train), "-o", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while done > 0 and (line := process.stdout.readline()) and not line.startswith(f"epoch {done}/"):
            pass
        deadline = time.monotonic() + 60
        while done > 0 and not state.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(how)
        process.communicate()
        if process.returncode == 0:
            print("skipped: the training had ended before it was stopped")
            continue
        assert process.returncode == (130 if how == signal.SIGINT else -how), process.returncode
        assert state.exists() == (done > 0) and not path.exists()
        if done > 0:  # what was learned is not thrown away unasked
            kept = state.read_bytes()
            assert f"{state}: left by an interrupted training" in hone(*train, "-o", path, code=2) and state.read_bytes() == kept
        hone(*train, "-o", path, "--resume")
        assert path.read_bytes() == whole.read_bytes() and not state.exists(), (how, done)
    # Neither a state of another training nor a damaged one is gone on with.
    path = folder / "other.onnx"
    Path(f"{path}.state").write_bytes(b"no state")
    assert "other.onnx.state" in hone(*train, "-o", path, "--resume", code=2)
    assert not path.exists()


def check_budget(folder, db):
    path = folder / "short.onnx"
    train = ["train", "--db", db, "--device", "host/1", "--cost", "small", "--options", "hidden=8,heads=2", "--threads", "1", "--epochs", "9",
             "-o", path]
    assert "epoch 1 of 1" in hone(*train, "--budget", "0.0001ms")
    notes = notes_of(path)
    assert (notes["epochs"], notes["epochs_done"]) == ("9", "1"), notes
    assert "--budget" in hone(*train, "--budget", "soon", code=2)
    # What is there stays where another one fails.
    before = path.read_bytes()
    assert "'wood'" in hone(*train, "--loss", "wood", code=2)
    assert "--train-on: cannot train on 'tpu', expected one of cpu, cuda" in hone(*train, "--train-on", "tpu", code=2)
    assert path.read_bytes() == before
    # A file of other features, by their version or by their fingerprint.
    for key, value, message in (("hone.features", lambda known: "0.1", "old.onnx: trained for version 0.1 of features"),
                                ("hone.fingerprint.task", lambda known: "1" + known[known.index(" "):],
                                 "old.onnx: trained with other features or another analytic measure")):
        model = onnx.load(path)
        for entry in model.metadata_props:
            if entry.key == key:
                entry.value = value(entry.value)
        onnx.save(model, folder / "old.onnx")
        for command in (["eval", "--cost"], ["train", "-o", folder / "no.onnx", "--from"]):
            assert message in hone(*command, folder / "old.onnx", "--db", db, "--device", "host/1", code=2)


def check_meta_learning(folder, db):
    path = folder / "meta.onnx"
    train = ["train", "--db", db, "--device", "host/1", "--cost", "small", "--options", "hidden=8,heads=2", "--threads", "1", "--epochs", "1",
             "--validation", "0", "-o", path]
    small = "steps=2,rate=0.01,shots=2,queries=4,tasks=2,batches=2,epochs=2"
    assert "epoch 3/3: loss after adaptation" in hone(*train, "--meta", "maml", "--meta-options", small)
    notes = notes_of(path)
    assert notes["meta"] == "maml" and notes["meta_options"].startswith("steps=2,rate=0.01,ways=1,shots=2,queries=4,"), notes
    before = path.read_bytes()
    for more, message in ((["--meta", "mamal"], "--meta: unknown meta-learning 'mamal', expected one of none, maml, fomaml, reptile"),
                          (["--meta-options", small], f"--meta-options: options '{small}', but there is no meta-learning"),
                          (["--meta", "maml", "--meta-options", "steps=0"], "--meta-options: steps: "),
                          (["--meta", "maml", "--meta-options", "shots=500"], "have the 532 schedules that shots=500 and queries=32 take")):
        assert message in hone(*train, *more, code=2), message
    assert path.read_bytes() == before
    # It is adapted as it has learnt to be, and trees by more trees.
    judge = ["eval", "--db", db, "--device", "host/1", "--json", "--adapt-samples", "2,0"]
    plain, adapted = json.loads(hone(*judge, "--cost", path, "--adapt", "full"))["adapted"]
    assert (plain["samples"], adapted["samples"]) == (0, 2) and plain["tasks"] == adapted["tasks"] > 0, (plain, adapted)
    assert plain["mse"] != adapted["mse"] and 0 <= adapted["top_mse"] <= 1 and 0 < adapted["pair_accuracy"] <= 1, (plain, adapted)
    assert json.loads(hone(*judge, "--cost", path, "--adapt", "full"))["adapted"] == [plain, adapted]
    assert len(json.loads(hone(*judge, "--cost", "gbdt"))["adapted"]) == 2
    assert "MSE(D)" in hone(*[word for word in judge if word != "--json"], "--cost", "combined")


OF_NETS = {"--adapt": "head", "--loss": "rmse", "--epochs": "9", "--batch": "64", "--lr": "0.1",
           "--weight-decay": "0", "--validation": "0.2", "--hold-out": "first", "--patience": "0", "--budget": "1m", "--train-on": "cpu",
           "--curve": "curve.html", "--resume": None, "--meta": "maml", "--meta-options": "steps=2"}


def check_unused_options(folder, db):
    """What would do nothing is refused before anything else is looked at."""
    def check(message, *command):
        error = hone(*command, "--db", db, code=2)
        assert f"hone: {message}" in error, (command, error)

    into, split = ["-o", folder / "no.model"], folder / "split.json"
    for option, value in OF_NETS.items():
        check(f"{option}: for training nets, but --cost gbdt fits trees", "train", *into, "--cost", "gbdt", option, *filter(None, [value]))
        check(f"{option}: for training nets, but --cost static fits a score of machine code", "train", *into, "--cost", "static", option, *filter(None, [value]))
    check("--booster: for fitting trees, but --cost static fits a score of machine code", "train", *into, "--cost", "static", "--booster", "xgboost")
    check("--epochs, --curve: for training nets, but --cost combined fits trees", "train", *into, "--curve", "c.html", "--epochs", "3")
    check("--lr: for training nets, but --from a.model fits trees", "train", *into, "--from", "a.model", "--lr", "0.1")
    check("--cost: a.model has trees, expected gbdt, combined or gpu, or no --cost, not small", "train", *into, "--from", "a.model", "--cost", "small")
    check("--options: unknown option 'hidden', expected one of: trees, levels", "train", *into, "--cost", "gbdt", "--options", "hidden=8")
    check("--options: levels: ", "train", *into, "--cost", "gbdt", "--options", "levels=99")
    check("--options: for fitting trees anew, but --from a.model adds a few", "train", *into, "--from", "a.model", "--options", "leaves=4")
    for option in ("--seed", "--threads"):
        check(f"{option}: ", "train", *into, "--cost", "gbdt", option, "x")
    small, judge = ["train", "-o", folder / "no.onnx", "--cost", "small"], "for choosing the tasks that epochs are judged by"
    check("--booster: for fitting trees, but --cost small trains a net", *small, "--booster", "xgboost")
    check("--booster: for fitting trees, but --from a.onnx trains a net", "train", *into, "--from", "a.onnx", "--booster", "xgboost")
    check(f"--validation, --hold-out: {judge}, but --split-file {split} says which they are", *small, "--split-file", split, "--hold-out",
          "first", "--validation", "0.2")
    check(f"--validation: {judge}, but --hold-out says which they are", *small, "--hold-out", "first", "--validation", "0.2")
    for cost, found in (("analytic", "--cost analytic is judged as it is"), ("gbdt", "--cost gbdt is judged as it is without --split or --split-file")):
        check(f"--booster: for fitting trees, but {found}", "eval", "--cost", cost, "--booster", "xgboost")
    check("--booster: for fitting trees, but --replay trains nothing", "eval", "--replay", "host/1", "--booster", "xgboost")
    check("--fraction: for --by within and --by task, but --by model tests by all that --hold-out names", "dataset", "split", "-o", split,
          "--by", "model", "--hold-out", "first", "--fraction", "0.5")
    assert not split.exists() and not (folder / "no.model").exists()
    assert "--device: " in (said := hone("train", *into, "--db", db, "--cost", "gbdt", "--device", "host/1", "--device", "host/1", code=2)) and \
        "have the same schedules" in said, said
    # What trees and nets are both given by scripts is no error.
    hone("train", "--db", db, "--device", "host/1", "--cost", "gbdt", "--seed", "2", "--threads", "1", "-o", folder / "seeded.model")
    for booster in ("xgboost", "lightgbm") if os.environ.get("HONE_LIGHTGBM") else ("xgboost",):
        said = hone("train", "--db", db, "--device", "host/1", "--cost", "gbdt", "--booster", booster, "--options", "trees=5,leaves=3,pairs=0,gain=0.001",
                    "-o", folder / "few.model")
        assert ": 5 trees from" in said and "card options trees=5,leaves=3,pairs=0,gain=0.001" in (folder / "few.model").read_text(), said


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        _, db = make_data(folder)
        records = [json.loads(line) for line in (folder / "data.jsonl").read_text().splitlines()]  # with two threads
        check_bad_data(folder, [dict(record, threads=1) for record in records])
        check_schedules(db)
        check_adapting(db)
        check_unused_options(folder, db)
        check_pipe(folder, db, Path(__file__).resolve().parent.parent / "src/hone/cost/pretrained/combined.model")
        if with_torch():
            check_interruption(folder, db)
            check_budget(folder, db)
            check_meta_learning(folder, db)
            check_pipe(folder, db, folder / "short.onnx")
    return 0


if __name__ == "__main__":
    sys.exit(main())
