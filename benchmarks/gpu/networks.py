"""Whole models against PyTorch, eager and compiled (rivals.py); what Hone computes is compared with ONNX Runtime on the CPU."""
import subprocess
import time

import numpy as np

import ahead
import parts
import rivals
import timing

BATCHES = (1, 8)
TOLERANCE = 1e-4
# In the order in which they are measured: a run that ends early has the first ones.
NAMES = ("resnet18", "resnet50", "bert_base_s128", "mobilenet_v2", "gpt2_s128", "efficientnet_b0", "inception_v3", "vgg16", "googlenet", "squeezenet1_1",
         "alexnet", "mobilebert_s128", "mnasnet1_0", "ssdlite320_raw", "ssdlite320_full", "gpt2_s128_opset13")
ONE_ELEMENT = ("gpt2_s128", "gpt2_s128_opset13", "ssdlite320_full")  # their graphs have the batch of 1 written into them
COMPILE_SECONDS = 75  # for a network under torch.compile; without a result it counts as not compiled
SMALL = parts.ROOT / "examples" / "small.onnx"


def model_file(name, setting):
    """The model with weights, which are made when it is first asked for."""
    if name == "small":
        return SMALL
    try:
        import model_files

        return model_files.filled(name, setting.folder("models"))
    except ImportError as missing:
        raise parts.CannotRun(f"weights are made with numpy and onnx: {missing}") from missing


def model_inputs(name, batch):
    """One dictionary for each element of the batch: the seeded inputs, rotated."""
    import model_files

    first = model_files.load(str(SMALL))[2] if name == "small" else model_files.inputs(name)
    return [{key: np.roll(array, i, axis=-1) for key, array in first.items()} for i in range(batch)]


def reference(model, elements):
    """ONNX Runtime's outputs of all elements, behind one another."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    found = [session.run(None, inputs) for inputs in elements]
    return [np.concatenate(arrays).astype(np.float64) for arrays in zip(*found, strict=True)]


def batched_inputs(name, batch):
    elements = model_inputs(name, batch)
    return {key: np.concatenate([element[key] for element in elements]) for key in elements[0]}


def library_file(setting, name, batch):
    return setting.folder("libraries") / f"{name}_{batch}.so"


def prepare(setting, name, batch):
    """Makes the library and the reference results; returns the columns that need no GPU."""
    model, library = model_file(name, setting), library_file(setting, name, batch)
    shapes = [f"--shape={key}={'x'.join(map(str, array.shape))}" for key, array in batched_inputs(name, batch).items()] if batch > 1 else []
    begin = time.monotonic()
    report = parts.hone(setting, "compile", model, "-o", library, "--device", setting.device, "--no-db", "--no-check", *shapes)
    columns = {"kernels": len(report["kernels"]), "hone_compile_seconds": round(time.monotonic() - begin, 2)}
    np.savez(library.with_suffix(".npz"), *reference(model, model_inputs(name, batch)))
    return columns


def row_names(small):
    names = ("small",) if small else NAMES
    return [(f"{name}, batch {batch}", name, batch) for batch in BATCHES for name in names if batch == 1 or name not in ONE_ELEMENT]


def jobs(setting):
    return [(row, lambda name=name, batch=batch: prepare(setting, name, batch)) for row, name, batch in row_names(setting.small)]


def check(engine, library):
    """Runs the engine once and compares with the results that are kept beside the library; returns the error and, if it is too large, a problem."""
    engine.launch()
    with np.load(library.with_suffix(".npz")) as expected:
        error = timing.error(engine.found(), list(expected.values()))
    return {"error": error} if error <= TOLERANCE else {"error": error, "problem": "the result is wrong"}


def hone_columns(setting, row, name, batch, torch):
    """Takes the library that was compiled, compares and times."""
    columns = ahead.take(setting, row, lambda: prepare(setting, name, batch))
    inputs, library = batched_inputs(name, batch), library_file(setting, name, batch)
    setting.begin(row)
    engine = timing.OnDevice(library, inputs, torch if setting.kind == "cuda" else None)
    columns |= check(engine, library)
    columns |= {"hone_seconds": timing.of_hone(engine), "device_bytes": engine.device_bytes()}
    engine.close()
    return columns, inputs


def measure_eager(setting, row, name, batch, torch):
    columns, inputs = hone_columns(setting, row, name, batch, torch)
    if torch is None:
        return columns
    try:
        columns |= rivals.measure_eager(torch, name, inputs, setting.rivals)
        columns["torch_over_hone"] = columns["torch_seconds"] / columns["hone_seconds"]
    except Exception as problem:  # noqa: BLE001: what Hone took counts without a rival, too
        columns["rival_problem"] = f"{type(problem).__name__}: {problem}"[:200]
    return columns


def measure_compiled(result, setting, name, batch):
    """A network that has no result after its time is a row without one. If the part has less time than that, there is no row yet."""
    for row in result.data["rows"]:
        if row["name"] == f"{rivals.base_name(name)}, batch {batch}":
            return {key: value for key, value in row.items() if key not in ("name", "rival")}
    limit = min(COMPILE_SECONDS, setting.left)
    try:
        return rivals.apart(setting, name, batch, limit)
    except subprocess.TimeoutExpired:
        if limit < COMPILE_SECONDS:
            raise
        return {"rival_problem": f"not compiled within {COMPILE_SECONDS} s"}
    except RuntimeError as problem:
        return {"rival_problem": str(problem)[:200]}


def measure(result, setting):
    torch, reason = parts.torch_or_none(setting)
    parts.described(setting)
    for row, name, batch in row_names(setting.small):
        if result.has(row):
            continue
        try:
            columns = measure_eager(setting, row, name, batch, torch)
        except RuntimeError as problem:
            parts.row_failed(result, row, problem)
            continue
        result.add(row, **columns, rival=reason or "PyTorch eager")


def measure_compilers(result, setting):
    torch, reason = parts.torch_or_none(setting)
    if torch is None:
        raise parts.CannotRun(reason)
    for row, name, batch in row_names(setting.small):
        if not result.has(row):
            result.add(row, **measure_compiled(result, setting, name, batch), rival="torch.compile")
