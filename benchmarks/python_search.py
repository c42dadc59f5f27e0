"""Search strategies and cost models in Python beside the same ones in C++: trials and candidates a second of hone.tune,
in turns.

    PYTHONPATH=SITE benchmarks/python_search.py MODEL.onnx

SITE is the folder of an installed package (pip install --target SITE ./python). Each line of a run has the candidates
that were compiled; of Python's part also the candidates that it proposed or predicted, and what one of them cost: in
the function, and for crossing from the thread that searches into Python and back, with arrays made of the candidates
and of the answer.
"""
import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import hone
from hone import _native
from hone._search import learns


class Random(hone.SearchStrategy):
    """What the strategy `random` does."""

    def propose(self, task, n):
        return task.space().sample(n)


class Batches(Random):
    """The same, asked for many points at a time."""

    batch_size = 64


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


PAIRS = {"random strategy": ({"strategy": "random"}, lambda: {"search": Watched(Random())}),
         "random strategy, 64 at a time": ({"strategy": "random"}, lambda: {"search": Watched(Batches())}),
         "analytic model": ({"guide": "analytic"}, lambda: {"cost_model": Watched(Analytic())}),
         "model that learns": ({"guide": "combined"}, lambda: {"cost_model": Watched(Linear())})}


class Watched:
    """Counts what goes through the functions of a strategy or a model, and the seconds that they take."""

    def __init__(self, of):
        self.features, self.batch_size = getattr(of, "features", None), getattr(of, "batch_size", None)
        self.seconds, self.candidates, self.calls = 0.0, 0, 0
        self.crossed = _native.call_seconds()  # before it was called
        for name in ("propose", "observe", "predict", "update"):
            function = getattr(of, name, None)
            if function is not None and (name != "update" or learns(of)):
                setattr(self, name, self.timed(function, counts=name in ("propose", "predict")))

    def timed(self, function, counts):
        def call(*arguments):
            begin = time.perf_counter()
            result = function(*arguments)
            self.seconds += time.perf_counter() - begin
            self.calls += 1
            if counts:
                self.candidates += len(result)
            return result

        return call

    def costs(self, summary):
        """What its candidates are, and what one of them costs."""
        crossing = _native.call_seconds() - self.crossed - self.seconds
        return (f"{self.candidates / summary.trials:.1f} candidates a trial through Python, "
                f"{self.candidates / summary.search_seconds:.0f} a second, {self.candidates / self.calls:.1f} a call; "
                f"of each {self.seconds / self.candidates * 1e6:.2f} us in the functions and "
                f"{crossing / self.candidates * 1e6:.2f} us for crossing")


def tuned(model, folder, options):
    """(trials a second, what is to be said about a run)"""
    parts = [options[name] for name in ("search", "cost_model") if name in options]
    summary = hone.tune(model, folder / "model.so", progress=False, **options).summary
    rate = summary.trials / summary.search_seconds
    said = [f"{rate:.1f} trials a second", f"{summary.compiled / summary.trials:.2f} candidates compiled a trial",
            f"{summary.compiled / summary.search_seconds:.1f} a second", f"{summary.spent.choosing:.2f} s of choosing"]
    return rate, ", ".join(said + [part.costs(summary) for part in parts])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--budget", type=float, default=20, help="seconds of a tune")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=list(PAIRS), default=list(PAIRS), help="what is compared; default: all")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    common = {"use_db": False, "threads": arguments.threads, "budget_seconds": arguments.budget, "check": False}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for pair in arguments.parts:
            native, made = PAIRS[pair]
            rates = {"C++": [], "Python": []}
            for _ in range(arguments.turns):
                for language, options in ("C++", native), ("Python", made()):
                    rate, said = tuned(arguments.model, folder, {**common, **options})
                    rates[language].append(rate)
                    print(f"  {pair}, {language}: {said}", flush=True)
            medians = {language: statistics.median(found) for language, found in rates.items()}
            print(f"{pair}: {medians['C++']:.1f} trials a second in C++, {medians['Python']:.1f} in Python, "
                  f"ratio {medians['Python'] / medians['C++']:.2f}", flush=True)


if __name__ == "__main__":
    main()
