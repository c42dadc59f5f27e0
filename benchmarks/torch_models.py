#!/usr/bin/env python3
"""Times of PyTorch's models as they are, with torch.compile's own backend and with Hone's, in turns.

    PYTHONPATH=SITE benchmarks/torch_models.py --budget 60 --threads 2 resnet18 timm/pit_ti_224 text/bert

SITE is the folder of an installed package (pip install --target SITE build/wheels/hone-*.whl); scripts/setup.sh --with-torch gets
PyTorch and the models' packages. Without names, all models of torch_zoo.py run. Each model has a process of its own. "inductor"
is torch.compile(model) as it comes, "frozen" is that with parameters as constants (options={"freezing": True}), as Hone has them.
"""
import argparse
import json
import math
import subprocess
import sys
import time

import cores
import interleaved
import torch_zoo

ENGINES = {"inductor": {"backend": "inductor"}, "frozen": {"backend": "inductor", "options": {"freezing": True}}, "hone": {"backend": "hone"}}
MOST_ERROR = 1e-3


class Engine:
    """A model that is called again and again with the same inputs."""

    def __init__(self, function, inputs, keywords):
        self.function, self.inputs, self.keywords = function, inputs, keywords

    def call(self):
        return self.function(*self.inputs, **self.keywords)

    def run(self):
        self.call()


def hone_options(arguments):
    options = {"threads": arguments.threads, "use_db": arguments.use_db}
    return {**options, "budget_seconds": arguments.budget} if arguments.budget > 0 else options


def measure_model(arguments, name):
    """What is printed of one model, as a dict."""
    import torch
    torch.set_num_threads(arguments.threads)
    model, inputs, keywords = torch_zoo.make(name, arguments.batch)
    engines, found = {"eager": Engine(model, inputs, keywords)}, {"model": name}
    with torch.inference_mode() if arguments.inference_mode else torch.no_grad():
        wanted = engines["eager"].call()
        for engine in arguments.engines:
            how = dict(ENGINES[engine])
            if engine == "hone":
                how["options"] = hone_options(arguments)
            start = time.perf_counter()
            engines[engine] = Engine(torch.compile(model, **how), inputs, keywords)
            found[f"{engine} error"] = torch_zoo.error(engines[engine].call(), wanted)
            found[f"{engine} seconds"] = time.perf_counter() - start
        if "hone" in engines:
            found.update(parts())
        times = interleaved.measure(engines, arguments.rounds, threads=arguments.threads) if arguments.rounds else {}
    found["times"] = {engine: interleaved.median(seconds) for engine, seconds in times.items()}
    found["eager over"] = {engine: interleaved.ratio(times["eager"], seconds) for engine, seconds in times.items() if engine != "eager"}
    found["inductor over"] = {engine: interleaved.ratio(times["inductor"], times[engine]) for engine in ("frozen", "hone")
                              if engine in times and "inductor" in times}
    return found


def parts():
    """What Hone computes of the model, and what it leaves to PyTorch."""
    import hone.torch
    reports = hone.torch.reports()
    return {"graphs": len(reports), "operators": sum(report.operators for report in reports),
            "left": sorted({operator for report in reports for operator, _ in report.left.values()}),
            "reasons": [reason for report in reports for reason in report.reasons]}


def print_header(arguments):
    columns = ["model", "eager, ms", *(f"{engine}, ms" for engine in arguments.engines), *(f"eager / {engine}" for engine in arguments.engines)]
    if "inductor" in arguments.engines and "hone" in arguments.engines:
        columns.append("inductor / hone")
    columns.append("PyTorch runs")
    print("|", " | ".join(columns), "|")
    print("|", " | ".join("---" for _ in columns), "|", flush=True)


def print_row(arguments, found):
    times = [found["times"].get(engine) for engine in ("eager", *arguments.engines)]
    ratios = [found["eager over"].get(engine) for engine in arguments.engines]
    if "inductor" in arguments.engines and "hone" in arguments.engines:
        ratios.append(found["inductor over"].get("hone"))
    wrong = [f"{engine} is wrong by {found[f'{engine} error']:.1e}" for engine in arguments.engines if not found[f"{engine} error"] <= MOST_ERROR]
    cells = [found["model"], *("" if t is None else f"{1e3 * t:.2f}" for t in times), *("" if r is None else f"{r:.2f}" for r in ratios),
             "; ".join([*found.get("left", ()), *found.get("reasons", ()), *wrong])]
    print("|", " | ".join(cells), "|", flush=True)


def run_worker(arguments, name):
    """The result of a process of its own, or a dict with why there is none."""
    command = [sys.executable, __file__, *arguments.given, "--worker", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        return {"model": name, "failed": f"no result after {arguments.timeout} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return {"model": name, "failed": (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]}
    return json.loads(lines[-1])


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def summarize(arguments, results):
    whole = [found for found in results if "failed" not in found]
    print(f"\n{len(whole)} of {len(results)} models ran")
    for engine in arguments.engines:
        right = [found for found in whole if found[f"{engine} error"] <= MOST_ERROR]
        ratios = [found["eager over"][engine] for found in whole if engine in found["eager over"]]
        print(f"{engine}: {len(right)} right; eager's time over its: geometric mean {geomean(ratios):.2f}, least {min(ratios, default=math.nan):.2f}")
    ratios = [found["inductor over"]["hone"] for found in whole if "hone" in found["inductor over"]]
    if ratios:
        print(f"inductor's time over hone's: geometric mean {geomean(ratios):.2f}, least {min(ratios):.2f}")


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names of torch_zoo.py; default: all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--budget", type=float, default=0, help="seconds of tuning for each part of a model; 0: hone.compile")
    parser.add_argument("--rounds", type=int, default=9, help="0: only compile and compare the results")
    parser.add_argument("--engines", default="inductor,hone", type=lambda text: text.split(","), help=f"some of {','.join(ENGINES)}")
    parser.add_argument("--use-db", action="store_true", help="Hone uses its database of records")
    parser.add_argument("--inference-mode", action="store_true", help="torch.inference_mode() in place of torch.no_grad()")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one model")
    parser.add_argument("--json", help="the file that the results are written to")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    cores.add_option(parser)
    arguments = parser.parse_args(words)
    unknown = sorted(set(arguments.engines) - set(ENGINES))
    if unknown:
        parser.error(f"there is no engine '{unknown[0]}', expected some of {', '.join(ENGINES)}")
    arguments.given = [word for word in words if word not in arguments.models]
    return arguments


def main():
    arguments = parse(sys.argv[1:])
    if arguments.worker:
        print(json.dumps(measure_model(arguments, arguments.models[0])))
        return
    print_header(arguments)
    results = []
    for name in arguments.models or torch_zoo.names():
        results.append(run_worker(arguments, name))
        if "failed" in results[-1]:
            print(f"| {name} | failed: {results[-1]['failed']} |", flush=True)
        else:
            print_row(arguments, results[-1])
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(results, file, indent=1)
    summarize(arguments, results)


if __name__ == "__main__":
    main()
