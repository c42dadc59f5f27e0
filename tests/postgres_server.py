"""A PostgreSQL server of its own in a temporary folder, reached by a Unix socket: for tests and for store_stress.py."""
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


class Server:
    """A context manager; `uri` is what --db takes. The server refuses to be root: then it is 'postgres' or 'nobody'."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hone-pg", dir="/tmp"))
        self.user = {}
        if os.geteuid() == 0:
            known = {entry.pw_name for entry in pwd.getpwall()}
            name = "postgres" if "postgres" in known else "nobody"
            entry = pwd.getpwnam(name)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            self.user = {"user": name, "group": entry.pw_gid, "extra_groups": []}
        self.folder.chmod(0o755)
        self.uri = f"postgres://hone@/postgres?host={quote(str(self.folder), safe='')}"

    def __enter__(self):
        programs = SERVERS[-1].parent
        data = str(self.folder / "data")
        subprocess.run([programs / "initdb", "-D", data, "-U", "hone", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self.user)
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen([programs / "postgres", "-D", data, "-k", self.folder, "-h", "", "-c", "fsync=off"],
                                        stdout=self.log, stderr=self.log, cwd=self.folder, **self.user)
        end = time.monotonic() + 60
        while subprocess.run([programs / "pg_isready", "-q", "-h", self.folder], check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()}")
            time.sleep(0.05)
        return self

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def __exit__(self, *_):
        self.stop()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
