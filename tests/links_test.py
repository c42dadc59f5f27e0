#!/usr/bin/env python3
"""What neither makes nor reads machine code needs no LLVM: `readelf` says which libraries a program asks for.

  links_test.py --with PROGRAM... --without PROGRAM...     of which the former need LLVM and the latter do not

The latter have to be linked with -Wl,--no-as-needed, so that a library counts that nothing is taken from."""
import argparse
import re
import subprocess
import sys


def libraries_of(program):
    text = subprocess.run(["readelf", "-d", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with", nargs="+", required=True, dest="users")
    parser.add_argument("--without", nargs="+", required=True, dest="others")
    options = parser.parse_args()
    wrong = 0
    for program in options.users + options.others:
        libraries = libraries_of(program)
        found = any(library.startswith("libLLVM") for library in libraries)
        if found != (program in options.users):
            print(f"{program}: found {', '.join(libraries)}, expected LLVM {'not ' if found else ''}among them")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
