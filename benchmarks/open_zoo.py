"""Networks with open dimensions for open_models.py, small ones of the kinds that users export: nothing is downloaded.

KINDS has one entry for each: a function that makes the network and its inputs, {input: (example, {dimension: symbol})}.
"""
import torch

import open_decoders
import open_images
import open_networks
from open_images import Arrays

TEXT = {0: "batch", 1: "seq"}
SIDES = {0: "batch", 2: "height", 3: "width"}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
WORDS = SMALL | {"vocab_size": 300}
LENGTH = 24
PAST = 7


class Decode(Arrays):
    """A decoder with a cache of keys and values, as a server calls it for the next tokens."""

    def __init__(self, model, names, layers):
        super().__init__(model, names)
        self.layers = layers

    def forward(self, *inputs):
        tokens, mask, *past = inputs
        from transformers.cache_utils import DynamicCache
        cache = DynamicCache()
        for layer in range(self.layers):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        result = self.model(input_ids=tokens, attention_mask=mask, past_key_values=cache, use_cache=True, return_dict=True)
        made = result.past_key_values
        return (result.logits, *(x for layer in range(self.layers) for x in (made.layers[layer].keys, made.layers[layer].values)))


def _transformers(model, config, fields, inputs):
    """`inputs` are made by the names of their arguments."""
    def make():
        import transformers
        made = getattr(transformers, config)(**fields)
        made._attn_implementation = "eager"  # pylint: disable=protected-access
        network = getattr(transformers, model)(made)
        examples = {name: (example(), dims) for name, (example, dims) in inputs.items()}
        return Arrays(network, list(examples)), examples
    return make


def _decoder(model, config, fields, heads, depth):
    def make():
        import transformers
        made = getattr(transformers, config)(**fields)
        made._attn_implementation = "eager"  # pylint: disable=protected-access
        layers, ids = made.num_hidden_layers, torch.randint(3, 299, (2, LENGTH))
        inputs = {"input_ids": (ids, TEXT), "attention_mask": (torch.ones(2, PAST + LENGTH, dtype=torch.int64), {0: "batch", 1: "past_len + seq"})}
        for layer in range(layers):
            for part in ("key", "value"):
                inputs[f"past.{layer}.{part}"] = (torch.randn(2, heads, PAST, depth), {0: "batch", 2: "past_len"})
        return Decode(getattr(transformers, model)(made), list(inputs), layers), inputs
    return make


def ids(length=LENGTH, dims=None):
    return {"input_ids": (lambda: torch.randint(3, 299, (2, length)), dims or TEXT)}


def text(length=LENGTH):
    return ids(length) | {"attention_mask": (lambda: torch.ones(2, length, dtype=torch.int64), TEXT)}


def image(side=64, other=None, dims=None):
    return {"pixel_values": (lambda: torch.randn(2, 3, side, other or side), dims or {0: "batch"})}


def floats(name, *shape, **dims):
    return {name: (lambda: torch.randn(2, *shape), {0: "batch"} | {int(key[1:]): symbol for key, symbol in dims.items()})}


VIT = SMALL | {"image_size": 64, "patch_size": 16}
T5 = {"d_model": 64, "d_ff": 128, "num_layers": 2, "num_heads": 4, "d_kv": 16, "vocab_size": 300, "use_cache": False}
BART = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
        "decoder_ffn_dim": 128, "vocab_size": 300, "use_cache": False}
SPEECH = SMALL | {"conv_dim": [32] * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
GROUPED = WORDS | {"num_key_value_heads": 2}
DETR = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
        "decoder_ffn_dim": 128, "num_queries": 10, "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}


def _detr():
    import transformers
    backbone = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], layer_type="basic",
                                         out_features=["stage4"])
    config = transformers.DetrConfig(**DETR, backbone_config=backbone)
    config._attn_implementation = "eager"  # pylint: disable=protected-access
    return Arrays(transformers.DetrForObjectDetection(config), ["pixel_values"]), {"pixel_values": (torch.randn(2, 3, 96, 64), {0: "batch"})}


