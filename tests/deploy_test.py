"""hone deploy, with a program in place of ssh that runs the lines here, in another home folder: what is copied and started, what
is written, and what is refused."""
import contextlib
import os
import shutil
import signal
import socket
import unittest
from pathlib import Path

import support
from support import Case

BOARDS = Path(support.HONE).parent.parent / "share" / "hone" / "boards"
# Its last argument is the line. The folder `there` has the programs of the board, such as a uname that says what the file `machine`
# does. As a user's shell may, it prints something first.
SSH = """#!/bin/sh
for line in "$@"; do :; done
echo "$@" >>{folder}/calls
echo "a message of the day"
cd {folder}/home && HOME={folder}/home && PATH={folder}/there:$PATH && eval "$line"
"""


class Deploy(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "home").mkdir()
        (self.folder / "bin").mkdir()
        self.ssh = self.folder / "bin" / "ssh"
        (self.folder / "there").mkdir()
        uname = self.folder / "there" / "uname"
        uname.write_text(f"#!/bin/sh\ncat {self.folder}/machine\n")
        uname.chmod(0o755)
        self.write_ssh(SSH.format(folder=self.folder))
        self.be("x86_64")
        self.board = self.folder / "board.toml"

    def write_ssh(self, text):
        self.ssh.write_text(text)
        self.ssh.chmod(0o755)

    def be(self, machine):
        (self.folder / "machine").write_text(machine + "\n")

    @property
    def environment(self):
        return {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    def refuse_deploy(self, message, *arguments):
        """Any error that is one line, after which there is no file about the board."""
        done = support.hone("deploy", "me@127.0.0.1", "-o", self.board, *arguments, env=self.environment)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(message, done.stderr)

    @unittest.skipIf(not (BOARDS / "x86_64" / "hone-serve").exists(), "there is no hone-serve for x86_64: build the target hone_board_x86_64")
    def test_copies_starts_and_writes_the_machines_file(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.addCleanup(self.end_server)
        done = support.hone("deploy", "me@127.0.0.1", "-o", self.board, "--port", port, "--ssh-port", 2222, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"hone tune --machine {self.board}", done.stdout)
        self.assertIn("-p 2222 -- me@127.0.0.1", (self.folder / "calls").read_text())
        self.assertEqual((self.folder / "board.token").stat().st_mode & 0o777, 0o600)
        self.succeed("devices", "--machine", self.board)
        self.refuse_deploy(f"{self.board} is there already")
        # Deployed again, it takes the place of the one that runs, with the same token.
        self.board.unlink()
        (self.folder / "board.token").unlink()
        done = support.hone("deploy", "me@127.0.0.1", "-o", self.board, "--port", port, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)

    def end_server(self):
        pid = self.folder / "home" / ".local" / "share" / "hone" / "serve.pid"
        if pid.exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGTERM)

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
        done = support.hone("deploy", "--", "-oProxyCommand=x@board", env=self.environment)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("BOARD: found '-oProxyCommand=x@board', expected USER@HOST or HOST", done.stderr)
        self.refuse_deploy("cannot be both the board's file and its token", "--token-file", self.board)
        self.board.write_text("")
        self.refuse_deploy(f"{self.board} is there already")
        self.board.unlink()
        if shutil.which("ssh", path="/nowhere") is None:
            done = support.hone("deploy", "me@board", "-o", self.board, env={**os.environ, "PATH": "/nowhere"})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("this needs the program ssh", done.stderr)


if __name__ == "__main__":
    support.main()
