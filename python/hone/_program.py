"""The command `hone`: the program that the package has beside it."""
from __future__ import annotations

import os
import signal
import sys


def path() -> str:
    """The program's file."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "prefix", "bin", "hone")


def main() -> None:
    """Becomes the program, with the arguments of this process."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and what is ignored stays so in the program
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(path(), ["hone", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"hone: {path()}: {error.strerror}, expected the program of this package: install it again")
