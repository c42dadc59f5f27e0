"""What Hone's models are compared with: the same architectures in PyTorch, eager or compiled by torch.compile, with random weights of their own,
which change no time. By itself it compiles and measures one network in a process: rivals.py NAME BATCH DEVICE, and prints JSON."""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import parts
import timing

IMAGES = ("resnet18", "resnet50", "mobilenet_v2", "alexnet", "vgg16", "squeezenet1_1", "mnasnet1_0", "efficientnet_b0", "googlenet", "inception_v3")
IMAGE_OPTIONS = {name: {"aux_logits": False, "init_weights": False} for name in ("googlenet", "inception_v3")}
TEXTS = {"bert_base_s128": ("BertForSequenceClassification", "BertConfig"), "gpt2_s128": ("GPT2Model", "GPT2Config"),
         "mobilebert_s128": ("MobileBertForSequenceClassification", "MobileBertConfig")}
DETECTORS = ("ssdlite320_raw", "ssdlite320_full")


def base_name(name):
    """The name of the network, of which there may be several graphs."""
    return name.removesuffix("_opset13")


def detector(torch, raw):
    """SSDlite: backbone and heads alone, or all of it."""
    from torchvision.models import detection

    whole = detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)

    class Detector(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = whole

        def forward(self, images):
            if not raw:
                return self.network(list(images))
            return self.network.head(list(self.network.backbone(images).values()))

    return Detector()


def network(torch, name, device):
    name = base_name(name)
    with torch.device(device):
        if name in IMAGES:
            import torchvision

            made = torchvision.models.get_model(name, weights=None, **IMAGE_OPTIONS.get(name, {}))
        elif name in DETECTORS:
            made = detector(torch, name == "ssdlite320_raw")
        else:
            import transformers

            network_class, config = TEXTS[name]
            made = getattr(transformers, network_class)(getattr(transformers, config)())
    return made.eval().to(device)


def small_network(torch, device):
    """The rival of examples/small.onnx, for tests of this script."""
    layers = torch.nn
    made = layers.Sequential(layers.Conv2d(1, 8, 3, padding=1), layers.ReLU(), layers.Conv2d(8, 16, 3, padding=1), layers.ReLU(), layers.AdaptiveAvgPool2d(1),
                             layers.Flatten(), layers.Linear(16, 10), layers.Softmax(-1))
    return made.eval().to(device)


def caller(torch, name, inputs, device, compiled=False):
    """A function that runs the network once."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    tensors = {key: timing.to_torch(torch, array, device) for key, array in inputs.items()}
    run = network(torch, name, device) if name != "small" else small_network(torch, device)
    if compiled:
        run = torch.compile(run, mode="max-autotune")
    return lambda: run(**tensors) if base_name(name) in TEXTS else run(*tensors.values())


def measure_eager(torch, name, inputs, device):
    return {"torch_seconds": timing.of_torch(torch, caller(torch, name, inputs, device), device)}


def measure_compiled(torch, name, inputs, device):
    """Columns: seconds of a run and those of compiling it."""
    begin = time.monotonic()
    call = caller(torch, name, inputs, device, compiled=True)
    with torch.inference_mode():
        call()
    compile_seconds = time.monotonic() - begin
    return {"torch_compile_seconds": timing.of_torch(torch, call, device), "compile_seconds": round(compile_seconds, 1)}


def apart(setting, name, batch, limit):
    """Compiles and measures in a process of its own, which has workers and may take any time. Raises TimeoutExpired."""
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(setting.folder("inductor").resolve()), "TRITON_CACHE_DIR": str(setting.folder("triton").resolve())}
    command = [sys.executable, Path(__file__).resolve(), name, batch, setting.rivals]
    child = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=os.environ | caches)
    try:
        output, errors = child.communicate(timeout=limit)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    if child.returncode != 0:
        reasons = re.findall(r"^[\w.]*(?:Error|Exception|Interrupt)\b.*", errors, re.MULTILINE)
        raise RuntimeError(reasons[-1] if reasons else f"it ended with code {child.returncode}")
    return json.loads(output.strip().splitlines()[-1])


def main():
    import networks
    import torch

    name, batch, device = sys.argv[1:]
    print(json.dumps(measure_compiled(torch, name, networks.batched_inputs(name, int(batch)), device)))


if __name__ == "__main__":
    main()
