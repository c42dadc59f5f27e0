"""The portable archive, and the script that checks devices in it: with PoCL and small shapes, without PyTorch."""
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import unittest
from pathlib import Path

from support import HONE, SANITIZED, Case, main

ROOT = Path(__file__).resolve().parent.parent
GLIBC = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so\..*")
ALONE = ["unshare", "--mount", "sh", "-c", 'mkdir -p "$0/proc" && mount --bind /proc "$0/proc" && exec chroot "$0" "$@"']
PATHS = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
DONE = {"machine", "tests", "products", "memory", "models", "kernels", "tuning", "rest"}
SKIPPED = {"sanitizer": "CUDA only", "compiled": "PyTorch"}


@unittest.skipIf(SANITIZED, "a sanitizer's library has to come first")
class Bundle(Case):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        self.bundle, self.out = self.root / "hone", self.folder / "results"
        self.call(ROOT / "scripts" / "make_bundle.sh", "--build", Path(HONE).resolve().parents[2], self.bundle)

    def call(self, *command, **options):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=800, **options)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def check(self, *options):
        environment = {key: value for key, value in os.environ.items() if key != "HONE"} | {"PYTHON": sys.executable}
        return self.call(self.bundle / "scripts" / "device_check.sh", "--device", "opencl-pocl", "--small", "--seconds", "700", "--out", self.out, *options,
                         env=environment)

    def test_without_a_driver_each_part_says_so(self):
        environment = os.environ | {"PYTHON": sys.executable, "LD_LIBRARY_PATH": "", "CUDA_VISIBLE_DEVICES": ""}
        self.call(self.bundle / "scripts" / "device_check.sh", "--out", self.out, "--only", "machine", "tests", "products", "models", "tuning", env=environment)
        for part in ("machine", "tests", "products", "models", "tuning"):
            self.assertEqual(self.result(part)["status"], "skipped", part)
            self.assertIn("there is no device cuda", self.result(part)["reason"])

    def result(self, part):
        return json.loads((self.out / f"{part}.json").read_text())

    def glibc_of_the_machine(self, listed):
        """The only libraries of this machine that a program of the archive uses."""
        for name, path in re.findall(r"(\S+) => (/\S+)", listed):
            if not path.startswith(str(self.bundle)):
                self.assertRegex(name, GLIBC)
                yield Path(path)

    def test_nothing_of_this_machine_is_used(self):
        glibc = set()
        for program in [self.bundle / "bin" / "hone", self.bundle / "libexec" / "hone" / "hone-worker", *(self.bundle / "tests").glob("*_test")]:
            glibc |= set(self.glibc_of_the_machine(self.call("ldd", program, env={})))
        self.assertGreater(len(glibc), 1)
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            return  # only root may change what a process sees
        loader = Path("/lib64/ld-linux-x86-64.so.2")
        for path in {*glibc, loader}:
            (self.root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.root / path.relative_to("/"))
        devices = json.loads(self.call(*ALONE, self.root, "/hone/bin/hone", "devices", "--json", env=PATHS))
        self.assertIn("cuda-sm_90a", [device["name"] for device in devices])
        self.assertIn("Conv", self.call(*ALONE, self.root, "/hone/bin/hone", "show", "/hone/examples/small.onnx", env=PATHS))

    def test_parts_run_once(self):
        self.check("--pack", self.folder / "results.tar.gz")
        for part in DONE:
            data = self.result(part)
            self.assertEqual((data["status"], data["reason"]), ("done", ""), part)
            with (self.out / f"{part}.csv").open() as file:
                self.assertEqual([row["name"] for row in csv.DictReader(file)], [row["name"] for row in data["rows"]])
        for part, reason in SKIPPED.items():
            self.assertEqual(self.result(part)["status"], "skipped")
            self.assertIn(reason, self.result(part)["reason"])
        self.assertGreater(self.result("tests")["rows"][0]["passed"], 0)
        self.assertGreater(self.result("tuning")["rows"][0]["trials"], 0)
        for row in self.result("products")["rows"] + self.result("memory")["rows"] + self.result("models")["rows"]:
            self.assertLess(row["error"], 1e-2, row)
            self.assertGreater(row["hone_seconds"], 0)
        tables = self.call(sys.executable, ROOT / "benchmarks" / "gpu" / "summary.py", self.out)
        for row in self.result("products")["rows"] + self.result("memory")["rows"] + self.result("models")["rows"]:
            self.assertIn(f"| {row['name']} |", tables)
        with tarfile.open(self.folder / "results.tar.gz") as tar:
            self.assertEqual(set(tar.getnames()), {path.name for path in self.out.iterdir() if path.is_file()})

        # What was interrupted goes on: only the missing row is measured.
        before = {path: path.read_bytes() for path in self.out.glob("*.json")}
        data = self.result("memory")
        missing = data["rows"].pop()
        (self.out / "memory.json").write_text(json.dumps(data | {"status": "partial"}))
        self.check()
        self.assertEqual(self.result("memory")["rows"][:-1], data["rows"])
        self.assertEqual(self.result("memory")["rows"][-1]["name"], missing["name"])
        self.assertEqual({path.name for path, text in before.items() if path.read_bytes() != text}, {"memory.json"})


if __name__ == "__main__":
    main()
