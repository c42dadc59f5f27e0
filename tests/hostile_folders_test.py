"""Folders of others: code in the current folder, library paths, temporary files of killed processes."""
import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import support
from file_case import FileCase
from support import HONE, relu_model, small_network


def library_path(path):
    """The entries of RPATH and RUNPATH of an executable or a shared object; nothing for other files."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    done = subprocess.run(["readelf", "-d", path], capture_output=True, text=True)
    found = [line.split("[", 1)[1].rstrip("]") for line in done.stdout.splitlines() if "(RUNPATH)" in line or "(RPATH)" in line]
    return [entry for text in found for entry in text.split(":")]


@unittest.skipIf(shutil.which("readelf") is None, "needs readelf")
class Binaries(FileCase):
    build = Path(HONE).resolve().parent.parent.parent
    by_cmake = unittest.skipUnless((build / "CMakeCache.txt").exists(), "the program is in no build by CMake: some parts are built with sanitizers")

    def check(self, folder):
        checked = 0
        for path in folder.rglob("*"):
            if path.is_symlink() or not path.is_file() or path.suffix in (".o", ".a", ".gch"):
                continue
            checked += os.access(path, os.X_OK) or path.suffix == ".so"
            for entry in library_path(path):
                self.assertTrue(entry.startswith(("/", "$ORIGIN")), f"{path}: entry '{entry}' of its library path")
        self.assertGreater(checked, 0)

    @by_cmake
    def test_built(self):
        self.check(self.build / "tools")
        self.check(self.build / "src")
        self.check(self.build / "benchmarks")

    @by_cmake
    def test_installed(self):
        subprocess.run(["cmake", "--install", self.build, "--prefix", self.folder / "prefix"], check=True, stdout=subprocess.DEVNULL)
        self.check(self.folder / "prefix")
        version = subprocess.run([self.folder / "prefix" / "bin" / "hone", "version"], capture_output=True, text=True)
        self.assertEqual(version.returncode, 0, version.stderr)

    def test_the_current_folder_holds_no_code(self):
        """A library of a name that the program loads lies in the current folder: it is not even opened."""
        names = [line.split()[0] for line in subprocess.run(["ldd", HONE], capture_output=True, text=True).stdout.splitlines() if "=> /" in line]
        self.assertGreater(len(names), 3)
        for name in names:
            (self.folder / name).write_bytes(b"no library")
        done = subprocess.run([HONE, "version"], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_protection(self):
        dynamic = subprocess.run(["readelf", "-Wd", HONE], capture_output=True, text=True).stdout
        self.assertRegex(dynamic, r"FLAGS_1.*NOW")
        self.assertRegex(dynamic, r"FLAGS_1.*PIE")
        self.assertIn("GNU_RELRO", subprocess.run(["readelf", "-Wl", HONE], capture_output=True, text=True).stdout)
        self.assertIn("__stack_chk_fail", subprocess.run(["readelf", "-W", "--dyn-syms", HONE], capture_output=True, text=True).stdout)


class LoadedCode(FileCase):
    def test_no_linker_of_the_current_folder(self):
        model = self.save(relu_model())
        trap = self.folder / "ld"
        trap.write_text(f"#!/bin/sh\ntouch {self.folder}/trapped\nexit 1\n")
        trap.chmod(0o755)
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "ld").symlink_to(shutil.which("ld"))
        for path in (f":{bin_folder}", f".:{bin_folder}", f"../{self.folder.name}:{bin_folder}", f"{bin_folder}:"):
            environment = {**os.environ, "PATH": path}
            self.succeed("compile", model, "-o", self.folder / "out.so", "--no-db", cwd=self.folder, env=environment)
            self.assertFalse((self.folder / "trapped").exists(), path)
        self.refuse("no linker in PATH", "compile", model, "-o", self.folder / "out.so", "--no-db", cwd=self.folder, env={**os.environ, "PATH": ":."})


class TemporaryFolders(FileCase):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.output = self.folder / "output"
        self.output.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.temporary)}
        self.model = self.save(small_network())

    def left(self):
        return [path for folder in (self.temporary, self.output) for path in folder.iterdir() if ".hone-" in path.name]

    def kill_a_tuner(self):
        """In the middle of its work: it keeps the model as it was before in a temporary folder until its end."""
        arguments = ("tune", self.model, "-o", self.output / "out.so", "--no-db", "--budget", "60s")
        with subprocess.Popen([HONE, *map(str, arguments)], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            end = time.monotonic() + 60 * support.PATIENCE
            while not any(self.temporary.iterdir()) and process.poll() is None and time.monotonic() < end:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
        self.assertNotEqual(self.left(), [])

    def test_a_later_run_clears_what_a_killed_one_left(self):
        self.kill_a_tuner()
        for path in self.left():
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        self.succeed("compile", self.model, "-o", self.output / "out.so", "--no-db", env=self.environment)
        self.assertEqual(self.left(), [])

    def test_what_others_use_stays(self):
        self.kill_a_tuner()
        left = self.left()
        for path in (self.temporary / "work.hone-mine", self.temporary / "hone-run.AbCdEf", self.temporary / (left[0].name + ".txt")):
            path.mkdir()
        with subprocess.Popen([HONE, "tune", self.model, "-o", self.output / "other.so", "--no-db", "--budget", "10s"], env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            end = time.monotonic() + 60 * support.PATIENCE
            while not any(path not in left for path in self.temporary.glob("*.hone-*[a-p]")) and running.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            self.succeed("compile", self.model, "-o", self.output / "third.so", "--no-db", env=self.environment)
            _, errors = running.communicate(timeout=100 * support.PATIENCE)
            self.assertEqual(running.returncode, 0, errors)
        for path in (self.temporary / "work.hone-mine", self.temporary / "hone-run.AbCdEf", self.temporary / (left[0].name + ".txt")):
            self.assertTrue(path.is_dir())
        self.assertEqual([path for path in left if path.exists()], [])


if __name__ == "__main__":
    support.main()
