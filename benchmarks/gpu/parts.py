"""The parts of device_check.py: each is part(result, setting), and adds rows to the result."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = {"hone_device_test": "runtime", "hone_device_model_test": "artifact", "hone_gpu_space_test": "backend", "hone_gpu_code_test": "backend",
         "hone_measure_device_test": "measure"}
# Tests by the names of their device; those that need files of the repository are left out.
FILTERS = {"cuda": "*uda*:*lost_gpu*-OpenCl*:*goldens*:*documentation*:*without_a_driver*", "opencl": "*pencl*:*OpenCl*:device_worker.*-*goldens*:*lost_gpu*"}

ON_DEVICE = {"hone_gpu_space_test": {"cuda": "*CudaDevice*", "opencl": "*SpaceOnOpenCl*"}}  # the rest of it needs a compiler
# Under compute-sanitizer. Refusals are tested by errors of the driver, and processes that hang are not watched.
SAMPLES = {"hone_device_test": "", "hone_device_model_test": "", "hone_gpu_space_test": "*CudaDevice*tiles_that_are_copied_ahead:*CudaDevice*by_matrix_instructions"}
NO_SAMPLES = "*wrong_code*:*memory_is_short*:*tells_its_pointers*:*cannot_start*:*wrong_with_a_call*:*fork*:*Watchdog*"
SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")


class CannotRun(Exception):
    """The reason why a part does not run here, in one line."""


class NoTime(Exception):
    """What is left of the part's time does not do for its next row, which a later run measures."""


class LostDevice(Exception):
    """After some errors the driver fails whatever the process asks for: another process goes on."""


def row_failed(result, name, problem):
    """Adds the row. Problems of hone's process are of the row alone."""
    result.add(name, problem=" ".join(str(problem).split())[:300])
    if ("CUDA" in str(problem) or "is lost to this process" in str(problem)) and not str(problem).startswith("hone: "):
        raise LostDevice(str(problem))


@dataclass
class Setting:
    device: str  # its name for hone
    out: Path
    small: bool
    end: float  # on the clock of time.monotonic()
    rivals: str = "none"  # PyTorch's device: cuda, cpu
    begin: object = staticmethod(lambda row: None)  # called before the device is used for a row

    @property
    def kind(self):
        return "cuda" if self.device.startswith("cuda") else "opencl"

    @property
    def left(self):
        return max(self.end - time.monotonic(), 1)

    def folder(self, name):
        path = self.out / "files" / name
        path.mkdir(parents=True, exist_ok=True)
        return path


def file_name(name):
    """The name of a row as that of a file."""
    return name.replace(" ", "_").replace("/", "_").replace(",", "")


def program(bundled, built):
    """A file of the portable archive, or of the build folder."""
    for path in (ROOT / bundled, ROOT / "build" / "release" / built):
        if path.exists():
            return path
    raise CannotRun(f"there is no {bundled}")


def run(setting, *command, limit=None, **options):
    """A CompletedProcess; a command that takes longer than the part has is an error."""
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=min(limit or setting.left, setting.left), **options)


def hone(setting, *arguments, limit=None):
    """What the command prints as JSON."""
    path = os.environ.get("HONE") or program("bin/hone", "tools/hone/hone")
    done = run(setting, path, *arguments, "--json", limit=limit)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"hone ended with code {done.returncode}")
    return json.loads(done.stdout)


def described(setting):
    """What hone says of the device, if it is here."""
    for device in hone(setting, "devices"):
        if device["name"] == setting.device:
            if "missing" in device:
                raise CannotRun(device["missing"])
            return device
    raise CannotRun(f"hone knows no device {setting.device}")


def torch_or_none(setting):
    """PyTorch with the rivals' device, and why not."""
    if setting.rivals == "none":
        return None, "PyTorch runs on CUDA only"
    try:
        import torch
    except ImportError as missing:
        return None, f"no PyTorch: {missing}"
    if setting.rivals == "cpu":
        return torch, ""
    return (torch, "") if torch.cuda.is_available() else (None, "PyTorch finds no GPU")


def machine(result, setting):
    """The device as hone and its driver describe it, and the versions of what measures."""
    for name, command in {"driver": ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,temperature.gpu,power.draw",
                                     "--format=csv,noheader"],
                          "system": ["uname", "-a"], "processors": ["nproc"]}.items():
        if not result.has(name) and shutil.which(command[0]):
            result.add(name, value=run(setting, *command).stdout.strip())
    torch, reason = torch_or_none(setting)
    if not result.has("torch"):
        result.add("torch", value=f"{torch.__version__}, {torch.cuda.get_device_name() if setting.rivals == 'cuda' else 'CPU'}" if torch else reason)
    if not result.has("hone"):
        result.add("hone", value=json.dumps(described(setting)))


def test_command(name, setting, tests="", without=""):
    """Runs the tests for the device, or the given ones, and of these none of `without`."""
    chosen = tests or ON_DEVICE.get(name, FILTERS)[setting.kind]
    if without:
        chosen += (":" if "-" in chosen else "-") + without
    return [program(f"tests/{name}", f"src/hone/{TESTS[name]}/{name}"), f"--gtest_filter={chosen}"]


