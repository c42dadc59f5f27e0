#!/usr/bin/env python3
"""Each header of the public interface compiles alone, where nothing else of the project can be found."""
import os
import pathlib
import subprocess
import sys

import sources


def main():
    problems = []
    headers = sources.files(".h", under=("include",))
    for path in headers:
        compiler = os.environ.get("CXX", "c++")
        command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", "include", "-x", "c++", "-"]
        # Twice, as it may not be included twice by accident only.
        text = f'#include "{pathlib.PurePosixPath(*path.parts[1:])}"\n' * 2
        done = subprocess.run(command, cwd=sources.ROOT, input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            problems.append(f"{path} does not compile alone:\n{done.stderr}")
    print("\n".join(problems) or f"public headers: {len(headers)} compile alone")
    return 1 if problems or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
