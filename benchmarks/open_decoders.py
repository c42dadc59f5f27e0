"""Decoders of translation with open dimensions for open_models.py, for the next tokens: the caches of their own tokens and of the encoder's are inputs.

NETWORKS has one entry for each: a function that makes the network and its inputs, {input: (example, {dimension: symbol})}.
"""
import torch

from open_images import Arrays

HEADS, DEPTH, LAYERS, PAST, SOURCE, TOKENS = 4, 16, 2, 5, 11, 2


class DecodeBoth(Arrays):
    """A decoder that looks at the encoder's tokens, of which the cache has keys and values already."""

    def forward(self, *inputs):
        from transformers.cache_utils import DynamicCache, EncoderDecoderCache
        from transformers.modeling_outputs import BaseModelOutput
        tokens, mask, *past = inputs
        own, other = DynamicCache(), DynamicCache()
        for layer in range(LAYERS):
            own.update(past[4 * layer], past[4 * layer + 1], layer)
            other.update(past[4 * layer + 2], past[4 * layer + 3], layer)
        batch, _, length, _ = past[2].shape
        encoded = BaseModelOutput(last_hidden_state=past[2].new_zeros(batch, length, HEADS * DEPTH))
        result = self.model(decoder_input_ids=tokens, attention_mask=mask, encoder_outputs=encoded, past_key_values=EncoderDecoderCache(own, other),
                            use_cache=True, return_dict=True)
        made = result.past_key_values.self_attention_cache
        return (result.logits, *(x for layer in made.layers for x in (layer.keys, layer.values)))


def _both(model, config, fields):
    def make():
        import transformers
        made = getattr(transformers, config)(**fields)
        made._attn_implementation = "eager"  # pylint: disable=protected-access
        inputs = {"input_ids": (torch.randint(3, 299, (2, TOKENS)), {0: "batch", 1: "seq"}),
                  "encoder_attention_mask": (torch.ones(2, SOURCE, dtype=torch.int64), {0: "batch", 1: "source_len"})}
        for layer in range(LAYERS):
            for name, length, symbol in (("decoder", PAST, "past_len"), ("encoder", SOURCE, "source_len")):
                for part in ("key", "value"):
                    inputs[f"past.{layer}.{name}.{part}"] = (torch.randn(2, HEADS, length, DEPTH), {0: "batch", 2: symbol})
        return DecodeBoth(getattr(transformers, model)(made), list(inputs)), inputs
    return make


NETWORKS = {
    "t5_decode": _both("T5ForConditionalGeneration", "T5Config", {"d_model": 64, "d_ff": 128, "num_layers": 2, "num_heads": HEADS, "d_kv": DEPTH,
                                                                  "vocab_size": 300}),
    "bart_decode": _both("BartForConditionalGeneration", "BartConfig", {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 300,
                                                                        "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
                                                                        "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}),
}
