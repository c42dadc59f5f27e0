"""hone deploy, with a program in place of ssh that runs the lines here, in another home folder: what is copied and started, what
is written, and what is refused."""
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import numpy as np

import support
from deploy_case import BOARDS, DeployCase, needs_program
from support import small_network

REMOTE = Path(__file__).resolve().parent.parent / "docs" / "user" / "remote.md"
# Its last argument is the line. The folder `there` has the programs of the board, such as a uname that says what the file `machine`
# does. As a user's shell may, it prints something first. Asked for its configuration (-G), it knows the alias `board`.
SSH = """#!/bin/sh
for line in "$@"; do :; done
echo "$@" >>{folder}/calls
if [ "$1" = -G ]; then
  host=${{line##*@}}
  test "$host" != board || host=127.0.0.1
  echo "user me"; echo "hostname $host"; echo "port 22"; exit
fi
echo "a message of the day"
cd {folder}/home && HOME={folder}/home && PATH={folder}/there:$PATH && eval "$line"
"""


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        return True
    except OSError:
        return False


class Deploy(DeployCase):
    def setUp(self):
        super().setUp()
        (self.folder / "there").mkdir()
        uname = self.folder / "there" / "uname"
        uname.write_text(f"#!/bin/sh\ncat {self.folder}/machine\n")
        uname.chmod(0o755)
        self.write_ssh(SSH.format(folder=self.folder))
        self.be("x86_64")

    def be(self, machine):
        (self.folder / "machine").write_text(machine + "\n")

    @needs_program
    def test_a_deployed_server_measures_and_runs_models(self):
        printed = self.deploy("me@127.0.0.1", "--ssh-port", 2222)
        self.assertIn(f"hone tune --machine {self.board}", printed)
        self.assertIn("-p 2222 -- me@127.0.0.1", (self.folder / "calls").read_text())
        self.assertEqual(self.token.stat().st_mode & 0o777, 0o600)
        model, library, db = self.save(small_network()), self.folder / "model.so", self.folder / "trials.db"
        self.succeed("dataset", "make", model, "--machine", self.board, "--db", db, "--schedules", 3, "--max-tasks", 1, "--threads", 1, "--budget", "60s")
        stat = self.succeed_json("db", "stat", "--db", db)
        self.assertEqual(stat["trials"], 3)
        self.succeed("compile", model, "-o", library, "--machine", self.board, "--db", db, "--threads", 1)
        x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
        np.testing.assert_array_equal(self.outputs(library, {"x": x}, "--machine", self.board, "--threads", 1)["y"],
                                      self.outputs(library, {"x": x}, "--threads", 1)["y"])
        self.refuse_deploy(f"{self.board} is there already")

    @needs_program
    def test_takes_the_place_of_a_server_that_runs(self):
        self.deploy("me@127.0.0.1")
        token = self.token.read_text()
        self.forget()
        self.deploy("me@127.0.0.1")
        self.assertEqual(self.token.read_text(), token)
        # Nor does one that the board started by the line for its crontab keep the port.
        self.forget()
        self.end_server()
        line = re.search(r"^@reboot (.*)$", REMOTE.read_text(), re.MULTILINE)[1].replace("--port 5000", f"--port {self.port}")
        log = self.pid.with_name("serve.log")
        log.unlink()
        subprocess.run(["setsid", "--fork", "sh", "-c", f"sleep 0.5; {line}"], env={**os.environ, "HOME": str(self.home)}, check=True)
        end = time.monotonic() + 20
        while not (log.exists() and "measures for tuners" in log.read_text()):
            self.assertLess(time.monotonic(), end, "the server of the crontab does not start")
            time.sleep(0.05)
        started = self.pid.read_text()
        self.deploy("me@127.0.0.1")
        self.assertNotEqual(self.pid.read_text(), started)

    @needs_program
    def test_boards_are_named_as_ssh_does(self):
        self.deploy("me@board")
        self.assertIn(f'address = "127.0.0.1:{self.port}"', self.board.read_text())
        if not has_ipv6():
            self.skipTest("this machine has no IPv6")
        self.forget()
        self.deploy("me@[::1]")
        self.assertIn(f'address = "[::1]:{self.port}"', self.board.read_text())
        self.assertIn("-- me@::1", (self.folder / "calls").read_text())

    @needs_program
    def test_any_name_of_a_file_is_written(self):
        token = self.folder / 'to"k\\e\tn'
        self.deploy("me@127.0.0.1", "--token-file", token)
        self.assertTrue(token.exists())
        self.succeed("devices", "--machine", self.board)

    @needs_program
    def test_a_server_that_is_not_reached_leaves_no_files(self):
        self.write_ssh("#!/bin/sh\ncase $* in -G*) echo hostname 127.0.0.1;; *uname*) echo x86_64;; *) echo 0123456789abcdef;; esac\n")
        self.refuse_deploy(f"port {self.port} of it cannot be reached from here", "--port", self.port)

    def test_bad_boards(self):
        self.be("armv7l")
        self.refuse_deploy("me@127.0.0.1 is armv7l, expected aarch64 or x86_64")
        if not (BOARDS / "aarch64" / "hone-serve").exists():
            self.be("aarch64")
            self.refuse_deploy("me@127.0.0.1 is aarch64, for which this installation has no hone-serve")
        self.write_ssh("#!/bin/sh\necho 'ssh: connect to host 127.0.0.1 port 22: No route to host' >&2\nexit 255\n")
        self.refuse_deploy("cannot reach me@127.0.0.1 by ssh: ssh: connect to host 127.0.0.1 port 22: No route to host")
        self.refuse_deploy("--identity: there is no file", "--identity", self.folder / "key")
        self.refuse_deploy("--port", "--port", "0")
        for board in ("me@host:22", "me@[host]:22", "me@fe80::xyz", "me@ho%st", "me@"):
            self.refuse_deploy(f"BOARD: found '{board}', expected USER@HOST or HOST", board=board)
        self.refuse_deploy("cannot be both the board's file and its token", "--token-file", self.board)
        self.board.write_text("")
        self.refuse_deploy(f"{self.board} is there already")
        done = support.hone("deploy", "--", "-oProxyCommand=x@board")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("BOARD: found '-oProxyCommand=x@board', expected USER@HOST or HOST", done.stderr)
        self.board.unlink()
        if shutil.which("ssh", path="/nowhere") is None:
            done = support.hone("deploy", "me@board", "-o", self.board, env={**os.environ, "PATH": "/nowhere"})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("this needs the program ssh", done.stderr)


if __name__ == "__main__":
    support.main()
