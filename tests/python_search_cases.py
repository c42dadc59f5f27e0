"""Tasks, strategies, cost models and records in Python; python_package_test.py runs these with its package."""
import importlib.util
import json
import os
import re
import sys
import types
import unittest.mock
from pathlib import Path

import numpy as np

import arrow_stand_in
import hone
import support
from python_package import MODEL, ROOT, Package

NOTEBOOKS = sorted((ROOT / "python" / "notebooks").glob("*.ipynb"))


class Random(hone.SearchStrategy):
    def __init__(self):
        self.observed, self.tasks = [], set()

    def propose(self, task, n):
        self.tasks.add(task)
        return task.space().sample(n)

    def observe(self, task, points, seconds):
        self.tasks.add(task)
        self.observed.extend(seconds)


class Tasks(Package):
    def task(self):
        return hone.tasks(MODEL, **self.options)[0]

    def test_a_space_is_arrays(self):
        tasks = hone.tasks(MODEL.read_bytes(), **self.options)
        compiled = self.compiled()
        self.assertEqual({t.key: t.multiplicity for t in tasks}, {t.key: t.multiplicity for t in compiled.summary.tasks})
        for task in tasks:
            space = task.space()
            self.assertIs(space.task, task)
            points = space.sample(20, seed=3)
            self.assertEqual((points.dtype, points.shape), (np.int32, (20, space.width)))
            np.testing.assert_array_equal(points, space.sample(20, seed=3))
            for point in points:
                decisions = space.sketches[point[0]].decisions
                self.assertTrue(all(0 <= choice < len(d.options) for choice, d in zip(point[1:], decisions)))
                self.assertTrue((point[1 + len(decisions):] == -1).all())
            self.assertTrue(space.legal(points).all())
            self.assertEqual(space.mutate(points).shape, points.shape)
            np.testing.assert_array_equal(space.crossover(points, points), points)
            np.testing.assert_array_equal(space.steps(space.locate(space.steps(points[0]))), space.steps(points[0]))
            self.assertIn("kernel", space.program(points[0]))
            features = space.features(points)
            self.assertEqual((features.dtype, features.shape), (np.float32, (20, len(hone.feature_names()))))
            self.assertTrue(np.isfinite(features).all())
            for model in ("analytic", "combined", ""):
                self.assertEqual(space.predict(points, model).shape, (20,))
            for near in space.neighbours(points[0]):
                self.assertEqual(near[0], points[0][0])
        large = max((task.space() for task in tasks), key=lambda space: space.size)
        self.assertFalse(np.array_equal(large.sample(20), large.sample(20)))

    def test_points_are_measured(self):
        space = self.task().space()
        measured = space.measure(space.sample(4, seed=1), rounds=2)
        self.assertEqual(measured.outcomes, ["ok"] * 4)
        self.assertTrue((measured.low <= measured.seconds).all() and (measured.seconds > 0).all())

    def test_wrong_points(self):
        space = self.task().space()
        points = space.sample(3, seed=1)
        self.refused("points: found an array of 1 dimensions", space.features, points[0])
        self.refused("elements of the type float64, expected", space.features, points.astype(float))
        self.refused("expected an array of whole numbers", space.features, [[1], [1, 2]])
        self.refused(f"points have 2 numbers each, expected {space.width}", space.predict, points[:, :2])
        bad = points.copy()
        bad[1, 0] = 99
        self.refused("point 1: the sketch is 99, expected 0 to", space.legal, bad)
        bad[1] = points[1]
        bad[1, 1] = -5
        self.refused("is -5, expected 0 to", space.mutate, bad)
        self.refused("point: found an array of 2 dimensions", space.steps, points)
        self.refused("there are no features 'abacus'", space.features, points, "abacus")
        self.refused("unknown cost model 'abacus'", space.predict, points, "abacus")
        self.refused("0 rounds, expected 1 or more", space.measure, points, 0)
        self.refused("n is -1", space.sample, -1)
        self.refused("there are no features 'abacus'", hone.feature_names, "abacus")
        self.assertEqual(space.features([]).shape[0], 0)

    def test_a_task_is_tuned_alone(self):
        db, states = self.folder / "one.db", []
        task = max(hone.tasks(MODEL, db=db, threads=1), key=lambda task: task.flops * task.multiplicity)
        tuned = task.tune(budget_seconds=30, max_trials=8)
        self.assertTrue(0 < tuned.trials <= 8 and 0 < tuned.seconds <= tuned.untuned_seconds, tuned)
        self.assertEqual((tuned.store_problem, tuned.interrupted), ("", False))
        records = hone.records(db)
        self.assertEqual((set(records["task"]), records.rows), ({task.key}, tuned.trials))
        self.assertGreater(task.tune(on_progress=states.append, budget_seconds=4 * support.PATIENCE).untuned_seconds, 0)
        self.assertTrue(states and states[-1].trials > 0)
        compiled = hone.compile(MODEL, db=db, threads=1)
        self.assertEqual([one.source for one in compiled.summary.tasks if one.key == task.key], ["stored"])

        def enough(state):
            raise LookupError("enough")

        with self.assertRaises(LookupError):
            task.tune(on_progress=enough, budget_seconds=60)
        self.assertGreater(hone.records(db).rows, records.rows)
        self.refused("an option of hone.tasks, which Task.tune does not take", task.tune, threads=1)
        self.refused("there is no option 'treads'", task.tune, treads=1)
        self.refused("expected no option mode", task.tune, mode="quality")

    def test_time_is_divided_by_what_it_gains(self):
        scheduler = hone.TaskScheduler([1, 4, 1], [1e-3, 2e-3, 1e-3], [0, 1, 0])
        self.assertEqual((len(scheduler), scheduler.next(), round(scheduler.total(), 9)), (3, 1, 1e-2))
        scheduler.start(1)
        self.assertNotEqual(scheduler.next(), 1)
        scheduler.withdraw(1)
        self.assertEqual(scheduler.next(), 1)
        scheduler.start(1)
        scheduler.report(1, 2.0, 1e-3)
        scheduler.set_bound(1, 0.99e-3)
        self.assertTrue(scheduler.at_limit(1))
        self.assertEqual((scheduler.best(1), scheduler.spent(1), scheduler.gain(1), scheduler.gain_in(1, 10)), (1e-3, 2.0, 0.0, 0.0))
        for task in (0, 2):
            scheduler.finish(task)
        self.assertEqual(scheduler.next(), -1)
        self.refused("there is no task 3, expected 0 to 2", scheduler.report, 3, 1.0, 1.0)
        self.refused("spent is negative", scheduler.report, 0, -1.0, 1.0)
        self.refused("expected one for each task", hone.TaskScheduler, [1, 2], [1e-3])

    def test_a_fork_is_told_that_it_has_no_task(self):
        space = self.task().space()
        child = os.fork()
        if child == 0:
            try:
                space.measure(space.sample(1))
                os._exit(1)
            except hone.InputError as error:
                os._exit(0 if "forked" in str(error) else 2)
            except BaseException:
                os._exit(3)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Searching(Package):
    def tune(self, **options):
        return hone.tune(MODEL, self.folder / "tuned.so", progress=False, **{**self.options, "budget_seconds": 60, "max_trials": 12, **options})

    def test_a_strategy_and_a_model_take_part(self):
        class Model(hone.CostModel):
            predicted = learned = 0

            def predict(self, batch):
                self.predicted += len(batch.features)
                assert batch.features.shape == (len(batch.estimates), len(hone.feature_names())) and batch.threads == 1
                return batch.estimates

            def update(self, batch, seconds):
                self.learned += len(seconds)
                assert len(seconds) == len(batch.features)

        strategy, model, waited = Random(), Model(), hone._native.call_seconds()
        tuned = self.tune(search=strategy, cost_model=model, db=self.folder / "hone.db", use_db=True)
        self.assertGreater(hone._native.call_seconds(), waited)
        self.assertGreaterEqual(tuned.summary.compiled, tuned.summary.trials)
        self.assertTrue(0 < tuned.summary.trials <= 12)
        self.assertGreaterEqual(len(strategy.observed), tuned.summary.trials // 2)
        self.assertTrue(model.predicted > 0 and model.learned > 0)
        np.testing.assert_allclose(tuned(self.image()), self.expected(self.image()), atol=1e-4)
        table = hone.records(self.folder / "hone.db")
        self.assertGreaterEqual(table.rows, tuned.summary.trials)  # a candidate that cannot run has a record, too
        task = next(iter(strategy.tasks))  # of a search that has ended
        points = task.space().sample(2)
        self.assertEqual(task.space().predict(points, "analytic").shape, (2,))
        self.refused("only while the search calls its strategy", task.space().predict, points)
        self.refused("is measured by the search", task.space().measure, points)

    def test_a_strategy_is_asked_for_as_many_as_it_says(self):
        class Many(Random):
            batch_size = 48

            def __init__(self):
                super().__init__()
                self.calls = []

            def propose(self, task, n):
                self.calls.append((task, n))
                return super().propose(task, n)

            def observe(self, task, points, seconds):
                self.calls.append((task, 0))
                super().observe(task, points, seconds)

        strategy = Many()
        tuned = self.tune(search=strategy)
        self.assertEqual({n for _, n in strategy.calls if n}, {48})
        self.assertGreaterEqual(len(strategy.observed), tuned.summary.trials)
        for task in strategy.tasks:  # is told what was measured right before it is asked again, and at the end
            calls = [n for asked, n in strategy.calls if asked is task]
            self.assertNotIn((0, 0), list(zip(calls, calls[1:])))

    def test_a_model_learns_if_it_has_an_update_of_its_own(self):
        from hone._search import learns

        class Learning(hone.CostModel):
            def update(self, batch, seconds):
                return super().update(batch, seconds)

        patched, foreign = hone.CostModel(), types.SimpleNamespace(predict=len)
        patched.update = lambda batch, seconds: None
        self.assertEqual([learns(model) for model in (hone.CostModel(), Learning(), patched, foreign)], [False, True, True, False])

        class Analytic(hone.CostModel):
            def predict(self, batch):
                return batch.estimates

        asked = []
        with unittest.mock.patch.object(hone.CostModel, "update", lambda model, batch, seconds: asked.append(model)):
            self.tune(cost_model=Analytic(), max_trials=4)
        self.assertEqual(asked, [])

    def test_an_exception_ends_the_search_and_what_was_measured_stays(self):
        class Enough(Random):
            def propose(self, task, n):
                if self.observed:
                    raise LookupError("enough")
                return super().propose(task, n)

        strategy = Enough()
        with self.assertRaises(LookupError):
            self.tune(search=strategy, max_trials=0, budget_seconds=300, db=self.folder / "hone.db", use_db=True)
        self.assertGreater(hone.records(self.folder / "hone.db").rows, 0)
        np.testing.assert_allclose(hone.load(self.folder / "tuned.so", 1)(self.image()), self.expected(self.image()), atol=1e-4)

        class Broken(hone.CostModel):
            def predict(self, batch):
                raise LookupError("broken")

        with self.assertRaises(LookupError):
            self.tune(cost_model=Broken())

    def test_wrong_answers_of_strategies_and_models(self):
        def answering(points):
            strategy = Random()
            strategy.propose = lambda task, n: points(task.space(), n)
            return {"search": strategy}

        def predicting(seconds, **attributes):
            model = hone.CostModel()
            model.predict = lambda batch: seconds(len(batch.features))
            vars(model).update(attributes)
            return {"cost_model": model}

        for message, parts in {
                "the sketch is 77": answering(lambda space, n: np.full((1, space.width), 77)),
                "elements of the type float64": answering(lambda space, n: space.sample(n) * 1.0),
                "points, expected at most": answering(lambda space, n: space.sample(n + 1)),
                "the strategy's proposal: found elements of the type str": answering(lambda space, n: "none"),
                "nan seconds for row 0": predicting(lambda n: np.full(n, np.nan)),
                "array of 2 dimensions": predicting(lambda n: np.ones((n, 1))),
                "no features 'abacus'": predicting(np.ones, features="abacus"),
                "features are of the Python type int": predicting(np.ones, features=3),
                "are of GPUs": predicting(np.ones, features="gpu")}.items():
            with self.subTest(message):
                self.refused(message, self.tune, max_trials=2, check=False, **parts)
        for size, said in (0, "0"), (-3, "-3"), (2.5, "2.5"), ("many", "'many'"):
            strategy = Random()
            strategy.batch_size = size
            self.refused(f"the strategy's batch_size is {said}, expected a whole number above 0 or None", self.tune, search=strategy)
        self.refused("search is the Python type str", self.tune, search="random")
        self.refused("search is the class Random", self.tune, search=Random)
        self.refused("cost_model is the Python type", self.tune, cost_model=Random())
        self.refused("expected no option strategy", self.tune, search=Random(), strategy="random")
        self.refused("expected no option guide", self.tune, cost_model=hone.CostModel(), guide="analytic")

    def test_ctrl_c_reaches_a_strategy_that_hangs(self):
        out = self.succeed_script("""
            import hone, os, signal, threading, time
            class Hanging(hone.SearchStrategy):
                def propose(self, task, n):
                    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                    while True: time.sleep(0.01)
            try:
                hone.tune(os.environ["MODEL"], "tuned.so", use_db=False, budget_seconds=300, threads=1, search=Hanging(), progress=False)
            except KeyboardInterrupt:
                print("interrupted", os.path.exists("tuned.so"))
            """)
        self.assertEqual(out, "interrupted True\n")


class Records(Package):
    def test_records_and_data_sets_are_tables(self):
        db = self.folder / "hone.db"
        hone.tune(MODEL, self.folder / "tuned.so", progress=False, db=db, threads=1, budget_seconds=300, max_trials=80, search=Random())
        table = hone.records(db)
        self.assertEqual(table.rows, len(table["seconds"]))
        self.assertEqual((table["task"].dtype, table["seconds"].dtype, table["verified"].dtype), (np.uint64, np.float64, bool))
        self.assertTrue(((table["outcome"] == "ok") == np.isfinite(table["seconds"])).all())
        array = table.structured()
        self.assertEqual(array.dtype.names, tuple(table))
        np.testing.assert_array_equal(array["steps"], table["steps"])
        key = int(table["task"][0])
        self.assertEqual(hone.records(db, task=key).rows, (table["task"] == key).sum())
        self.assertEqual(hone.records(db, threads=77).rows, 0)
        data = hone.dataset(db)
        self.assertEqual(data["combined"].shape, (data.rows, len(hone.feature_names("combined"))))
        self.assertEqual(data.meta["combined"], hone.feature_names("combined"))
        self.assertTrue(set(data["task"]) <= set(range(len(data.meta["tasks"]))))
        for each in (table, data):
            self.become_tables_of_arrow(each)
        self.refused("", hone.records, self.folder / "missing.db")
        self.judge(db)

    def become_tables_of_arrow(self, table):
        """By PyArrow, or by a stand-in for it; without either of them there is one message."""
        with unittest.mock.patch.dict(sys.modules, {"pyarrow": None}):
            self.refused("needs the package pyarrow: pip install pyarrow", table.arrow)
        stand_in = {} if importlib.util.find_spec("pyarrow") else {"pyarrow": arrow_stand_in}
        with unittest.mock.patch.dict(sys.modules, stand_in):
            arrow, stream = table.arrow(), table.__arrow_c_stream__()
        self.assertEqual(arrow.num_rows, table.rows)
        for name, column in table.items():
            np.testing.assert_array_equal(np.array(arrow[name].to_pylist(), column.dtype), column, name)
        if stand_in:
            self.assertEqual(stream, ("stream", None, list(table)))
        else:
            self.assertIn("arrow_array_stream", repr(stream))

    def judge(self, db):
        class Analytic(hone.CostModel):
            def predict(self, batch):
                return batch.estimates

        class Broken(hone.CostModel):
            def predict(self, batch):
                raise LookupError("broken")

        named, own = hone.evaluate(db, "analytic", device="host/1"), hone.evaluate(db, cost_model=Analytic(), device="host/1")
        self.assertGreater(named.all.tasks, 0)
        self.assertEqual((named.all.top1, named.all.pair_accuracy), (own.all.top1, own.all.pair_accuracy))
        with self.assertRaises(LookupError):
            hone.evaluate(db, cost_model=Broken(), device="host/1")
        trees = hone.evaluate(db, "gbdt", split="within", device="host/1")  # they are trained for that
        self.assertGreater(trees.all.pair_accuracy, 0)
        bundled = Path(self.site) / "hone" / "prefix" / "lib" / "libxgboost.so.0"
        if bundled.exists():  # as where the wheel was made on a machine that has it
            self.assertIn(str(bundled.resolve()), Path("/proc/self/maps").read_text())
        self.refused("judged as it is", hone.evaluate, db, "analytic", cost_model=Analytic(), device="host/1")


class SearchDocumentation(Package):
    def run_text(self, text):
        text = text.replace('"resnet18.onnx"', repr(str(MODEL))).replace("../../examples", str(ROOT / "examples"))
        return self.succeed_script("import os\nos.environ['XDG_DATA_HOME'] = 'data'\n" + text)

    def test_the_examples_run(self):
        found = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "user" / "research.md").read_text(), re.M | re.S)
        self.run_text(re.sub(r"(hone\.tune\(.*)budget_seconds=\d+", r"\1budget_seconds=60, max_trials=60, check=False", "\n".join(found)))

    def test_the_notebooks_run_and_are_kept_without_results(self):
        self.assertEqual([path.name for path in NOTEBOOKS], ["cost_model.ipynb", "tune.ipynb"])
        for path in NOTEBOOKS:
            with self.subTest(path.name):
                cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
                self.assertEqual([cell["outputs"] for cell in cells], [[]] * len(cells))
                self.run_text("\n".join("".join(cell["source"]) for cell in cells))
