"""Has a change moved what Hone generates? Task keys, chosen schedules, machine code and what cost models read.

    HONE_GENERATED_CODE=build/release/tests/hone_generated_code generated_code_test.py [--models NAME ...] [--update | --print]

Each model is compiled without measuring and without a database for three devices that are described, not detected, so the text is the same
on every machine. It is compared with tests/generated_code/MODEL.txt, which holds hashes in place of schedules; a difference names the tasks
and what of them changed. A change that means to move generated code runs it with --update and says why in its commit. --print writes the
whole text, schedules included, of all models in models/: redirect it into a file before a large change, and compare afterwards with diff.
"""
import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))
import model_files  # noqa: E402

PROGRAM = os.environ.get("HONE_GENERATED_CODE", "hone_generated_code")
DEVICES = ("x86-64-avx512", "x86-64-avx2", "aarch64-neon")
CHECKED_IN = ("squeezenet1_1", "mnasnet1_0", "mobilebert_s128", "ssdlite320_raw")
PARTS = ("key", "class", "code", "inputs", "schedule")


def generated(name):
    """The program's text of a model for all devices."""
    done = subprocess.run([PROGRAM, str(model_files.filled(name)), *DEVICES], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr.strip()}")
    return done.stdout


def with_hashes(text):
    """The same text with a hash in place of each schedule."""
    lines = []
    for line in text.splitlines():
        before, found, schedule = line.partition(" schedule ")
        lines.append(f"{before} schedule {hashlib.blake2b(schedule.encode(), digest_size=8).hexdigest()}" if found else line)
    return "\n".join(lines) + "\n"


def tasks_of(text):
    """{(device, key): {part: value}}, and each device's order of tasks and cost model."""
    tasks, headers, device = {}, {}, ""
    for line in text.splitlines():
        words = line.split(" ")
        if words[0] == "model":
            device = words[3]
            headers[device] = line
            continue
        code = line.index(" code "), line.index(" inputs "), line.index(" schedule ")
        tasks[device, words[0]] = {
            "class": line[len(words[0]) + 1:code[0]], "code": line[code[0] + 6:code[1]], "inputs": line[code[1] + 8:code[2]],
            "schedule": line[code[2] + 10:]}
    return tasks, headers


def differences(found, expected):
    """Sentences, one for each task that differs."""
    found_tasks, found_headers = tasks_of(found)
    expected_tasks, expected_headers = tasks_of(expected)
    for device in DEVICES:
        if found_headers.get(device) != expected_headers.get(device):
            yield f"{device}: '{found_headers.get(device)}', expected '{expected_headers.get(device)}'"
    for key in [*expected_tasks, *(key for key in found_tasks if key not in expected_tasks)]:
        device, task = key
        if key not in found_tasks:
            yield f"{device}: the task {task} ({expected_tasks[key]['class']}) is gone"
        elif key not in expected_tasks:
            yield f"{device}: the task {task} ({found_tasks[key]['class']}) is new"
        else:
            changed = [part for part in PARTS[1:] if found_tasks[key][part] != expected_tasks[key][part]]
            if changed:
                yield f"{device}: the task {task} ({expected_tasks[key]['class']}) has another {', '.join(changed)}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", metavar="NAME")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    if options.print:
        for name in options.models or [entry["name"] for entry in model_files.entries()]:
            print(generated(name), end="", flush=True)
        return
    failed = 0
    for name in options.models or CHECKED_IN:
        path = HERE / "generated_code" / f"{name}.txt"
        found = with_hashes(generated(name))
        if options.update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(found)
            continue
        expected = path.read_text()
        sentences = list(differences(found, expected))
        for sentence in sentences:
            print(f"{name}, {sentence}")
        if not sentences and found != expected:
            sentences.append("order")
            print(f"{name}: the tasks are in another order")
        failed += bool(sentences)
        if not sentences:
            print(f"{name}: {len(tasks_of(found)[0])} tasks are as before")
    if failed:
        sys.exit("what is generated has changed; if that is meant: generated_code_test.py --update, and the commit says why")


if __name__ == "__main__":
    main()
