"""Random nodes of transformers with all of their attributes: attention, rotary embeddings, gated activations, caches. See operators.py."""
import numpy as np


def attention(m):
    if m.opset < 23:
        return None
    batch, queries, keys, past = m.between(1, 2), m.between(1, 4), m.between(1, 5), m.pick([0, 0, 0, 1, 3])
    kv_heads = m.between(1, 2)
    heads, size, width = kv_heads * m.between(1, 2), 2 * m.between(1, 3), m.between(1, 4)
    packed = m.chance(0.5)
    shape = lambda heads, length, size: (batch, length, heads * size) if packed else (batch, heads, length, size)
    operands = [m.operand(shape(heads, queries, size), np.float32), m.operand(shape(kv_heads, keys, size), np.float32),
                m.operand(shape(kv_heads, keys, width), np.float32)]
    attributes = {"q_num_heads": heads, "kv_num_heads": kv_heads} if packed else {}
    total = keys + past
    if m.chance(0.5):
        mask = m.pick([(queries, total), (1, total), (batch, 1, queries, total), (batch, heads, queries, total)])
        if m.chance(0.5):
            allowed = m.rng.random(mask) < 0.7
            allowed[..., 0] = True
            operands.append(m.graph.given(allowed, True, m.chance(0.5)))
        else:
            operands.append(m.operand(mask, np.float32))
    elif past:
        operands.append(None)
    if past:
        operands += [m.operand((batch, kv_heads, past, size), np.float32), m.operand((batch, kv_heads, past, width), np.float32)]
    if m.chance(0.4):
        attributes["is_causal"] = m.below(2)
    if m.chance(0.4):
        attributes["scale"] = m.pick([0.5, 1.0, 0.125])
    if m.chance(0.3):
        attributes["softcap"] = m.pick([0.0, 1.0, 5.0])
    if m.chance(0.2):
        attributes["softmax_precision"] = m.pick([1, 11])
    if m.opset >= 25 and m.chance(0.3):
        attributes["left_window_size"] = m.pick([-1, 0, 1, 2])
    if m.opset >= 25 and m.chance(0.3):
        attributes["right_window_size"] = m.pick([-1, 0, 1])
    results = 1
    if m.chance(0.4):
        results = 4
        attributes["qk_matmul_output_mode"] = m.below(4)
    elif past:
        results = 3
    return m.graph.add("Attention", operands, results=results, **attributes)


def rotary_embedding(m):
    if m.opset < 23:
        return None
    batch, heads, steps, size = m.between(1, 2), m.between(1, 3), m.between(1, 4), m.pick([2, 4, 8])
    packed = m.chance(0.5)
    rotated = m.pick([0, size, size // 2 if size > 2 else 0])
    columns = (rotated or size) // 2
    attributes = {"interleaved": m.below(2)} if m.chance(0.6) else {}
    if rotated or m.chance(0.3):
        attributes["rotary_embedding_dim"] = rotated
    if packed or rotated:
        attributes["num_heads"] = heads
    x = m.operand((batch, steps, heads * size) if packed else (batch, heads, steps, size), np.float32)
    if m.chance(0.5):
        caches = [m.operand((6, columns), np.float32) for _ in range(2)]
        places = m.graph.given(m.rng.integers(0, 6, (batch, steps)).astype(np.int64), True, m.chance(0.5))
        return m.graph.add("RotaryEmbedding", [x, *caches, places], **attributes)
    return m.graph.add("RotaryEmbedding", [x, *[m.operand((batch, steps, columns), np.float32) for _ in range(2)]], **attributes)


def linear_attention(m):
    if m.opset < 27:
        return None
    batch, steps, kv_heads, size, width = m.between(1, 2), m.between(1, 4), m.between(1, 2), m.between(1, 3), m.between(1, 3)
    heads = kv_heads * m.between(1, 2)
    rule = m.pick(["linear", "gated", "delta", "gated_delta"])
    small = lambda *shape: m.graph.given((m.random(shape, np.float32) / 4).astype(np.float32), False, m.chance(0.3))
    operands = [small(batch, steps, heads * size), small(batch, steps, kv_heads * size), small(batch, steps, kv_heads * width),
                small(batch, kv_heads, size, width) if m.chance(0.5) else None, None, None]
    if "gated" in rule:
        operands[4] = m.graph.given(-np.abs(m.random((batch, steps, kv_heads * m.pick([1, size])), np.float32)), False, False)
    if "delta" in rule:
        operands[5] = small(batch, steps, m.pick([1, kv_heads]))
    while operands[-1] is None:
        operands.pop()
    attributes = {"chunk_size": m.pick([1, 2, 64])} if m.chance(0.5) else {}
    if m.chance(0.5):
        attributes["scale"] = m.pick([0.0, 0.5, 1.0])
    if rule != "gated_delta" or m.chance(0.5):
        attributes["update_rule"] = rule
    return m.graph.add("LinearAttention", operands, results=2, q_num_heads=heads, kv_num_heads=kv_heads, **attributes)


def causal_convolution(m):
    if m.opset < 27:
        return None
    batch, channels, length, kernel = m.between(1, 2), m.between(1, 4), m.between(1, 6), m.between(1, 4)
    operands = [m.operand((batch, channels, length), np.float32), m.operand((channels, 1, kernel), np.float32),
                m.operand((channels,), np.float32) if m.chance(0.5) else None, m.operand((batch, channels, kernel - 1), np.float32) if m.chance(0.5) and kernel > 1 else None]
    while operands[-1] is None:
        operands.pop()
    attributes = {"activation": m.pick(["none", "silu", "swish"])} if m.chance(0.7) else {}
    return m.graph.add("CausalConvWithState", operands, results=2, **attributes)


def gated(m):
    if m.opset < 24:
        return None
    x = m.value(m.float_type())
    attributes = {"alpha": m.pick([0.5, 1.0, 1.702, -1.0])} if m.chance(0.6) else {}
    if m.opset >= 28 and m.chance(0.5):
        return m.graph.add("SwiGLU", [x, m.operand(x.shape, x.array.dtype)], **attributes)
    return m.graph.add("Swish", [x], **attributes)


def tensor_scatter(m):
    if m.opset < 24:
        return None
    shape = [m.between(1, 3) for _ in range(m.between(3, 4))]
    axis = m.between(1, len(shape) - 1)
    length = shape[axis] = m.between(2, 6)
    update = list(shape)
    update[axis] = m.between(1, length)
    circular = m.chance(0.5)
    most = length - 1 if circular else length - update[axis]
    operands = [m.operand(tuple(shape), np.float32), m.operand(tuple(update), np.float32)]
    if m.chance(0.7):
        operands.append(m.graph.given(m.rng.integers(0, most + 1, shape[0]).astype(np.int64), True, m.chance(0.5)))
    attributes = {"mode": "circular" if circular else "linear"} if circular or m.chance(0.5) else {}
    if axis != len(shape) - 2 or m.chance(0.5):
        attributes["axis"] = axis - (len(shape) if m.chance(0.5) else 0)
    return m.graph.add("TensorScatter", operands, exact=True, **attributes)


TEMPLATES = [(attention, 2), (rotary_embedding, 1), (linear_attention, 1), (causal_convolution, 1), (gated, 1), (tensor_scatter, 1)]
