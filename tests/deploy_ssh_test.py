"""hone deploy by OpenSSH: a server of ssh of the test's own, on this machine, with a key and a configuration of the test's own. The
other tests of hone deploy have a program in place of ssh."""
import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
import unittest

import support
from deploy_case import DeployCase, needs_program
from support import small_network

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
RUN = "/run/sshd"  # the folder that a server of root needs; Debian's service makes it when it starts
# Who logs in gets the test's home folder.
SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv HOME={home}
"""
# The user's ~/.ssh/config. OpenSSH does not look for it in $HOME, so -F names it.
CLIENT = """\
Host board
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/key
Host *
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
"""


def why_not():
    if SSHD is None or not all(map(shutil.which, ("ssh", "ssh-keygen"))):
        return "there is no server of ssh (apt-get install openssh-server)"
    return ""


def call(*words):
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout


@unittest.skipIf(why_not(), why_not())
class DeployBySsh(DeployCase):
    def setUp(self):
        super().setUp()
        for name in ("key", "host_key"):
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.ssh_port = free.getsockname()[1]
        values = {"port": self.ssh_port, "folder": self.folder, "home": self.home, "user": getpass.getuser()}
        (self.folder / "client").write_text(CLIENT.format(**values))
        (self.folder / "server").write_text(SERVER.format(**values))
        self.write_ssh(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.folder}/client "$@"\n')
        self.know(self.folder / "host_key.pub")
        self.start_server()

    def know(self, key):
        """The key that the user's ssh knows the board by."""
        kind, text = key.read_text().split()[:2]
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.ssh_port} {kind} {text}\n")

    def start_server(self):
        if os.getuid() == 0 and not os.path.isdir(RUN):
            os.mkdir(RUN, 0o755)
            self.addCleanup(os.rmdir, RUN)
        log = self.folder / "server.log"
        server = subprocess.Popen([SSHD, "-D", "-f", str(self.folder / "server"), "-E", str(log)])
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        end = time.monotonic() + 20
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self.ssh_port)):
                return
            if server.poll() is not None:
                self.fail(f"the server of ssh has ended: {log.read_text()}")
            self.assertLess(time.monotonic(), end, "the server of ssh does not listen")
            time.sleep(0.02)

    @needs_program
    def test_an_alias_of_the_users_configuration_is_a_board(self):
        printed = self.deploy("board")
        self.assertIn(f"hone tune --machine {self.board}", printed)
        self.assertIn(f'address = "127.0.0.1:{self.port}"', self.board.read_text())
        program = self.home / ".local" / "share" / "hone" / "hone-serve"
        self.assertEqual(program.stat().st_mode & 0o777, 0o700)
        model, library = self.save(small_network()), self.folder / "model.so"
        report = self.succeed_json("tune", model, "-o", library, "--machine", self.board, "--no-db", "--budget", "3s", "--threads", 1)
        self.assertEqual(report["failures"], {})
        self.succeed("bench", library, "--machine", self.board, "--threads", 1)
        # Deployed again, it takes the place of the one that runs, whose process outlived its session of ssh.
        first, token = self.pid.read_text(), self.token.read_text()
        self.forget()
        self.deploy("board")
        self.assertNotEqual(self.pid.read_text(), first)
        self.assertEqual(self.token.read_text(), token)

    def test_what_ssh_says_is_the_error(self):
        board, port = f"{getpass.getuser()}@127.0.0.1", ("--ssh-port", self.ssh_port)
        self.refuse_deploy("Permission denied", "--identity", self.folder / "host_key", *port, board=board)
        self.know(self.folder / "key.pub")
        self.refuse_deploy("Host key verification failed", "--identity", self.folder / "key", *port, board=board)
        (self.folder / "known_hosts").unlink()
        self.refuse_deploy("Host key verification failed", board="board")
        self.refuse_deploy("Connection refused", "--ssh-port", self.port, board="board")


if __name__ == "__main__":
    support.main()
