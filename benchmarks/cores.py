"""Whether the threads of a run get a core each, near each other.

A virtual machine's CPUs may be the two hardware threads of one core for seconds at a time, or cores that do not share the cache that they
usually share, and a figure of several threads measured then is that of another machine. Nothing in the guest says so; `hone devices --cores`
finds out (src/hone/measure/core_state.h).
"""
import argparse
import json
import subprocess
import time
from pathlib import Path


class Patience:
    """Waits for cores; who once waited in vain, on a machine where threads never have a core each, waits no more."""

    def __init__(self, limit=60.0, hone=Path("build/release/tools/hone/hone")):
        self.limit = limit  # seconds
        self.hone = hone
        self.nearest = 0  # what `hone devices --cores` wants to know of earlier looks

    def look(self, threads):
        """Of so many threads: {"good": whether each has a core, as near to the others as ever seen, "nearest_seconds": for the next look}."""
        return json.loads(subprocess.run([self.hone, "devices", "--cores", "--threads", str(threads), "--nearest", repr(self.nearest), "--json"],
                                         check=True, capture_output=True, text=True).stdout)

    def good(self, threads):
        """Whether each thread has a core, as near to the others as ever seen."""
        if threads < 2:
            return True
        state = self.look(threads)
        self.nearest = state["nearest_seconds"]
        return state["good"]

    def wait(self, threads):
        """Returns once they are good, or after `limit`."""
        begin = time.perf_counter()
        while self.limit and not self.good(threads):
            if time.perf_counter() - begin >= self.limit:
                self.limit = 0.0
                return
            time.sleep(0.1)

    def satisfied(self, threads):
        """Whether they are, or nothing is to be expected any more."""
        return not self.limit or self.good(threads)


patience = Patience()


def add_option(parser):
    """--patience, which parse_args() sets."""

    class Set(argparse.Action):
        def __call__(self, parser, namespace, values, option_string=None):
            patience.limit = values

    parser.add_argument("--patience", type=float, action=Set, metavar="SECONDS",
                        help="how long to wait at a time, at most, until each thread has a core of its own, near the others (default: 60); once in "
                        "vain, no more")
