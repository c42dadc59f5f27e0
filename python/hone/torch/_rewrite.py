"""Rewrites of graphs that keep what Hone's passes look for: attention and products with their dimensions."""
import math

import torch
from torch import fx

from hone.errors import UnsupportedError
from hone.torch._convert import value_of
from hone.torch._graph import Sizes

_aten = torch.ops.aten
_sizes = Sizes()


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """What torch.nn.functional.scaled_dot_product_attention computes, in a few operators."""
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = _repeat_heads(key, times), _repeat_heads(value, times)
    scores = torch.matmul(query, key.transpose(-2, -1)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    seen = None
    if is_causal:
        queries, keys = query.shape[-2], key.shape[-2]
        below = torch.arange(queries).unsqueeze(1) >= torch.arange(keys).unsqueeze(0)
        scores = torch.where(below, scores, -math.inf)
    elif attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = torch.where(attn_mask, scores, -math.inf)
        seen = attn_mask
    elif attn_mask is not None:
        scores = scores + attn_mask
        seen = attn_mask > -math.inf
    result = torch.matmul(torch.softmax(scores, -1), value)
    # A query that sees no key at all gets zeros.
    return result if seen is None else torch.where(seen.any(-1, keepdim=True), result, 0.0)


def _repeat_heads(x, times):
    return x.unsqueeze(-3).expand(*x.shape[:-2], times, *x.shape[-2:]).flatten(-4, -3) if times > 1 else x


def encoder_layer(x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1,
                  norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2):
    """What the single operator behind torch.nn.TransformerEncoderLayer computes without a mask."""
    def norm(x, weight, bias):
        return torch.nn.functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    def attend(x):
        return self_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)[0]

    def feed(x):
        hidden = torch.nn.functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = torch.nn.functional.gelu(hidden) if use_gelu else torch.relu(hidden)
        return torch.nn.functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = x + attend(norm(x, norm_weight_1, norm_bias_1))
        return x + feed(norm(x, norm_weight_2, norm_bias_2))
    x = norm(x + attend(x), norm_weight_1, norm_bias_1)
    return norm(x + feed(x), norm_weight_2, norm_bias_2)


def self_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias):
    """What the single operator behind torch.nn.MultiheadAttention computes of one tensor without a mask and without weights."""
    parts = torch.nn.functional.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    q, k, v = (part.unflatten(-1, (num_head, -1)).transpose(1, 2) for part in parts)
    joined = attention(q, k, v).transpose(1, 2).flatten(-2)
    return torch.nn.functional.linear(joined, proj_weight, proj_bias), None


def take_apart(module):
    """Replaces attention, which PyTorch takes apart in a longer way, and operators that hide it; in place."""
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is torch._C._nn.scaled_dot_product_attention and not _dropout(node):
            node.target = attention
        elif node.target is torch._transformer_encoder_layer_fwd and _without_masks(node, 18):
            node.target, node.args, node.kwargs = encoder_layer, node.args[:18], {}
        elif node.target is torch._native_multi_head_attention and _attends_to_itself(node):
            node.target, node.args, node.kwargs = self_attention, node.args[:9], {}
    module.recompile()


def _dropout(node):
    return (node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)) != 0.0


def _without_masks(node, count):
    """Whether a node has so many arguments, and no masks behind them."""
    rest = [*node.args[count:], *(value for name, value in node.kwargs.items() if "mask" in name)]
    return len(node.args) >= count and all(value is None for value in rest)


def _attends_to_itself(node):
    """Of torch._native_multi_head_attention(query, key, value, ..., proj_bias, mask, need_weights, average_attn_weights, mask_type)."""
    arguments = dict(zip(("query", "key", "value"), node.args))
    mask = node.args[9] if len(node.args) > 9 else node.kwargs.get("mask")
    weights = node.args[10] if len(node.args) > 10 else node.kwargs.get("need_weights", True)
    return len(node.args) >= 9 and len(set(arguments.values())) == 1 and mask is None and weights is False


def restore_products(module):
    """Joins a product of matrices with the views around it that flatten its dimensions; in place."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target in (_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default):
            try:
                _restore(module.graph, node)
            except UnsupportedError:
                pass  # a tensor that Hone does not know, such as an empty one: the product stays as it is
    module.graph.eliminate_dead_code()
    module.recompile()


def _shape(node):
    """The extents of a node's tensor: numbers, and expressions of symbols, which are compared without asking what they stand for."""
    return _sizes.value("", value_of(node)).shape


def _restore(graph, view):
    product = view.args[0]
    if not isinstance(product, fx.Node) or product.op != "call_function" or len(product.users) != 1 or product.kwargs:
        return
    if product.target is _aten.bmm.default:
        bias, left, right = None, *(_before_view(node) for node in product.args)
    elif product.target is _aten.mm.default:
        bias, left, right = None, _before_view(product.args[0]), product.args[1]
    elif product.target is _aten.addmm.default:
        bias, left, right = product.args[0], _before_view(product.args[1]), product.args[2]
    else:
        return
    rows, columns, wanted = _shape(left), _shape(right), _shape(view)
    before = product.args[-2:]
    if len(rows) < 2 or len(rows) != len(wanted) or rows[-1] != _shape(before[0])[-1] or columns[-2:] != _shape(before[1])[-2:]:
        return
    if len(columns) > 2 and (columns[:-2] != rows[:-2] or rows[-2] != _shape(before[0])[-2]):
        return
    if wanted != (*rows[:-1], columns[-1]):
        return
    with graph.inserting_before(view):
        made = graph.call_function(_aten.matmul.default, (left, right))
        made.meta = dict(view.meta)
        if bias is not None:
            made = graph.call_function(_aten.add.Tensor, (made, bias))
            made.meta = dict(view.meta)
    view.replace_all_uses_with(made)


def _before_view(node):
    """What a view, and an expansion that changes nothing, are of."""
    if node.op == "call_function" and node.target in (_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default):
        node = node.args[0]
    if node.op == "call_function" and node.target is _aten.expand.default and _shape(node.args[0]) == _shape(node):
        node = node.args[0]
    return node
