"""Compiles models of several subgraphs that run at several feeds, and compares every output of every run."""
import subprocess
import sys
from pathlib import Path

import numpy as np

from differences import difference
from kinds.oracles import ir_version, is_plain
from runner import Refused, Runner, hone

RUNS = Path(__file__).resolve().parent / "runs.py"


class KindRunner(Runner):
    def __init__(self, opset, folder, arguments=()):
        super().__init__(opset, folder, arguments)
        self.ir_version = ir_version({"": opset})

    def outputs(self, subgraphs):
        """{"NUMBER:NAME": array}"""
        library, feeds, outputs = (self.folder / name for name in ("model.so", "feeds.npz", "outputs.npz"))
        ranges = {symbol: ends for subgraph in subgraphs for symbol, ends in subgraph.symbols().items()}
        shapes = [f"--shape={symbol}={least}..{most}" for symbol, (least, most) in ranges.items()]
        hone("compile", self._save(subgraphs), "-o", library, "--no-db", "--no-check", "--threads", 2, *shapes, *self.arguments)
        count = subgraphs[0].feeds
        arrays = {f"{i}:{v.name}": v.arrays[i] for subgraph in subgraphs for v in subgraph.inputs() for i in range(count)}
        np.savez(feeds, count=count, **{name: array if is_plain(array) else array.view(np.uint8) for name, array in arrays.items()})
        done = subprocess.run([sys.executable, RUNS, str(library), str(feeds), str(outputs)], capture_output=True, text=True)
        if done.returncode != 0:
            # A branch that fits in no shape that was compiled is refused when a run would take it.
            left_out = "this run would take the" in done.stderr
            raise Refused(f"running it ended with exit code {done.returncode}: {done.stderr.strip()[-1000:]}", clean=left_out)
        with np.load(outputs) as found:
            return dict(found)

    def differences(self, subgraph, found):
        wrong = {}
        for name in subgraph.outputs:
            value = subgraph.values[name]
            for i, expected in enumerate(value.arrays):
                what = difference(found[f"{i}:{name}"], expected, rounds=value.rounds)
                if what and name not in wrong:
                    wrong[name] = f"run {i}: {what}"
        return list(wrong.items())

    def other_opinion(self, subgraph, name):
        return f" (by {' and '.join(sorted(subgraph.supported_by())) or 'either oracle, node by node'})"
