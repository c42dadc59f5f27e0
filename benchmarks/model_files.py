"""The models of models/: filled with their weights once, kept in a folder, and their reference inputs."""
import json
import os
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
GRAPHS = REPOSITORY / "models"
CACHE = Path(os.environ.get("HONE_MODEL_CACHE", REPOSITORY / "build" / "models"))
NAMES = ("resnet18", "squeezenet1_1", "mobilenet_v2", "vgg16")  # those that benchmarks tune unless told otherwise

sys.path.insert(0, str(GRAPHS))
import fill_weights  # noqa: E402


def entries(large=False):
    """What the manifest says of all models; `large`: those with more than 1 GB of weights, too, which nothing fills unless it is asked for them."""
    manifest = json.loads((GRAPHS / "manifest.json").read_text())
    return manifest["models"] + (manifest["large"] if large else [])


def entry(name):
    """What the manifest says of a model."""
    for found in entries(large=True):
        if found["name"] == name:
            return found
    raise SystemExit(f"no model '{name}' in {GRAPHS / 'manifest.json'}")


def filled(name, cache=CACHE):
    """Path of the model with weights; made if it is missing or older than its graph."""
    import onnx

    graph = GRAPHS / entry(name)["file"]
    path = Path(cache) / f"{name}.onnx"
    if path.exists() and path.stat().st_mtime >= graph.stat().st_mtime:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as temporary:
        fill_weights.save(fill_weights.fill(onnx.load(graph)), Path(temporary) / path.name)
        for made in sorted(Path(temporary).iterdir(), reverse=True):  # the weights beside a model before the model
            os.replace(made, path.parent / made.name)
    return path


def inputs(name):
    """{input name: array}: the seeded inputs of the manifest."""
    return fill_weights.make_inputs(entry(name))


def load(name):
    """(short name, path, {input name: array}) of a model of models/ or of an ONNX file."""
    if not name.endswith(".onnx"):
        return name, filled(name), inputs(name)
    import numpy as np
    import onnx

    import engines

    graph = onnx.load(name).graph
    constants = {tensor.name for tensor in graph.initializer}
    arrays = {}
    for value in graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        arrays[value.name] = np.random.default_rng(0).random([dim.dim_value for dim in tensor.shape.dim]).astype(engines.DTYPES[tensor.elem_type])
    return Path(name).stem, Path(name), arrays
