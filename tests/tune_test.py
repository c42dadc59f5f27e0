"""Tuning with the real worker: what is stored, what Ctrl-C leaves, what a dead worker and a full disk do."""
import contextlib
import os
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import numpy as np

import support
from processes import children
from support import Case, small_network


class Tuning(Case):
    def setUp(self):
        super().setUp()
        self.model = self.save(small_network())
        self.db = self.folder / "trials.db"
        self.library = self.folder / "model.so"

    def arguments(self, budget):
        return ["tune", self.model, "-o", self.library, "--db", self.db, "--threads", "1", "--budget", budget]

    def start(self, budget, **options):
        process = subprocess.Popen([support.HONE, *map(str, self.arguments(budget))], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, **options)
        self.addCleanup(process.kill)
        return process

    def query(self, sql):
        connection = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def trials(self):
        """Stored so far; 0 while there is no database."""
        try:
            return self.query("SELECT count(*) FROM trial")[0][0]
        except sqlite3.OperationalError:
            return 0

    def wait_for_trials(self, process, count, seconds=60):
        end = time.monotonic() + seconds
        while self.trials() < count:
            self.assertIsNone(process.poll(), "hone ended early")
            self.assertLess(time.monotonic(), end, f"{self.trials()} trials in {seconds} s")
            time.sleep(0.05)

    def check_library(self):
        """The library computes what the model says."""
        x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        self.succeed("run", self.library, "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder)
        expected = support.reference(self.model, {"x": x})["y"]
        self.assertLessEqual(support.relative_error(np.load(self.folder / "y.npy"), expected), 1e-4)

    def test_tune_then_resume_then_compile(self):
        start = time.monotonic()
        report = self.succeed_json(*self.arguments("6s"))
        self.assertLess(time.monotonic() - start, 20)
        self.check_library()
        first = self.trials()
        self.assertGreater(report["trials"], 10)
        self.assertTrue(0 <= report["waited_seconds"] <= 0.05 * 6 + 0.2, report["waited_seconds"])
        spent = report["spent"]
        self.assertTrue(all(seconds >= 0 for seconds in spent.values()), spent)
        self.assertTrue(min(spent[part] for part in ("measuring", "compiling", "choosing", "packing", "checking")) > 0, spent)
        self.assertAlmostEqual(sum(spent.values()) - spent["overlapped"], report["seconds"], delta=0.05 * report["seconds"])
        # Nothing is stored twice but what became the best only in a last, longer duel.
        self.assertEqual(self.query("SELECT count(*) FROM (SELECT DISTINCT task, steps FROM trial)")[0][0],
                         first - self.query("SELECT count(*) FROM (SELECT 1 FROM trial GROUP BY task, steps HAVING count(*) > 1)")[0][0])
        self.assertEqual(self.query("SELECT count(*) FROM trial WHERE crowned = 1 AND verified = 0")[0][0], 0)
        # The best of each task was crowned: the first of its task, or the winner of a duel.
        self.assertEqual(self.query("SELECT count(*) FROM trial AS t WHERE verified = 1 AND crowned = 0 AND centre < "
                                    "(SELECT min(centre) FROM trial WHERE task = t.task AND crowned = 1)")[0][0], 0)
        self.assertEqual(self.query("SELECT count(*) FROM trial WHERE outcome = 'wrong answer'")[0][0], 0)
        self.assertTrue(all(kernel["seconds"] > 0 for kernel in report["kernels"]))
        in_model = report["in_model"]
        self.assertEqual(in_model["skipped"] == "", in_model["compared"] > 0, in_model)
        self.assertLessEqual(in_model["changed"], in_model["compared"])
        failed = dict(self.query("SELECT outcome, count(*) FROM trial WHERE outcome <> 'ok' GROUP BY outcome"))
        self.assertEqual({outcome: alike["count"] for outcome, alike in report["failures"].items()}, failed)
        self.assertEqual(in_model["saved_seconds"] > 0, in_model["changed"] > 0, in_model)

        self.succeed_json(*self.arguments("4s"))
        self.check_library()
        self.assertGreater(self.trials(), first)

        best = {entry["task"]: entry for entry in self.succeed_json("db", "best", "--db", self.db)}
        self.assertTrue(best)
        compiled = self.succeed_json("compile", self.model, "-o", self.library, "--db", self.db, "--threads", "1")
        self.check_library()
        stored = {entry["steps"].strip() for entry in best.values()}
        for kernel in compiled["kernels"]:
            self.assertEqual(kernel["source"], "stored", kernel["name"])
            self.assertIn(kernel["steps"].strip(), stored)

    def test_modes(self):
        state = self.folder / "moves.state"
        efficient = ["tune", self.model, "-o", self.library, "--mode", "efficient", "--threads", "1", "--no-db"]
        report = self.succeed_json(*efficient, "--search", "dqn", "--policy-state", state)
        self.assertEqual((report["trials"], report["spent"]["measuring"]), (0, 0))
        self.assertRegex(state.read_text(), r"\Ahone policy state 2\nhash [0-9a-f]{16}\nstrategy dqn\ninstructions ")
        self.check_library()
        before = (state.read_bytes(), self.library.read_bytes())
        bits = 256 if "with 512 bits" in state.read_text() else 512
        device = f"x86-64-avx{2 if bits == 256 else 512}"
        self.refuse(f"expected x86_64 with {bits} bits for device {device}: train it there", *efficient, "--device", device, "--search", "dqn",
                    "--policy-state", state)
        self.assertEqual((state.read_bytes(), self.library.read_bytes()), before)
        self.assertRegex(self.succeed(*efficient, "--device", "x86-64-avx2"), "\ntime: compiling ")
        for option, value in (("--budget", "5s"), ("--overlap", "yes"), ("--adapt", "head")):
            self.refuse(f"--mode efficient: nothing is measured, expected no {option}", *efficient, option, value)
        self.refuse("--mode: unknown value 'fast', expected efficient or quality", *self.arguments("3s"), "--mode", "fast")
        self.refuse("--nearest: 'pearson', expected shapes or spearman", *self.arguments("3s"), "--nearest", "pearson")
        self.assertGreater(self.succeed_json(*self.arguments("4s"), "--mode", "quality")["trials"], 0)
        self.succeed("compile", self.model, "-o", self.library, "--db", self.db, "--threads", "1", "--nearest", "spearman:tau=0.9,sources=1")

    def test_what_a_strategy_learned_is_kept_from_run_to_run(self):
        state = self.folder / "learned.state"
        options = ["--search", "mixed:recall=1", "--policy-state", state]
        self.assertGreater(self.succeed_json(*self.arguments("6s"), *options)["trials"], 0)
        first = state.read_text()
        self.assertRegex(first, r"\Ahone policy state 2\nhash [0-9a-f]{16}\nstrategy mixed\ninstructions ")
        self.assertGreater(self.succeed_json(*self.arguments("6s"), *options)["trials"], 0)
        second = state.read_text()
        self.assertNotEqual(second, first)
        names = [{line.rsplit(" ", 2)[0] for line in text[text.rindex("\nfingerprint ") :].splitlines()[2:]} for text in (first, second)]
        self.assertLessEqual(names[0], names[1], "what was learned is still known")

        # A damaged file, and one that the strategy has no use for, end the command before any work.
        damaged = second[:-20]
        state.write_text(damaged)
        measured = self.trials()
        for arguments in (options, ["--policy-state", state]):
            done = support.hone(*self.arguments("3s"), *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(state.read_text(), damaged)
        self.assertEqual(self.trials(), measured)
        self.assertIn(f"{state}: it is damaged", support.hone(*self.arguments("3s"), *options).stderr)

    def test_a_short_budget_leaves_the_comparison_inside_the_model_out(self):
        done = support.hone(*self.arguments("600ms"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("inside the model: no kernels compared: the budget is too short", done.stdout)
        self.check_library()

    def test_long_runs_learn_the_machines_limits_and_a_closed_terminal_ends_them(self):
        process = self.start("300s", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # whatever nohup did
        self.wait_for_trials(process, 4)
        for _ in range(2):  # as shell and kernel say it
            process.send_signal(signal.SIGHUP)
            time.sleep(0.01)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)
        self.check_library()
        host = next(device for device in self.succeed_json("devices", "--db", self.db) if device["name"] == "host")
        if "roofline" in host:
            self.assertGreater(host["roofline"]["flops_one"], 1e9)
        else:
            self.assertIn("the machine has other work: its limits stay unknown", errors)

    def test_without_room_for_temporary_files_they_lie_beside_the_library(self):
        done = support.hone(*self.arguments("11s"), env={**os.environ, "TMPDIR": str(self.folder / "missing")})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "whole model: .* tuned, .* before")
        self.assertGreater(self.trials(), 0)
        self.assertEqual(list(self.folder.glob(".hone*")), [])
        self.check_library()

    def test_interrupt_keeps_trials_and_the_same_command_resumes(self):
        process = self.start("120s")
        self.wait_for_trials(process, 12)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)
        self.assertTrue(errors.splitlines()[-1].startswith("hone: interrupted after "), errors)
        kept = self.trials()
        self.assertGreaterEqual(kept, 12)
        self.check_library()
        self.succeed(*self.arguments("8s"))
        self.assertGreater(self.trials(), kept)

    def test_second_interrupt_kills(self):
        process = self.start("120s")
        self.wait_for_trials(process, 1)
        process.send_signal(signal.SIGINT)
        # The flag is seen within a batch; signals that meet are one.
        deadline = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
            process.send_signal(signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.succeed("db", "show", "--db", self.db)

    def test_killed_workers_are_replaced(self):
        process = self.start("120s")
        killed = 0
        for goal in (4, 12, 20):
            self.wait_for_trials(process, goal)
            for worker in children(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    killed += 1
        self.assertGreater(killed, 0, "no worker")
        self.wait_for_trials(process, self.trials() + 4)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        ok = self.query("SELECT count(*) FROM trial WHERE outcome = 'ok'")[0][0]
        self.assertGreater(ok, self.trials() // 2)
        self.check_library()

    def test_no_worker_outlives_a_killed_tuner(self):
        process = self.start("60s")
        self.wait_for_trials(process, 4)
        workers = children(process.pid)
        process.kill()
        process.communicate()
        end = time.monotonic() + 10
        while any(Path(f"/proc/{worker}").exists() for worker in workers):
            self.assertLess(time.monotonic(), end, "a worker lives on")
            time.sleep(0.05)
        self.assertGreaterEqual(self.trials(), 4)
        self.succeed("db", "show", "--db", self.db)

    def test_disk_full(self):
        # A database that grows beyond what a file may have, half a second after it began to: the
        # search ends, and the library is made of what was found.
        limit = 400_000
        done = support.hone(*self.arguments("60s"),
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(done.returncode, 2, done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("hone: "), last)
        self.assertIn("what was stored before is kept", last)
        self.assertIn("nothing more is kept", done.stderr)
        self.check_library()
        self.assertGreater(self.trials(), 0)
        self.assertGreater(sum(entry["trials"] for entry in self.succeed_json("db", "show", "--db", self.db)), 0)

    def test_disk_full_while_writing_the_library(self):
        done = support.hone("compile", self.model, "-o", self.library, "--no-db",
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(self.files(), {"model.onnx"})

    def test_two_tuners_share_a_database(self):
        libraries = [self.folder / "one.so", self.folder / "two.so"]
        results = []
        def tune(library):
            results.append(support.hone("tune", self.model, "-o", library, "--db", self.db, "--threads", "1", "--budget", "4s"))
        threads = [threading.Thread(target=tune, args=(library,)) for library in libraries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([done.returncode for done in results], [0, 0], [done.stderr for done in results])
        self.assertTrue(all(library.exists() for library in libraries))

    def test_progress_lines_come_at_most_once_a_second(self):
        done = support.hone(*self.arguments("5s"))
        self.assertEqual(done.returncode, 0, done.stderr)
        # A line of a busy machine is said once, between them.
        times = [float(line.split(" s: ")[0]) for line in done.stderr.splitlines() if not line.startswith("hone: warning: ")]
        self.assertGreaterEqual(len(times), 1, "a slow machine measures one batch in that time")
        self.assertTrue(all(later - earlier >= 0.9 for earlier, later in zip(times, times[1:])), times)
        self.assertIn("trials", done.stderr)


if __name__ == "__main__":
    support.main()
