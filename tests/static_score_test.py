#!/usr/bin/env python3
"""hone train --cost static: a score of machine code is fitted to few measured schedules, judged, and refused where it does not belong."""
import json
import tempfile
from pathlib import Path

from dataset_test import hone
from few_shot_test import make_data


def check_score(folder, db):
    score = folder / "static.model"
    train = ["train", "--db", db, "--device", "host/1", "--cost", "static"]
    printed = hone(*train, "-o", score)
    assert "coefficients from" in printed, printed
    values = dict(line.rsplit(" ", 1) for line in score.read_text().splitlines()[3:] if not line.startswith("card "))
    assert len(values) == 13 and all(float(value) >= 0 for value in values.values()) and any(float(value) > 0 for value in values.values())
    again = folder / "again.model"
    hone(*train, "-o", again)
    assert again.read_text() == score.read_text()

    judged = json.loads(hone("eval", "--db", db, "--device", "host/1", "--cost", score, "--json"))
    assert judged["card"]["tasks"] == str(judged["all"]["tasks"]) and judged["all"]["pair_accuracy"] > 0.5, judged
    # Tasks of ten schedules say nothing about a choice of ten.
    assert judged["all"]["sum50_tasks"] == 0 and "sum-10" in hone("eval", "--db", db, "--device", "host/1", "--cost", score)
    return score, train


def check_refused(folder, db, score, train):
    kept = score.read_text()
    for arguments, message in ((["--tasks", "1"], "the data has 1 task, expected two or more"), (["--from", score], "--from"),
                               (["--options", "leaves=3"], "--options"), (["-o", folder / "static.onnx"], ".model")):
        output = [] if "-o" in arguments else ["-o", score]
        assert message in hone(*train, *output, *arguments, code=2), arguments
    assert score.read_text() == kept
    bad = folder / "bad.model"
    for old, new, message in (("x86_64 with", "vax with", "fitted for vax with"), ("of version 1", "of version 0", "fit it anew"),
                              ("static score 1", "static score 2", "fit it anew"), ("launches ", "launches -", "launches")):
        bad.write_text(kept.replace(old, new))
        error = hone("eval", "--db", db, "--device", "host/1", "--cost", bad, code=2)
        assert "bad.model" in error and message in error, error


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, db = make_data(folder)
        score, train = check_score(folder, db)
        check_refused(folder, db, score, train)


if __name__ == "__main__":
    main()
