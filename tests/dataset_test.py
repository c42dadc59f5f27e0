#!/usr/bin/env python3
"""hone dataset: a small data set is made, resumed, divided, described, exported and imported; bad files are refused."""
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def hone(*arguments, code=0):
    done = subprocess.run([os.environ["HONE"], *map(str, arguments)], capture_output=True, text=True, timeout=240)
    assert done.returncode == code, f"hone {arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    if code:
        assert len([line for line in done.stderr.splitlines() if line.startswith("hone: ")]) == 1, done.stderr
    return done.stdout if code == 0 else done.stderr


def model(path, name, channels):
    """A convolution and a product: an image model whose sides are free."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), key)
               for key, shape in (("w", (channels, 3, 3, 3)), ("v", (channels, 8)))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("GlobalAveragePool", ["r"], ["p"]), helper.make_node("Flatten", ["p"], ["f"]), helper.make_node("MatMul", ["f", "v"], ["y"])]
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def table(folder, *arguments, code=0):
    """scripts/cost_model_table.py: what it prints and what it says."""
    script = Path(__file__).resolve().parent.parent / "scripts" / "cost_model_table.py"
    command = [sys.executable, script, "--hone", os.environ["HONE"], "--folder", folder, *arguments]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def check_fewer_tasks(folder, db, split):
    """--tasks trains on some of the tasks, the same for the same seed, and leaves alone what is judged by."""
    def train(cost, name, tasks, *more, code=0):
        return hone("train", "--db", db, "--split-file", split, "--cost", cost, "-o", folder / name, "--tasks", tasks, *more, code=code)

    assert "of 2 tasks" in train("combined", "few.model", 2)
    train("combined", "same.model", 2)
    assert (folder / "few.model").read_text() == (folder / "same.model").read_text()
    error = train("combined", "no.model", 1000, code=2)
    assert "1000 tasks are wanted, but there are" in error, error
    assert "--tasks" in train("combined", "no.model", 0, code=2)
    assert "--tasks" in train("small", "no.onnx", "all", code=2)
    assert not (folder / "no.model").exists()


def check_lightgbm(folder, db, split):
    """Trees fitted by LightGBM are a file like any other; without the library one line says what to install."""
    train = ["train", "--db", db, "--split-file", split, "--cost", "combined", "-o", folder / "leaves.model", "--booster"]
    assert "found 'wood', expected xgboost or lightgbm" in hone(*train, "wood", code=2)
    os.environ["HONE_LIGHTGBM"] = str(folder / "none.so")
    error = hone(*train, "lightgbm", code=2)
    assert "pip install lightgbm" in error and "none.so" in error, error
    assert not (folder / "leaves.model").exists()
    del os.environ["HONE_LIGHTGBM"]
    if importlib.util.find_spec("lightgbm") is None:
        print("skipped: trees fitted by LightGBM (pip install lightgbm)")
        return
    hone(*train, "lightgbm")
    hone("eval", "--db", db, "--split-file", split, "--cost", folder / "leaves.model")
    trained, anew = (json.loads(hone("eval", "--db", db, "--split-file", split, "--json", "--cost", *cost))
                     for cost in ([folder / "leaves.model"], ["combined", "--booster", "lightgbm"]))
    assert trained.pop("card")["booster"] == "lightgbm" and trained == anew
    hone("eval", "--db", db, "--cost", "gbdt", "--split", "by-model", "--booster", "lightgbm")
    text, _ = table(folder / "kept", "--db", db, "--split", split, "gbdt:lightgbm", "gbdt:xgboost")
    assert "`gbdt:lightgbm` | " in text and "`gbdt:xgboost` | " in text, text


def check_table(folder, db, split):
    """Models are trained once, judged, and printed in the order they were asked for."""
    kept, figures = folder / "kept", folder / "table.json"
    arguments = ["--db", db, "--split", split, "--json", figures, "--tasks", "1,2", "analytic", "combined"]
    text, said = table(kept, *arguments)
    head, _, *rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines()]
    assert head[:5] == ["model", "tasks", "size", "CPU s of training", "pairs"], head
    assert [row[:2] for row in rows] == [["`analytic`", ""], ["`combined`", "1"], ["`combined`", "2"]], rows
    results = json.loads(figures.read_text())["results"]
    assert [result["tasks_wanted"] for result in results] == [None, 1, 2]
    for row, result in zip(rows, results):
        assert row[4] == f"{result['evaluation']['all']['pair_accuracy']:.3f}"
    assert "as judged before" not in said
    assert table(kept, *arguments)[1].count("as judged before") == 3
    time.sleep(0.05)
    db.touch()
    assert "as judged before" not in table(kept, *arguments)[1]
    # One that cannot be trained is said and left out; the others are there.
    text, said = table(kept, "--db", db, "--split", split, "small:epochs=none", "analytic", code=1)
    assert "small:epochs=none: hone: --epochs" in said and "analytic" in text and "small" not in text, said + text
    assert "unknown option 'epochs'" in table(kept, "--db", db, "--split", split, "combined:epochs=3", code=1)[1]
    assert "found 'wood', expected xgboost, lightgbm or NAME=VALUE" in table(kept, "--db", db, "--split", split, "combined:wood", code=2)[1]
    assert "found 'wood', expected NAME=VALUE" in table(kept, "--db", db, "--split", split, "small:wood", code=2)[1]
    assert "no such file" in table(kept, "--db", db, "--split", folder / "none.json", "combined", code=2)[1]


def check_counts(folder, lines):
    """What counters said of a schedule is in its record and comes before the static analysis."""
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    for record in records:
        for name in ("memory_bound", "core_bound", "bounds_source"):
            record.pop(name, None)
    for many, source in ((0, "static"), (1, "mixed"), (len(records), "counters")):
        for record in records[:many]:
            record.update(memory_bound=0.25, core_bound=0.5, bounds_source="amd_zen4")
        text, db, npz = folder / f"{source}.jsonl", folder / f"{source}.db", folder / f"{source}.npz"
        text.write_text("".join(json.dumps(record) + "\n" for record in records))
        hone("dataset", "import", text, "--db", db)
        hone("dataset", "export", folder / "again.jsonl", "--db", db)
        assert [json.loads(line) for line in (folder / "again.jsonl").read_text().splitlines()] == records
        hone("dataset", "export", npz, "--db", db)
        arrays = np.load(io.BytesIO(npz.read_bytes()))
        assert json.loads(arrays["meta"].tobytes())["bounds_source"] == source
        counted = arrays["bounds_counted"] == 1
        assert counted.any() == (many > 0) and (arrays["bounds"][counted] == [0.25, 0.5]).all()
    assert json.loads(hone("dataset", "stat", "--db", db, "--json"))["bound_scores"] == {"source": "counters", "memory": 0.25, "core": 0.5}
    records[0]["core_bound"] = 0.9
    text.write_text(json.dumps(records[0]) + "\n")
    assert "expected shares of one whole" in hone("dataset", "import", text, "--db", db, code=2)


def check_numpy(folder, db):
    """Records survive the way through an .npz, as it was written and as NumPy writes it."""
    def lines_of(db):
        hone("dataset", "export", folder / "back.jsonl", "--db", db)
        return (folder / "back.jsonl").read_text()

    # A failed trial and one that is the only one of its task are records, too, though no row of features.
    hone("dataset", "export", folder / "before.jsonl", "--db", db)
    records = [json.loads(line) for line in (folder / "before.jsonl").read_text().splitlines()]
    failed = records[0] | {"outcome": "timeout", "message": "no answer", "times": [], "duel": [], "centre": 0, "low": 0, "high": 0,
                           "verified": False, "crowned": False, "seed": "fedcba9876543210"}
    old = records[0] | {"version": "0.1"}
    gpu = records[0] | {"device": "sm_103-148sm-126M-288G"}
    whole, more = folder / "whole.db", folder / "more.jsonl"
    more.write_text("".join(json.dumps(record) + "\n" for record in [*records, failed, old, gpu]))
    hone("db", "import", more, "--db", whole)
    said = hone("dataset", "export", folder / "data.npz", "--db", whole)
    assert f"{len(records) + 2} records" in said, said
    expected = "".join(line + "\n" for line in lines_of(whole).splitlines() if '"version":"0.1"' not in line)
    arrays = dict(np.load(folder / "data.npz"))
    np.savez(folder / "plain.npz", **arrays)
    np.savez_compressed(folder / "packed.npz", **arrays)
    for name in ("data", "plain", "packed"):
        assert f"{len(records) + 2} records added" in hone("dataset", "import", folder / f"{name}.npz", "--db", folder / f"from_{name}.db")
        assert lines_of(folder / f"from_{name}.db") == expected
        assert "0 records added" in hone("dataset", "import", folder / f"{name}.npz", "--db", folder / f"from_{name}.db")
    ends = arrays["record_times_end"]
    times = np.split(arrays["record_times"], ends[:-1])
    assert [list(samples) for samples in times] == [json.loads(line)["times"] for line in expected.splitlines()]


def check_bad_arrays(folder):
    """What is wrong with an array of an .npz is said, and nothing is stored."""
    arrays = dict(np.load(folder / "data.npz"))

    def refuse(message, **changes):
        changed = {name: array for name, array in (arrays | changes).items() if array is not None}
        np.savez(folder / "bad.npz", **changed)
        error = hone("dataset", "import", folder / "bad.npz", "--db", folder / "none.db", code=2)
        assert "bad.npz" in error and message in error, error
        assert not (folder / "none.db").exists()

    def meta(**changes):
        found = json.loads(arrays["meta"].tobytes()) | changes
        text = json.dumps({key: value for key, value in found.items() if value is not None})
        return np.frombuffer(text.encode(), np.uint8)

    def replaced(name, place, value):
        array = arrays[name].copy()
        array[place] = value
        return {name: array}

    rows = len(arrays["seconds"])
    refuse("there is no array 'meta'", meta=None)
    refuse("expected the bytes of a JSON object", meta=arrays["meta"][:-9])
    refuse("of an older Hone and has no records, expected version 2", meta=meta(format=None, version=None))
    refuse('format is "wood", expected "hone dataset"', meta=meta(format="wood"))
    refuse("version is 3, expected 2", meta=meta(version=3))
    refuse('space_version is "0.0", expected', meta=meta(space_version="0.0"))
    refuse("feature_version is 1, expected", meta=meta(feature_version=1))
    refuse("there is no array 'seconds'", seconds=None)
    refuse(f"array 'seconds': found f32 [{rows}], expected f64 [any]", seconds=arrays["seconds"].astype(np.float32))
    refuse(f"array 'measure': found f32 [{rows}, 2], expected f32 [{rows}, ", measure=arrays["measure"][:, :2])
    refuse(f"array 'threads': found i32 [{rows - 1}], expected i32 [{rows}]", threads=arrays["threads"][1:])
    refuse("array 'seconds', row 1: found nan, expected a positive time", **replaced("seconds", 1, np.nan))
    refuse("array 'statements', row 2: found inf, expected a finite number", **replaced("statements", (2, 5), np.inf))
    refuse("array 'task', row 0: found 99999, expected an index", **replaced("task", 0, 99999))
    refuse("there is no array 'record_steps'", record_steps=None)
    refuse("array 'record_task': found i64 [", record_task=arrays["record_task"].astype(np.int64))
    refuse("record 0: a record has the time nan", **replaced("record_times", 0, np.nan))
    refuse("array 'colour' is unknown", colour=np.zeros(3))
    version = int(arrays["record_version"][0])
    texts = np.split(arrays["record_texts"], arrays["record_texts_end"][:-1])
    texts[version] = np.frombuffer(b"9" * len(texts[version]), np.uint8)
    refuse("was measured with space version '9", record_texts=np.concatenate(texts))
    refuse("found elements of type", record_steps=np.zeros(3, "U5"))


def check_bad_archives(folder):
    """Cut off anywhere, or not an archive at all."""
    content = (folder / "data.npz").read_bytes()
    for cut in (content[:-20], content[:len(content) // 2], content[:10], b"", b"PK" + content[2:len(content) // 3] + content[-30:]):
        (folder / "bad.npz").write_bytes(cut)
        assert "bad.npz" in hone("dataset", "import", folder / "bad.npz", "--db", folder / "none.db", code=2)
    assert not (folder / "none.db").exists()
    assert "none.npz" in hone("dataset", "import", folder / "none.npz", "--db", folder / "none.db", code=2)


def check_list(models):
    """--list says which variants and tasks there would be."""
    listed = json.loads(hone("dataset", "make", *models, "--list", "--json", "--batches", "1,2", "--sides", "24"))
    assert len(listed["variants"]) == 8, listed["variants"]
    keys = [task["task"] for task in listed["tasks"]]
    assert len(set(keys)) == len(keys) > 4


def check_make(models, db):
    """A data set is made, and made larger, without measuring anything twice; says how many records it has."""
    def make(schedules):
        return json.loads(hone("dataset", "make", *models, "--db", db, "--threads", "1", "--seed", "3", "--json", "--schedules", schedules))

    made = make("8")
    assert made["complete"] and made["records"] > 8, made
    assert make("8")["records"] == 0
    more = make("12")
    assert more["records"] > 0, more
    return made["records"] + more["records"]


def check_stat(db, records):
    stat = json.loads(hone("dataset", "stat", "--db", db, "--json"))
    assert stat["records"] == records, stat
    assert set(stat["models"]) == {"first", "second"}
    assert stat["bound_scores"]["source"] in ("static", "counters", "mixed")  # as this machine can
    assert hone("dataset", "stat", "--db", db).startswith(f"{records} records")


def check_split(folder, db):
    """By schedules, tasks and models; what is judged by was not trained on."""
    for by, extra in (("within", ["--fraction", "0.9"]), ("task", ["--fraction", "0.5"]), ("model", ["--hold-out", "second"])):
        split = folder / f"{by}.json"
        hone("dataset", "split", "--db", db, "-o", split, "--by", by, *extra)
        assert json.loads(split.read_text())["by"] == by
        hone("eval", "--db", db, "--split-file", split)
    for by in ("task", "model"):
        split = json.loads((folder / f"{by}.json").read_text())
        assert split["tasks"]["test"] and not set(split["tasks"]["test"]) & set(split["tasks"]["train"])


def check_auto(db):
    """--cost auto is one of the others."""
    names = ("combined", "combined-znver5", "analytic")
    judged = {cost: hone("eval", "--db", db, "--json", "--cost", cost) for cost in ("auto", *names)}
    assert judged["combined"] != judged["analytic"] and judged["auto"] in [judged[name] for name in names]


def check_networks(db, network):
    """How many of a network's tasks were judged."""
    judged = json.loads(hone("eval", "--db", db, "--network", network, "--json"))
    text = hone("eval", "--db", db, "--network", network)
    assert judged["networks"] and ("not judged" in text) == (judged["not_judged"] > 0), text
    for score in judged["networks"]:
        assert score["network"] == "first" and 0 < score["tasks"] <= score["listed_tasks"], score
        assert f"{score['tasks']} of {score['listed_tasks']}" in text, text


