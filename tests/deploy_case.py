"""What the tests of hone deploy share: a board that is this machine in another home folder, and what is written about it."""
import contextlib
import os
import signal
import socket
import time
import unittest
from pathlib import Path

import support
from support import Case

BOARDS = Path(support.HONE).parent.parent / "share" / "hone" / "boards"
needs_program = unittest.skipIf(not (BOARDS / "x86_64" / "hone-serve").exists(),
                                "there is no hone-serve for x86_64: build the target hone_board_x86_64")


class DeployCase(Case):
    """bin/ssh in the test's folder is the program that hone deploy finds as ssh; home is the home folder of the board's user."""

    def setUp(self):
        super().setUp()
        self.home = self.folder / "home"
        self.home.mkdir()
        (self.folder / "bin").mkdir()
        self.ssh = self.folder / "bin" / "ssh"
        self.board, self.token = self.folder / "board.toml", self.folder / "board.token"
        self.pid = self.home / ".local" / "share" / "hone" / "serve.pid"
        self.addCleanup(self.end_server)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def write_ssh(self, text):
        self.ssh.write_text(text)
        self.ssh.chmod(0o755)

    def end_server(self):
        if not self.pid.exists():
            return
        number, end = int(self.pid.read_text()), time.monotonic() + 20
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGTERM)
        command = Path(f"/proc/{number}/cmdline")
        with contextlib.suppress(OSError):
            while command.read_bytes() and time.monotonic() < end:  # it is empty once the process has ended
                time.sleep(0.05)

    def run_deploy(self, board, *arguments):
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        return support.hone("deploy", board, "-o", self.board, *arguments, env=environment)

    def deploy(self, board, *arguments):
        done = self.run_deploy(board, "--port", self.port, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def forget(self):
        self.board.unlink()
        self.token.unlink()

    def refuse_deploy(self, message, *arguments, board="me@127.0.0.1"):
        """Any error that is one line and writes no file about the board."""
        before = self.board.exists(), self.token.exists()
        done = self.run_deploy(board, *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual((self.board.exists(), self.token.exists()), before)
