"""The connection to a Ray cluster, and the workers on its nodes, which come and go."""
import contextlib
import importlib
import logging
import os
import re
import socket
import time

import hone
from hone import _native
from hone.errors import InputError, InternalError, UnsupportedError
from hone.fleet import _actor

CONNECT_SECONDS = 5  # that a cluster's address may take to answer
START_SECONDS = 60  # that a node may take to start a worker
LOOK_SECONDS = 1  # between two looks at the cluster's nodes
ALONE_SECONDS = 60  # without any worker after which a run ends
PAUSE_SECONDS = 5  # that a worker rests after its store failed
CLOSE_SECONDS = 2  # A worker that has not removed its files by then is ended all the same.
MOST_FAILURES = 3  # in a row, after which a worker or a job is given up
# The beginning of a connection of HTTP/2 (RFC 9113, 3.4), which Ray's servers speak: they answer with a frame of settings, whose type
# is its fourth byte.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
SETTINGS = b"\x04"
KINDS = {"InputError": InputError, "UnsupportedError": UnsupportedError, "InternalError": InternalError}
log = logging.getLogger("hone.fleet")


def import_ray():
    """The package ray, or an error that says how to get it."""
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise InputError("hone.fleet needs the package ray: pip install 'hone[fleet]'") from None
    ray.cloudpickle.register_pickle_by_value(_actor)
    return ray


