#!/usr/bin/env python3
"""--help of every command is what tests/cli_help/*.txt say, and docs/user/operators.md what `hone ops` says.

    HONE=build/dev/tools/hone/hone tests/cli_help_test.py [--update]
"""
import difflib
import os
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent / "cli_help"
OPERATORS = Path(__file__).resolve().parent.parent / "docs" / "user" / "operators.md"
COMMANDS = ("", "tune", "compile", "run", "bench", "show", "explain", "verify", "transfer", "sensitivity", "report", "dataset", "dataset make", "dataset representatives", "dataset split", "dataset stat",
            "dataset import", "dataset export", "adapt", "policy", "policy train", "train", "eval", "db", "db show", "db best", "db stat",
            "db import", "db export", "db merge", "db verify", "db gc", "db ship", "ops", "devices", "serve", "deploy", "doctor", "completion", "version")


def check(path, update, *arguments):
    """0 if the command prints what is in the file, or is written there."""
    done = subprocess.run([os.environ["HONE"], *arguments], capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        print(f"hone {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")
        return 1
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(done.stdout)
        return 0
    expected = path.read_text() if path.exists() else ""
    if done.stdout == expected:
        return 0
    sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), done.stdout.splitlines(True), str(path), "now"))
    print(f"{path} is not what the command prints: run this test with --update and look at the difference")
    return 1


def main():
    update = sys.argv[1:] == ["--update"]
    failed = check(OPERATORS, update, "ops", "--markdown")
    expected_files = set()
    for command in COMMANDS:
        path = GOLDEN / f"{'_'.join(['hone', *command.split()])}.txt"
        expected_files.add(path)
        failed += check(path, update, *command.split(), "--help")
    for path in set(GOLDEN.glob("*.txt")) - expected_files:
        print(f"{path}: there is no such command")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
