"""The line that hone.tune shows while it works, in terminals and notebooks."""
from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, TextIO

from hone.errors import InputError

if TYPE_CHECKING:
    from hone._native import TuneProgress

WIDTH = 24  # characters of the bar


class ProgressLine:
    """Writes how far a tune has come over the line that it wrote before."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._written = 0

    def __call__(self, progress: TuneProgress) -> None:
        """Shows a TuneProgress."""
        self._write(self.text(progress))

    @staticmethod
    def text(progress: TuneProgress) -> str:
        """What the line shows for a TuneProgress."""
        done = min(1.0, progress.elapsed / progress.budget) if progress.budget > 0 else 0.0
        full = round(WIDTH * done)
        bar = "#" * full + "." * (WIDTH - full)
        if progress.stage:
            return f"[{bar}] {progress.stage}"
        tasks = [task for task in progress.tasks if task.untuned_seconds > 0 and task.best_seconds > 0]
        before = sum(task.untuned_seconds * task.multiplicity for task in tasks)
        now = sum(task.best_seconds * task.multiplicity for task in tasks)
        gain = f", {before / now:.2f}x" if now > 0 else ""
        return f"[{bar}] {progress.elapsed:.0f} of {progress.budget:.0f} s, {progress.trials} trials{gain}"

    def close(self) -> None:
        """Ends the line, if there is one."""
        if self._written:
            with contextlib.suppress(OSError, ValueError):
                self._stream.write("\n")
                self._stream.flush()

    def _write(self, text):
        """A stream that is closed or full ends no search."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write("\r" + text.ljust(self._written))
            self._stream.flush()
            self._written = len(text)


@contextlib.contextmanager
def shown(progress, on_progress, line_class=ProgressLine):
    """A function that shows each state of a tune in a line and passes it on. Without a choice, there is a line in terminals and notebooks."""
    if on_progress is not None and not callable(on_progress):
        raise InputError(f"on_progress is of the Python type {type(on_progress).__name__}, expected a function")
    if progress is None:
        progress = sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    line = line_class() if progress else None

    def show(state):
        if line is not None:
            line(state)
        if on_progress is not None:
            on_progress(state)

    try:
        yield show
    finally:
        if line is not None:
            line.close()
