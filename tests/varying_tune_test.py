"""Tuning libraries of ranges: kernels are measured at several sizes, and who compiles with the database uses these times."""
import json
import sqlite3

import numpy as np

import support
import varying_models
from browser import Browser, find
from support import value
from varying_models import RangeCase

WIDTH, MOST = 96, 64


def rows():
    """Two products of all rows."""
    b = varying_models.Builder()
    hidden = b.add("Relu", b.add("MatMul", "x", b.weights(WIDTH, 4 * WIDTH)))
    b.name(b.add("Softmax", b.add("MatMul", hidden, b.weights(4 * WIDTH, WIDTH)), axis=-1), "y")
    return b.model([value("x", ["n", WIDTH])], {"y": ["n", WIDTH]})


class VaryingTune(RangeCase):
    def setUp(self):
        super().setUp()
        self.path = self.save(rows())
        self.db = self.folder / "trials.db"
        self.library = self.folder / "model.so"

    def sql(self, statement, *values):
        connection = sqlite3.connect(self.db)
        try:
            found = connection.execute(statement, values).fetchall()
            connection.commit()
            return found
        finally:
            connection.close()

    def make(self, command, *options):
        return self.succeed(command, self.path, "-o", self.library, "--db", self.db, "--threads", 1, f"--shape=n=1..{MOST}", *options)

    def check_all_sizes(self):
        for n in (1, 2, 7, 16, 33, 63, MOST):
            inputs = {"x": np.random.default_rng(n).standard_normal((n, WIDTH)).astype(np.float32)}
            self.expect_near(self.outputs(self.library, inputs, "--threads", 1), self.path, inputs)

    def compiled(self):
        """The library that the database gives now, and the schedules of its kernels for the largest size."""
        kernels = json.loads(self.make("compile", "--json"))["kernels"]
        self.check_all_sizes()
        return self.library.read_bytes(), [kernel["steps"] for kernel in kernels]

    def check_what_is_told(self, kernels):
        """What `tune`, `show` and `explain` say of the sizes of kernels."""
        options = ["--db", self.db, "--threads", 1, f"--shape=n=1..{MOST}"]
        shown = {kernel["key"]: kernel for kernel in json.loads(self.succeed("show", self.path, *options, "--json"))["kernels"]}
        measured = [kernel for kernel in kernels if any(table["schedules"][0]["measured"][0] for table in kernel["sizes"])]
        self.assertTrue(measured)
        for kernel in measured:
            table, = kernel["sizes"]
            self.assertEqual((table["decided_by"], table["calls"]), ("n", kernel["times"]))
            self.assertEqual((table["points"][0], table["points"][-1]), ({"value": 1, "run": "n=1"}, {"value": MOST, "run": f"n={MOST}"}))
            ends = [(schedule["from"], schedule["most"]) for schedule in table["schedules"]]
            self.assertEqual([end[0] for end in ends], [1, *(most + 1 for _, most in ends[:-1])])
            self.assertEqual(ends[-1][1], MOST)
            for schedule in table["schedules"]:
                self.assertEqual(sum(schedule["measured"]), 3)
                self.assertTrue(all(seconds > 0 for seconds in schedule["seconds"]))
                times = [row[0] for row in self.sql("SELECT centre FROM trial WHERE part LIKE '%[0]<1' AND steps = ?", schedule["steps"])]
                self.assertTrue(any(abs(time - schedule["seconds"][0]) < 1e-3 * time for time in times), (times, schedule["seconds"]))
            self.assertEqual(shown[kernel["key"]]["sizes"], kernel["sizes"])
            explained = json.loads(self.succeed("explain", self.path, "--task", kernel["key"], "--no-measure", *options, "--json"))
            self.assertEqual((explained["sizes"], explained["steps"]), (kernel["sizes"], kernel["steps"]))
            text = self.succeed("explain", self.path, "--task", kernel["key"], "--no-measure", *options)
            self.assertIn(f"sizes of {table['calls']} call{'s'[:table['calls'] > 1]}: n decides which schedule runs; "
                          f"3 of {len(table['points'])} compared sizes are measured", text)
        self.assertRegex(self.succeed("show", self.path, *options), r"\n\d +n +(\d+\.\.)?\d+.*  1, \d+, 64 ")
        self.assertRegex(self.succeed("compile", self.path, "-o", self.library, *options),
                         rf"other schedules for smaller sizes; measured times decided for {len(measured)},")

    def check_reports(self, run):
        """The pages of the run and of the database: what a kernel's window says of sizes."""
        pages = [self.folder / "run.html", self.folder / "db.html"]
        for source, page in zip((run, self.db), pages, strict=True):
            self.succeed("report", source, "-o", page)
        if not find():
            return
        browser = Browser(find())
        self.addCleanup(browser.close)
        found = []
        for page in pages:
            browser.open(page.as_uri())
            data = "JSON.parse(document.getElementById('data').textContent).runs"
            # A kernel has predictions only if its best schedule is none of those that were measured at sizes.
            told = "row.kernel.parts.length > 0 || row.kernel.sizes.some((table) => table.schedules.some((one) => one.measured.some(Boolean)))"
            browser.evaluate(f"openKernel(kernelRows({data}).find((row) => {told}), {data})")
            browser.evaluate("document.querySelectorAll('dialog details').forEach((one) => { one.open = true; })")
            browser.evaluate("new Promise((done) => setTimeout(done, 100))")
            self.assertEqual(browser.complaints(), [])
            found.append(browser.evaluate("document.querySelector('dialog').innerText"))
        self.assertRegex(found[0], r"Schedules by size: \d, 3 of \d sizes measured")
        self.assertIn(f"at {MOST}", found[0])
        self.assertIn(", for the largest", found[0])
        self.assertIn("Times of parts of the task", found[1])
        self.assertRegex(found[1], r"2\[0\]<1\s+\d+\s+\d+\s")

    def test_measured_sizes_choose_kernels(self):
        run = self.folder / "run.json"
        tuned = json.loads(self.make("tune", "--budget", "12s", "--json", "--report", run))
        sizes = tuned["sizes"]
        self.assertEqual(sizes["skipped"], "")
        self.assertGreater(sizes["kernels"], 0)
        self.check_all_sizes()
        stored = dict(self.sql("SELECT part, count(*) FROM trial WHERE part <> '' GROUP BY part"))
        self.assertEqual(sum(stored.values()), sizes["trials"])
        rows = {part.rpartition("[0]<")[2] for part in stored}  # of the smallest size, one near a quarter, and all
        self.assertEqual(len(rows), 3, stored)
        self.assertLessEqual({"1", "whole"}, rows)
        self.assertEqual(self.sql("SELECT count(*) FROM trial WHERE part <> '' AND verified = 1"), [(0,)])
        shown = self.succeed("db", "show", "--db", self.db)
        self.assertIn("at sizes", shown)
        self.check_what_is_told(tuned["kernels"])
        self.check_reports(run)

        # If all schedules take equally long at every size, there are none but those for the largest;
        # if others take less at one row, they are there.
        self.sql("UPDATE trial SET centre = 1e-3 WHERE part <> ''")
        alone, own = self.compiled()
        self.sql(f"UPDATE trial SET centre = 1e-6 WHERE part LIKE '%[0]<1' AND steps NOT IN ({', '.join('?' * len(own))})", *own)
        self.assertNotEqual(self.compiled()[0], alone)
        self.sql("UPDATE trial SET centre = 1e-3 WHERE part <> ''")
        self.assertEqual(self.compiled()[0], alone, "the same database gives the same library")


if __name__ == "__main__":
    support.main()
