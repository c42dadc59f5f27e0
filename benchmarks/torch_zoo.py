"""Models of torchvision, timm, transformers and diffusers with random weights, by name: nothing is downloaded."""
import torch

TORCHVISION = ("alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet1_0 mobilenet_v2 "
               "mobilenet_v3_large mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x1_0 "
               "squeezenet1_1 swin_t swin_v2_t vgg11 vit_b_32 wide_resnet50_2").split()
TIMM = ("beit_base_patch16_224 cait_xxs24_224 coatnet_0_rw_224 convmixer_768_32 crossvit_9_240 cspresnet50 deit_tiny_patch16_224 "
        "dpn68 edgenext_small efficientformer_l1 fastvit_t8 ghostnet_100 hardcorenas_a inception_next_tiny lcnet_100 levit_128s mixer_b16_224 "
        "mobilenetv4_conv_small mobilevit_s nfnet_f0 pit_ti_224 poolformer_s12 pvt_v2_b0 regnety_002 repvgg_a0 res2net50_26w_4s resmlp_12_224 "
        "rexnet_100 tf_efficientnet_lite0 tinynet_a tnt_s_patch16_224 twins_pcpvt_small visformer_tiny xcit_nano_12_p16_224").split()
SEGMENTATION = "deeplabv3_mobilenet_v3_large fcn_resnet50 lraspp_mobilenet_v3_large".split()
SMALL = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024, "vocab_size": 8192}
TEXT = {
    "albert": ("AlbertModel", "AlbertConfig", SMALL | {"embedding_size": 128}),
    "bert": ("BertModel", "BertConfig", SMALL),
    "deberta_v2": ("DebertaV2Model", "DebertaV2Config", SMALL),
    "distilbert": ("DistilBertModel", "DistilBertConfig", {"dim": 256, "n_layers": 4, "n_heads": 4, "hidden_dim": 1024, "vocab_size": 8192}),
    "electra": ("ElectraModel", "ElectraConfig", SMALL | {"embedding_size": 128}),
    "gpt2": ("GPT2Model", "GPT2Config", {"n_embd": 256, "n_layer": 4, "n_head": 4, "vocab_size": 8192, "use_cache": False}),
    "gpt_neox": ("GPTNeoXModel", "GPTNeoXConfig", SMALL | {"use_cache": False}),
    "llama": ("LlamaModel", "LlamaConfig", SMALL | {"num_key_value_heads": 2, "use_cache": False}),
    "mpnet": ("MPNetModel", "MPNetConfig", SMALL),
    "opt": ("OPTModel", "OPTConfig", {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "ffn_dim": 1024, "vocab_size": 8192,
                                      "word_embed_proj_dim": 256, "use_cache": False}),
    "phi": ("PhiModel", "PhiConfig", SMALL | {"use_cache": False}),
    "qwen2": ("Qwen2Model", "Qwen2Config", SMALL | {"num_key_value_heads": 2, "use_cache": False}),
    "roberta": ("RobertaModel", "RobertaConfig", SMALL),
}


BLOCKS = {"block_out_channels": (64, 128), "layers_per_block": 1, "norm_num_groups": 16}
# Name: (class, configuration, shapes of the inputs, of which the second is a step of the diffusion if it is empty).
DIFFUSION = {
    "unet": ("UNet2DModel", BLOCKS | {"sample_size": 32, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
                                      "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}, [(3, 32, 32), ()]),
    "unet_condition": ("UNet2DConditionModel", BLOCKS | {"sample_size": 32, "cross_attention_dim": 64, "attention_head_dim": 8,
                                                         "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
                                                         "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}, [(4, 32, 32), (), (16, 64)]),
    "autoencoder": ("AutoencoderKL", BLOCKS | {"sample_size": 64, "down_block_types": ("DownEncoderBlock2D",) * 2,
                                               "up_block_types": ("UpDecoderBlock2D",) * 2}, [(3, 64, 64)]),
    "vq": ("VQModel", BLOCKS | {"sample_size": 64, "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2},
           [(3, 64, 64)]),
}


def names():
    """The names of all models."""
    return [*TORCHVISION, *(f"timm/{name}" for name in TIMM), *SEGMENTATION, *(f"text/{name}" for name in TEXT),
            *(f"diffusion/{name}" for name in DIFFUSION)]


def make(name, batch=1, length=64):
    """A model in eval mode with random weights, and its inputs as (positional, keywords)."""
    torch.manual_seed(0)
    kind, _, short = name.rpartition("/")
    if kind == "text":
        model, inputs, keywords = _text(short, batch, length)
    elif kind == "diffusion":
        model, inputs = _diffusion(short, batch)
        keywords = {"return_dict": False}
    else:
        model, side = _timm(short) if kind == "timm" else _torchvision(name)
        inputs, keywords = (torch.randn(batch, 3, side, side),), {}
    model.eval()
    spread(model)
    return model, inputs, keywords


def _torchvision(name):
    import torchvision
    if name in SEGMENTATION:
        return torchvision.models.get_model(name, weights=None, weights_backbone=None), 224
    options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(name, weights=None, **options), 299 if name == "inception_v3" else 224


def _timm(name):
    import timm
    model = timm.create_model(name, pretrained=False)
    return model, model.default_cfg["input_size"][-1]


def _text(name, batch, length):
    import transformers
    model, config, fields = TEXT[name]
    made = getattr(transformers, model)(getattr(transformers, config)(**fields))
    ids = torch.randint(10, 8000, (batch, length))
    return made, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _diffusion(name, batch):
    import diffusers
    model, fields, shapes = DIFFUSION[name]
    made = getattr(diffusers, model)(**fields)
    return made, tuple(torch.randn(batch, *shape) if shape else torch.tensor(7) for shape in shapes)


def spread(model):
    """Gives weights that begin as zeros, and statistics that begin as zeros and ones, other values, so that every layer matters."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
        for parameter in model.parameters():
            if parameter.numel() > 1 and parameter.abs().max() < 1e-3:
                parameter.normal_(0, 0.02)


def tensors(result):
    """The tensors of a model's result, whatever holds them."""
    if isinstance(result, torch.Tensor):
        return [result]
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else []
    return [tensor for part in parts for tensor in tensors(part)]


def error(found, wanted):
    """The largest difference of two results, as a part of the largest value of its tensor."""
    found, wanted = tensors(found), tensors(wanted)
    if len(found) != len(wanted) or any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(found, wanted)):
        return float("inf")
    worst = [float((a.double() - b.double()).abs().max() / b.double().abs().max().clamp(min=1e-6)) for a, b in zip(found, wanted) if b.numel()]
    return max(worst, default=0.0)