HUGGING_FACE = {
    "vit": ("ViTModel", "ViTConfig", VIT, image()),
    "swin": ("SwinModel", "SwinConfig", {"image_size": 64, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}, image()),
    "convnext": ("ConvNextModel", "ConvNextConfig", {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]}, image(192, 160, SIDES)),
    "regnet_hf": ("RegNetModel", "RegNetConfig", {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "groups_width": 8},
                  image(192, 160, SIDES)),
    "mobilevit": ("MobileViTModel", "MobileViTConfig", {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 24, 24, 32, 64],
                                                        "intermediate_size": 64, "image_size": 64}, image()),
    "yolos": ("YolosModel", "YolosConfig", SMALL | {"image_size": [64, 64], "num_detection_tokens": 10, "patch_size": 16}, image()),
    "dpt": ("DPTForDepthEstimation", "DPTConfig", VIT | {"backbone_out_indices": [0, 1, 1, 1], "neck_hidden_sizes": [16, 24, 32, 48],
                                                         "fusion_hidden_size": 32, "is_hybrid": False, "num_hidden_layers": 2}, image()),
    "segformer_semantic": ("SegformerForSemanticSegmentation", "SegformerConfig", {"hidden_sizes": [16, 32, 40, 64], "depths": [1, 1, 1, 1],
                                                                                       "decoder_hidden_size": 32}, image(192, 160, SIDES)),
    "roberta": ("RobertaModel", "RobertaConfig", WORDS, text()),
    "distilbert": ("DistilBertModel", "DistilBertConfig", {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": 300}, text()),
    "electra": ("ElectraModel", "ElectraConfig", WORDS | {"embedding_size": 32}, text()),
    "albert": ("AlbertModel", "AlbertConfig", WORDS | {"embedding_size": 32}, text()),
    "mpnet": ("MPNetModel", "MPNetConfig", WORDS, text()),
    "deberta_v2": ("DebertaV2Model", "DebertaV2Config", WORDS | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, text()),
    "modernbert": ("ModernBertModel", "ModernBertConfig", WORDS | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1,
                                                                   "sep_token_id": 2, "local_attention": 8}, text()),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 300, "use_cache": False}, text()),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED | {"use_cache": False}, text()),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED | {"use_cache": False}, text()),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", GROUPED | {"head_dim": 16, "use_cache": False}, text()),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", GROUPED | {"head_dim": 16, "sliding_window": 8, "use_cache": False}, text()),
    "phi": ("PhiForCausalLM", "PhiConfig", WORDS | {"use_cache": False}, text()),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", GROUPED | {"pad_token_id": 0, "use_cache": False}, text()),
    "opt": ("OPTForCausalLM", "OPTConfig", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 128, "vocab_size": 300,
                                            "word_embed_proj_dim": 64, "use_cache": False}, text()),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", WORDS | {"use_cache": False}, text()),
    "t5_both": ("T5Model", "T5Config", T5, ids() | {"decoder_input_ids": (lambda: torch.randint(3, 299, (2, 9)), {0: "batch", 1: "target_len"})}),
    "bart_both": ("BartModel", "BartConfig", BART, ids() | {"decoder_input_ids": (lambda: torch.randint(3, 299, (2, 9)), {0: "batch", 1: "target_len"})}),
    "whisper": ("WhisperModel", "WhisperConfig", BART | {"vocab_size": 300, "pad_token_id": 0, "num_mel_bins": 16, "max_source_positions": 50},
                floats("input_features", 16, 100) | {"decoder_input_ids": (lambda: torch.randint(3, 299, (2, 9)), {0: "batch", 1: "target_len"})}),
    "hubert": ("HubertModel", "HubertConfig", SPEECH, floats("input_values", 4000, d1="samples")),
    "wav2vec2_conformer": ("Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", SPEECH | {"position_embeddings_type": "relative"},
                           floats("input_values", 4000, d1="samples")),
    "speech_to_text": ("Speech2TextEncoder", "Speech2TextConfig", {"d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4,
                                                                   "encoder_ffn_dim": 128, "input_feat_per_channel": 16, "conv_channels": 32},
                       floats("input_features", 80, 16, d1="frames")),
    "hifigan": ("SpeechT5HifiGan", "SpeechT5HifiGanConfig", {"model_in_dim": 16, "upsample_initial_channel": 32, "upsample_rates": [4, 4],
                                                             "upsample_kernel_sizes": [8, 8], "resblock_kernel_sizes": [3], "normalize_before": False,
                                                             "resblock_dilation_sizes": [[1, 3]]}, floats("spectrogram", 20, 16, d1="frames")),
    "patchtst": ("PatchTSTModel", "PatchTSTConfig", {"num_input_channels": 3, "context_length": 32, "patch_length": 8, "patch_stride": 8, "d_model": 32,
                                                     "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64, "do_mask_input": False},
                 floats("past_values", 32, 3)),
    "mamba_lm": ("MambaForCausalLM", "MambaConfig", {"hidden_size": 32, "num_hidden_layers": 1, "state_size": 4, "vocab_size": 300, "use_cache": False}, ids()),
    "encodec": ("EncodecModel", "EncodecConfig", {"num_filters": 4, "hidden_size": 16, "codebook_size": 32, "codebook_dim": 16, "num_lstm_layers": 1,
                                                  "upsampling_ratios": [4, 2]}, floats("input_values", 1, 800, d2="samples")),
    "vits": ("VitsModel", "VitsConfig", {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "ffn_dim": 64,
                                         "flow_size": 32, "spectrogram_bins": 33}, ids()),
    "clip": ("CLIPModel", "CLIPConfig", {"text_config": WORDS | {"eos_token_id": 299}, "vision_config": VIT, "projection_dim": 32}, text() | image()),
    "sam_vision": ("SamVisionModel", "SamVisionConfig", SMALL | {"image_size": 64, "patch_size": 16, "output_channels": 16, "global_attn_indexes": [1],
                                                                 "window_size": 2, "mlp_dim": 128}, image()),
    "videomae": ("VideoMAEModel", "VideoMAEConfig", SMALL | {"image_size": 32, "num_frames": 4},
                 {"pixel_values": (lambda: torch.randn(2, 4, 3, 32, 32), {0: "batch"})}),
}
DECODERS = {
    "llama_decode": ("LlamaForCausalLM", "LlamaConfig", GROUPED, 2, 16),
    "gpt2_decode": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 300}, 4, 16),
    "qwen3_decode": ("Qwen3ForCausalLM", "Qwen3Config", GROUPED | {"head_dim": 16}, 2, 16),
}


