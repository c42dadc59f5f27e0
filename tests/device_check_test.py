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
import unittest.mock
from pathlib import Path

from support import HONE, SANITIZED, Case, main

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks" / "gpu"))
import ahead  # noqa: E402
import background  # noqa: E402
import device_check  # noqa: E402
import gtests  # noqa: E402
import parts  # noqa: E402

GLIBC = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so\..*")
ALONE = ["unshare", "--mount", "sh", "-c", 'mkdir -p "$0/proc" && mount --bind /proc "$0/proc" && exec chroot "$0" "$@"']
PATHS = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
DONE = {"machine", "tests", "watchdog", "products", "memory", "models", "kernels", "tuning", "data", "products_tuned", "memory_tuned"}
SKIPPED = {"sanitizer": "CUDA only", "compiled": "PyTorch"}


@unittest.skipIf(SANITIZED, "a sanitizer's library has to come first")
class Bundle(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="hone-bundle")))
        cls.bundle = cls.root / "device"
        cls.make("--device", folder=cls.bundle)

    def setUp(self):
        super().setUp()
        self.out = self.folder / "results"

    @classmethod
    def make(cls, *options, folder):
        cls.call(ROOT / "scripts" / "make_bundle.sh", *options, "--build", Path(HONE).resolve().parents[2], folder)

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
            if not path.startswith(str(self.root)):
                self.assertRegex(name, GLIBC)
                yield Path(path)

    def check_that_an_older_glibc_is_one_sentence(self, whole):
        link = self.folder / "link"  # it may be started by one
        link.symlink_to(whole / "bin" / "hone")
        self.assertIn("hone", self.call(link, "version"))
        getconf = self.folder / "getconf"
        getconf.write_text("#!/bin/sh\necho glibc 2.31\n")
        getconf.chmod(0o755)
        done = subprocess.run([link, "version"], capture_output=True, text=True, env={"PATH": f"{self.folder}:{PATHS['PATH']}"})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^hone: this system has glibc 2\.31, but this archive needs glibc 2\.[0-9]+ or newer.*\n$")

    def test_nothing_of_this_machine_is_used(self):
        whole = self.root / "hone"
        self.make(folder=whole)
        self.check_that_an_older_glibc_is_one_sentence(whole)
        glibc = set()
        for program in [whole / "programs" / "hone", *(whole / "libexec" / "hone").iterdir(), whole / "lib" / "libhone.so", *(whole / "tests").glob("*_test")]:
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

    NEEDED = {"machine": 5, "products": 60, "memory": 20, "models": 150, "compiled": 900, "tuning": 160, "tests": 60, "sanitizer": 200, "watchdog": 15, "data": 60,
              "kernels": 20, "products_tuned": 300, "memory_tuned": 100}

    def run_parts(self, seconds, had, only=()):
        """Gives each part what it needs, or as much as it may have; returns what each got."""
        options = argparse.Namespace(out=self.folder, small=False, only=only or list(parts.PARTS), seconds=seconds + device_check.SECONDS_TO_END)
        now, got = 0.0, {}
        budget = device_check.Budget(options, lambda: now)
        for part in options.only:
            result = device_check.Result(self.folder, part)
            if result.data["status"] in device_check.FINISHED:
                continue
            limit = budget.limit(part)
            self.assertLessEqual(limit, budget.left)
            got[part] = min(limit, self.NEEDED[part] - had.get(part, 0))
            had[part] = had.get(part, 0) + got[part]
            now += got[part]
            result.save("done" if had[part] == self.NEEDED[part] else "partial")
        return got

    def test_parts_are_those_of_the_tiers(self):
        self.assertEqual([part for tier in device_check.TIERS for part in tier], list(parts.PARTS))
        self.assertEqual(set(self.NEEDED), set(parts.PARTS))

    def test_a_run_has_some_of_each_figure_and_check(self):
        got = self.run_parts(478, {})
        for part in ("products", "memory", "models", "tests"):
            self.assertGreaterEqual(got[part], 0.7 * self.NEEDED[part], part)
        for part, seconds in (("compiled", 75), ("tuning", 70), ("sanitizer", 30), ("watchdog", 15)):
            self.assertGreaterEqual(got[part], seconds, part)
        self.assertGreater(got["data"], 0)

    def test_a_run_of_half_the_time_has_some_of_each_figure(self):
        got = self.run_parts(240, {})
        for part in device_check.TIERS[0]:
            self.assertGreater(got[part], 0, part)

    def test_later_runs_go_on_where_time_ended(self):
        had = {}
        self.run_parts(478, had)
        got = self.run_parts(220, had)
        self.assertGreater(sum(got.values()), 200)
        for part in ("products", "memory", "models"):
            self.assertEqual(had[part], self.NEEDED[part], part)

    def test_a_part_that_runs_alone_has_all(self):
        self.assertEqual(self.run_parts(222, {}, only=["compiled"]), {"compiled": 222})

    def test_no_part_begins_without_the_time_of_a_row(self):
        self.assertEqual(self.run_parts(11, {}, only=["compiled"]), {"compiled": 0})


