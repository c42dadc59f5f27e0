"""A PostgreSQL server of its own in a temporary folder, reached by a Unix socket: for tests and for store_stress.py."""
import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from processes import children

PR_SET_PDEATHSIG = 1


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


class Server:
    """A context manager; `uri` is what --db takes. The server refuses to be root: then it is 'postgres' or 'nobody'."""

    def __init__(self):
        servers = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        if not servers:
            raise RuntimeError("no PostgreSQL server is installed: run scripts/setup.sh or apt-get install postgresql-15")
        self.programs = servers[-1].parent
        self.process = None
        # Not in $TMPDIR: the path of a socket has at most 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="hone-pg", dir="/tmp"))
        self.user = {}
        if os.geteuid() == 0:
            known = {entry.pw_name for entry in pwd.getpwall()}
            name = "postgres" if "postgres" in known else "nobody"
            entry = pwd.getpwnam(name)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            self.user = {"user": name, "group": entry.pw_gid, "extra_groups": []}
        self.folder.chmod(0o755)
        self.uri = self.address("postgres")

    def address(self, database):
        return f"postgres://hone@/{database}?host={quote(str(self.folder), safe='')}"

    def create(self, database):
        """Makes an empty one; its URI."""
        subprocess.run([self.programs / "createdb", "-h", self.folder, "-U", "hone", database], check=True)
        return self.address(database)

    def sessions(self, database):
        """The server's processes that serve a database."""
        found = []
        for pid in children(self.process.pid):
            with contextlib.suppress(OSError):  # it has ended
                if Path(f"/proc/{pid}/cmdline").read_text().startswith(f"postgres: hone {database} "):
                    found.append(pid)
        return found

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        data, log = self.folder / "data", self.folder / "log"
        with open(log, "w") as output:
            made = subprocess.run([self.programs / "initdb", "-D", data, "-U", "hone", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"],
                                  check=False, stdout=output, stderr=output, cwd=self.folder, **self.user)
            if made.returncode != 0:
                raise RuntimeError(f"initdb failed: {log.read_text()}")
            self.process = subprocess.Popen([self.programs / "postgres", "-D", data, "-k", self.folder, "-h", "", "-c", "fsync=off"],
                                            stdout=output, stderr=output, cwd=self.folder, preexec_fn=end_with_parent, **self.user)
        end = time.monotonic() + 60
        while subprocess.run([self.programs / "pg_isready", "-q", "-h", self.folder], check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()}")
            time.sleep(0.05)

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)  # whoever is connected is thrown out
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