def tests(result, setting):
    """GoogleTest programs; a row each."""
    described(setting)
    for name in list(TESTS)[:1] if setting.small else TESTS:
        if not result.has(name):
            begin = time.monotonic()
            done = run(setting, *test_command(name, setting))
            count = {word: int(found[1]) if (found := re.search(rf"\[ +{word} +\] (\d+) test", done.stdout)) else 0 for word in ("PASSED", "SKIPPED", "FAILED")}
            problem = "" if done.returncode == 0 and count["PASSED"] > 0 else " ".join(re.findall(r"\[ +FAILED +\] (\S+)", done.stdout)) or f"none passed, code {done.returncode}"
            if problem:
                (setting.out / f"tests_{name}.txt").write_text(done.stdout + done.stderr)
            result.add(name, passed=count["PASSED"], skipped=count["SKIPPED"], failed=count["FAILED"], seconds=round(time.monotonic() - begin, 1), problem=problem)


def read_sanitizer(output):
    """What compute-sanitizer says at its end, and the number of errors; None if it did not get there."""
    found = re.findall(r"=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", output)
    count = re.search(r"SUMMARY: (\d+) (?:errors?|hazards?)", found[-1]) if found else None
    return (found[-1], int(count[1])) if count else ("", None)


def sanitizer(result, setting):
    """A sample of the tests under each of compute-sanitizer's tools."""
    if setting.kind != "cuda":
        raise CannotRun("compute-sanitizer is of CUDA only")
    described(setting)
    path = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if path is None:
        raise CannotRun("there is no compute-sanitizer")
    for tool in SANITIZERS:
        for name, tests in SAMPLES.items():
            row = f"{tool} {name}"
            if result.has(row):
                continue
            command = test_command(name, setting, tests, NO_SAMPLES)
            done = run(setting, path, "--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9", *command)
            output = done.stdout + done.stderr
            summary, errors = read_sanitizer(output)
            passed = re.search(r"\[ +PASSED +\] (\d+) test", output)
            problem = "" if done.returncode == 0 and errors == 0 else f"code {done.returncode}"
            if problem:
                (setting.out / f"sanitizer_{tool}_{name}.txt").write_text(output[:200_000])
            result.add(row, summary=summary, errors=errors, passed=int(passed[1]) if passed else 0, problem=problem)


LEAST_TUNING, MOST_TUNING = 40, 105  # seconds of a model; it is ready 10 later


def tuning(result, setting):
    """A whole model tuned from nothing: seconds until the library is on disk, and how fast candidates are compiled and measured."""
    import networks

    described(setting)
    for name in ("small",) if setting.small else ("resnet18", "bert_base_s128"):
        if result.has(name):
            continue
        model = networks.model_file(name, setting)
        if not setting.small and setting.left < LEAST_TUNING:
            raise NoTime(f"tuning a model takes {LEAST_TUNING} s")
        budget = 15 if setting.small else min(MOST_TUNING, int(setting.left - 10))
        begin = time.monotonic()
        try:
            report = hone(setting, "tune", model, "-o", setting.folder("tuning") / f"{name}.so", "--device", setting.device, "--budget", f"{budget}s",
                          "--db", setting.folder("tuning") / f"{name}.db", "--no-check")
        except RuntimeError as problem:
            row_failed(result, name, problem)
            continue
        seconds = time.monotonic() - begin
        result.add(name, budget_seconds=budget, seconds=round(seconds, 1), trials=report["trials"], trials_per_second=round(report["trials"] / seconds, 1),
                   compiled=report["compiled"], compiled_per_second=round(report["compiled"] / max(report["compile_seconds"], 1e-9), 1))


def data(result, setting):
    """A data set for cost models."""
    import networks

    described(setting)
    if not result.has("data set"):
        model = networks.model_file("small" if setting.small else "resnet18", setting)
        db = setting.folder("data") / "data.db"
        budget = 15 if setting.small else max(2, int(setting.left - 8))
        try:
            hone(setting, "dataset", "make", model, "--db", db, "--device", setting.device, "--budget", f"{budget}s")
        except RuntimeError as problem:
            raise CannotRun(str(problem)) from problem
        shutil.copy(db, setting.out / "data.db")
        result.add("data set", budget_seconds=budget, bytes=db.stat().st_size)


def products(result, setting):
    import operators

    operators.measure(result, setting, operators.PRODUCTS)


def memory(result, setting):
    import operators

    operators.measure(result, setting, operators.MEMORY)


def products_tuned(result, setting):
    import operators

    operators.measure(result, setting, operators.PRODUCTS, operators.TUNE_SECONDS)


def memory_tuned(result, setting):
    import operators

    operators.measure(result, setting, operators.MEMORY, operators.TUNE_SECONDS)


def models(result, setting):
    import networks

    networks.measure(result, setting)


def kernels(result, setting):
    """The time of each kernel of the models that were compiled; a file of each model."""
    described(setting)
    for library in sorted(setting.folder("libraries").glob("*.so")):
        if result.has(library.stem):
            continue
        try:
            report = hone(setting, "bench", library, "--repeat", 10)
        except RuntimeError as problem:
            row_failed(result, library.stem, problem)
            continue
        (setting.out / f"kernels_{library.stem}.json").write_text(json.dumps(report))
        result.add(library.stem, kernels=len(report["kernels"]))


def compiled(result, setting):
    import networks

    networks.measure_compilers(result, setting)


sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "models")]
# In the order in which they run.
PARTS = {part.__name__: part for part in (machine, products, memory, models, tests, tuning, data, compiled, kernels, sanitizer, products_tuned, memory_tuned)}
