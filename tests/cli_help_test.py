#!/usr/bin/env python3
"""--help of every command is what tests/cli_help/*.txt say.

    HONE=build/dev/tools/hone/hone tests/cli_help_test.py [--update]
"""
import difflib
import os
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent / "cli_help"
COMMANDS = ("", "tune", "compile", "run", "bench", "db", "db show", "db best", "devices", "version")


def main():
    update = sys.argv[1:] == ["--update"]
    failed = 0
    expected_files = set()
    for command in COMMANDS:
        path = GOLDEN / f"{'_'.join(['hone', *command.split()])}.txt"
        expected_files.add(path)
        done = subprocess.run([os.environ["HONE"], *command.split(), "--help"], capture_output=True, text=True)
        if done.returncode != 0 or done.stderr:
            print(f"hone {command} --help: exit code {done.returncode}: {done.stderr}")
            failed += 1
            continue
        if update:
            GOLDEN.mkdir(exist_ok=True)
            path.write_text(done.stdout)
            continue
        expected = path.read_text() if path.exists() else ""
        if done.stdout != expected:
            sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), done.stdout.splitlines(True), str(path), "now"))
            failed += 1
    for path in set(GOLDEN.glob("*.txt")) - expected_files:
        print(f"{path}: there is no such command")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
