"""The commands of `hone db` on databases made of JSON lines: what they print, keep, refuse and leave behind."""
import json
import sqlite3
import time
import unittest

import support
from support import Case, hone


def trial(task, seconds, **changes):
    """One line as export writes it."""
    fields = {"task": f"{task:016x}", "kernel_class": "conv2d+bias+relu", "task_text": "a task", "device": "machine", "threads": 2,
              "version": "1", "algorithm": "direct", "steps": "", "decisions": "", "outcome": "ok", "message": "",
              "times": [seconds, seconds], "centre": seconds, "low": seconds, "high": seconds, "verified": True,
              "seed": "0000000000000001", "unix_time": 1_700_000_000, "host_load": 0.5, "model": "resnet18",
              "drift": 1.0, "crowned": False, "duel": [], "others": 0.0, "steal": 0.0, "accuracy": "strict"}
    return json.dumps({**fields, **changes})


class Db(Case):
    def setUp(self):
        super().setUp()
        self.db = self.folder / "trials.db"

    def lines(self, *texts, name="trials.jsonl"):
        path = self.folder / name
        path.write_text("".join(text + "\n" for text in texts))
        return path

    def fill(self, *texts, db=None):
        return self.succeed("db", "import", self.lines(*texts), "--db", db or self.db)

    def exported(self, db=None):
        return self.succeed("db", "export", "-", "--db", db or self.db).splitlines()

    def test_import_and_export_are_inverse(self):
        first = [trial(1, 1e-3), trial(2, 1 / 3, model="näme"), trial(2, 2e-3, outcome="timeout", times=[], verified=False, centre=0)]
        self.assertEqual(self.fill(*first), "3 trials added, 0 were there before\n")
        self.assertEqual(self.fill(*first, trial(3, 1e-3)), "1 trials added, 3 were there before\n")
        self.assertEqual([json.loads(line) for line in self.exported()], [json.loads(line) for line in [*first, trial(3, 1e-3)]])
        out = self.folder / "out.jsonl"
        self.succeed("db", "export", out, "--db", self.db)
        self.assertEqual(out.read_text().splitlines(), self.exported())

    def test_figures_of_code_are_kept_and_shown(self):
        names = ["registers", "stack_bytes", "spill_bytes", "shared_bytes", "instructions", "multiply_adds", "matrix_instructions", "global_loads",
                 "global_stores", "shared_loads", "shared_stores", "local_accesses", "async_copies", "barriers"]
        code = {name: 96 + i for i, name in enumerate(names)}
        of_gpu, of_cpu = trial(1, 1e-3, device="sm_90a", threads=1, **code), trial(2, 1e-3)
        self.fill(of_gpu, of_cpu, trial(1, 2e-3, device="sm_90a", threads=1, steps="b", **code | {"registers": 40}))
        self.assertEqual(json.loads(self.exported()[0]), json.loads(of_gpu))
        self.assertEqual(self.exported()[1], of_cpu.replace(": ", ":").replace(", ", ","))
        shown = self.succeed_json("db", "show", "--db", self.db)
        self.assertEqual([entry["code"] for entry in shown], [code, None])
        best = self.succeed_json("db", "best", "--db", self.db, "--top", "2")
        self.assertEqual([entry["code"] and entry["code"]["registers"] for entry in best], [96, 40, None])
        table = [line.split() for line in self.succeed("db", "show", "--db", self.db).splitlines()]
        self.assertEqual(table[0][-2:], ["registers", "spilled"])
        self.assertEqual([line[-2:] for line in table[2:4]], [["96", "98"], ["-", "-"]])
        self.assertIn("# 96 registers a thread, 98 bytes of them spilled;", self.succeed("db", "best", "--db", self.db))
        self.assertNotIn("registers", self.succeed("db", "show", "--db", self.db, "--device", "machine"))
        self.refuse("there is no field 'stack_bytes'", "db", "import", self.lines(trial(3, 1e-3, registers=4)), "--db", self.db)
        self.refuse("has -1 of barriers", "db", "import", self.lines(trial(3, 1e-3, **code | {"barriers": -1})), "--db", self.db)

    def test_a_choice_of_trials(self):
        self.fill(trial(1, 1e-3, steps="a"), trial(1, 2e-3, steps="b"), trial(1, 9e-4, steps="b", device="other"),
                  trial(1, 3e-3, steps="c", threads=1), trial(2, 1e-3, model="alexnet", kernel_class="gemm"), trial(1, 4e-3, steps="a"))
        count = lambda *options: len(self.succeed("db", "export", "-", "--db", self.db, *options).splitlines())
        self.assertEqual(count(), 6)
        self.assertEqual(count("--task", f"{1:016x}"), 5)
        self.assertEqual(count("--kernel", "gemm"), 1)
        self.assertEqual(count("--device", "other"), 1)
        self.assertEqual(count("--model", "alexnet"), 1)
        self.assertEqual(count("--threads", "1"), 1)
        self.assertEqual(count("--task", f"{1:016x}", "--threads", "2", "--device", "machine"), 3)
        self.refuse("--task: ", "db", "export", "-", "--db", self.db, "--task", "1")
        self.refuse("--threads: ", "db", "export", "-", "--db", self.db, "--threads", "none")
        shown = self.succeed_json("db", "show", "--db", self.db, "--model", "alexnet")
        self.assertEqual([(entry["kernel"], entry["trials"]) for entry in shown], [("gemm", 1)])

        # The best few of a kernel, each schedule once.
        best = self.succeed_json("db", "best", "--db", self.db, "--device", "machine", "--threads", "2", "--task", f"{1:016x}", "--top", "5")
        self.assertEqual([(entry["steps"], entry["seconds"], entry["best_seconds"]) for entry in best], [("a", 1e-3, 1e-3), ("b", 2e-3, 1e-3)])
        self.assertEqual(len(self.succeed_json("db", "best", "--db", self.db)), 4)
        self.refuse("--top: ", "db", "best", "--db", self.db, "--top", "0")

    def test_bad_lines_are_named_and_nothing_is_imported(self):
        self.fill(trial(1, 1e-3))
        bad = self.lines(trial(2, 1e-3), trial(3, -1.0), name="bad.jsonl")
        self.refuse(f"{bad} line 2: ", "db", "import", bad, "--db", self.db)
        self.refuse("cannot read", "db", "import", self.folder / "none", "--db", self.db)
        self.assertEqual(len(self.exported()), 1)

    def test_the_accuracy_comes_along(self):
        steps = {"strict": "", "default": "strassen(gemm)\n", "fast": "narrow(b.cache, bf16)\n"}
        lines = [trial(i, 1e-3, steps=text, accuracy=name) for i, (name, text) in enumerate(steps.items())]
        older = [json.dumps({field: value for field, value in json.loads(line).items() if field != "accuracy"}) for line in lines]
        self.assertEqual(self.fill(*older), "3 trials added, 0 were there before\n")
        self.assertEqual(self.fill(*lines), "0 trials added, 3 were there before\n")
        self.succeed("db", "merge", self.db, "--db", self.folder / "other.db")
        for db in (self.db, self.folder / "other.db"):
            self.assertEqual([json.loads(line)["accuracy"] for line in self.exported(db)], list(steps))
        bad = self.lines(trial(9, 1e-3, steps=steps["default"]), name="bad.jsonl")
        self.refuse(f"{bad} line 1: a record has the accuracy strict, but its steps need default", "db", "import", bad, "--db", self.db)
        self.assertEqual(self.succeed_json("db", "stat", "--db", self.db)["accuracies"], {"default": 1, "fast": 1, "strict": 1})

    def test_stat_counts(self):
        self.fill(trial(1, 1e-3), trial(1, 2e-3, model="alexnet"), trial(2, 1e-3, outcome="crash", verified=False, times=[], centre=0))
        stat = self.succeed_json("db", "stat", "--db", self.db)
        self.assertEqual((stat["trials"], stat["verified"], stat["tasks"], stat["kernel_classes"]), (3, 2, 2, 1))
        self.assertEqual(stat["outcomes"], {"crash": 1, "ok": 2})
        self.assertEqual(stat["models"], {"alexnet": 1, "resnet18": 2})
        text = self.succeed("db", "stat", "--db", self.db)
        self.assertIn("3 trials, 2 of them verified, of 2 tasks in 1 kernel classes\nmeasured from 2023-11-14 to 2023-11-14\n", text)

    def test_merge_adds_each_trial_once(self):
        others = [self.folder / "a.db", self.folder / "b.db"]
        self.fill(trial(1, 1e-3), trial(2, 1e-3), db=others[0])
        self.fill(trial(2, 1e-3), trial(3, 1e-3), db=others[1])
        text = self.succeed("db", "merge", *others, "--db", self.db)
        self.assertEqual(text, f"{others[0]}: 2 trials added, 0 were there before\n{others[1]}: 1 trials added, 1 were there before\n")
        self.assertEqual(len(self.exported()), 3)
        self.refuse("does not exist", "db", "merge", others[0], self.folder / "none.db", "--db", self.folder / "new.db")

    def test_verify_finds_what_is_wrong(self):
        self.fill(*(trial(i, 1e-3) for i in range(40)))
        self.assertEqual(self.succeed("db", "verify", "--db", self.db), "40 trials, nothing wrong\n")
        with sqlite3.connect(self.db) as connection:
            connection.execute("UPDATE trial SET steps = 'dance' WHERE id = 3")
            connection.execute("UPDATE trial SET centre = -1 WHERE id = 4")
            connection.execute("UPDATE trial SET accuracy = 1 WHERE id = 6")
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("UPDATE trial SET device = 77 WHERE id = 5")
        done = hone("db", "verify", "--db", self.db)
        self.assertEqual(done.returncode, 2)
        for problem in ("trial 3: ", "trial 4: ", "trial 5 names a device that is not there",
                        "trial 6: a record has the accuracy default, but its steps need strict\n"):
            self.assertIn(problem, done.stdout)
        self.assertIn("the database has 4 problems in ", done.stderr)

    def test_gc_keeps_what_says_that_a_schedule_fails(self):
        wrong = [trial(1, i * 1e-3, outcome="wrong answer", verified=False, steps="parallel(a, b)") for i in range(1, 5)]
        crashed = [trial(1, i * 1e-3, outcome="crash", verified=False, steps="parallel(a, c)") for i in range(1, 4)]
        self.fill(trial(1, 1e-3), *wrong, *crashed, trial(1, 1e-3, outcome="compile", verified=False, steps="parallel(a, d)"))
        self.assertEqual(self.succeed("db", "gc", "--db", self.db), "4 of 9 trials removed\n")
        left = [json.loads(line) for line in self.exported()]
        self.assertEqual(sorted(line["outcome"] for line in left), ["crash", "crash", "ok", "wrong answer", "wrong answer"])

    def test_gc_keeps_the_newest_time_of_a_part(self):
        """Trials at smaller sizes are never verified, but compile chooses kernels by them."""
        part = {"part": "2[0]<12", "verified": False}
        self.fill(trial(1, 1e-3), trial(1, 2e-3, unix_time=1000, **part), trial(1, 3e-3, unix_time=2000, **part),
                  trial(1, 4e-3, unix_time=1000, steps="parallel(a, b)", **part))
        self.assertEqual(self.succeed("db", "gc", "--db", self.db), "1 of 4 trials removed\n")
        left = [json.loads(line) for line in self.exported()]
        self.assertEqual(sorted(line["centre"] for line in left), [1e-3, 3e-3, 4e-3])

    def test_gc_keeps_the_fastest_and_the_new(self):
        now = int(time.time())
        self.fill(*(trial(1, 1e-3 * i) for i in range(1, 8)), *(trial(2, 1e-3 * i, threads=i) for i in range(1, 4)),
                  trial(1, 9e-3, unix_time=now), trial(3, 1e-3, verified=False))
        arguments = ["db", "gc", "--keep", "2", "--older-than", "1", "--db", self.db]
        self.assertEqual(self.succeed(*arguments, "--dry-run"), "6 of 12 trials would be removed\n")
        self.assertEqual(len(self.exported()), 12)
        self.assertEqual(self.succeed(*arguments), "6 of 12 trials removed\n")
        left = [json.loads(line) for line in self.exported()]
        self.assertEqual(sorted(line["centre"] for line in left if line["task"].endswith("1")), [1e-3, 2e-3, 9e-3])
        self.assertEqual(sum(line["task"].endswith("2") for line in left), 3)
        self.assertEqual(sum(line["task"].endswith("3") for line in left), 0)
        self.succeed("db", "verify", "--db", self.db)
        self.refuse("--keep", "db", "gc", "--keep", "0", "--db", self.db)

    def test_compile_takes_a_database_that_is_not_there_yet(self):
        model, library, database = self.save(support.relu_model()), self.folder / "model.so", self.folder / "new.db"
        text = self.succeed("compile", model, "-o", library, "--db", database)
        self.assertIn(f"database {database} does not exist yet", text)
        self.assertFalse(database.exists())
        self.refuse("no.db does not exist", "compile", model, "-o", library, "--db", self.folder / "no" / "no.db")
        self.refuse("have no record of their own", "compile", model, "-o", library, "--db", database, "--require-tuned")

    def test_so_do_commands_that_compile_what_they_run(self):
        model, library, database = self.save(support.relu_model()), self.folder / "model.so", self.folder / "new.db"
        self.succeed("compile", model, "-o", library, "--no-db")
        for command in (["run"], ["run", "--profile"], ["bench"], ["verify"], ["show"]):
            done = support.hone(command[0], model, *command[1:], "--db", database)
            self.assertEqual((done.returncode, done.stderr), (0, f"database {database} does not exist yet\n"), command)
            self.assertFalse(database.exists())
            self.refuse("no.db does not exist", command[0], model, *command[1:], "--db", self.folder / "no" / "no.db")
        for command in (["bench", library], ["run", library, "--profile"]):
            self.refuse("new.db does not exist", *command, "--db", database)  # nothing to read there

    def test_what_fails_leaves_nothing_behind(self):
        bad, model = self.folder / "bad.txt", self.save(support.relu_model())
        bad.write_text("neither trials nor a model\n")
        half, other = self.lines(trial(1, 1e-3), "{}", name="half.jsonl"), self.folder / "other.db"
        self.fill(trial(1, 1e-3), db=other)
        database = sqlite3.connect(other)
        database.execute("UPDATE trial SET outcome = 'none such', verified = 0")  # what a merge finds when it reads the trial
        database.commit()
        database.close()
        new, out, quick = self.folder / "new.db", self.folder / "out", ["--budget", "1s"]
        failing = [["db", "import", self.folder / "none.jsonl"], ["db", "import", bad], ["db", "import", half], ["db", "import", self.folder],
                   ["db", "merge", self.folder / "none.db"], ["db", "merge", bad], ["db", "merge", other],
                   ["dataset", "import", self.folder / "none.jsonl"], ["dataset", "import", bad], ["dataset", "import", half],
                   ["dataset", "import", self.folder / "none.npz"], ["dataset", "make", bad], ["adapt", bad, "-o", out],
                   ["tune", bad, "-o", out, *quick], ["tune", model, "-o", self.folder / "none" / "m.so", *quick],
                   *(["tune", model, "-o", out, *quick, *options] for options in
                     (["--skip-pass", "none"], ["--cost", bad], ["--guide", bad], ["--device", "none"], ["--device", "cuda-sm_90a"],
                      ["--search", "none"], ["--shape", "none=1"], ["--report", self.folder / "none" / "run.json"], ["--movable", "none"])),
                   ["sensitivity", bad], ["compile", bad, "-o", out, "--header"], ["run", bad, "--output-dir", out],
                   ["run", model, "--output-dir", out, "--input", f"x={bad}"], ["show", bad, "--dot", out]]
        reading = [["db", "export", out], ["dataset", "export", out], ["dataset", "split", "-o", out], ["train", "-o", out], ["policy", "train", "-o", out]]
        commands = [*([*command, "--db", new] for command in failing), *([*command, "--db", bad] for command in reading), ["report", bad, "-o", out]]
        before = set(self.folder.iterdir())
        for command in commands:
            with self.subTest(command=" ".join(str(word).removeprefix(str(self.folder)) for word in command)):
                self.assertEqual(hone(*command).returncode, 2)
                left = sorted(path for path in set(self.folder.iterdir()) - before if not path.name.startswith("other.db-"))  # SQLite's own
                for path in left:
                    path.unlink()
                self.assertEqual(left, [])

    def test_reading_commands_need_a_database(self):
        for command in (["stat"], ["verify"], ["export", "-"], ["gc"]):
            self.refuse("does not exist", "db", *command, "--db", self.folder / "none.db")


if __name__ == "__main__":
    unittest.main()
