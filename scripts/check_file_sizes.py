#!/usr/bin/env python3
"""Files stay small: 500 lines ask for a reason, 800 fail. Prints the lines of each folder."""
import collections
import sys

import sources

WARN = 500
FAIL = 800
# Long because they are tables.
TABLES = set()


def group_of(path):
    return "/".join(path.parts[1:3]) if path.parts[0] == "src" and len(path.parts) > 3 else path.parts[0]


def kind_of(path):
    stem = path.stem
    if stem.endswith(("_test", "_testing")) or path.parts[0] in ("tests", "fuzz"):
        return "tests"
    return "tests" if stem.endswith("_benchmark") or path.parts[0] == "benchmarks" else "code"


def main():
    failed = False
    totals = collections.defaultdict(lambda: {"code": 0, "tests": 0, "files": 0})
    for path in sources.files(*sources.CPP, ".py", ".sh", ".cmake", "CMakeLists.txt"):
        count = len(sources.lines(path))
        total = totals[group_of(path)]
        total[kind_of(path)] += count
        total["files"] += 1
        if count > WARN and str(path) not in TABLES:
            failed |= count > FAIL
            print(f"{path}: {count} lines, {'the limit is' if count > FAIL else 'split it beyond'} "
                  f"{FAIL if count > FAIL else WARN}")
    print(f"{'folder':<20} {'files':>6} {'code':>7} {'tests':>7}")
    for name, total in sorted(totals.items()):
        print(f"{name:<20} {total['files']:>6} {total['code']:>7} {total['tests']:>7}")
    print(f"{'all':<20} " + " ".join(
        f"{sum(t[key] for t in totals.values()):>{width}}"
        for key, width in (("files", 6), ("code", 7), ("tests", 7))))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
