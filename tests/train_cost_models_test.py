#!/usr/bin/env python3
"""scripts/train_cost_models.sh measures, judges and trains what ships with Hone; its files say how they were made, and are refused by a
program whose measure is another one."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dataset_test import hone, model

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "train_cost_models.sh"


def train(folder):
    models = [folder / "first.onnx", folder / "second.onnx"]
    model(models[0], "first", 16)
    model(models[1], "second", 32)
    output = folder / "trained"
    environment = os.environ | {"OUTPUT": str(output), "SCHEDULES": "10", "ROUND": "10", "THREADS": "1"}
    done = subprocess.run([SCRIPT, folder / "data.db", *models], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return output


def note(text, name):
    return next(line for line in text.splitlines() if line.startswith(f"card {name} ")).removeprefix(f"card {name} ")


def check_cards(folder, output):
    assert sorted(path.name for path in output.iterdir()) == ["combined.model", "gbdt.model"]
    known = {device["name"]: device for device in json.loads(hone("devices", "--json"))}
    devices = [known["host"]["key"]]
    if known["host"]["vector_bytes"] > known["host-avx2"]["vector_bytes"]:
        devices.append(known["host-avx2"]["key"])
    for path in output.iterdir():
        text = path.read_text()
        assert note(text, "devices") == ", ".join(devices) and note(text, "models") == "first, second", text[:2000]
        assert note(text, "booster") == "xgboost" and note(text, "seed") == "1" and "card excluded_models" not in text
        assert int(note(text, "schedules")) >= 10 * len(devices) and int(note(text, "tasks")) >= 2
        judge = ["eval", "--db", folder / "data.db", "--cost", path]
        card = json.loads(hone(*judge, "--json"))["card"]
        assert card["tasks"] == note(text, "tasks") and int(card["trees"]) > 0, card
        assert f"; schedules {card['schedules']}; " in hone(*judge).splitlines()[-1]
    assert "card" not in json.loads(hone("eval", "--db", folder / "data.db", "--json"))


def check_going_on(folder, output):
    """What went on from a file says from which, with fewer networks."""
    path = folder / "more.model"
    hone("train", "--db", folder / "data.db", "--exclude-model", "second", "--from", output / "gbdt.model", "-o", path)
    text = path.read_text()
    assert note(text, "from").startswith("gbdt.model ") and note(text, "from.models") == "first, second"
    assert note(text, "models") == "first" and note(text, "excluded_models") == "second"
    last = folder / "last.model"
    hone("train", "--db", folder / "data.db", "--from", path, "-o", last)
    text = last.read_text()
    assert note(text, "from.excluded_models") == "second" and note(text, "from.from.models") == "first, second", text[:2000]


def check_failures(folder):
    """Without the devices nothing is made; what cannot be judged is said, and made."""
    for fails, code, files in (("devices", 1, []), ("eval", 0, ["combined.model", "gbdt.model"])):
        program, output = folder / f"no-{fails}", folder / f"made-{fails}" / "models"
        program.write_text(f'#!/bin/bash\n[[ $1 != {fails} ]] || exit 1\nexec "{os.environ["HONE"]}" "$@"\n')
        program.chmod(0o755)
        environment = os.environ | {"OUTPUT": str(output), "HONE": str(program)}
        done = subprocess.run([SCRIPT, folder / "data.db"], env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == code, done.stdout + done.stderr
        assert sorted(path.name for path in output.glob("*")) == files
        assert ("not judged" in done.stderr) == (fails == "eval"), done.stderr


def check_judged(folder):
    """JUDGE holds some networks out together; one that is not there is said."""
    for networks, code in (("second", 0), ("second third", 2)):
        environment = os.environ | {"OUTPUT": str(folder / "judged"), "CPU": "test", "DEVICES": "host", "JUDGE": networks}
        done = subprocess.run([SCRIPT, folder / "data.db"], env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == code, done.stdout + done.stderr
        assert (folder / "judged" / "combined-test.model").exists()
        rows = [line.split() for line in done.stdout.splitlines()]
        assert [row[2:3] for row in rows if row[:1] == ["second"]] == ([["4"]] if code == 0 else []), done.stdout
        assert code == 0 or "third" in done.stderr, done.stderr


def check_another_measure(folder, output):
    lines = (output / "combined.model").read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("fingerprint analytic "))
    lines[place] = " ".join(["fingerprint", "analytic", "-1", *lines[place].split()[3:]])
    old = folder / "old.model"
    old.write_text("\n".join(lines) + "\n")
    for command in (["eval", "--cost", old], ["train", "--from", old, "-o", folder / "no.model"]):
        error = hone(*command, "--db", folder / "data.db", code=2)
        assert "old.model: trained with other features or another analytic measure" in error and "train it anew" in error, error
    assert not (folder / "no.model").exists()


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        output = train(folder)
        check_cards(folder, output)
        check_going_on(folder, output)
        check_failures(folder)
        check_judged(folder)
        check_another_measure(folder, output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
