#!/usr/bin/env python3
"""Write the graphs of networks that no exporter was run for, without their weights (see README.md).

    make_graphs.py FOLDER [--models bert_large_s128 ...] [--tokens 512] [--layers 2] [--manifest]

Needs only numpy and onnx. The networks are those that papers of cost models and of static models tune:
BERT-large, GPT-2 large and the 350 M GPT-3 (ATFormer), EfficientNet-B4 (Transfer-Tuning, Fasor) and SSD
with Inception v2 (Tuna). --tokens and --layers change the text models only; they are for other lengths and for
tests of few layers. --manifest prints what manifest.json says of the graphs, without reference statistics.

As a module: make(name, tokens, layers) -> model.
"""
import argparse
import collections
import hashlib
import json
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper

import weightless
from efficientnet import efficientnet_b4
from ssd_inception import ssd_inception_v2
from transformers_of_papers import bert, gpt2

SOURCES = {
    "bert_large_s128": "BERT-large with a classifier, as bert_base_s128 with the published configuration of bert-large-uncased",
    "gpt2_large_s128": "GPT-2 large (774 M), no language-model head, published configuration of gpt2-large",
    "gpt3_350m_s128": "GPT-3 medium (350 M), table 2.1 of its paper, in the architecture of GPT-2",
    "efficientnet_b4": "EfficientNet-B4 in torchvision's form, at the 224x224 that Transfer-Tuning tunes",
    "ssd_inception_v2": "SSD on Inception v2 at 300x300, TensorFlow's object detection models, before box decoding and non-maximum suppression",
}
LARGE = ("bert_large_s128", "gpt2_large_s128", "gpt3_350m_s128")  # more than 1 GB of weights


def make(name, tokens=128, layers=None):
    """The weightless model; `layers`: fewer than published, of a text model."""
    if name == "bert_large_s128":
        return bert(name, layers or 24, width=1024, heads=16, tokens=tokens)
    if name == "gpt2_large_s128":
        return gpt2(name, layers or 36, width=1280, heads=20, tokens=tokens, positions=1024)
    if name == "gpt3_350m_s128":
        return gpt2(name, layers or 24, width=1024, heads=16, tokens=tokens, positions=2048)
    return {"efficientnet_b4": efficientnet_b4, "ssd_inception_v2": ssd_inception_v2}[name](name)


def described(value):
    tensor = value.type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    return {"name": value.name, "dtype": dtype, "shape": [dim.dim_value for dim in tensor.shape.dim]}


def generated(value):
    """How the reference input is made (fill_weights.make_inputs)."""
    extent = value.type.tensor_type.shape.dim[-1].dim_value
    if value.name == "attention_mask":
        return {"kind": "prefix_ones", "count": max(1, extent * 7 // 8)}
    if value.name == "token_type_ids":
        return {"kind": "suffix_ones", "start": extent // 2}
    if value.type.tensor_type.elem_type == TensorProto.INT64:
        return {"kind": "integers", "seed": 0, "low": 0, "high": 30000}
    return {"kind": "normal", "seed": 0}


def entry(name, model):
    """What manifest.json says of it, but for reference statistics."""
    data = model.SerializeToString(deterministic=True)
    table = weightless.weights_of(model)
    inputs = [value for value in model.graph.input if value.name not in table]
    ops = collections.Counter(node.op_type for node in model.graph.node)
    return {"name": name, "file": f"{name}.graph.onnx", "source": SOURCES[name], "opset": weightless.OPSET,
            "inputs": [described(value) | {"generate": generated(value)} for value in inputs],
            "outputs": [described(value) for value in model.graph.output],
            "nodes": len(model.graph.node), "ops": dict(ops.most_common()), "params": weightless.parameters(model),
            "gflops": round(weightless.flops(model) / 1e9, 4), "graph_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the graphs are written there")
    parser.add_argument("--models", nargs="+", choices=list(SOURCES), default=list(SOURCES), metavar="NAME", help=f"of {', '.join(SOURCES)}")
    parser.add_argument("--tokens", type=int, default=128, help="of the text models")
    parser.add_argument("--layers", type=int, help="of the text models, instead of the published number")
    parser.add_argument("--manifest", action="store_true", help="print the entries of manifest.json")
    options = parser.parse_args()
    if options.tokens < 1 or (options.layers is not None and options.layers < 1):
        parser.error("expected at least 1 token and 1 layer")
    options.folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for name in options.models:
        try:
            model = make(name, options.tokens, options.layers)
        except ValueError as error:
            sys.exit(f"make_graphs.py: {name}: {error}")
        (options.folder / f"{name}.graph.onnx").write_bytes(model.SerializeToString(deterministic=True))
        entries.append(entry(name, model))
    if options.manifest:
        print(json.dumps(entries, indent=1))


if __name__ == "__main__":
    main()
