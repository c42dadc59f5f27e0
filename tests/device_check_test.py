"""The portable archive, and the script that checks devices in it: with PoCL and small shapes, without PyTorch."""
import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

from support import HONE, SANITIZED, Case, main

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks" / "gpu"))
import ahead  # noqa: E402
import device_check  # noqa: E402
import parts  # noqa: E402

GLIBC = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so\..*")
ALONE = ["unshare", "--mount", "sh", "-c", 'mkdir -p "$0/proc" && mount --bind /proc "$0/proc" && exec chroot "$0" "$@"']
PATHS = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
DONE = {"machine", "tests", "products", "memory", "models", "kernels", "tuning", "data", "products_tuned", "memory_tuned"}
SKIPPED = {"sanitizer": "CUDA only", "compiled": "PyTorch"}


@unittest.skipIf(SANITIZED, "a sanitizer's library has to come first")
class Bundle(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="hone-bundle")))
        cls.bundle = cls.root / "hone"
        cls.call(ROOT / "scripts" / "make_bundle.sh", "--build", Path(HONE).resolve().parents[2], cls.bundle)

    def setUp(self):
        super().setUp()
        self.out = self.folder / "results"

    @staticmethod
    def call(*command, **options):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=800, **options)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
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

    def check_that_an_older_glibc_is_one_sentence(self):
        link = self.folder / "link"  # it may be started by one
        link.symlink_to(self.bundle / "bin" / "hone")
        self.assertIn("hone", self.call(link, "version"))
        getconf = self.folder / "getconf"
        getconf.write_text("#!/bin/sh\necho glibc 2.31\n")
        getconf.chmod(0o755)
        done = subprocess.run([link, "version"], capture_output=True, text=True, env={"PATH": f"{self.folder}:{PATHS['PATH']}"})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^hone: this system has glibc 2\.31, but this archive needs glibc 2\.[0-9]+ or newer.*\n$")

    def test_nothing_of_this_machine_is_used(self):
        self.check_that_an_older_glibc_is_one_sentence()
        glibc = set()
        programs = [self.bundle / "programs" / "hone", *(self.bundle / "libexec" / "hone").iterdir(), self.bundle / "lib" / "libhone.so"]
        for program in [*programs, *(self.bundle / "tests").glob("*_test")]:
            glibc |= set(self.glibc_of_the_machine(self.call("ldd", program, env={})))
        self.assertGreater(len(glibc), 1)
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            return  # only root may change what a process sees
        loader = Path("/lib64/ld-linux-x86-64.so.2")
        for path in {*glibc, loader}:
            (self.root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.root / path.relative_to("/"))
        devices = json.loads(self.call(*ALONE, self.root, "/hone/programs/hone", "devices", "--json", env=PATHS))
        self.assertIn("cuda-sm_90a", [device["name"] for device in devices])
        self.assertIn("Conv", self.call(*ALONE, self.root, "/hone/programs/hone", "show", "/hone/examples/small.onnx", env=PATHS))

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


class Travel(Case):
    """What a lent machine takes: the repository and the archive."""

    def check(self, size):
        archive = self.folder / "archive.tar.xz"
        with archive.open("wb") as file:
            file.truncate(size)
        (self.folder / "stage").mkdir()
        (self.folder / "stage" / "large").write_bytes(b"x" * 5000)
        return subprocess.run([ROOT / "scripts" / "check_travel.sh", archive, self.folder / "stage"], capture_output=True, text=True)

    def test_what_fits(self):
        done = self.check(1 << 20)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"archive.tar.xz, 1024 KiB, and the repository, \d{5} KiB: \d{5} KiB of 65536\n")

    def test_what_does_not_fit_names_the_largest(self):
        done = self.check(64 << 20)
        self.assertEqual(done.returncode, 1)
        self.assertIn("5000 large", done.stderr)
        self.assertIn("combined-znver5.model", done.stderr)
        self.assertIn("a lent machine takes 67108864", done.stderr)


