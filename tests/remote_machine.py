"""A machine elsewhere for tests and benchmarks, which is this one: hone serve, and a network that can be cut."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading


MOST_SEEN = 1 << 20


def children_of(parent):
    """The processes that a process has started and that have not ended."""
    found = []
    for process in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it ended in the meantime
            stat = pathlib.Path(f"/proc/{process}/stat").read_text(errors="replace")
            state, its_parent = stat.rpartition(")")[2].split()[:2]  # behind the name, which may have spaces
            if int(its_parent) == parent and state != "Z":
                found.append(int(process))
    return found


class Server(contextlib.AbstractContextManager):
    """hone serve on the loopback interface. `port`: 0 for any, which is the same one after a restart."""

    def __init__(self, hone, token_file, *options):
        self.command = [hone, "serve", "--token-file", str(token_file), *map(str, options)]
        self.port, self.process = 0, None

    def start(self):
        self.process = subprocess.Popen([*self.command, "--port", str(self.port)], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.match(r"measures for tuners at grpc://[0-9.]+:([0-9]+)", line)
        if found is None:
            raise RuntimeError(f"hone serve did not start: {line}")
        self.port = int(found[1])

    def models(self):
        """The processes that run a model."""
        found = []
        for process in children_of(self.process.pid):
            with contextlib.suppress(OSError):  # it ended in the meantime
                if b"--model" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes():
                    found.append(process)
        return found

    def kill_model(self):
        for process in self.models():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()


class Network(contextlib.AbstractContextManager):
    """Passes connections on to a port, until it is cut."""

    def __init__(self, port):
        self.to = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets, self.lock = set(), threading.Lock()
        self.sent = 0  # bytes to the port
        self.seen = b""  # the first of them
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Ends all connections; new ones are passed on."""
        with self.lock:
            ended, self.sockets = self.sockets, set()
        for one in ended:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        return len(ended) // 2

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.to))
                except OSError:  # the server is not there
                    near.close()
                    continue
                with self.lock:
                    self.sockets |= {near, far}
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, target, source is near), daemon=True).start()

    def _copy(self, source, target, counts):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if counts:
                    self.sent += len(data)
                    self.seen += data[:max(0, MOST_SEEN - len(self.seen))]
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *_):
        self.cut()
        self.listener.close()


def program_of(hone):
    """The program hone-serve that belongs to a program hone."""
    return os.path.join(os.path.dirname(hone), "..", "libexec", "hone", "hone-serve")
