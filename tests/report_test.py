"""`hone report`, `hone tune --report` and `--live`, and `hone run --trace`: what is in their files, and what becomes of bad input.
report_page_test.py looks at the page."""
import json
import sqlite3
import unittest

import support
from browser import find
from db_test import trial
from report_case import Report


class Files(Report):
    budgets = (12, 4)  # enough for the page to follow the first one
    live = True

    def test_what_a_run_measured_is_in_its_file(self):
        run = json.loads(self.runs[0].read_text())
        self.assertEqual((run["format"], run["version"], run["threads"], run["model"], run["of_database"]), ("hone run", 1, 1, "model", False))
        self.assertGreater(run["trials"], 5)
        kernels = [kernel for kernel in run["kernels"] if kernel["times"] > 0]
        self.assertTrue(all(kernel["seconds"] > 0 and kernel["bytes"] > 0 and kernel["program"] and kernel["steps"]
                            and kernel["untuned_program"] and kernel["untuned_steps"] for kernel in kernels))
        connection = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
        stored = dict(connection.execute("SELECT task.key, count(*) FROM trial JOIN task ON task.id = trial.task GROUP BY task.key").fetchall())
        connection.close()
        second = {kernel["key"]: kernel for kernel in json.loads(self.runs[1].read_text())["kernels"]}
        for kernel in run["kernels"]:
            self.assertEqual(sorted(kernel["points"]["trial"]), kernel["points"]["trial"])
            self.assertLessEqual(len(kernel["points"]["at"]) + len(second.get(kernel["key"], {"points": {"at": []}})["points"]["at"]),
                                 stored[kernel["key"]], kernel["name"])
        times = run["curve"]["seconds"]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertAlmostEqual(sum(seconds for part, seconds in run["spent"].items() if part != "overlapped"), run["seconds"], delta=0.05 * run["seconds"])

    def test_a_run_is_shown_while_it_goes_on(self):
        live = self.made.live
        self.assertEqual({name: live[name][0] for name in ("page", "data", "wrong token", "no token", "another name")},
                         {"page": 200, "data": 200, "wrong token": 403, "no token": 403, "another name": 404})
        self.assertIn("the token is wrong: use the address that hone printed", live["wrong token"][1])
        self.assertIn("connect-src 'self'", live["page"][1])
        run = json.loads(live["data"][1])["runs"][0]
        self.assertTrue(run["running"])
        self.assertTrue(run["trials"] > 0 and run["kernels"] and run["curve"]["at"])
        self.assertEqual(live["in use"].returncode, 2)
        self.assertEqual(live["in use"].stderr, f"hone: --live: cannot listen on port {live['port']} of 127.0.0.1: address already in use; 0 takes one that is free\n")
        if find():
            self.assertEqual((live["title"], live["status"], live["complaints"]), ("Hone report: model", "The run goes on; this page follows it.", []))
            self.assertIn("measuring", live["last"])

    def test_a_trace_has_every_step_on_its_threads(self):
        library, trace = self.folder / "model.so", self.folder / "t.json"
        self.succeed("compile", self.model, "-o", library, "--db", self.db)
        profile = self.succeed_json("run", library, "--threads", "2", "--repeat", "3", "--trace", trace, "--profile")["profile"]
        events = json.loads(trace.read_text())["traceEvents"]
        rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertTrue({"steps", "thread 0"} <= set(rows.values()), rows)
        spans = [event for event in events if event["ph"] == "X"]
        for tid in rows:
            own = sorted((span["ts"], span["ts"] + span["dur"]) for span in spans if span["tid"] == tid)
            self.assertTrue(all(before[1] <= after[0] + 0.01 for before, after in zip(own, own[1:])), "two at once on one thread")
        steps = [span for span in spans if rows[span["tid"]] == "steps"]
        self.assertEqual(len(steps) % 3, 0)
        self.assertEqual({span["name"] for span in steps}, {kernel["name"] for kernel in profile})
        self.assertAlmostEqual(sum(span["dur"] for span in steps) / 3e6, sum(kernel["seconds"] for kernel in profile), delta=1e-6)
        worked = {(span["args"]["step"], round(span["ts"] // 1e9)) for span in spans if rows[span["tid"]] != "steps"}
        self.assertEqual({step for step, _ in worked}, {span["args"]["step"] for span in steps})
        self.refuse("--trace", "run", library, "--trace", library)

    def test_a_page_needs_no_network_and_holds_what_the_sources_say(self):
        text = self.page(*self.runs).read_text()
        self.assertNotIn("https:", text)
        data = json.loads(text.split('<script id="data" type="application/json">')[1].split("</script>")[0])
        self.assertEqual([run["name"] for run in data["runs"]], ["first.json", "second.json"])
        data = json.loads(self.page(self.db).read_text().split('type="application/json">')[1].split("</script>")[0])
        self.assertTrue(data["runs"][0]["of_database"])
        self.assertTrue(all(kernel["program"] and kernel["bytes"] > 0 for kernel in data["runs"][0]["kernels"]))

    def test_bad_input_is_one_error(self):
        cut = self.folder / "cut.json"
        text = self.runs[0].read_text()
        cut.write_text(text[:len(text) // 2])
        self.refuse(f"{cut}: byte ", "report", cut, "-o", self.folder / "x.html")
        self.refuse("first.json: its kernels[0].flops is a value of type string, expected a number", "report", self.changed("flops", "x"), "-o", self.folder / "x.html")
        self.refuse("none.json", "report", self.folder / "none.json", "-o", self.folder / "x.html")
        empty = self.folder / "empty.db"
        empty.write_bytes(b"")
        self.refuse(str(empty), "report", empty, "-o", self.folder / "x.html")
        self.refuse("the database has no trial to report", "report", self.db, "--model", "other", "-o", self.folder / "x.html")
        self.refuse("is a run, of which all is shown", "report", self.runs[0], "--threads", "1", "-o", self.folder / "x.html")
        self.refuse("--output", "report", self.runs[0], "-o", self.runs[0])
        self.refuse("nowhere", "report", self.runs[0], "-o", self.folder / "nowhere" / "x.html")
        self.refuse("--report: ", "tune", self.model, "-o", self.folder / "x.so", "--report", self.folder / "nowhere" / "run.json")
        self.refuse("--live: ", "tune", self.model, "-o", self.folder / "x.so", "--live", "65536")
        self.refuse("--mode efficient: nothing is measured, expected no --report", "tune", self.model, "-o", self.folder / "x.so",
                    "--mode", "efficient", "--report", self.folder / "run.json")

    def changed(self, field, value):
        run = json.loads(self.runs[0].read_text())
        run["kernels"][0][field] = value
        path = self.folder / "first.json"
        path.write_text(json.dumps(run))
        return path

    def test_a_database_of_other_machines_shows_what_it_can(self):
        lines, db = self.folder / "trials.jsonl", self.folder / "others.db"
        lines.write_text("".join(trial(i % 3, 1e-3 / (i + 1), unix_time=1_700_000_000 + 10 * i, decisions=f"direct a:lanes={i % 2}") + "\n" for i in range(30))
                         + trial(7, 1e-3, device="another") + "\n")
        self.succeed("db", "import", lines, "--db", db)
        data = json.loads(self.page(db).read_text().split('type="application/json">')[1].split("</script>")[0])["runs"][0]
        self.assertEqual((data["trials"], data["seconds"], len(data["kernels"])), (30, 290, 3))
        self.assertEqual(len(data["notes"]), 3, data["notes"])
        self.assertIn("Not shown: 1 trials on another", data["notes"][2])


if __name__ == "__main__":
    support.main()
