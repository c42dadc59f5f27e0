"""Search strategies and cost models in Python beside the same ones in C++: trials a second of hone.tune, in turns.

    PYTHONPATH=SITE benchmarks/python_search.py MODEL.onnx

SITE is the folder of an installed package (pip install --target SITE ./python). Before that it says what a candidate costs
in a call of a strategy and of a model that do nothing.
"""
import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import hone


class Random(hone.SearchStrategy):
    """What the strategy `random` does."""

    def propose(self, task, n):
        return task.space().sample(n)


class Analytic(hone.CostModel):
    """What the model `analytic` predicts."""

    def predict(self, batch):
        return batch.estimates


class Linear(hone.CostModel):
    """Learns as `combined` does, but a linear correction instead of trees."""

    def __init__(self):
        self.rows, self.logs, self.weights = [], [], None

    def predict(self, batch):
        if self.weights is None:
            return batch.estimates
        return batch.estimates * np.exp(np.clip(self.inputs(batch) @ self.weights, -2, 2))

    def update(self, batch, seconds):
        ran = np.isfinite(seconds)
        self.rows.append(self.inputs(batch)[ran])
        self.logs.append(np.log(seconds[ran] / batch.estimates[ran]))
        x, y = np.concatenate(self.rows), np.concatenate(self.logs)
        self.weights = np.linalg.solve(x.T @ x + 30 * np.eye(x.shape[1]), x.T @ y)

    @staticmethod
    def inputs(batch):
        x = batch.features.astype(np.float64)
        return np.sign(x) * np.log1p(np.abs(x))


PAIRS = {"random strategy": ({"strategy": "random"}, lambda: {"search": Random()}),
         "analytic model": ({"guide": "analytic"}, lambda: {"cost_model": Analytic()}),
         "model that learns": ({"guide": "combined"}, lambda: {"cost_model": Linear()})}


class Watched:
    """Counts what goes through a strategy or a model, and the seconds that its functions take."""

    def __init__(self, of):
        self.of, self.features = of, getattr(of, "features", None)
        self.seconds, self.candidates, self.calls = 0.0, 0, 0

    def timed(self, function, *arguments):
        begin = time.perf_counter()
        result = function(*arguments)
        self.seconds += time.perf_counter() - begin
        self.candidates += len(result)
        self.calls += 1
        return result

    def propose(self, task, n):
        return self.timed(self.of.propose, task, n)

    def observe(self, task, points, seconds):
        self.of.observe(task, points, seconds)

    def predict(self, batch):
        return self.timed(self.of.predict, batch)


def trials_a_second(model, folder, options):
    summary = hone.tune(model, folder / "model.so", progress=False, **options).summary
    return summary.trials / summary.search_seconds, summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--budget", type=float, default=20, help="seconds of a tune")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    common = {"use_db": False, "threads": arguments.threads, "budget_seconds": arguments.budget, "check": False}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, watched in ("strategy", Watched(Random())), ("model", Watched(Analytic())):
            part = {"search" if what == "strategy" else "cost_model": watched}
            trials_a_second(arguments.model, folder, {**common, **part})
            print(f"{what}: {watched.calls} calls of {watched.candidates / watched.calls:.1f} candidates, "
                  f"{watched.seconds / watched.candidates * 1e6:.2f} us of Python a candidate", flush=True)
        for pair, (native, made) in PAIRS.items():
            rates = {"C++": [], "Python": []}
            for _ in range(arguments.turns):
                for language, options in ("C++", native), ("Python", made()):
                    rate, summary = trials_a_second(arguments.model, folder, {**common, **options})
                    rates[language].append(rate)
                    print(f"  {pair}, {language}: {rate:.1f} trials a second, {summary.spent.choosing:.2f} s of choosing", flush=True)
            medians = {language: statistics.median(found) for language, found in rates.items()}
            print(f"{pair}: {medians['C++']:.1f} trials a second in C++, {medians['Python']:.1f} in Python, "
                  f"ratio {medians['Python'] / medians['C++']:.2f}", flush=True)


if __name__ == "__main__":
    main()
