#!/usr/bin/env python3
"""Divides sources into groups that one compiler run translates together, as a release build does with tests (HONE_UNITY
in cmake/HoneTargets.cmake): headers are then parsed, and templates instantiated, once for the group. Prints the number of
the group of each source, in the order of the arguments.

Sources of a group see each other's names, so those of a group must mean the same together as apart: what one declares
for itself (in an unnamed namespace, static, by a using declaration or by #define) must not occur in another one, types
not in the headers that it includes either, and all have the same using directives."""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

MOST_FILES = 10
MOST_BYTES = 90_000

TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.S)
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.S | re.M)
TYPE = re.compile(r"(?:class|struct|enum class|enum|union) (\w+)(?: final)?(?: :|;| \{|\{)")
ALIAS = re.compile(r"using (\w+) =")
# A function or a variable: what stands before its first parenthesis, bracket, brace or sign of equality.
VALUE = re.compile(r"[\w:<>,&*\s]*?[\s*&](\w+)(?:\(|\[|\{|;| =)")
WORD = re.compile(r"[A-Za-z_]\w*")
INCLUDE = re.compile(r'^#include "(hone/[^"]+)"', re.M)
DIRECTIVE = re.compile(r"^using namespace ([\w:]+);", re.M)
USING = re.compile(r"^using ([\w:]+)::(\w+);", re.M)
DEFINE = re.compile(r"^#\s*define (\w+)", re.M)
# clang-format leaves what a namespace holds at the first column.
DECLARATION = re.compile(r"^(?:template [^\n]*\n)?(\w[^\n]*(?:\n {2,}[^\n]*)?)", re.M)


def names_of(declaration):
    """The names that a declaration at the first column gives to the namespace."""
    for pattern in (TYPE, ALIAS, VALUE):
        match = pattern.match(declaration)
        if match:
            return {match[1]}
    return set()


@functools.cache
def types_in(header):
    """The words of a header of the project that may name a type."""
    for folder in ("src", "include"):
        if (path := ROOT / folder / header).exists():
            return {word for word in WORD.findall(TEXT.sub(" ", path.read_text())) if word[0].isupper()}
    return set()


class Source:
    """What a source declares for itself and what it speaks of."""

    def __init__(self, text):
        self.size = len(text)
        headers = INCLUDE.findall(text)
        unnamed = [TEXT.sub(" ", body) for body in UNNAMED.findall(text)]
        text = TEXT.sub(" ", text)
        self.words = set(WORD.findall(text)).union(*map(types_in, headers))
        self.directives = frozenset(DIRECTIVE.findall(text))
        self.using = set(USING.findall(text))
        self.own = set(DEFINE.findall(text)) | {name for _, name in self.using}
        for match in DECLARATION.finditer(text):
            if match[1].startswith("static "):
                self.own |= names_of(match[1])
        for body in unnamed:
            for match in DECLARATION.finditer(body):
                self.own |= names_of(match[1])

    def fits(self, other):
        """Whether both mean together what they mean apart."""
        same = {name for _, name in self.using & other.using}
        return self.directives == other.directives and not (self.own & other.words | other.own & self.words) - same


def group(sources):
    """The number of the group of each source: the first one that it fits into."""
    groups = []
    numbers = []
    for source in sources:
        for number, members in enumerate(groups):
            if len(members) < MOST_FILES and sum(member.size for member in members) + source.size <= MOST_BYTES and \
                    all(source.fits(member) for member in members):
                break
        else:
            number = len(groups)
            groups.append([])
        groups[number].append(source)
        numbers.append(number)
    return numbers


def main():
    sources = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            sources.append(Source(file.read()))
    print(";".join(map(str, group(sources))), end="")


if __name__ == "__main__":
    main()
