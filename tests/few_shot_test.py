#!/usr/bin/env python3
"""A new device: few tasks stand for all, a net and trees are adapted to what they took there, and judged beside the replay of another device's
times."""
import json
import os
import sys
import tempfile
from pathlib import Path

import onnx
from dataset_test import hone
from measured_data import make_data


def notes_of(path):
    return {entry.key.removeprefix("hone.card."): entry.value for entry in onnx.load(path).metadata_props}


def weights_of(path):
    return {tensor.name: tensor.raw_data for tensor in onnx.load(path).graph.initializer}


def check_representatives(folder, models, db):
    few = folder / "few.json"
    chosen = ["dataset", "representatives", "--db", db, "--device", "host/1", "-o", few]
    printed = hone(*chosen, "--count", "2")
    listed = json.loads(few.read_text())
    assert listed["format"] == "hone tasks" and listed["device"].endswith("/1")
    keys = [task["task"] for task in listed["tasks"]]
    assert len(keys) == 2 and all(key in printed for key in keys)
    known = json.loads(hone("dataset", "make", *models, "--sides", "24,32", "--list", "--json"))
    assert sum(task["cluster"] for task in listed["tasks"]) == len(known["tasks"])
    made = json.loads(hone("dataset", "make", *models, "--sides", "24,32", "--list", "--json", "--only", few))
    assert sorted(task["task"] for task in made["tasks"]) == sorted(keys)
    first = few.read_text()
    hone(*chosen, "--count", "2")
    assert few.read_text() == first

    other = folder / "other.json"
    hone("dataset", "representatives", "--db", db, "--exclude-model", "first", "-o", other)
    assert json.loads(other.read_text())["excluded_models"] == ["first"]
    assert "none of the" in hone("dataset", "make", models[0], "--list", "--only", other, code=2)
    assert "third" in hone("dataset", "representatives", "--db", db, "--exclude-model", "third", "-o", other, code=2)
    assert "--count" in hone(*chosen, "--count", "0", code=2)
    assert "host/x" in hone("dataset", "representatives", "--db", db, "--device", "host/x", "-o", other, code=2)
    assert "/3" in hone("dataset", "representatives", "--db", db, "--device", "host/3", "-o", other, code=2)
    bad = folder / "bad.json"
    bad.write_text(first[:-20])
    for command in (["train", "--db", db, "-o", folder / "no.onnx", "--cost", "small", "--only", bad], ["eval", "--db", db, "--except", bad],
                    ["dataset", "make", models[0], "--list", "--only", bad]):
        assert "bad.json" in hone(*command, code=2)
    return few, keys


def check_replay(folder, db, few):
    judged = json.loads(hone("eval", "--db", db, "--device", "host/2", "--replay", "host/1", "--json"))
    assert judged["all"]["pair_accuracy"] == 1 and judged["all"]["top1"] == 1, judged
    replay = judged["replay"]
    assert replay["tasks"] == replay["of_tasks"] > 2 and replay["schedules"] == replay["of_schedules"], replay
    key = replay["device"].removesuffix("/1")
    rest = json.loads(hone("eval", "--db", db, "--device", f"{key}/2", "--replay", f"{key}/1", "--except", few, "--json"))
    assert rest["replay"]["of_tasks"] == replay["of_tasks"] - 2, rest
    split = folder / "split.json"
    hone("dataset", "split", "--db", db, "-o", split, "--by", "device", "--hold-out", f"{key}/2")
    whole, apart = (json.loads(hone("eval", "--db", db, "--device", "host/2", "--json", *more)) for more in ([], ["--split-file", split]))
    assert apart["all"] == whole["all"] and apart["all"]["trials"] > 0, apart
    train = ["train", "--db", db, "--device", "host/2", "--split-file", split, "--cost", "combined", "-o", folder / "no.model"]
    assert f"no trials on device {key}/2 to train on" in hone(*train, code=2)
    hone("dataset", "split", "--db", db, "-o", split, "--by", "model", "--hold-out", "second")
    part = json.loads(hone("eval", "--db", db, "--device", "host/2", "--replay", "host/1", "--split-file", split, "--json"))
    assert 0 < part["replay"]["of_tasks"] < replay["of_tasks"]
    assert "schedules" in hone("eval", "--db", db, "--device", "host/2", "--replay", "host/1")
    assert "its own times" in hone("eval", "--db", db, "--replay", "host/1", code=2)
    assert "--replay" in hone("eval", "--db", db, "--device", "host/2", "--replay", "elsewhere", code=2)
    again = json.loads(hone("eval", "--db", db, "--device", "host/2", "--replay", "host/2", "--replay-db", db, "--json"))
    assert again["replay"]["schedules"] == again["replay"]["of_schedules"] > 0 and again["all"]["pair_accuracy"] == 1, again
    assert "--replay" in hone("eval", "--db", db, "--replay-db", db, code=2)
    assert "nowhere.db" in hone("eval", "--db", db, "--replay", "host/2", "--replay-db", folder / "nowhere.db", code=2)
    translated = json.loads(hone("eval", "--db", db, "--device", "host/2", "--replay", "host/1", "--cost", "analytic", "--split-file", split, "--json"))
    assert translated["replay"] == part["replay"] and 0.5 < translated["all"]["pair_accuracy"] <= 1, translated
    assert "--replay" in hone("eval", "--db", db, "--device", "host/2", "--replay", "host/1", "--split", "by-task", code=2)