def check_predictions(folder, db, split):
    """--predictions has the schedules that are judged: what they say of the order is what is printed."""
    file = folder / "said.jsonl"
    said = json.loads(hone("eval", "--db", db, "--split-file", split, "--cost", "combined", "--predictions", file, "--json"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == said["all"]["tasks"] and sum(len(line["measured"]) for line in lines) == said["all"]["trials"], said["all"]
    assert {name for line in lines for name in line["models"]} >= {"second"}
    shares = []
    for line in lines:
        assert len(line["schedules"]) == len(set(line["schedules"])) == len(line["measured"]) == len(line["predicted"]), line
        _, slower = min((predicted, -measured) for predicted, measured in zip(line["predicted"], line["measured"]))  # of equal ones the slowest counts
        shares.append(min(line["measured"]) / -slower)
    assert abs(sum(shares) / len(shares) - said["all"]["top1"]) < 1e-9, (shares, said["all"])
    assert "said.jsonl" in hone("eval", "--db", db, "--predictions", folder / "none" / "said.jsonl", code=2)


def check_lines(folder, db, lines, records):
    """Records survive the way through JSON lines."""
    other = folder / "other.db"
    hone("dataset", "export", lines, "--db", db)
    hone("dataset", "import", lines, "--db", other)
    assert json.loads(hone("dataset", "stat", "--db", other, "--json"))["records"] == records


def check_arrays(folder, db):
    """What an .npz holds for learners: a row of features, a time and shares of bounds per schedule."""
    hone("dataset", "export", folder / "data.npz", "--db", db)
    arrays = np.load(io.BytesIO((folder / "data.npz").read_bytes()))
    meta = json.loads(arrays["meta"].tobytes())
    assert arrays["measure"].shape == (len(arrays["seconds"]), len(meta["measure"]))
    assert (arrays["seconds"] > 0).all()
    counted, sums = arrays["bounds_counted"] == 1, arrays["bounds"].sum(axis=1)
    assert len(counted) == len(sums) and np.allclose(sums[~counted], 1) and (sums[counted] <= 1.000001).all()
    assert (arrays["bounds"] >= 0).all()
    assert meta["bounds_source"] == ("static" if not counted.any() else "counters" if counted.all() else "mixed")


def check_bad_files(folder, db, lines):
    """What is wrong with a file is said in one line, and nothing is written."""
    text = lines.read_text()
    (folder / "cut.jsonl").write_text(text[:-20])
    hone("dataset", "import", folder / "cut.jsonl", "--db", folder / "cut.db", code=2)
    assert not (folder / "cut.db").exists()
    old = text.splitlines()[0].replace('"version":"', '"version":"old-')
    (folder / "old.jsonl").write_text(text + old + "\n")
    assert "old-" in hone("dataset", "import", folder / "old.jsonl", "--db", folder / "cut.db", code=2)
    (folder / "bad.json").write_text((folder / "model.json").read_text()[:-9])
    assert "bad.json" in hone("eval", "--db", db, "--split-file", folder / "bad.json", code=2)


def check_bad_arguments(folder, db, model_file):
    error = hone("dataset", "split", "--db", db, "-o", folder / "no.json", "--by", "model", "--hold-out", "third", code=2)
    assert "second" in error, error
    assert not (folder / "no.json").exists()
    assert "--db" in hone("dataset", "make", model_file, code=2)
    assert "--batches" in hone("dataset", "make", model_file, "--db", db, "--batches", "0", code=2)
    assert "x86-64-avx9" in hone("dataset", "make", model_file, "--db", db, "--device", "x86-64-avx9", code=2)
    hone("dataset", "make", folder / "missing.onnx", "--db", db, code=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        models, db = [folder / "first.onnx", folder / "second.onnx"], folder / "data.db"
        model(models[0], "first", 16)
        model(models[1], "second", 32)
        check_list(models)
        records = check_make(models, db)
        check_stat(db, records)
        check_split(folder, db)
        check_auto(db)
        check_networks(db, models[0])

        held_out = folder / "all.json"
        hone("dataset", "split", "--db", db, "-o", held_out, "--by", "model", "--hold-out", "second", "--validation", "0")
        check_fewer_tasks(folder, db, held_out)
        check_table(folder, db, held_out)
        check_lightgbm(folder, db, held_out)
        check_predictions(folder, db, held_out)

        lines = folder / "data.jsonl"
        check_lines(folder, db, lines, records)
        check_arrays(folder, db)
        check_counts(folder, lines)
        check_numpy(folder, db)
        check_bad_arrays(folder)
        check_bad_archives(folder)
        check_bad_files(folder, db, lines)
        check_bad_arguments(folder, db, models[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
