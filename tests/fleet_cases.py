"""hone.fleet on a real Ray cluster of several node processes, with a PostgreSQL server: nodes come and are killed under way; bad nodes.

python_package_test.py --fleet runs these with its package. They need Ray, and a machine that is not busy: Ray gives up nodes that take
long to start."""
import contextlib
import io
import json
import os
import re
import shutil
import socket
import tempfile
import time
import unittest.mock
import warnings
from pathlib import Path

import numpy as np

import hone
import support
from postgres_server import Server
from python_package import MODEL, ROOT, Package
from support import small_network


class Cluster:
    """A Ray cluster whose nodes are processes of this machine; the head has no device."""

    def __init__(self, site):
        # A node that is killed is known to be gone after some seconds.
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_health_check_initial_delay_ms="1000", RAY_health_check_period_ms="1000",
                          RAY_health_check_failure_threshold="3", RAY_raylet_start_wait_time_s="120", PYTHONPATH=str(site))
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "include_log_monitor": False})
        self.address = self.cluster.address

    def add(self, device, **environment):
        """Starts a node with one such device."""
        return self.cluster.add_node(num_cpus=1, resources={f"hone:{device}": 1}, env_vars=environment, wait=True)

    def kill(self, node):
        """As when the machine loses its power."""
        self.cluster.remove_node(node, allow_graceful=False)

    def close(self):
        self.cluster.shutdown()


