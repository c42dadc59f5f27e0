"""Networks with open dimensions for open_models.py: classifiers of timm and torchvision, vision parts and generators of transformers and diffusers, whose
sides are open where the network takes any. Many have fewer layers than the published ones, but all kinds of layers that these have.

NETWORKS has one entry for each: a function that makes the network and its inputs, {input: (example, {dimension: symbol})}.
"""
import torch

BATCH = {0: "batch"}
SIDES = {0: "batch", 2: "height", 3: "width"}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}


def _timm(name, side, dims, **options):
    def make():
        import timm
        return timm.create_model(name, pretrained=False, **options), {"image": (torch.randn(2, 3, side, side + 32 if dims is SIDES else side), dims)}
    return make


def _vision(name, dims, side=64, **options):
    def make():
        import torchvision
        return torchvision.models.get_model(name, weights=None, **options), {"image": (torch.randn(2, 3, side, side + 32 if dims is SIDES else side), dims)}
    return make


class Arrays(torch.nn.Module):
    """A model of transformers or diffusers that takes its inputs by place and returns plain tensors; its call gets these options, too."""

    def __init__(self, model, names, **options):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *inputs):
        result = self.model(**dict(zip(self.names, inputs, strict=True)), **self.options, return_dict=False)
        return tuple(x for x in result if isinstance(x, torch.Tensor)) if isinstance(result, (tuple, list)) else result


def _transformers(model, config, fields, inputs, **options):
    def make():
        import transformers
        settings = getattr(transformers, config)(**fields)
        settings._attn_implementation = "eager"  # pylint: disable=protected-access
        examples = {name: (example(), dims) for name, (example, dims) in inputs.items()}
        return Arrays(getattr(transformers, model)(settings), list(examples), **options), examples
    return make


def _diffusers(model, fields, inputs):
    def make():
        import diffusers
        examples = {name: (example(), dims) for name, (example, dims) in inputs.items()}
        return Arrays(getattr(diffusers, model)(**fields), list(examples)), examples
    return make


def image(side=64, dims=None):
    wide = side + 32 if dims is SIDES else side
    return {"pixel_values": (lambda: torch.randn(2, 3, side, wide), dims or BATCH)}


STAGES = {"depths": (1, 1), "num_heads": (2, 4), "embed_dim": 24}
TIMM = {
    "resnet50d": ("resnet50d", 64, SIDES, {"layers": (1, 1, 1, 1)}),
    "efficientnet": ("efficientnet_b0", 64, SIDES, {}),
    "tf_efficientnet": ("tf_efficientnet_b0", 64, SIDES, {}),
    "regnety": ("regnety_002", 64, SIDES, {}),
    "repvgg": ("repvgg_a0", 64, SIDES, {}),
    "hrnet": ("hrnet_w18_small", 64, SIDES, {}),
    "nfnet": ("dm_nfnet_f0", 64, SIDES, {"depths": (1, 1, 1, 1)}),
    "dla": ("dla46_c", 64, SIDES, {}),
    "fastvit": ("fastvit_t8", 64, SIDES, {"layers": (1, 1, 1, 1)}),
    "convnextv2": ("convnextv2_atto", 64, SIDES, {"depths": (1, 1, 1, 1)}),
    "efficientvit": ("efficientvit_b0", 64, SIDES, {}),
    "davit": ("davit_tiny", 64, SIDES, {"depths": (1, 1), "embed_dims": (16, 32), "num_heads": (2, 4)}),
    "resnest": ("resnest14d", 64, SIDES, {}),
    "vit_sides": ("vit_tiny_patch16_224", 64, SIDES, {"img_size": 64, "depth": 2, "embed_dim": 64, "num_heads": 4, "dynamic_img_size": True}),
    "eva_sides": ("eva02_tiny_patch14_224", 56, BATCH, {"img_size": 56, "depth": 2, "embed_dim": 64, "num_heads": 4}),
    "beit": ("beit_base_patch16_224", 64, BATCH, {"img_size": 64, "depth": 2, "embed_dim": 64, "num_heads": 4}),
    "swinv2": ("swinv2_tiny_window8_256", 64, BATCH, {"img_size": 64, "window_size": 4} | STAGES),
    "swin_sides": ("swin_tiny_patch4_window7_224", 64, SIDES, {"img_size": 56, "strict_img_size": False} | STAGES),
    "maxvit": ("maxvit_rmlp_pico_rw_256", 64, BATCH, {"img_size": 64, "depths": (1, 1, 1, 1)}),
    "hiera": ("hiera_tiny_224", 224, BATCH, {}),
    "xcit": ("xcit_nano_12_p16_224", 64, BATCH, {"img_size": 64, "depth": 2}),
}
TRANSFORMERS = {
    "vit_mae": ("ViTMAEModel", "ViTMAEConfig", SMALL | {"image_size": 64, "patch_size": 16},
                image() | {"noise": (lambda: torch.rand(2, 16), BATCH)}, {}),
    "dinov2_sides": ("Dinov2Model", "Dinov2Config", SMALL | {"image_size": 64, "patch_size": 16}, image(96, SIDES), {}),
    "vit_hf_sides": ("ViTModel", "ViTConfig", SMALL | {"image_size": 64, "patch_size": 16}, image(96, SIDES), {"interpolate_pos_encoding": True}),
    "donut_swin": ("DonutSwinModel", "DonutSwinConfig", {"image_size": 64, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4],
                                                         "window_size": 4}, image(64, SIDES), {}),
    "blip_vision": ("BlipVisionModel", "BlipVisionConfig", SMALL | {"image_size": 64, "patch_size": 16}, image(), {}),
}
LATENT = {"hidden_states": (lambda: torch.randn(2, 4, 16, 24), SIDES), "timestep": (lambda: torch.tensor([5, 9]), BATCH),
          "encoder_hidden_states": (lambda: torch.randn(2, 7, 32), {0: "batch", 1: "seq"})}
DIFFUSERS = {
    "unet2d": ("UNet2DModel", {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 4, "sample_size": 16,
                               "down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")},
               {"sample": (lambda: torch.randn(2, 3, 32, 48), SIDES), "timestep": (lambda: torch.tensor([5, 9]), BATCH)}),
    "sd3": ("SD3Transformer2DModel", {"sample_size": 32, "patch_size": 2, "in_channels": 4, "out_channels": 4, "num_layers": 2, "attention_head_dim": 16,
                                      "num_attention_heads": 2, "joint_attention_dim": 32, "caption_projection_dim": 32, "pooled_projection_dim": 24,
                                      "pos_embed_max_size": 32},
            LATENT | {"pooled_projections": (lambda: torch.randn(2, 24), BATCH)}),
}
NETWORKS = ({f"timm_{name}": _timm(network, side, dims, **options) for name, (network, side, dims, options) in TIMM.items()}
            | {name: _transformers(*what[:4], **what[4]) for name, what in TRANSFORMERS.items()}
            | {name: _diffusers(*what) for name, what in DIFFUSERS.items()}
            | {"tv_swin_sides": _vision("swin_t", SIDES), "tv_swin_v2": _vision("swin_v2_t", SIDES), "tv_convnext": _vision("convnext_tiny", SIDES)})