class Rows(Case):
    def test_an_unfinished_row_is_made_again(self):
        result = device_check.Result(self.folder, "tests")
        result.add("a", passed=3, unfinished="its time was over in b")
        self.assertFalse(result.has("a"))
        result.add("a", passed=5)
        self.assertTrue(result.has("a"))
        self.assertEqual(device_check.Result(self.folder, "tests").data["rows"], [{"name": "a", "passed": 5}])


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

    def setting(self, seconds):
        return parts.Setting("cuda", self.folder, True, time.monotonic() + seconds)

    def test_what_another_process_makes(self):
        setting = self.setting(0)
        self.assertTrue(ahead.begin(ahead.job_file(setting, "row")))
        with self.assertRaisesRegex(parts.NoTime, "its time was over while row was made"):
            ahead.take(setting, "row", dict)

    def test_what_the_part_makes_itself(self):
        def late():
            raise subprocess.TimeoutExpired(["hone", "compile"], 1)

        setting = self.setting(100)
        with self.assertRaises(subprocess.TimeoutExpired):
            ahead.take(setting, "row", late)
        self.assertEqual(ahead.take(setting, "row", lambda: {"kernels": 3}), {"kernels": 3})

    def test_what_a_process_began_that_was_killed(self):
        setting = self.setting(100)
        script = f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks' / 'gpu')!r}); import ahead; from pathlib import Path; ahead.begin(Path({str(ahead.job_file(setting, 'row'))!r}))"
        self.assertEqual(subprocess.run([sys.executable, "-c", script]).returncode, 0)
        self.assertEqual(ahead.take(setting, "row", lambda: {"kernels": 4}), {"kernels": 4})

    def test_a_killed_job_leaves_the_others(self):
        files = [self.folder / name for name in ("one", "two", "three")]
        ahead.run_jobs([(files[0].touch, ()), (os.abort, ()), (files[1].touch, ()), (files[2].touch, ())], 2)
        self.assertTrue(all(file.exists() for file in files))

    def test_a_problem_of_hone_is_not_one_of_this_process(self):
        def fail():
            raise parts.OtherProcessError("hone: CUDA says no")

        setting, result = self.setting(100), device_check.Result(self.folder, "models")
        with self.assertRaises(parts.OtherProcessError) as raised:
            ahead.take(setting, "row", fail)
        parts.row_failed(result, "row", raised.exception)
        self.assertEqual(result.data["rows"], [{"name": "row", "problem": "hone: CUDA says no"}])
        with self.assertRaises(parts.LostDevice):
            parts.row_failed(result, "other", RuntimeError("CUDA error 700"))


