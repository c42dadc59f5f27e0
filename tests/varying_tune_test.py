"""Tuning libraries of ranges: kernels are measured at several sizes, and who compiles with the database uses these times."""
import json
import sqlite3

import numpy as np

import support
import varying_models
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

    def test_measured_sizes_choose_kernels(self):
        sizes = json.loads(self.make("tune", "--budget", "12s", "--json"))["sizes"]
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
