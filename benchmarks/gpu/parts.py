"""The parts of device_check.py: each is part(result, setting), and adds rows to the result."""
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class CannotRun(Exception):
    """The reason why a part does not run here, in one line."""


class NoTime(Exception):
    """What is left of the part's time does not do for its next row, which a later run measures."""


class LostDevice(Exception):
    """After some errors the driver fails whatever the process asks for: another process goes on."""


class OtherProcessError(RuntimeError):
    """What another process said, as hone: that this one still has the device."""


def row_failed(result, name, problem, **columns):
    """Adds the row. Problems of other processes are of the row alone."""
    result.add(name, **columns, problem=" ".join(str(problem).split())[:300])
    if ("CUDA" in str(problem) or "is lost to this process" in str(problem)) and not isinstance(problem, OtherProcessError):
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
        raise OtherProcessError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"hone ended with code {done.returncode}")
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


def tests(result, setting):
    import gtests

    gtests.tests(result, setting)


def watchdog(result, setting):
    import gtests

    gtests.watchdog(result, setting)


def sanitizer(result, setting):
    import gtests

    gtests.sanitizer(result, setting)


def tuning(result, setting):
    import tuning as searches

    searches.tuning(result, setting)


def data(result, setting):
    import tuning as searches

    searches.data(result, setting)


def products(result, setting):
    import operators

    operators.measure(result, setting, operators.PRODUCTS)


def memory(result, setting):
    import operators

    operators.measure(result, setting, operators.MEMORY)


def products_tuned(result, setting):
    import operators

    operators.measure(result, setting, operators.PRODUCTS, operators.tune_seconds(setting))


def memory_tuned(result, setting):
    import operators

    operators.measure(result, setting, operators.MEMORY, operators.tune_seconds(setting))


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
PARTS = {part.__name__: part for part in (machine, products, memory, models, compiled, tuning, tests, sanitizer, watchdog, data, kernels, products_tuned,
                                          memory_tuned)}