class Background(Case):
    """Compilers stand still while something is timed, those in groups of their own, too."""

    COUNTS = "import subprocess, sys, time\nif len(sys.argv) == 2: subprocess.Popen([sys.executable, *sys.argv, '2'], process_group=0)\n" \
             "while True: open(sys.argv[1] + str(len(sys.argv)), 'a').write('.'); time.sleep(0.01)"

    def setUp(self):
        super().setUp()
        script = self.folder / "counts.py"
        script.write_text(self.COUNTS)
        self.child = subprocess.Popen([sys.executable, script, self.folder / "count"], start_new_session=True)
        self.addCleanup(background.end, self.child)
        os.environ[background.VARIABLE] = str(self.child.pid)
        while len(self.counts()) < 2:
            time.sleep(0.01)

    def counts(self):
        return [file.stat().st_size for file in sorted(self.folder.glob("count?"))]

    def test_it_stops_and_goes_on(self):
        with background.stopped():
            before = self.counts()
            with background.stopped():
                pass
            time.sleep(0.2)
            self.assertEqual(self.counts(), before)
        end = time.monotonic() + 30
        while not all(now > then for now, then in zip(self.counts(), before, strict=True)):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_it_ends_as_a_whole(self):
        tree = background.descendants(self.child.pid, background.parents())
        self.assertEqual(len(tree), 2)
        background.end(self.child)
        time.sleep(0.1)
        before = self.counts()
        time.sleep(0.1)
        self.assertEqual(self.counts(), before)


class Programs(Case):
    """Rows of programs of tests, whole or not."""

    RAN = "[ RUN      ] a.b/cuda\n[       OK ] a.b/cuda (3 ms)\n[ RUN      ] a.c\n[  SKIPPED ] a.c (0 ms)\n" \
          "[ RUN      ] a.d/0\n[  FAILED  ] a.d/0, where GetParam() = 4-byte object <01-00 00-00> (8 ms)\n"

    def test_what_ran_is_counted(self):
        counts = {"passed": 1, "skipped": 1, "failed": 1}
        self.assertEqual(gtests.count_tests(self.RAN + "[  PASSED  ] 1 test.\n[  FAILED  ] a.d/0, where GetParam() = 4\n"), (counts, ["a.d/0"], ""))
        self.assertEqual(gtests.count_tests(self.RAN + "[ RUN      ] a.e\n"), (counts, ["a.d/0"], "a.e"))

    def run_program(self, script, seconds=60):
        setting = parts.Setting("cuda", self.folder, False, time.monotonic() + seconds)
        result = device_check.Result(self.folder, "tests")
        try:
            gtests.run_tests(result, setting, "program", [sys.executable, "-c", script])
        finally:
            row = result.data["rows"][0]
            self.assertGreaterEqual(row.pop("seconds"), 0)
        return row

    def test_a_program_whose_time_is_over_has_a_row(self):
        script = f"import time; print({self.RAN + '[ RUN      ] a.e'!r}, flush=True); time.sleep(100)"
        with self.assertRaisesRegex(parts.NoTime, "its time was over in program"):
            self.run_program(script, 3)
        row = device_check.Result(self.folder, "tests").data["rows"][0]
        self.assertEqual((row["passed"], row["problem"], row["unfinished"]), (1, "a.d/0", "its time was over in a.e"))
        self.assertIn("a.e", (self.folder / "tests_program.txt").read_text())

    def test_a_program_that_crashes_names_its_test(self):
        row = self.run_program("import os; print('[ RUN      ] a.e', flush=True); os.abort()")
        self.assertEqual(row, {"name": "program", "passed": 0, "skipped": 0, "failed": 0, "problem": "a.e ended it with code -6"})

    def test_kernels_that_hang_are_a_part_of_their_own(self):
        setting = parts.Setting("cuda", self.folder, False, 0)
        self.assertIn(gtests.HANGS, gtests.test_command("hone_device_model_test", setting, without=gtests.HANGS)[-1].split("-", 1)[1].split(":"))


