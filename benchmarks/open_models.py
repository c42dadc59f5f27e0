#!/usr/bin/env python3
"""Writes models of PyTorch with random weights as ONNX files with open dimensions, for varying_right.py.

    benchmarks/open_models.py FOLDER [--legacy] [MODEL ...]

A MODEL is one of torch_zoo.py, of open_zoo.py, or of the tables here, which have networks of few layers for speech, translation, images and sequences. The
batch is open, and so are the tokens or steps of texts and sounds and the sides of the networks that take any. torch.onnx's exporter writes them or, with --legacy,
that by tracing. scripts/setup.sh --with-torch gets PyTorch and the models' packages.
"""
import argparse
import sys
import time
import warnings
from pathlib import Path

import torch

import open_tables
import open_zoo
import torch_zoo
from open_zoo import Arrays

ANY_SIDES = {"resnet18", "mobilenet_v3_small", "shufflenet_v2_x1_0", "regnet_y_400mf", "lraspp_mobilenet_v3_large", "fcn_resnet50", "efficientnet_v2_s"}
LENGTH = 24  # tokens of the example; steps of a sound are many times as many
TRANSFORMERS = {  # name -> (model, configuration, fields, inputs)
    "t5": ("T5EncoderModel", "T5Config", {"d_model": 64, "d_ff": 128, "num_layers": 2, "num_heads": 4, "d_kv": 16, "vocab_size": 300}, "text"),
    "bart": ("BartModel", "BartConfig", {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
                                         "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "vocab_size": 300, "use_cache": False}, "text"),
    "bloom": ("BloomModel", "BloomConfig", {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 300, "use_cache": False}, "text"),
    "mistral": ("MistralModel", "MistralConfig", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                                                  "intermediate_size": 128, "vocab_size": 300, "use_cache": False}, "text"),
    "gemma": ("GemmaModel", "GemmaConfig", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16,
                                            "intermediate_size": 128, "vocab_size": 300, "use_cache": False}, "text"),
    "mamba": ("MambaModel", "MambaConfig", {"hidden_size": 32, "num_hidden_layers": 1, "state_size": 8, "vocab_size": 300, "use_cache": False}, "ids"),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
                                                     "conv_dim": [32] * 7}, "sound"),
    "segformer": ("SegformerModel", "SegformerConfig", {"hidden_sizes": [16, 32, 40, 64]}, "sides"),
    "dinov2": ("Dinov2Model", "Dinov2Config", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 56}, "image56"),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                                                            "image_size": 64, "patch_size": 16}, "image64"),
    "clip_text": ("CLIPTextModel", "CLIPTextConfig", {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                                                      "vocab_size": 300, "eos_token_id": 299}, "text"),
    "whisper_encoder": ("WhisperModel", "WhisperConfig", {"d_model": 64, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4,
                                                          "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}, "spectrum"),
}


class LastOf(torch.nn.Module):
    """A recurrent network over a sequence, with a layer for its last step."""

    def __init__(self, kind):
        super().__init__()
        self.net = getattr(torch.nn, kind)(16, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.head = torch.nn.Linear(48, 5)

    def forward(self, steps):
        y, _ = self.net(steps)
        return y, self.head(y[:, -1])


class Temporal(torch.nn.Module):
    """Dilated causal convolutions over a sequence (TCN)."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Conv1d(16, 16, 3, dilation=2**i) for i in range(4))

    def forward(self, sequence):
        for i, layer in enumerate(self.layers):
            sequence = sequence + torch.relu(layer(torch.nn.functional.pad(sequence, (2 ** (i + 1), 0))))
        return sequence, sequence.mean(-1)


class UNet(torch.nn.Module):
    """Two stages down and up again, with what was before joined."""

    def __init__(self):
        super().__init__()
        conv = lambda a, b, stride=1: torch.nn.Sequential(torch.nn.Conv2d(a, b, 3, stride, 1), torch.nn.GroupNorm(4, b), torch.nn.SiLU())
        self.first, self.down, self.deep = conv(3, 16), conv(16, 24, 2), conv(24, 32, 2)
        self.up, self.last = torch.nn.ConvTranspose2d(32, 24, 2, 2), conv(24 + 24, 24)
        self.top = torch.nn.Conv2d(24 + 16, 2, 1)

    def forward(self, image):
        a = self.first(image)
        b = self.down(a)
        c = self.last(torch.cat([self.up(self.deep(b)), b], 1))
        return self.top(torch.cat([torch.nn.functional.interpolate(c, scale_factor=2.0, mode="bilinear"), a], 1))


class Style(torch.nn.Module):
    """Convolutions with reflected borders and instance normalisation, as transfer of style has them."""

    def __init__(self):
        super().__init__()
        conv = lambda a, b, stride=1: torch.nn.Sequential(torch.nn.ReflectionPad2d(1), torch.nn.Conv2d(a, b, 3, stride), torch.nn.InstanceNorm2d(b), torch.nn.ReLU())
        self.layers = torch.nn.Sequential(conv(3, 8), conv(8, 16, 2), conv(16, 16), torch.nn.Upsample(scale_factor=2), torch.nn.Conv2d(16, 3, 3, padding=1))

    def forward(self, image):
        return self.layers(image)


class Points(torch.nn.Module):
    """PointNet: layers for each point, a maximum over all."""

    def __init__(self):
        super().__init__()
        self.each = torch.nn.Sequential(torch.nn.Conv1d(3, 32, 1), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Conv1d(32, 64, 1))
        self.head = torch.nn.Linear(64, 10)

    def forward(self, points):
        return self.head(self.each(points.transpose(1, 2)).amax(-1))


OWN = {
    "lstm": (lambda: LastOf("LSTM"), lambda: torch.randn(2, LENGTH, 16), {0: "batch", 1: "steps"}),
    "gru": (lambda: LastOf("GRU"), lambda: torch.randn(2, LENGTH, 16), {0: "batch", 1: "steps"}),
    "tcn": (Temporal, lambda: torch.randn(2, 16, LENGTH), {0: "batch", 2: "time"}),
    "unet": (UNet, lambda: torch.randn(2, 3, 96, 64), {0: "batch", 2: "height", 3: "width"}),
    "style": (Style, lambda: torch.randn(2, 3, 96, 64), {0: "batch", 2: "height", 3: "width"}),
    "pointnet": (Points, lambda: torch.randn(2, LENGTH, 3), {0: "batch", 1: "points_sequence"}),
    "transformer": (lambda: torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True), 2, enable_nested_tensor=False),
                    lambda: torch.randn(2, LENGTH, 32), {0: "batch", 1: "seq"}),
}


def of_transformers(name):
    """(model, {input: (example, open dimensions)})"""
    import transformers
    model, config, fields, kind = TRANSFORMERS[name]
    made = getattr(transformers, model)(getattr(transformers, config)(**fields, attn_implementation="eager"))
    if name.endswith("_encoder"):
        made = made.get_encoder()
    ids = torch.randint(3, 299, (2, LENGTH))
    text = {0: "batch", 1: "seq"}
    if kind in ("text", "ids"):
        inputs = {"input_ids": (ids, text)} | ({"attention_mask": (torch.ones_like(ids), text)} if kind == "text" else {})
    elif kind == "sound":
        inputs = {"input_values": (torch.randn(2, 4000), {0: "batch", 1: "samples_len"})}
    elif kind == "spectrum":
        inputs = {"input_features": (torch.randn(2, 80, 3000), {0: "batch"})}
    elif kind == "sides":
        inputs = {"pixel_values": (torch.randn(2, 3, 192, 160), {0: "batch", 2: "height", 3: "width"})}
    else:
        side = int(kind[len("image"):])
        inputs = {"pixel_values": (torch.randn(2, 3, side, side), {0: "batch"})}
    return Arrays(made, list(inputs)), inputs


def of_zoo(name):
    model, inputs, keywords = torch_zoo.make(name, batch=2, length=LENGTH)
    if name.startswith("text/"):
        return Arrays(model, list(keywords)), {key: (value, {0: "batch", 1: "seq"}) for key, value in keywords.items()}
    sides = {2: "height", 3: "width"} if name in ANY_SIDES else {}
    example = inputs[0][:, :, :192, :160] if sides else inputs[0]
    return model, {"image": (example, {0: "batch", **sides})}


def make(name):
    if name in open_zoo.KINDS:
        return open_zoo.KINDS[name]()
    if name in OWN:
        model, example, dims = OWN[name]
        return model(), {"x": (example(), dims)}
    return of_transformers(name) if name in TRANSFORMERS else of_zoo(name)


def export(name, path, legacy):
    if name in open_tables.NAMES:
        open_tables.export(name, path)
        return
    torch.manual_seed(0)
    model, inputs = make(name)
    model.eval()
    torch_zoo.spread(model)
    examples = tuple(example for example, _ in inputs.values())
    if legacy:
        torch.onnx.export(model, examples, str(path), dynamo=False, input_names=list(inputs), opset_version=17,
                          dynamic_axes={key: dims for key, (_, dims) in inputs.items()})
        return
    shapes = tuple(dims for _, dims in inputs.values())
    if isinstance(model, Arrays):  # its forward takes one tuple
        shapes = (shapes,)
    torch.onnx.export(model, examples, str(path), dynamo=True, input_names=list(inputs), dynamic_shapes=shapes, external_data=False, verbose=False)


def reason(error):
    """The first lines of what was thrown, and of what that was thrown for."""
    lines = (str(one).strip().splitlines() for one in (error, error.__cause__) if one is not None)
    return "; ".join(line[0][:300] if line else type(error).__name__ for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--legacy", action="store_true")
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_intermixed_args()  # models may stand behind an option
    warnings.filterwarnings("ignore")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.models or [*torch_zoo.names(), *TRANSFORMERS, *OWN, *open_zoo.KINDS, *open_tables.NAMES]:
        path = arguments.folder / f"{name.replace('/', '_')}{'_legacy' if arguments.legacy else ''}.onnx"
        start = time.monotonic()
        try:
            with torch.no_grad():
                export(name, path, arguments.legacy)
            print(f"{path}: {time.monotonic() - start:.0f} s", flush=True)
        except Exception as error:  # pylint: disable=broad-except  # whatever an exporter throws ends that model
            print(f"{name}: not exported: {reason(error)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
