#!/usr/bin/env python3
"""Finds code that stands in several files: runs of RUN or more lines that are equal when blanks,
comments, includes and lone brackets are left out. Fails when their sum exceeds BUDGET.
Lower BUDGET when a duplicate goes; raise it for nothing."""
import collections
import re
import sys

import sources

RUN = 8
BUDGET = 0  # duplicated lines: of each run, all copies but one

SKIP = re.compile(r"^(#include\b.*|#pragma once|using namespace .*|namespace .*\{|[\s{}()\[\];,]*)$")
COMMENT = re.compile(r"//.*$|/\*.*?\*/")


def normalised(path):
    """(line number, text) of what counts."""
    for number, line in enumerate(sources.lines(path), 1):
        text = re.sub(r"\s+", " ", COMMENT.sub("", line)).strip()
        if not SKIP.match(text):
            yield number, text


def runs(code):
    """(file, start, file, start, length) of maximal equal runs, the start as an index into code."""
    seen = collections.defaultdict(list)  # window -> places before
    covered = set()                       # (file, index, file, index) inside a run that is known
    for path, body in code.items():
        for i in range(len(body) - RUN + 1):
            window = tuple(text for _, text in body[i:i + RUN])
            for other, j in seen[window]:
                if other == path or (path, i, other, j) in covered:
                    continue
                length = 0
                theirs = code[other]
                while (i + length < len(body) and j + length < len(theirs)
                       and body[i + length][1] == theirs[j + length][1]):
                    covered.add((path, i + length, other, j + length))
                    length += 1
                yield path, i, other, j, length
            seen[window].append((path, i))


def main():
    code = {path: list(normalised(path)) for path in sources.files(*sources.CPP)}
    copied = collections.defaultdict(set)  # file -> indices of lines that stand in an earlier file
    for path, i, other, j, length in runs(code):
        copied[path].update(range(i, i + length))
        print(f"{path}:{code[path][i][0]}: {length} lines as in {other}:{code[other][j][0]}")
    total = sum(len(lines) for lines in copied.values())
    print(f"duplicates: {total} lines, the budget is {BUDGET}")
    return 1 if total > BUDGET else 0


if __name__ == "__main__":
    sys.exit(main())