class Budget(Case):
    """How the parts share the seconds of a run, without running them."""

    NEEDED = {"machine": 5, "products": 60, "memory": 20, "models": 110, "tests": 30, "tuning": 200, "data": 60, "compiled": 900, "kernels": 20, "sanitizer": 50,
              "products_tuned": 300, "memory_tuned": 100}

    def run_parts(self, seconds, had, only=()):
        """Gives each part what it needs, or as much as it may have; returns what each got."""
        options = argparse.Namespace(out=self.folder, small=False, only=only or list(parts.PARTS))
        left, got = seconds, {}
        for part in options.only:
            result = device_check.Result(self.folder, part)
            if result.data["status"] in device_check.FINISHED:
                continue
            limit = device_check.limit_of(part, options, left)
            self.assertLessEqual(limit, max(left, 0))
            got[part] = min(limit, self.NEEDED[part] - had.get(part, 0))
            had[part] = had.get(part, 0) + got[part]
            left -= got[part]
            result.save("done" if had[part] == self.NEEDED[part] else "partial")
        self.assertGreaterEqual(left, 0)
        return got

    def test_parts_are_those_of_the_tiers(self):
        self.assertEqual([part for tier in device_check.TIERS for part in tier], list(parts.PARTS))
        self.assertEqual(set(self.NEEDED), set(parts.PARTS))

    def test_a_short_run_has_the_first_tables_whole(self):
        had = {}
        got = self.run_parts(222, had)
        for part in ("machine", "products", "memory", "models"):
            self.assertEqual(got[part], self.NEEDED[part], part)
        for _ in range(3):  # later runs go on where time ended
            got = self.run_parts(222, had)
            self.assertNotIn("models", got)
            self.assertGreater(sum(got.values()), 200)
        for part in ("tests", "tuning", "data"):
            self.assertEqual(had[part], self.NEEDED[part], part)

    def test_a_long_run_reaches_every_tier(self):
        got = self.run_parts(478, {})
        for part in ("models", "tests", "data"):
            self.assertEqual(got[part], self.NEEDED[part], part)
        for part in ("compiled", "kernels"):
            self.assertGreater(got[part], 0, part)
        self.assertGreaterEqual(got["tuning"], device_check.LEAST["tuning"])

    def test_a_part_that_runs_alone_has_all(self):
        self.assertEqual(self.run_parts(222, {}, only=["compiled"]), {"compiled": 222})

    def test_no_part_begins_without_the_time_of_a_row(self):
        self.assertEqual(self.run_parts(11, {}, only=["compiled"]), {"compiled": 0})


class Waiting(Case):
    """What happens to a process that hangs, as with a kernel of its device."""

    def wait(self, seconds, row_seconds, script="import time; time.sleep(100)"):
        child = subprocess.Popen([sys.executable, "-c", script])
        try:
            return device_check.wait_for(child, "models", self.folder, seconds, row_seconds)
        finally:
            child.kill()
            child.wait()

    def test_a_row_that_does_not_end_is_one_with_a_problem(self):
        device_check.Result(self.folder, "models").mark("alexnet, batch 8")
        self.assertEqual(self.wait(100, 1.5), ("lost", "alexnet, batch 8 did not end"))
        result = device_check.Result(self.folder, "models")
        self.assertEqual(result.data["rows"], [{"name": "alexnet, batch 8", "problem": "it did not end within 1.5 s"}])
        self.assertNotIn("at", result.data)

    def test_a_row_of_a_process_that_was_stopped_is_measured_again(self):
        result = device_check.Result(self.folder, "models")
        result.data["at"] = ["alexnet, batch 8", 0]
        result.save("partial", "its 20 s were over")
        device_check.Result(self.folder, "models").start()
        self.assertEqual(self.wait(1, 60), ("partial", "its 1 s were over"))
        self.assertEqual(device_check.Result(self.folder, "models").data["rows"], [])

    def test_the_time_of_a_part_is_kept(self):
        self.assertEqual(self.wait(1, 60), ("partial", "its 1 s were over"))
        self.assertEqual(self.wait(60, 60, "import sys; sys.exit(3)"), ("failed", "its process ended with code 3"))


class Ahead(Case):
    """Rows whose time is over before they have a library are left to a later run."""

    def test_what_another_process_makes(self):
        setting = parts.Setting("cuda", self.folder, True, time.monotonic())
        self.assertTrue(ahead.begin(ahead.job_file(setting, "row")))
        with self.assertRaisesRegex(parts.NoTime, "its time was over while row was made"):
            ahead.take(setting, "row", dict)

    def test_what_the_part_makes_itself(self):
        def late():
            raise subprocess.TimeoutExpired(["hone", "compile"], 1)

        setting = parts.Setting("cuda", self.folder, True, time.monotonic() + 100)
        with self.assertRaises(subprocess.TimeoutExpired):
            ahead.take(setting, "row", late)
        self.assertEqual(ahead.take(setting, "row", lambda: {"kernels": 3}), {"kernels": 3})


class Sanitizer(Case):
    def test_what_it_must_not_run_is_left_out(self):
        setting = parts.Setting("cuda", self.folder, False, 0)
        for name, tests in parts.SAMPLES.items():
            chosen, none = parts.test_command(name, setting, tests, parts.NO_SAMPLES)[-1].removeprefix("--gtest_filter=").split("-")
            for pattern in parts.NO_SAMPLES.split(":"):
                self.assertIn(pattern, none.split(":"), name)
                self.assertNotIn(pattern, chosen.split(":"), name)

    def test_its_last_line_is_read(self):
        for output, expected in (("========= ERROR SUMMARY: 0 errors\n", ("ERROR SUMMARY: 0 errors", 0)),
                                 ("========= Invalid read\n========= ERROR SUMMARY: 1 error\n", ("ERROR SUMMARY: 1 error", 1)),
                                 ("========= ERROR SUMMARY: 54 errors\n", ("ERROR SUMMARY: 54 errors", 54)),
                                 ("========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n",
                                  ("RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)", 2)),
                                 ("========= Target application returned an error\n", ("", None))):
            self.assertEqual(parts.read_sanitizer(output), expected)


if __name__ == "__main__":
    main()