@contextlib.contextmanager
def connected(address, resources):
    """The package ray, connected to the cluster at `address`. Without one it is the cluster that this process is connected to, else one
    of this machine alone, with these resources, for as long as the context lasts."""
    ray = import_ray()
    if ray.is_initialized():
        if address is not None:
            raise InputError(f"this process is connected to a Ray cluster already, expected no address, found {address!r}")
        yield ray
        return
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
    if address is None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init(address="local", resources=resources, **quiet)
        except Exception as error:  # Ray has no kind of its own for a node that is too slow to start
            raise InternalError(f"Ray does not start on this machine: {first_line(error)}") from None
    else:
        _check_address(address)
        quiet.pop("include_dashboard")
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise InputError(f"there is no Ray cluster at {address!r} that this process can join: {first_line(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address):
    """Ray waits for long where nobody listens."""
    if address == "auto":
        return
    match = re.fullmatch(r"\[?([^\[\]/]+?)\]?:(\d+)", str(address))
    if not match:
        raise InputError(f"the address {address!r} is none of a Ray cluster, expected HOST:PORT or 'auto'")
    try:
        with socket.create_connection((match[1], int(match[2])), CONNECT_SECONDS) as connection:
            connection.settimeout(CONNECT_SECONDS)
            connection.sendall(HELLO)
            answer = connection.recv(9, socket.MSG_WAITALL)
    except (OSError, OverflowError) as error:
        raise InputError(f"there is no Ray cluster at {address!r}: {error}") from None
    if answer[3:4] != SETTINGS:
        raise InputError(f"there is no Ray cluster at {address!r}: what listens there is something else")


def first_line(error):
    """The first line of an error's text that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


class Member:
    """A worker on a node, from its start to its end."""

    def __init__(self, actor, node, now):
        self.actor, self.node, self.started = actor, node, now
        self.name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}), node {node['NodeID'][:8]}"
        self.host, self.key = "", ""
        self.ready = False
        self.job, self.call, self.due = None, None, 0.0  # what it does
        self.failures, self.resting = 0, 0.0
        self.finished, self.lost, self.trials = 0, 0, 0
        self.models = set()  # names of the models that it has opened


class Crew:
    """All workers on the nodes that have a resource, one for each unit of it.

    Args:
        ray: the package, connected.
        resource: its name; "hone:host" for the device "host".
        settings: of a worker (_actor.Worker), with a seed to which each adds its number.
        device: the device that all measure on; None: none is measured on.
        most: the most workers; None: any number.
    """

    def __init__(self, ray, resource, settings, device, most=None):
        self.ray, self.resource, self.settings, self.device, self.most = ray, resource, settings, device, most
        self.members, self.left = [], []  # working or starting; gone
        self.refused, self.deaths = {}, {}  # by node: why it takes no part; workers that did nothing
        self.started = 0
        self.key = ""  # of the device that all measure on
        self._looked = 0.0
        self._alone_since = time.monotonic()

    def open(self):
        """Waits for the first workers. Whatever a node lacks is an error here; later it takes no part."""
        self.look()
        if not self.members:
            raise InputError(f"no node of the Ray cluster has the resource {self.resource!r}, expected one or more: "
                             f"ray start --address=HEAD --resources='{{\"{self.resource}\": 1}}'")
        while any(not member.ready for member in self.members):
            self._greet(1.0)
            if self.refused:
                raise InputError("; ".join(sorted(self.refused.values())))
        if not self.members:
            raise InternalError(f"no worker could be started on the nodes with the resource {self.resource!r}: all of them are taken, or gone")

    @property
    def ready(self):
        """The workers that could take a job."""
        return [member for member in self.members if member.ready]

    def look(self):
        """Starts workers on nodes that have come."""
        self._looked = time.monotonic()
        for node in self.ray.nodes():
            if not node["Alive"]:
                continue
            units = int(node["Resources"].get(self.resource, 0))
            here = sum(member.node["NodeID"] == node["NodeID"] for member in self.members)
            while here < units and node["NodeID"] not in self.refused and (self.most is None or len(self.members) < self.most):
                self._start(node)
                here += 1

    def _start(self, node):
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        settings = {**self.settings, "seed": self.settings["seed"] + self.started}
        self.started += 1
        pinned = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        actor = self.ray.remote(_actor.Worker).options(num_cpus=0, resources={self.resource: 1}, max_concurrency=2, max_restarts=0,
                                                       scheduling_strategy=pinned).remote(settings)
        member = Member(actor, node, time.monotonic())
        member.call = actor.identity.remote(self.device)
        self.members.append(member)

    def _greet(self, seconds):
        """Takes in workers that have started."""
        calls = {member.call: member for member in self.members if not member.ready}
        done, _ = self.ray.wait(list(calls), timeout=seconds) if calls else ([], [])
        for call in done:
            member = calls[call]
            try:
                found = self.ray.get(call)
            except self.ray.exceptions.RayError as error:
                self.drop(member, f"it could not start a worker: {first_line(error)}")
                continue
            member.host, member.key, member.call = found["host"], found["key"], None
            problem = self._problem(member, found)
            if problem:
                self.refused[member.node["NodeID"]] = f"{member.name}: {problem}"
                self.drop(member, problem)
                continue
            member.ready = True
            self.key = self.key or member.key
        for member in [member for member in self.members if not member.ready and time.monotonic() - member.started > START_SECONDS]:
            self.drop(member, f"it started no worker within {START_SECONDS} s; another run may have its device")

    def _problem(self, member, found):
        if found["problem"] and not found["version"]:
            return found["problem"]
        if found["version"] != hone.__version__:
            return f"it has version {found['version']} of hone, expected {hone.__version__}"
        if found["problem"]:
            return found["problem"]
        if self.key and member.key != self.key:
            return f"its device is {member.key}, expected {self.key} as on the other nodes"
        return check_hosts(self.settings["db"], {member.host, *(other.host for other in self.ready)})

    def drop(self, member, why):
        """Ends a worker."""
        log.warning("%s takes no part any more: %s", member.name, why)
        node = member.node["NodeID"]
        self.deaths[node] = 0 if member.finished else self.deaths.get(node, 0) + 1
        if self.deaths[node] >= MOST_FAILURES:
            self.refused.setdefault(node, f"{member.name}: {why}")
        self.members.remove(member)
        self.left.append(member)
        self._end([member])

    def run(self, jobs, until=None):
        """Hands out jobs until there are no more, or `until`, a time.monotonic(); whoever works then is waited for.

        Args:
            jobs: an object with take(member) -> a Job or None, done(job, answer, member), lost(job, why), look(), which is called a few
                times a second, and open, whether there may be more jobs.
        """
        while True:
            now = time.monotonic()
            if now - self._looked > LOOK_SECONDS:
                self.look()
            self._greet(0)
            jobs.look()
            over = until is not None and now >= until
            if not over:
                for member in self.ready:
                    if member.job is None and now >= member.resting:
                        self._hand_out(jobs.take(member), member)
            working = [member for member in self.members if member.job is not None]
            if not working and (over or not jobs.open):
                return
            self._check_alone(now)
            self._collect(jobs, working)

    def _check_alone(self, now):
        if self.ready:
            self._alone_since = now
        elif now - self._alone_since > ALONE_SECONDS:
            raise InternalError(f"no node with the resource {self.resource!r} has been there for {ALONE_SECONDS} s; "
                                "what was measured is in the store, and the same call goes on")

    def _hand_out(self, job, member):
        if job is None:
            return
        member.job, member.due = job, time.monotonic() + job.most_seconds
        member.call = job.start(member)

    def _collect(self, jobs, working):
        calls = {member.call: member for member in working}
        if not calls:
            time.sleep(0.05)
            return
        done, _ = self.ray.wait(list(calls), num_returns=1, timeout=0.2)
        for call in done:
            member = calls[call]
            job, member.job, member.call = member.job, None, None
            try:
                kind, answer = self.ray.get(call)
            except self.ray.exceptions.RayError as error:
                member.lost += 1
                self.drop(member, first_line(error))
                jobs.lost(job, f"{member.name} was lost")
                continue
            if kind in ("InputError", "UnsupportedError"):
                raise KINDS[kind](f"{member.name}: {answer}")
            problem = answer if kind else (answer or {}).get("store_problem") if isinstance(answer, dict) else ""
            if problem:
                self._rest(member, problem)
                jobs.lost(job, f"{member.name}: {problem}")
                continue
            member.failures = 0
            member.finished += 1
            jobs.done(job, answer, member)
        now = time.monotonic()
        for member in [member for member in self.members if member.job is not None and now > member.due]:
            job, member.job, member.lost = member.job, None, member.lost + 1
            self.drop(member, "it gave no answer in time")
            jobs.lost(job, f"{member.name} gave no answer in time")

    def _rest(self, member, problem):
        member.failures += 1
        member.lost += 1
        member.resting = time.monotonic() + PAUSE_SECONDS
        if member.failures < MOST_FAILURES:
            return
        self.drop(member, problem)
        if not self.members:
            raise InternalError(f"the last worker is given up: {problem}")

    def stop(self):
        """Ends what is under way; what was measured is stored."""
        calls = []
        for member in self.members:
            with contextlib.suppress(self.ray.exceptions.RayError):
                member.actor.stop.remote()
            if member.call is not None:
                calls.append(member.call)
            member.job, member.call = None, None
        if calls:
            self.ray.wait(calls, num_returns=len(calls), timeout=10)

    def close(self):
        """Ends all workers."""
        ended, self.members = self.members, []
        self.left += ended
        self._end(ended)

    def _end(self, members):
        """Lets workers remove their files, and ends them. One that is lost or hangs cannot remove them."""
        calls = []
        try:
            for member in members:
                with contextlib.suppress(self.ray.exceptions.RayError):
                    calls.append(member.actor.close.remote())
            if calls:
                self.ray.wait(calls, num_returns=len(calls), timeout=CLOSE_SECONDS)
        finally:  # Ctrl-C ends the waiting, but the workers have to end, too.
            for member in members:
                with contextlib.suppress(self.ray.exceptions.RayError):
                    self.ray.kill(member.actor)


class Job:
    """A call of a worker's function: start(member) makes it, and it is given up after most_seconds."""

    def __init__(self, start, seconds, about=None):
        self.start, self.about = start, about
        self.most_seconds = 2 * seconds + 120


class Queue:
    """Jobs that are all to be done, in any order; a lost one is done again, MOST_FAILURES times at most."""

    def __init__(self, jobs):
        self.jobs, self.results, self.failures = list(jobs), [], {}
        self.under_way = 0

    @property
    def open(self):
        return bool(self.jobs) or self.under_way > 0

    def look(self):
        """Nothing is told meanwhile."""

    def take(self, member):
        if not self.jobs:
            return None
        self.under_way += 1
        return self.jobs.pop(0)

    def done(self, job, answer, member):
        self.under_way -= 1
        self.results.append((job.about, answer))

    def lost(self, job, why):
        self.under_way -= 1
        self.failures[job] = self.failures.get(job, 0) + 1
        if self.failures[job] >= MOST_FAILURES:
            raise InternalError(f"given up after {MOST_FAILURES} attempts: {why}")
        self.jobs.append(job)


def resource_of(device):
    """The resource by which a node says that it has the device."""
    return f"hone:{device}"


def is_server(db):
    """Whether the store is a server, which all hosts reach."""
    return str(db).startswith(("postgres://", "postgresql://"))


def check_hosts(db, hosts):
    """Why these hosts cannot share the store; empty if they can."""
    if db is None or is_server(db) or len(hosts) < 2:
        return ""
    return (f"it is another host than {len(hosts) - 1} of the others, and the store is the file {db}, which hosts cannot share: "
            "expected a server, postgres://user@host/name")


def opened_store(db):
    """The text of the store, made if it does not exist; a file's path is absolute."""
    if db is None:
        raise InputError("a fleet needs a store that all workers share, expected db=postgres://user@host/name or, on one machine, a file")
    text = os.fspath(db)
    if not is_server(text):
        text = os.path.abspath(text) if "://" not in text else text
    _native.create_database(text)
    return text


def made_folder(path):
    """The text of a folder that files can be written to, made if it does not exist."""
    text = os.fspath(path)
    try:
        os.makedirs(text, exist_ok=True)
    except OSError as error:
        raise InputError(f"the output {text} cannot be made: {error.strerror}; expected a folder") from None
    if not os.access(text, os.W_OK | os.X_OK):
        raise InputError(f"the output {text} cannot be written to, expected a folder that can")
    return text


def check_workers(workers):
    """Refuses what is no number of workers; None means any number."""
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers is {workers!r}, expected a number of 1 or more")


def check_seconds(**values):
    """Refuses what is no time; None means that a caller gave none."""
    least = {"finish_seconds": 0.0, "null_seconds": 0.0}
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not (value > 0 or value == least.get(name)):
            raise InputError(f"{name} is {value!r}, expected a number of seconds above 0")
