"""The processes that make libraries ahead, and how they stand still while something is timed: PyTorch, which launches its kernels from the CPU, would
be slower beside compilers, and so would be whatever is tuned."""
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

VARIABLE = "HONE_CHECK_BACKGROUND"  # the number of the process that all others descend from


def parents():
    """{process: its parent}, of all that run here."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                found[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
    return found


def descendants(root, of):
    """The process and all below it, parents before their children."""
    found = [root]
    for process in found:
        found += [child for child, parent in of.items() if parent == process]
    return found


def send(process, name):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, name)


def stop(root):
    """Stops the whole tree and returns its processes. A stopped one makes no others, so the last look finds none that is new."""
    stopped = []
    while new := [process for process in descendants(root, parents()) if process not in stopped]:
        for process in new:
            send(process, signal.SIGSTOP)
        stopped += new
    return stopped


def go_on(root):
    for process in descendants(root, parents()):
        send(process, signal.SIGCONT)


def go_on_if_stopped():
    """After a process that stopped them and was killed."""
    if root := int(os.environ.get(VARIABLE, "0")):
        go_on(root)


@contextlib.contextmanager
def stopped():
    """What is in the background stands still. Within one another, the outermost counts."""
    root = int(os.environ.pop(VARIABLE, "0"))
    if root == 0 or not Path(f"/proc/{root}").exists():
        yield
        return
    stop(root)
    try:
        yield
    finally:
        go_on(root)
        os.environ[VARIABLE] = str(root)


def start(*arguments):
    """Starts ahead.py, which processes that are started later stop by the variable."""
    child = subprocess.Popen([sys.executable, str(Path(__file__).with_name("ahead.py")), *map(str, arguments)], start_new_session=True)
    os.environ[VARIABLE] = str(child.pid)
    return child


def end(child):
    """Ends the tree, also compilers that are stopped."""
    for process in stop(child.pid):
        send(process, signal.SIGKILL)
    child.wait()
    os.environ.pop(VARIABLE, None)
