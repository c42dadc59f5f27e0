"""Two hosts, which are network namespaces of this machine, and a network between them that delays packets and loses some. It needs
root and /dev/net/tun; it does not need the kernel's netem."""
import contextlib
import ctypes
import fcntl
import heapq
import os
import queue
import random
import select
import struct
import subprocess
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
CLONE_NEWNET = 0x40000000
TUN = "/dev/net/tun"


def unable():
    """Why there can be no such network; empty if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"there is no {TUN}"
    done = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"no network namespace: {done.stderr.strip()}"


class Host:
    """A network namespace with this address. What run() is given runs in its thread, so that processes which it starts belong to it."""

    def __init__(self, address):
        self.address, self.packets = address, None
        self.work, self.answers = queue.Queue(), queue.Queue()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        self.run(self._enter)

    def run(self, function, *arguments):
        self.work.put((function, arguments))
        value, failure = self.answers.get()
        if failure is not None:
            raise failure
        return value

    def _serve(self):
        while (item := self.work.get()) is not None:
            function, arguments = item
            try:
                self.answers.put((function(*arguments), None))
            except BaseException as failure:  # it belongs to the caller
                self.answers.put((None, failure))

    def _enter(self):
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "no network namespace")
        self.packets = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.packets, TUNSETIFF, struct.pack("16sH22x", b"tun0", IFF_TUN | IFF_NO_PI))
        for command in ("ip link set lo up", f"ip address add {self.address}/24 dev tun0", "ip link set tun0 up"):
            subprocess.run(command.split(), check=True)


class LossyNetwork(contextlib.AbstractContextManager):
    """Hosts `near` and `far`. Each packet takes `delay` seconds, and the share `loss` of them does not arrive."""

    def __init__(self, delay, loss):
        self.delay, self.loss, self.lost, self.carried = delay, loss, 0, 0
        self.near, self.far = Host("10.87.0.1"), Host("10.87.0.2")
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._carry, daemon=True)
        self.thread.start()

    def _carry(self):
        chance, underway, number = random.Random(1), [], 0
        ends = {self.near.packets: self.far.packets, self.far.packets: self.near.packets}
        while not self.ended.is_set():
            wait = min(0.1, max(0, underway[0][0] - time.monotonic())) if underway else 0.1
            for source in select.select(list(ends), [], [], wait)[0]:
                with contextlib.suppress(BlockingIOError):
                    packet = os.read(source, 1 << 16)
                    self.carried += 1
                    if chance.random() < self.loss:
                        self.lost += 1
                        continue
                    number += 1  # packets of one moment keep their order
                    heapq.heappush(underway, (time.monotonic() + self.delay, number, ends[source], packet))
            while underway and underway[0][0] <= time.monotonic():
                _, _, target, packet = heapq.heappop(underway)
                with contextlib.suppress(OSError):
                    os.write(target, packet)

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        for host in (self.near, self.far):
            host.work.put(None)
            host.thread.join()
            os.close(host.packets)
