"""Whole models against PyTorch, eager and compiled. The rival has the architecture that the graph was exported from, from torchvision or
transformers, with random weights of its own; what Hone computes is compared with ONNX Runtime on the CPU."""
import time

import numpy as np

import ahead
import parts
import timing

BATCHES = (1, 8)
TOLERANCE = 1e-4
IMAGES = ("resnet18", "resnet50", "mobilenet_v2", "alexnet", "vgg16", "squeezenet1_1", "mnasnet1_0", "efficientnet_b0", "googlenet", "inception_v3")
IMAGE_OPTIONS = {name: {"aux_logits": False, "init_weights": False} for name in ("googlenet", "inception_v3")}
TEXTS = {"bert_base_s128": ("BertForSequenceClassification", "BertConfig"), "gpt2_s128": ("GPT2Model", "GPT2Config"),
         "mobilebert_s128": ("MobileBertForSequenceClassification", "MobileBertConfig")}
OTHERS = ("gpt2_s128_opset13", "ssdlite320_raw", "ssdlite320_full")
ONE_ELEMENT = ("gpt2_s128", "gpt2_s128_opset13", "ssdlite320_full")  # their graphs have the batch of 1 written into them
COMPILED = ("resnet18", "bert_base_s128", "mobilenet_v2", "resnet50")  # torch.compile takes a minute for a model
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


def rival(torch, name):
    """The network in PyTorch, on the GPU."""
    with torch.device("cuda"):
        if name in IMAGES:
            import torchvision

            network = torchvision.models.get_model(name, weights=None, **IMAGE_OPTIONS.get(name, {}))
        else:
            import transformers

            network_class, config = TEXTS[name.removesuffix("_opset13")]
            network = getattr(transformers, network_class)(getattr(transformers, config)())
    return network.eval().cuda()


def rival_seconds(torch, name, inputs, compiled):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    tensors = {key: timing.to_torch(torch, array) for key, array in inputs.items()}
    network = rival(torch, name)
    if compiled:
        network = torch.compile(network, mode="max-autotune")
    return timing.of_torch(torch, (lambda: network(*tensors.values())) if name in IMAGES else (lambda: network(**tensors)))


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
    names = ("small",) if small else (*IMAGES, *TEXTS, *OTHERS)
    return [(f"{name}, batch {batch}", name, batch) for batch in BATCHES for name in names if batch == 1 or name not in ONE_ELEMENT]


def jobs(setting):
    return [(row, lambda name=name, batch=batch: prepare(setting, name, batch)) for row, name, batch in row_names(setting.small)]


def hone_columns(setting, row, name, batch, torch):
    """Takes the library that was compiled, compares and times."""
    columns = ahead.take(setting, row, lambda: prepare(setting, name, batch))
    inputs, library = batched_inputs(name, batch), library_file(setting, name, batch)
    engine = timing.OnDevice(library, inputs, torch)
    engine.launch()
    with np.load(library.with_suffix(".npz")) as expected:
        columns["error"] = timing.error(engine.found(), list(expected.values()))
    if not columns["error"] <= TOLERANCE:
        columns["problem"] = "the result is wrong"
    columns |= {"hone_seconds": timing.of_hone(engine), "device_bytes": engine.device_bytes()}
    engine.close()
    return columns, inputs


def measure_eager(setting, row, name, batch, torch):
    columns, inputs = hone_columns(setting, row, name, batch, torch)
    if torch is None or name.startswith("ssdlite"):
        return columns
    try:
        columns["torch_seconds"] = rival_seconds(torch, name, inputs, False)
        columns["torch_over_hone"] = columns["torch_seconds"] / columns["hone_seconds"]
    except Exception as problem:  # noqa: BLE001: what Hone took counts without a rival, too
        columns["rival_problem"] = f"{type(problem).__name__}: {problem}"[:200]
    return columns


def measure_compiled(_setting, _row, name, batch, torch):
    return {"torch_compile_seconds": rival_seconds(torch, name, batched_inputs(name, batch), True)}


def measure(result, setting, compiled):
    torch, reason = parts.torch_or_none(setting)
    if compiled and torch is None:
        raise parts.CannotRun(reason)
    parts.described(setting)
    for row, name, batch in row_names(setting.small):
        if result.has(row) or (compiled and not setting.small and name not in COMPILED):
            continue
        try:
            columns = (measure_compiled if compiled else measure_eager)(setting, row, name, batch, torch)
        except RuntimeError as problem:
            parts.row_failed(result, row, problem)
            continue
        result.add(row, **columns, rival=reason or ("torch.compile" if compiled else "PyTorch eager"))