class Data(Case):
    def test_a_data_set_comes_back_as_far_as_it_is(self):
        """As one whose program was killed leaves it: all in the write-ahead log."""
        hone = self.folder / "hone"
        hone.write_text(f"""#!{sys.executable}
import sqlite3, sys, time
if sys.argv[1] == "devices": print('[{{"name": "opencl-pocl"}}]'); sys.exit()
db = sqlite3.connect(sys.argv[sys.argv.index("--db") + 1])
db.execute("PRAGMA journal_mode=WAL")
db.execute("CREATE TABLE trial (id)")
db.execute("INSERT INTO trial VALUES (1)")
db.commit()
time.sleep(100)
""")
        hone.chmod(0o755)
        import tuning

        setting = parts.Setting("opencl-pocl", self.folder, True, time.monotonic() + 6)
        result = device_check.Result(self.folder, "data")
        with unittest.mock.patch.dict(os.environ, {"HONE": str(hone)}), self.assertRaises(subprocess.TimeoutExpired):
            tuning.data(result, setting)
        row = result.data["rows"][0]
        self.assertEqual((row["trials"], row["unfinished"]), (1, "its time was over before hone dataset make ended"))
        self.assertEqual(tuning.count_trials(self.folder / "data.db"), 1)


class Nvrtc(Case):
    def test_the_newest_of_pythons_packages_is_taken(self):
        files = [self.folder / folder / "nvidia" / below / "lib" / f"libnvrtc.so.{version}" for folder, below, version in (("a", "cuda_nvrtc", 12), ("b", "cu13", 13))]
        for file in files:
            file.parent.mkdir(parents=True)
            file.touch()
        self.assertEqual(device_check.python_nvrtc([self.folder / "a", self.folder / "b"]), files[1])
        self.assertIsNone(device_check.python_nvrtc([self.folder / "c"]))


class Sanitizer(Case):
    def test_what_it_must_not_run_is_left_out(self):
        setting = parts.Setting("cuda", self.folder, False, 0)
        for name, tests in gtests.SAMPLES.items():
            chosen, none = gtests.test_command(name, setting, tests, gtests.NO_SAMPLES)[-1].removeprefix("--gtest_filter=").split("-")
            for pattern in gtests.NO_SAMPLES.split(":"):
                self.assertIn(pattern, none.split(":"), name)
                self.assertNotIn(pattern, chosen.split(":"), name)

    def test_where_it_cannot_work_it_says_so_at_once(self):
        setting, result = parts.Setting("cuda", self.folder, False, time.monotonic() + 60), device_check.Result(self.folder, "sanitizer")
        with unittest.mock.patch("platform.release", lambda: "4.4.0"), self.assertRaisesRegex(parts.CannotRun, "does not work on gVisor"):
            gtests.sanitizer(result, setting)
        with self.assertRaisesRegex(parts.CannotRun, "Device not supported"):
            gtests.sanitize(result, setting, "memcheck a", ["echo", "========= Error: Device not supported"])

    def test_a_row_is_without_a_problem_only_if_nothing_was_found(self):
        setting, result = parts.Setting("cuda", self.folder, False, time.monotonic() + 60), device_check.Result(self.folder, "sanitizer")
        gtests.sanitize(result, setting, "memcheck a", ["echo", "[       OK ] a.b (1 ms)\n========= ERROR SUMMARY: 0 errors"])
        gtests.sanitize(result, setting, "memcheck b", ["echo", "========= ERROR SUMMARY: 2 errors"])
        gtests.sanitize(result, setting, "memcheck c", ["echo", "[       OK ] a.b (1 ms)"])
        self.assertEqual([(row["passed"], row["errors"], row.get("problem")) for row in result.data["rows"]], [(1, 0, None), (0, 2, "code 0"), (1, None, "code 0")])

    def test_its_last_line_is_read(self):
        for output, expected in (("========= ERROR SUMMARY: 0 errors\n", ("ERROR SUMMARY: 0 errors", 0)),
                                 ("========= Invalid read\n========= ERROR SUMMARY: 1 error\n", ("ERROR SUMMARY: 1 error", 1)),
                                 ("========= ERROR SUMMARY: 54 errors\n", ("ERROR SUMMARY: 54 errors", 54)),
                                 ("========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n",
                                  ("RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)", 2)),
                                 ("========= Target application returned an error\n", ("", None))):
            self.assertEqual(gtests.read_sanitizer(output), expected)


if __name__ == "__main__":
    main()
