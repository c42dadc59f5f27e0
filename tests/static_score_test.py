#!/usr/bin/env python3
"""hone train --cost static: a score of machine code is fitted to few measured schedules, judged, and refused where it does not belong."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dataset_test import hone
from measured_data import make_data


def check_score(folder, db):
    score = folder / "static.model"
    train = ["train", "--db", db, "--device", "host/1", "--cost", "static"]
    printed = hone(*train, "-o", score)
    assert "coefficients from" in printed, printed
    values = dict(line.rsplit(" ", 1) for line in score.read_text().splitlines()[3:] if not line.startswith("card "))
    assert len(values) == 16 and all(float(value) >= 0 for value in values.values()) and any(float(value) > 0 for value in values.values())
    # The test takes two tasks, as each schedule is run through a model of the processor.
    few = [folder / "few.model", folder / "again.model"]
    for path in few:
        hone(*train, "--tasks", "2", "-o", path)
    assert few[0].read_text() == few[1].read_text() != score.read_text()

    judged = json.loads(hone("eval", "--db", db, "--device", "host/1", "--cost", score, "--json"))
    assert judged["card"]["tasks"] == str(judged["all"]["tasks"]) and judged["all"]["pair_accuracy"] > 0.5, judged
    # Tasks of ten schedules say nothing about a choice of ten.
    split = folder / "split.json"
    hone("dataset", "split", "--db", db, "-o", split, "--by", "task", "--fraction", "0.2")
    assert judged["all"]["sum50_tasks"] == 0
    assert "sum-10" in hone("eval", "--db", db, "--device", "host/1", "--cost", score, "--split-file", split)
    return score, train


def check_refused(folder, db, score, train):
    kept = score.read_text()
    for arguments, message in ((["--tasks", "1"], "the data has 1 task, expected two or more"), (["--from", score], "--from"),
                               (["--options", "leaves=3"], "--options"), (["-o", folder / "static.onnx"], ".model")):
        output = [] if "-o" in arguments else ["-o", score]
        assert message in hone(*train, *output, *arguments, code=2), arguments
    assert score.read_text() == kept
    assert f"{score}: a score of machine code" in hone("train", "--db", db, "--device", "host/1", "--from", score, "-o", folder / "more.model", code=2)
    bad = folder / "bad.model"
    for old, new, message in (("x86_64 with", "vax with", "fitted for vax with"), ("of version 2", "of version 1", "fit it anew"),
                              ("static score 1", "static score 2", "fit it anew"), ("launches ", "launches -1", "launches")):
        bad.write_text(kept.replace(old, new))
        error = hone("eval", "--db", db, "--device", "host/1", "--cost", bad, code=2)
        assert "bad.model" in error and message in error, error


def check_refine(folder, model, score):
    """The last stage of choosing without measuring, here and for another processor with the same instructions."""
    def compiled(*options, code=0):
        return hone("compile", model, "-o", folder / "out.so", "--no-db", "--no-check", "--threads", "1", *options, code=code)

    plain = json.loads(compiled("--json"))
    assert plain["refined"] == {"compared": 0, "changed": 0, "candidates": 0, "seconds": 0}, plain["refined"]
    other = "x86-64-avx512" if "with 512 bits" in score.read_text() else "x86-64-avx2"
    for device in ([], ["--device", other]):
        refined = json.loads(compiled("--json", "--refine", f"{score}:candidates=4,weight=1", *device))["refined"]
        assert refined["compared"] == len(plain["kernels"]) and refined["compared"] < refined["candidates"] <= 4 * refined["compared"], refined
        assert 0 <= refined["changed"] <= refined["compared"] and refined["seconds"] > 0, refined
    assert "--refine: " in compiled("--refine", score)
    assert f"--cost {score}: a score of machine code compiles each" in compiled("--cost", score, code=2)
    assert "fitted for" in compiled("--refine", score, "--device", "aarch64-neon", code=2)
    assert "candidates" in compiled("--refine", f"{score}:candidates=1", code=2)
    assert "missing.model" in compiled("--refine", folder / "missing.model", code=2)


def check_filter(folder, model, score):
    """A filter that takes hardly anything for fast still leaves a search; what it left out is no trial."""
    def tuned(*options, code=0):
        return hone("tune", model, "-o", folder / "out.so", "--db", folder / "tuned.db", "--no-shipped", "--no-check", "--threads", "1", *options, code=code)

    for seconds in (4, 12, 36):  # a machine with other work has few candidates in four seconds
        found = json.loads(tuned("--budget", f"{seconds}s", "--filter", f"{score}:factor=1,share=0.3", "--json"))
        if found["filtered"] > 0:
            break
    assert found["scored"] >= found["filtered"] + found["trials"] > found["trials"] > 0 and found["score_seconds"] > 0, found
    assert "nothing is measured, expected no --filter" in tuned("--mode", "efficient", "--filter", score, code=2)
    (folder / "text.model").write_text("something")
    assert "no score of machine code" in tuned("--budget", "1s", "--filter", folder / "text.model", code=2)


def check_benchmark(db, score):
    """What is told without timing: the score alone is one row, the best of all schedules cannot be beaten."""
    script = Path(__file__).resolve().parent.parent / "benchmarks" / "static_stages.py"
    command = [sys.executable, script, "offline", "--hone", os.environ["HONE"], "--db", db, "--score", score, "--cost", "analytic",
               "--eval=--device=host/1", "--least", "8", "--candidates", "4"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    rows = {cells[1].strip(): cells[2:] for cells in (line.split("|") for line in done.stdout.splitlines() if line.startswith("| "))}
    ratios = [float(cells[0]) for name, cells in rows.items() if name.startswith("candidates=") or name.endswith("alone")]
    assert len(ratios) == 5 and all(0 < ratio <= float(rows["the best of 4 (measured)"][0]) <= 1 for ratio in ratios), done.stdout
    assert rows["without"][0].strip() == "100.0 %" and rows["without"][1].strip() == "1.0000", done.stdout
    assert any(float(cells[0].strip(" %")) < 100 for name, cells in rows.items() if name.startswith("factor=")), done.stdout


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models, db = make_data(folder)
        score, train = check_score(folder, db)
        check_refused(folder, db, score, train)
        check_refine(folder, models[1], score)
        check_filter(folder, models[1], score)
        check_benchmark(db, score)


if __name__ == "__main__":
    main()
