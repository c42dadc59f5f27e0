#!/usr/bin/env python3
"""libhone.so exports what its headers declare, and nothing else: a symbol of a library in it (LLVM, Abseil, fmt) or a
template of std would be bound to that of the program which loads it, or the other way round, although they may be of
different versions.

  exported_symbols_test.py LIBRARY HEADERS     HEADERS: the folder include/hone"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

# "class HONE_API Tensor {", "[[nodiscard]] HONE_API Result<Tensor> read_npy(const ..."
CLASS = re.compile(r"\b(?:class|struct)\s+HONE_API\s+(\w+)")
FUNCTION = re.compile(r"\bHONE_API\s+(?!\w+\s*[{;])[^;{(]*?(\w+)\(")
# "typeinfo for hone::Model", "hone::Tensor::at(long) const": the path of the name.
PATH = re.compile(r"^(?:typeinfo for |typeinfo name for |vtable for )?hone::([\w:~]+)")


def exported(library):
    text = subprocess.run(["nm", "-DCg", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line.split(" ", 2)[2] for line in text.splitlines()]


def declared(headers):
    text = "".join(re.sub(r"(?m)//.*|^\s*#.*", "", path.read_text()) for path in headers.glob("*.h"))
    classes = set(CLASS.findall(text))
    return classes, set(FUNCTION.findall(re.sub(CLASS, "", text)))


def problems_of(symbols, classes, functions):
    names = set()
    for symbol in symbols:
        match = PATH.match(symbol)
        path = match[1].split("::") if match else [""]
        if path[0] not in classes and path[-1] not in functions:
            yield f"exports {symbol}, which no header marks HONE_API"
        names.update(path)
    for name in sorted((classes | functions) - names):
        yield f"does not export {name}, which a header marks HONE_API"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("headers", type=Path)
    options = parser.parse_args()
    problems = list(problems_of(exported(options.library), *declared(options.headers)))
    for problem in problems:
        print(f"{options.library} {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
