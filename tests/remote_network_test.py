"""A machine elsewhere over a network that is slow and loses packets: tuning and running a model end, with right results."""
import json
import unittest

import numpy as np

import support
from lossy_network import LossyNetwork, unable
from remote_machine import Server
from support import Case, small_network

WHY = unable()


@unittest.skipIf(WHY, WHY)
class SlowNetwork(Case):
    def setUp(self):
        super().setUp()
        self.network = self.enterContext(LossyNetwork(delay=0.05, loss=0.02))
        self.token = self.folder / "token"
        self.server = Server(support.HONE, self.token, "--listen", self.network.far.address)
        self.network.far.run(self.server.start)
        self.addCleanup(self.server.kill)
        self.board = self.folder / "board.toml"
        self.board.write_text(f'address = "{self.network.far.address}:{self.server.port}"\ntoken_file = "token"\n')

    def hone(self, *arguments):
        """Runs on the near host."""
        return self.network.near.run(lambda: support.hone(*arguments, "--machine", self.board, "--json"))

    def test_tunes_and_runs(self):
        model, library = self.save(small_network()), self.folder / "model.so"
        done = self.hone("tune", model, "-o", library, "--db", self.folder / "trials.db", "--threads", 1, "--budget", "14s")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertGreater(report["trials"], 0)
        self.assertEqual(report["failures"], {})
        x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        done = self.hone("run", library, "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        (expected,) = support.reference(model, {"x": x}).values()
        self.assertLessEqual(support.relative_error(np.load(self.folder / "out" / "y.npy"), expected), 1e-4)
        self.assertGreater(self.network.lost, 0)
        self.assertLess(json.loads(done.stdout)["min_seconds"], 0.05)  # a run's time is without the network


if __name__ == "__main__":
    support.main()