def check_training(folder, db, few, keys):
    old, full, head = folder / "old.onnx", folder / "full.onnx", folder / "head.onnx"
    small = ["--cost", "small", "--options", "hidden=8,heads=2"]
    hone("train", "--db", db, "--device", "host/1", *small, "--threads", "1", "--epochs", "2", "--loss", "pairwise", "-o", old)
    adapt = ["train", "--db", db, "--device", "host/2", "--only", few, "--from", old, "--threads", "1", "--epochs", "3"]
    hone(*adapt, "-o", full)
    hone(*adapt, "--adapt", "head", *small, "-o", head)
    before = weights_of(old)
    apart = folder / "apart.onnx"
    hone("train", "--db", db, "--device", "host/1", *small, "--threads", "1", "--epochs", "1", "--hold-out", "second", "-o", apart)
    assert notes_of(apart)["models"] == "first" and notes_of(apart)["held_out_models"] == "second", notes_of(apart)
    for path, how in ((full, "full"), (head, "head")):
        notes = notes_of(path)
        assert notes["hone.family"] == "small" and notes["options"] == "hidden=8,heads=2" and notes["loss"] == "pairwise", notes
        assert notes["adapt"] == how and notes["from"].startswith("old.onnx ") and notes["from.devices"].endswith("/1"), notes
        assert notes["from.loss"] == "pairwise" and notes["from.epochs"] == "2", notes
        assert notes["devices"].endswith("/2") and notes["tasks"] == str(len(keys)) and notes["validation_tasks"] == "0", notes
        after = weights_of(path)
        assert after["statements.mean"] == before["statements.mean"]
        assert after["head.weight"] != before["head.weight"]
        assert (after["embed.weight"] == before["embed.weight"]) == (how == "head")
        hone("eval", "--db", db, "--device", "host/2", "--except", few, "--cost", path)
    again = folder / "again.onnx"
    hone(*adapt, "-o", again)
    assert weights_of(again) == weights_of(full)

    into = ["-o", folder / "no.onnx"]
    assert "hidden=8, not 16" in hone(*adapt, *into, "--options", "hidden=16,heads=2", code=2)
    assert "family small, not mlp" in hone(*adapt, *into, "--cost", "mlp", code=2)
    assert "--adapt" in hone(*adapt, *into, "--adapt", "tail", code=2)
    assert "expected --from" in hone("train", "--db", db, "--cost", "small", "--adapt", "head", *into, code=2)
    assert "missing.onnx" in hone("train", "--db", db, "--from", folder / "missing.onnx", *into, code=2)
    assert not (folder / "no.onnx").exists()


def check_trees(folder, db, few):
    """What was known of one device, and a few trees more."""
    old, new, both = folder / "old.model", folder / "new.model", folder / "both.model"
    hone("train", "--db", db, "--device", "host/1", "--cost", "gbdt", "-o", old)
    adapt = ["train", "--db", db, "--device", "host/2", "--only", few, "--from", old]
    hone(*adapt, "-o", new)
    trees = [line for line in old.read_text().splitlines() if not line.startswith(("card ", "trees "))]
    assert new.read_text().splitlines()[: len(trees)] != trees and set(trees) < set(new.read_text().splitlines())
    hone("eval", "--db", db, "--device", "host/2", "--except", few, "--cost", new)
    hone("eval", "--db", db, "--device", "host/2", "--replay", "host/1", "--cost", new)
    hone("train", "--db", db, "--device", "host/1", "--device", "host/2", "--cost", "gbdt", "--tasks", "2", "-o", both)

    into = ["-o", folder / "no.model"]
    assert "kind gbdt, not combined" in hone(*adapt, *into, "--cost", "combined", code=2)
    assert f"--adapt: for training nets, but --from {old} fits trees" in hone(*adapt, *into, "--adapt", "head", code=2)
    assert "missing.model" in hone("train", "--db", db, "--from", folder / "missing.model", *into, code=2)
    torn = folder / "torn.model"
    torn.write_text(old.read_text()[:200])
    assert "torn.model" in hone("train", "--db", db, "--from", torn, *into, code=2)
    assert not (folder / "no.model").exists()


def check_heads(folder, db, few):
    two, three = folder / "two.onnx", folder / "three.onnx"
    small = ["--cost", "small", "--threads", "1", "--epochs", "2"]
    hone("train", "--db", db, *small, "--options", "hidden=8,heads=2,devices=3", "--device", "host/1", "-o", two)
    heads = notes_of(two)["hone.heads"].split(",")
    assert len(heads) == 1 and heads[0].endswith("/1"), heads
    hone("train", "--db", db, "--device", "host/2", "--from", two, "--only", few, "--threads", "1", "--epochs", "2", "-o", three)
    heads = notes_of(three)["hone.heads"].split(",")
    assert [head[-2:] for head in heads] == ["/1", "/2"], heads
    hone("eval", "--db", db, "--device", "host/2", "--except", few, "--cost", three)
    assert "there are 2" in hone("train", "--db", db, *small, "--options", "hidden=8,heads=2,devices=1", "-o", folder / "no.onnx", code=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        models, db = make_data(folder)
        few, keys = check_representatives(folder, models, db)
        check_replay(folder, db, few)
        check_trees(folder, db, few)
        if (Path(os.environ["HONE"]).parent / "../lib/hone/libhone_torch.so").exists():
            check_training(folder, db, few, keys)
            check_heads(folder, db, few)
    return 0


if __name__ == "__main__":
    sys.exit(main())