class Fleet(Package):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server()
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.__enter__()
        cls.cluster = Cluster(cls.site)
        cls.addClassCleanup(cls.cluster.close)

    def node(self, device, **environment):
        """A node for the time of a test."""
        node = self.cluster.add(device, **environment)
        self.addCleanup(self.remove, node)
        return node

    def remove(self, node):
        with contextlib.suppress(Exception):  # the test has killed it
            self.cluster.kill(node)

    def fleet_refused(self, message, **options):
        from hone import fleet
        begin = time.monotonic()
        arguments = {"db": self.server.uri, "address": self.cluster.address, "budget_seconds": 20, **options}
        self.refused(message, fleet.tune, MODEL, **arguments)
        self.assertLess(time.monotonic() - begin, 30)

    def test_nodes_come_and_are_killed_while_models_are_tuned(self):
        from hone import fleet
        db = self.server.create("fleet")
        first, second = self.node("host"), self.node("host")
        models = [MODEL, self.save(small_network(), "network.onnx")]
        states, stored = [], []

        class EnoughError(Exception):
            """It ends the run as Ctrl-C does."""

        def show(state):
            states.append(state)
            if state.slices >= 3 and not stored:
                stored.append((hone.records(db), state.slices))
                self.cluster.kill(second)
                self.node("host")
            elif stored and state.lost and state.workers == 2 and state.slices >= stored[0][1] + 6 and len(set(hone.records(db)["model"])) == 2:
                raise EnoughError  # on a busy machine, a model may get its first record late

        with self.assertRaises(EnoughError):
            fleet.tune(models, self.folder / "made", db=db, address=self.cluster.address, budget_seconds=200, slice_seconds=2, null_seconds=0.05,
                       threads=1, cost="analytic", strategy="random", on_progress=show)
        self.assertGreaterEqual(states[-1].lost, 1)
        self.assertEqual(states[-1].workers, 2)  # for a while the killed one may count beside the new one

        records, (before, _) = hone.records(db), stored[0]  # nothing that was stored is gone
        self.assertGreater(before.rows, 0)
        self.assertTrue(set(zip(before["task"], before["steps"])) <= set(zip(records["task"], records["steps"])))
        self.assertGreater(records.rows, before.rows)

        for source in models:
            library = hone.load(self.folder / "made" / f"{source.stem}.so", 1)
            name = library.inputs[0].name
            image = np.random.default_rng(1).standard_normal(library.inputs[0].shape).astype(np.float32)
            expected, = support.reference(source, {name: image}).values()
            np.testing.assert_allclose(library(image), expected, atol=1e-4)
        again = hone.compile(MODEL, db=db, threads=1, cost="analytic")
        self.assertIn("stored", {task.source for task in again.summary.tasks})

    def test_bad_nodes_are_named(self):
        nowhere = self.folder / "nowhere"
        nowhere.mkdir()
        other = self.folder / "other" / "hone"
        other.mkdir(parents=True)
        (other / "__init__.py").write_text("__version__ = '0.0.9'\nclass Error(Exception): pass\n")
        renamed = self.folder / "renamed"
        renamed.mkdir()
        (renamed / "sitecustomize.py").write_text("import socket\nsocket.gethostname = lambda: 'elsewhere'\n")
        cases = {"host-avx2": ({"PYTHONPATH": str(nowhere)}, "it cannot import the package hone"),
                 "host-sse": ({"PYTHONPATH": str(other.parent)}, "it has version 0.0.9 of hone, expected " + hone.__version__),
                 "host": ({"PGOPTIONS": "--nonsense=1"}, "cannot connect to database")}
        for device, (environment, _) in cases.items():
            self.node(device, **environment)
        for device, (_, message) in cases.items():
            with self.subTest(message):
                self.fleet_refused(message, device=device)
        with self.subTest("two hosts, one file"):
            file = self.folder / "shared.db"
            self.node("host", PYTHONPATH=f"{renamed}:{self.site}")
            self.fleet_refused("which hosts cannot share", db=file)
        self.fleet_refused("no node of the Ray cluster has the resource 'hone:cuda'", device="cuda")

    def test_bad_arguments(self):
        from hone import fleet
        self.fleet_refused("there is no Ray cluster at '127.0.0.1:1'", address="127.0.0.1:1")
        self.fleet_refused("is none of a Ray cluster", address="nonsense")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.fleet_refused("there is no Ray cluster at", address=f"127.0.0.1:{silent.getsockname()[1]}")
        self.fleet_refused("expected a number of 1 or more", workers=0)
        self.fleet_refused("a number of seconds above 0", budget_seconds=-1)
        self.fleet_refused("no option 'treads' of a fleet", treads=1)
        self.fleet_refused("no option 'machine' of a fleet", machine="grpc://127.0.0.1:1")
        self.fleet_refused("seed is 'one', expected a whole number", seed="one")
        self.fleet_refused("a fleet needs a store", db=None)
        with self.assertRaisesRegex(hone.Error, "cannot connect to database"):
            fleet.tune(MODEL, db="postgres://hone@127.0.0.1:1/hone", address=self.cluster.address, budget_seconds=20)
        with unittest.mock.patch("ray.init", side_effect=Exception("The current node timed out\nduring startup.")):
            self.refused("Ray does not start on this machine: The current node timed out", fleet.tune, MODEL, kind=hone.InternalError,
                         db=self.folder / "trials.db")
        self.succeed_script("""
            import sys
            sys.modules["ray"] = None
            import hone.fleet
            try:
                hone.fleet.tune("model.onnx", db="hone.db")
            except hone.InputError as error:
                assert "pip install 'hone[fleet]'" in str(error), error
            else:
                sys.exit("no error")
            """)

    def test_a_data_set_is_divided_and_models_are_trained_on_it(self):
        from hone import fleet
        db = self.server.create("data")
        self.node("host"), self.node("host")
        models = [MODEL, self.save(small_network(), "network.onnx")]
        report = fleet.make_dataset(models, db=db, address=self.cluster.address, budget_seconds=30, null_seconds=0, threads=[1], schedules=16)
        self.assertTrue(report.complete, report)
        self.assertEqual((report.workers, report.lost), (2, 0))
        self.assertGreaterEqual(report.records, 8 * report.tasks)
        self.assertEqual(len(set(hone.records(db)["task"])), report.tasks)
        again = fleet.make_dataset(models, db=db, address=self.cluster.address, budget_seconds=30, null_seconds=0, threads=[1], schedules=16)
        self.assertEqual((again.complete, again.records), (True, 0))

        seen = []
        results = fleet.sweep([{"cost": "combined", "options": "trees=4"}, {"cost": "gbdt", "options": "trees=4"}, {"cost": "abacus"}],
                              self.folder / "swept", db=db, address=self.cluster.address, by="within", fraction=0.5, on_result=seen.append)
        self.assertEqual(len(seen), 3)
        self.assertIn("abacus", results[2].problem)
        for result in results[:2]:
            self.assertEqual(result.problem, "")
            self.assertTrue(0 < result.top1 <= result.top5 <= 1, result)
            self.assertGreater(Path(result.path).stat().st_size, 100)

    def test_models_given_as_bytes_are_told_apart_and_workers_leave_no_files(self):
        from hone import fleet
        self.node("host")
        before = set(Path(tempfile.gettempdir()).glob("hone-fleet-*"))  # those of workers that were killed in other tests
        models = [MODEL, self.save(small_network(), "network.onnx")]
        common = {"address": self.cluster.address, "budget_seconds": 30, "null_seconds": 0, "threads": [1], "schedules": 4}
        by_path = fleet.make_dataset(models, db=self.server.create("paths"), **common)
        by_bytes = fleet.make_dataset([model.read_bytes() for model in models], db=self.server.create("bytes"), **common)
        self.assertEqual(by_bytes.tasks, by_path.tasks)
        self.assertEqual(set(Path(tempfile.gettempdir()).glob("hone-fleet-*")) - before, set())

    def test_all_that_is_public_is_documented(self):
        from hone import fleet
        for name in fleet.__all__:
            thing = getattr(fleet, name)
            self.assertTrue(thing.__doc__, name)
            fields = getattr(thing, "__dataclass_fields__", None) or getattr(thing, "_fields", ())
            self.assertEqual([field for field in fields if field not in thing.__doc__], [], name)

    def test_the_examples_run(self):
        """On a cluster of one node that measures nothing, with small models and databases of this server."""
        found = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "user" / "fleet.md").read_text(), re.M | re.S)
        self.assertEqual(len(found), 2)
        self.node("host")
        shutil.copy(MODEL, self.folder / "resnet50.onnx")
        network = small_network()
        network.graph.name = "bert"  # by which its measurements are found
        self.save(network, "bert.onnx")
        text = "\n".join(found).replace("HEAD:6379", self.cluster.address).replace("threads=4", "threads=1, null_seconds=0.02")
        for name in ("hone", "data"):
            text = text.replace(f"postgres://hone@server/{name}", self.server.create(f"examples_{name}"))
        text = text.replace("schedules=64", "schedules=8, null_seconds=0")
        out = self.succeed_script(text.replace("budget_seconds=3600", "budget_seconds=5", 1))  # of the tuning
        self.assertRegex(out, r"(?m)^resnet50 \S+ \S+ libraries/resnet50\.so\nbert \S+ \S+ libraries/bert\.so$")
        self.assertRegex(out, r"(?m)^\{'cost': 'combined', 'options': 'leaves=\d+'\} 0\.\d+ models/\d\.model$")

    def test_mistakes_in_a_command_are_named(self):
        from hone.fleet.__main__ import main
        files = {"object.json": '{"cost": "gbdt"}', "text.json": '["gbdt"]', "name.json": '[{"csot": "gbdt"}]', "cut.json": "[{", "empty.json": "[]",
                 "good.json": '[{"cost": "gbdt"}]'}
        for name, text in files.items():
            (self.folder / name).write_text(text)
        tune, sweep = ["tune", str(MODEL), "--db", "hone.db"], ["sweep", "-o", str(self.folder / "made"), "--db", "missing.db"]
        cases = [([*tune, "--option", "treads=1"], "--option treads: there is no such option of tune, expected one of accuracy, "),
                 ([*tune, "--option", "machine=here"], "--option machine: there is no such option of tune"),
                 ([*tune, "--option", "threads=1", "--option", "threads=2"], "--option threads: it is given twice"),
                 ([*tune, "--option", "device=host"], "--option device: expected --device instead"),
                 ([*tune, "--option", "threads"], "--option threads: expected NAME=VALUE"),
                 ([*tune, "--option", "seed={[]: 1}"], "seed is '{[]: 1}', expected a whole number"),
                 (["dataset", str(MODEL), "--db", "hone.db", "--workers", "0"], "workers is 0, expected a number of 1 or more"),
                 (["dataset", str(MODEL), "--db", "hone.db", "--option", "only=1"], "--option only: there is no such option of dataset"),
                 ([*sweep, str(self.folder / "missing.json")], "missing.json: No such file or directory, expected a JSON file"),
                 ([*sweep, str(self.folder / "object.json")], "object.json: the configurations are of the Python type dict, expected a list"),
                 ([*sweep, str(self.folder / "text.json")], "text.json: configuration 0 is 'gbdt', expected an object of options"),
                 ([*sweep, str(self.folder / "name.json")], "name.json: configuration 0: there is no option 'csot' of a sweep"),
                 ([*sweep, str(self.folder / "cut.json")], "cut.json: "), ([*sweep, str(self.folder / "empty.json")], "expected one or more"),
                 ([*sweep, str(self.folder / "good.json"), "--option", "held_out=bert"], "held_out is 'bert', expected a list of names"),
                 (["sweep", str(self.folder / "good.json"), "-o", str(self.folder / "cut.json"), "--db", "missing.db"], "expected a folder")]
        for arguments, message in cases:
            with self.subTest(message), contextlib.redirect_stderr(io.StringIO()) as printed:
                self.assertEqual(main(arguments), 2)
                self.assertIn(message, printed.getvalue())
                self.assertEqual(printed.getvalue().count("\n"), 1)

    def test_the_command(self):
        self.node("host")
        out = self.succeed_script(f"""
            import sys
            from hone.fleet.__main__ import main
            code = main(["tune", {str(MODEL)!r}, "-o", "made", "--db", "hone.db", "--budget", "4s", "--slice", "1s", "--option", "null_seconds=0.02",
                         "--option", "threads=1", "--option", "strategy=random", "--address", {self.cluster.address!r}, "--json"])
            assert code == 0
            assert main(["tune", "missing.onnx", "--db", "hone.db", "--address", {self.cluster.address!r}]) == 2
            """)
        printed = json.loads(out.splitlines()[-1])
        self.assertEqual(printed["models"][0]["library"], "made/small.so")
        self.assertGreater(printed["trials"], 0)
        self.assertEqual(sum(worker["trials"] for worker in printed["workers"]), printed["trials"])
        self.assertTrue((self.folder / "made" / "small.so").exists())