def _vision(name, sides=(96, 64), dims=None, **options):
    """A network of torchvision."""
    def make():
        import torchvision
        network = torchvision.models.get_model(name, weights=None, **options)
        return network, {"image": (torch.randn(2, 3, *sides), dims or {0: "batch"})}
    return make


def _timm(name, side=64, dims=None, **options):
    def make():
        import timm
        return timm.create_model(name, pretrained=False, **options), {"image": (torch.randn(2, 3, side, side), dims or {0: "batch"})}
    return make


def _ssdlite():
    import torchvision

    class Raw(torch.nn.Module):
        """Boxes and scores before they are chosen."""

        def __init__(self):
            super().__init__()
            self.net = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)

        def forward(self, x):
            head = self.net.head(list(self.net.backbone(x).values()))
            return head["bbox_regression"], head["cls_logits"]
    return Raw(), {"image": (torch.randn(2, 3, 192, 160), SIDES)}


def _retina():
    import torchvision

    class Raw(torch.nn.Module):
        """Boxes and scores before they are chosen."""

        def __init__(self):
            super().__init__()
            backbone = torchvision.models.mobilenet_v2(weights=None).features
            backbone.out_channels = 1280
            self.backbone = backbone
            self.head = torchvision.models.detection.retinanet.RetinaNetHead(1280, 3, 4)

        def forward(self, x):
            first = self.backbone(x)
            head = self.head([first, torch.nn.functional.max_pool2d(first, 2, ceil_mode=True)])
            return head["bbox_regression"], head["cls_logits"]
    return Raw(), {"image": (torch.randn(2, 3, 192, 160), SIDES)}


def _r3d():
    import torchvision
    return torchvision.models.video.r3d_18(weights=None), {"clip": (torch.randn(1, 3, 4, 32, 32), {0: "batch"})}


def _diffusers(model, fields, inputs):
    def make():
        import diffusers
        network = getattr(diffusers, model)(**fields)
        examples = {name: (example(), dims) for name, (example, dims) in inputs.items()}
        return Arrays(network, list(examples)), examples
    return make


BLOCKS = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 4}
LATENT = {"sample": (lambda: torch.randn(2, 4, 16, 24), SIDES), "timestep": (lambda: torch.tensor([5, 9]), {0: "batch"}),
          "encoder_hidden_states": (lambda: torch.randn(2, 7, 32), {0: "batch", 1: "seq"})}
