#!/usr/bin/env python3
"""A small data set for tests of cost models, which is measured once for all of them.

measured_data.py FOLDER makes it there, for the tests that find it by HONE_MEASURED_DATA."""
import os
import shutil
import sys
from pathlib import Path

from dataset_test import hone, model


def make_data(folder):
    """Models and a database in the folder: what was measured with one thread, and the same times as if with two: the sibling device. Where
    HONE_MEASURED_DATA is set, they are copies. data.jsonl has the records."""
    models, db = [folder / "first.onnx", folder / "second.onnx"], folder / "data.db"
    if "HONE_MEASURED_DATA" in os.environ:
        shutil.copytree(os.environ["HONE_MEASURED_DATA"], folder, dirs_exist_ok=True)
        return models, db
    model(models[0], "first", 16)
    model(models[1], "second", 32)
    lines = folder / "data.jsonl"
    make = ["dataset", "make", *models, "--db", db, "--threads", "1", "--sides", "24,32", "--seed", "3"]
    hone(*make, "--schedules", "10")
    hone("dataset", "export", lines, "--db", db)
    lines.write_text(lines.read_text().replace('"threads":1,', '"threads":2,'))
    hone("dataset", "import", lines, "--db", db)
    return models, db


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    make_data(target)
