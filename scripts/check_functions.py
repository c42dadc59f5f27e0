#!/usr/bin/env python3
"""Functions have at most 60 lines, without comments and empty lines, and classes at most 30 public functions. The numbers
of those that have more may not grow; --list names them."""
import re
import sys

import sources

MOST_LINES = 60
MOST_PUBLIC = 30
# A change that makes one of them smaller lowers these.
LONG_FUNCTIONS = 5
WIDE_CLASSES = 0

FOR_TESTS = re.compile(r"(_test|_testing|_test_support|_benchmark)\.(h|cc)$|/test_\w+\.(h|cc)$|^(tests|fuzz|benchmarks|examples)/")
# These parts are no code: comments, strings, characters, and lines of the preprocessor with those that continue them.
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'|'
                     r"^[ \t]*#(?:[^\n\\]|\\.)*$", re.S | re.M)
TYPE = re.compile(r"^(?:template\s*<.*?>\s*)?(?:typedef\s+)?(class|struct|union)\b(?![^(]*\()[^=]*?(\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.S)
NO_FUNCTION = re.compile(r"^(namespace|enum|using|friend|typedef|static_assert|extern\s*$)|^[^(]*=")
ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")


def blanked(text):
    """The text with everything that is no code as spaces, so that places stay."""
    return NO_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)) if "\n" in m.group(0) else '"' + " " * (len(m.group(0)) - 1), text)


def without_angles(header):
    while True:
        shorter = re.sub(r"<[^<>;{}]*>", "", header)
        if shorter == header:
            return header
        header = shorter


def is_function(header):
    return "(" in header and not NO_FUNCTION.match(re.sub(r"operator[^\s\w(]+", "operator", header))


def visit(text):
    """Yields (kind, name, value): ("lines", name, number of lines) of functions, ("public", name, number) of classes."""
    code = blanked(text)
    stack = []  # [kind, name, start, public functions, is public]
    begin = 0   # of the statement
    for m in re.finditer(r"[{};]|\b(?:public|private|protected)\s*:(?!:)", code):
        at, token = m.start(), m.group(0)
        inside = stack[-1][0] if stack else "namespace"
        header = without_angles(" ".join(code[begin:at].replace('"', " ").split()))
        if ACCESS.match(token):
            if inside == "class":
                stack[-1][4] = token.startswith("public")
                begin = m.end()
            continue
        if inside in ("function", "other"):
            if token == "{":
                stack.append(["other", "", at, 0, False])
            elif token == "}":
                kind, name, start, _, _ = stack.pop()
                if kind == "function":
                    yield "lines", name, sum(1 for line in code[start:m.end()].split("\n") if line.strip(' "'))
                # An initialiser of a member or the value of a constant belongs to its statement.
                if kind == "function" or (stack and stack[-1][0] in ("function", "other")):
                    begin = m.end()
            continue
        if token == "{":
            type_name = TYPE.match(header)
            if type_name:
                stack.append(["class", type_name.group(2), at, 0, type_name.group(1) != "class"])
            elif is_function(header):
                # After a colon that begins initialisers of members, braces may be one of these.
                if re.search(r"\)[^()]*:[^:].*\w$", header) and not header.endswith(")") and not re.search(r"\)\s*(const|noexcept|override|final)$", header):
                    stack.append(["other", "", at, 0, False])
                    continue
                if inside == "class" and stack[-1][4]:
                    stack[-1][3] += 1
                start = begin + len(code[begin:at]) - len(code[begin:at].lstrip())
                stack.append(["function", re.split(r"\(", header)[0].split()[-1], start, 0, False])
            elif header.startswith("namespace") or header.startswith("extern"):
                stack.append(["namespace", "", at, 0, False])
            else:
                stack.append(["other", "", at, 0, False])
                continue
        elif token == "}":
            if stack:
                kind, name, _, public, _ = stack.pop()
                if kind == "class":
                    yield "public", name, public
        elif inside == "class" and stack[-1][4] and is_function(header):
            stack[-1][3] += 1
        begin = m.end()


def main():
    long, wide = [], []
    for path in sources.files(*sources.CPP, under=("include", "src", "tools", "plugins")):
        if FOR_TESTS.search(str(path)):
            continue
        for kind, name, value in visit((sources.ROOT / path).read_text(encoding="utf-8")):
            if kind == "lines" and value > MOST_LINES:
                long.append((value, f"{path}: {name} has {value} lines"))
            if kind == "public" and value > MOST_PUBLIC:
                wide.append((value, f"{path}: {name} has {value} public functions"))
    failed = len(long) > LONG_FUNCTIONS or len(wide) > WIDE_CLASSES
    if failed or "--list" in sys.argv:
        for _, line in sorted(long, reverse=True) + sorted(wide, reverse=True):
            print(line)
    print(f"functions of more than {MOST_LINES} lines: {len(long)}, the limit is {LONG_FUNCTIONS}; "
          f"classes of more than {MOST_PUBLIC} public functions: {len(wide)}, the limit is {WIDE_CLASSES}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