DIFFUSERS = {
    "diffusion_unet": ("UNet2DConditionModel", BLOCKS | {"sample_size": 16, "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
                                                         "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"), "cross_attention_dim": 32,
                                                         "attention_head_dim": 8}, LATENT),
    "vae": ("AutoencoderKL", BLOCKS | {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2, "latent_channels": 4},
            {"sample": (lambda: torch.randn(2, 3, 32, 48), SIDES)}),
    "dit": ("DiTTransformer2DModel", {"num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 4, "out_channels": 8, "num_layers": 2,
                                      "sample_size": 16, "norm_num_groups": 4, "num_embeds_ada_norm": 10},
            {"hidden_states": (lambda: torch.randn(2, 4, 16, 16), {0: "batch"}), "timestep": (lambda: torch.tensor([5, 9]), {0: "batch"}),
             "class_labels": (lambda: torch.tensor([1, 2]), {0: "batch"})}),
}


def _segmentation(name, encoder="mobilenet_v2"):
    def make():
        import segmentation_models_pytorch
        return (segmentation_models_pytorch.create_model(name, encoder, encoder_weights=None, classes=3),
                {"image": (torch.randn(2, 3, 96, 64), SIDES)})
    return make


def _graph(kind):
    """A network over nodes and edges, whose numbers are both open."""
    def make():
        import torch_geometric

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                made = getattr(torch_geometric.nn, kind)
                self.first, self.second = made(8, 16), made(16, 4)

            def forward(self, nodes, edges):
                return self.second(torch.relu(self.first(nodes, edges)), edges)
        return Net(), {"nodes": (torch.randn(10, 8), {0: "nodes"}), "edges": (torch.randint(0, 10, (2, 30)), {1: "edges"})}
    return make


KINDS = (open_networks.NETWORKS | open_images.NETWORKS | open_decoders.NETWORKS | {name: _transformers(*what) for name, what in HUGGING_FACE.items()}
         | {name: _decoder(*what) for name, what in DECODERS.items()}
         | {name: _diffusers(*what) for name, what in DIFFUSERS.items()}
         | {f"smp_{name}": _segmentation(name) for name in ("unet", "fpn", "linknet", "manet", "pan", "pspnet", "deeplabv3plus")}
         | {f"pyg_{kind.lower()}": _graph(kind) for kind in ("GCNConv", "GATConv", "SAGEConv")}
         | {"detr": _detr, "ssdlite_raw": _ssdlite, "retina_raw": _retina, "r3d": _r3d,
            "tv_shufflenet": _vision("shufflenet_v2_x0_5", dims=SIDES), "tv_deeplab": _vision("deeplabv3_mobilenet_v3_large", dims=SIDES, weights_backbone=None),
            "tv_lraspp": _vision("lraspp_mobilenet_v3_large", dims=SIDES, weights_backbone=None), "tv_swin": _vision("swin_t", sides=(64, 64)),
            "tv_densenet": _vision("densenet121", dims=SIDES), "tv_regnet": _vision("regnet_y_400mf", dims=SIDES),
            "tv_maxvit": _vision("maxvit_t", sides=(224, 224)),
            "timm_vit": _timm("vit_tiny_patch16_224", img_size=64, depth=2, embed_dim=64, num_heads=4),
            "timm_swin": _timm("swin_tiny_patch4_window7_224", img_size=56, embed_dim=24, depths=(1, 1), num_heads=(2, 4)),
            "timm_convnext": _timm("convnext_atto", dims=SIDES),
            "timm_efficientnet_v2": _timm("efficientnetv2_rw_t", dims=SIDES), "timm_ghostnet": _timm("ghostnet_050", dims=SIDES),
            "timm_lcnet": _timm("lcnet_050", dims=SIDES), "timm_mobilenetv4": _timm("mobilenetv4_conv_small_050", dims=SIDES),
            "timm_edgenext": _timm("edgenext_xx_small", dims=SIDES), "timm_mobilevit": _timm("mobilevit_xxs", side=256),
            "timm_levit": _timm("levit_128s", side=224), "timm_pvt": _timm("pvt_v2_b0", side=224), "timm_poolformer": _timm("poolformer_s12", dims=SIDES),
            "timm_coatnet": _timm("coatnet_pico_rw_224", side=224), "timm_mixer": _timm("mixer_s32_224", side=224)})
