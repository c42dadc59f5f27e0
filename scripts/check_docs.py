#!/usr/bin/env python3
"""The documentation holds together: every relative link of a Markdown file leads to a file and a heading that
exist, so does every source that it names as code, every file of docs/ that a source names exists, and lines of
prose have at most WIDTH characters. Tables and fenced code may be wider, and so may a line without a blank."""
import functools
import os
import posixpath
import re
import subprocess
import sys

import sources

WIDTH = 120
FENCE = re.compile(r"^\s*(```|~~~)")
TABLE = re.compile(r"^\s*\|")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*([^)\s]+)[^)]*\)")
EXTERNAL = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
SOURCE = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)+\.(h|cc|py|sh)")
ROOTS = ("", "src/hone/")  # that names of sources begin at
NAMED = r"docs/[A-Za-z0-9_/.-]+\.(md|csv|json|svg)"


def without_code(lines):
    """(line number, text) of the lines that stand outside of fenced code."""
    fence = None
    for number, line in enumerate(lines, 1):
        found = FENCE.match(line)
        if found and fence in (None, found[1]):
            fence = None if fence else found[1]
        elif fence is None:
            yield number, line


def anchors(lines):
    """The anchors that GitHub gives to the headings."""
    found, count = set(), {}
    for _, line in without_code(lines):
        heading = HEADING.match(line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.add(f"{slug}-{count[slug]}" if slug in count else slug)
        count[slug] = count.get(slug, 0) + 1
    return found


def wide_lines(lines):
    """Line numbers of prose that is too wide."""
    for number, line in without_code(lines):
        if len(line) > WIDTH and not TABLE.match(line) and " " in re.sub(r"^\s*([-*#]+|\d+\.)\s", "", line).strip():
            yield number


def links(lines):
    """(line number, target) of the relative links."""
    text = "\n".join(line for _, line in without_code(lines))
    numbers = [number for number, _ in without_code(lines)]
    text = CODE.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), text)
    for link in LINK.finditer(text):
        if not EXTERNAL.match(link[1]):
            yield numbers[text.count("\n", 0, link.start())], link[1]


def missing_sources(lines):
    """(line number, name) of the sources that are named as code and do not exist."""
    for number, line in without_code(lines):
        for code in CODE.finditer(line):
            if SOURCE.fullmatch(code[2]) and not any((sources.ROOT / root / code[2]).exists() for root in ROOTS):
                yield number, code[2]


@functools.cache
def anchors_of(path):
    return anchors(sources.lines(path))


def broken(path, target):
    """What is wrong with a relative link of the file, or None."""
    name, _, fragment = target.partition("#")
    found = posixpath.normpath(posixpath.join(posixpath.dirname(str(path)), name)) if name else str(path)
    if not (sources.ROOT / found).exists():
        return f"there is no {found}"
    if fragment and found.endswith(".md") and fragment not in anchors_of(found):
        return f"{found} has no heading #{fragment}"
    return None


def named_files():
    """(file, line number, path below docs/ that it names), of all files of the project."""
    listed = subprocess.run(["git", "grep", "--untracked", "-noIE", NAMED, "--", "."], cwd=sources.ROOT,
                            stdout=subprocess.PIPE, text=True).stdout
    for line in listed.splitlines():
        path, number, name = line.split(":", 2)
        yield path, number, name


def main():
    problems = []
    for path in sources.files(".md"):
        lines = sources.lines(path)
        problems += [f"{path}:{number}: a line of prose has more than {WIDTH} characters"
                     for number in wide_lines(lines)]
        problems += [f"{path}:{number}: there is no {name}" for number, name in missing_sources(lines)]
        for number, target in links(lines):
            problem = broken(path, target)
            if problem:
                problems.append(f"{path}:{number}: {target}: {problem}")
    problems += [f"{path}:{number}: there is no {name}" for path, number, name in named_files()
                 if not os.path.exists(sources.ROOT / name)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
