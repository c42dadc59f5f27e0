"""hone-serve as one file, for 64-bit Arm under qemu's emulation of user programs: a model is tuned and run there as on
a board. Times under emulation say nothing."""
import os
import shutil
import subprocess
import unittest

import numpy as np

import support
from board_file_test import program_for
from remote_machine import Server
from support import Case, small_network

QEMU = shutil.which("qemu-aarch64-static")
LIBRARIES = "/usr/aarch64-linux-gnu"  # glibc of Debian's cross compiler
# The kernel hands programs for Arm to qemu, in a user namespace that ends with the server.
ENTER = ("mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf '%s' ':arm:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00"
         "\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff"
         "\\xfe\\xff\\xff\\xff:{qemu}:F' >/proc/sys/fs/binfmt_misc/register")


def unable():
    if not program_for("aarch64").exists():
        return "there is no hone-serve for aarch64: docs/user/remote.md says how to build the target hone_board_aarch64"
    if QEMU is None:
        return "there is no qemu-aarch64-static: run scripts/setup.sh"
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", ENTER.format(qemu=QEMU)], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"the kernel cannot run programs for Arm by qemu: {done.stderr.strip()}"


class ArmServer(Server):
    def __init__(self, token_file):
        super().__init__(support.HONE, token_file)
        line = ENTER.format(qemu=QEMU) + ' && exec "$@"'
        self.command = ["unshare", "-Urm", "sh", "-c", line, "sh", str(program_for("aarch64")), "--token-file", str(token_file)]
        os.environ.update(QEMU_LD_PREFIX=LIBRARIES, QEMU_CPU="cortex-a76")


@unittest.skipIf(unable(), unable())
class ArmBoard(Case):
    def setUp(self):
        super().setUp()
        server = self.enterContext(ArmServer(self.folder / "token"))
        self.board = self.folder / "board.toml"
        self.board.write_text(f'address = "127.0.0.1:{server.port}"\ntoken_file = "token"\n')

    def test_tunes_and_runs_a_model(self):
        (device,) = self.succeed_json("devices", "--machine", self.board)
        self.assertTrue(device["key"].startswith("neon-cortex-a76-"), device)
        model, library = self.save(small_network()), self.folder / "model.so"
        report = self.succeed_json("tune", model, "-o", library, "--machine", self.board, "--db", self.folder / "trials.db", "--threads", 1,
                                   "--budget", "5s")
        self.assertGreater(report["trials"], 3)
        self.assertEqual(report["failures"], {})
        self.refuse("is a shared library for another machine than x86-64", "run", library)
        x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
        (expected,) = support.reference(model, {"x": x}).values()
        self.assertLessEqual(support.relative_error(self.outputs(library, {"x": x}, "--machine", self.board)["y"], expected), 1e-4)


if __name__ == "__main__":
    support.main()
