#!/usr/bin/env python3
"""scripts/cost_model_study.py: the tables of the papers with small models of a small data set; what is there is not trained again."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dataset_test import hone
from measured_data import make_data
from training_test import with_torch

TINY = {"atformer": "hidden=8,heads=2", "fasor": "hidden=8,heads=2,inner=8", "tlp": "hidden=8,heads=2", "lstm": "hidden=8", "mha": "hidden=16",
        "mlp": "hidden=8", "small": "hidden=16"}
# How many models the papers' tables have.
ROWS = {"losses": 4, "architectures": 6, "features": 5, "batch": 7, "mask": 2, "networks": 5, "time": 4}


def study(folder, db, split, *arguments, code=0):
    """What it prints, and what it says."""
    script = Path(__file__).resolve().parent.parent / "scripts" / "cost_model_study.py"
    command = [sys.executable, script, "--hone", os.environ["HONE"], "--db", db, "--split", split, "--folder", folder, *arguments]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def rows_of(text, title):
    """The cells of the first table after a title."""
    lines = text[text.index(title):].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def check_tasks(folder, db, split, families):
    figures, output = folder / "study.json", folder / "study.md"
    arguments = ["--device", "host/1", "--families", *families, "--sizes", "2,500,all", "--epochs", "1", "--budget", "10m", "--json", figures,
                 "--output", output, *(text for name, settings in TINY.items() for text in ("--with", f"{name}:{settings}"))]
    text, said = study(folder / "kept", db, split, *arguments)
    assert "--sizes: 500 is left out" in said, said
    assert output.read_text() == text
    head, *rows = rows_of(text, "pairs (ATFormer, table 7):")
    assert len(head) == 1 + len(families) and rows[0][0] == "2" and rows[1][0].startswith("all ("), rows
    assert all(0 <= float(cell) <= 1 for row in rows for cell in row[1:])
    results = json.loads(figures.read_text())["results"]
    assert len(results) == 2 * len(families) and {result["tasks_wanted"] for result in results} == {2, None}
    for result in results:
        if result["unit"] == "weights":
            assert result["epochs"] == 1 and "--budget" in result["train_command"] and "hidden=8" in result["model"], result
    again, said = study(folder / "kept", db, split, *arguments)
    assert again == text and said.count("as judged before") == len(results), said
    # A program that was built since judges again, but trains nothing again.
    program = folder / "hone"
    program.write_text(f'#!/bin/sh\nexec "{os.environ["HONE"]}" "$@"\n')
    program.chmod(0o755)
    files = {path: path.stat().st_mtime for path in (Path(result["file"]) for result in results)}
    again, said = study(folder / "kept", db, split, *arguments, "--hone", program)
    assert again == text and "as judged before" not in said, said
    assert all(path.stat().st_mtime == before for path, before in files.items())
    # A cell that was not finished is the only one that is trained.
    Path(results[0]["file"]).unlink()
    _, said = study(folder / "kept", db, split, *arguments)
    assert said.count("as judged before") == len(results) - 1, said


def check_rows(folder, db, split):
    text, _ = study(folder / "kept", db, split, "--device", "host/1", "--tables", ",".join(ROWS), "--jobs", "2", "--epochs", "1",
                    *(text for name, settings in TINY.items() for text in ("--with", f"{name}:{settings}")))
    for name, count in ROWS.items():
        rows = rows_of(text, f"## {name}")[1:]
        assert len(rows) == count, (name, rows)
        assert all(0 <= float(row[3]) <= 1 and 0 < float(row[5]) <= 1 for row in rows), rows  # pairs, top-1
    fasor = rows_of(text, "## time")[1]
    assert fasor[:2] == ["Fasor", "0.972"] and fasor[2].startswith("`fasor:") and -100 < float(fasor[9]) <= 1, fasor


def check_devices(folder, db, split, families):
    arguments = ["--device", "host/2", "--from-device", "host/1", "--count", "2", "--tables", "devices", "--families", *families, "--epochs", "1",
                 *(text for name, settings in TINY.items() for text in ("--with", f"{name}:{settings}"))]
    text, _ = study(folder / "devices", db, split, *arguments)
    rows = rows_of(text, "## devices")[1:]
    by_name = {(row[0], row[1]): row for row in rows}
    assert by_name[("`replay`", "")][2:6] == ["1.000"] * 4, rows  # the same times
    for family in families:
        ways = [how for name, how in by_name if name.startswith(f"`{family}")]
        middle = ["more trees, the few tasks"] if family == "gbdt" else ["all weights, the few tasks", "the last layers, the few tasks"]
        assert ways == ["no adaptation", "from scratch, the few tasks", *middle, "trained on all tasks there"], ways
    _, said = study(folder / "devices", db, split, *arguments)
    assert said.count("as judged before") == len(rows), said


def check_refused(folder, db, split):
    kept = folder / "refused"
    assert "found 'layers', expected some of tasks" in study(kept, db, split, "--tables", "layers", code=2)[1]
    assert "--from-device" in study(kept, db, split, "--tables", "devices", code=2)[1]
    assert "--epochs" in study(kept, db, split, "--epochs", "0", code=2)[1]
    assert "found 'wood', expected NAME=VALUE" in study(kept, db, split, "--families", "small:wood", code=2)[1]
    assert "no such file" in study(kept, db, folder / "none.json", code=2)[1]
    # A family that cannot be trained is named; the others are there.
    text, said = study(kept, db, split, "--device", "host/1", "--families", "nonesuch", "gbdt", "--sizes", "2", code=1)
    assert "nonesuch, 2 tasks: hone: " in said and float(rows_of(text, "pairs")[1][2]) > 0, said + text


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        _, db = make_data(folder)
        split = folder / "split.json"
        hone("dataset", "split", "--db", db, "-o", split, "--by", "model", "--hold-out", "second")
        nets = with_torch()
        check_tasks(folder, db, split, ["atformer:mask=0", "fasor", "tlp", "gbdt"] if nets else ["gbdt", "combined"])
        check_devices(folder, db, split, ["fasor", "gbdt"] if nets else ["gbdt"])
        check_refused(folder, db, split)
        if nets:
            check_rows(folder, db, split)
    return 0


if __name__ == "__main__":
    sys.exit(main())
