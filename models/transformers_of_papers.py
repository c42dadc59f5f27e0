"""BERT and GPT-2 of any size as weightless graphs, in the operators that PyTorch's exporter writes (make_graphs.py)."""
import numpy as np
from onnx import TensorProto

from weightless import Graph

HIDDEN = -3.4028234663852886e38  # what is added where a token is not looked at


class Transformer(Graph):
    """Layers of a width; values have the shape [batch, tokens, width]."""

    def __init__(self, name, width, heads, tokens):
        super().__init__(name)
        if width % heads:
            raise ValueError(f"width {width} is no multiple of {heads} heads")
        self.width, self.heads, self.tokens = width, heads, tokens

    def scalar(self, value):
        return self.constant(np.float32(value), f"scalar_{value:g}")

    def shape(self, *dims):
        return self.constant(np.array(dims, dtype=np.int64), f"shape_{'_'.join(map(str, dims))}")

    def norm(self, value, name, epsilon):
        return self.node("LayerNormalization", [value, self.weight(f"{name}.weight", [self.width], 0.1, 1.0),
                                                self.weight(f"{name}.bias", [self.width], 0.1)], axis=-1, epsilon=epsilon)

    def linear(self, value, name, inner, outer, gain=1.0):
        product = self.node("MatMul", [value, self.weight(f"{name}.weight", [inner, outer], gain * inner**-0.5)])
        return self.node("Add", [self.weight(f"{name}.bias", [outer], 0.06), product])

    def embedded(self, table, rows, indices, std):
        return self.node("Gather", [self.weight(table, [rows, self.width], std), indices])

    def positions(self, count):
        if self.tokens > count:
            raise ValueError(f"{self.tokens} tokens, it knows {count} positions")
        return self.constant(np.arange(self.tokens, dtype=np.int64).reshape(1, -1), "positions")

    def mask(self, name):
        """What is added to the scores: 0, or a number that hides a token."""
        where = self.node("Cast", [self.node("Unsqueeze", [name, self.shape(1, 2)])], to=TensorProto.FLOAT)
        return self.node("Mul", [self.node("Sub", [self.scalar(1), where]), self.scalar(HIDDEN)])

    def split_heads(self, value, order):
        divided = self.node("Reshape", [value, self.shape(0, 0, self.heads, self.width // self.heads)])
        return self.node("Transpose", [divided], perm=order)

    def attention(self, query, key, value, mask, causal=None):
        scores = self.node("MatMul", [self.split_heads(query, [0, 2, 1, 3]), self.split_heads(key, [0, 2, 3, 1])])
        scores = self.node("Div", [scores, self.scalar((self.width // self.heads) ** 0.5)])
        if causal:
            scores = self.node("Where", [causal, scores, self.scalar(HIDDEN)])
        shares = self.node("Softmax", [self.node("Add", [scores, mask])], axis=-1)
        mixed = self.node("Transpose", [self.node("MatMul", [shares, self.split_heads(value, [0, 2, 1, 3])])], perm=[0, 2, 1, 3])
        return self.node("Reshape", [mixed, self.shape(0, 0, self.width)])

    def gelu(self, value):
        erf = self.node("Erf", [self.node("Div", [value, self.scalar(2**0.5)])])
        return self.node("Mul", [self.node("Mul", [value, self.node("Add", [erf, self.scalar(1)])]), self.scalar(0.5)])

    def gelu_by_tanh(self, value):
        cubic = self.node("Mul", [self.node("Pow", [value, self.scalar(3)]), self.scalar(0.044715)])
        inner = self.node("Mul", [self.node("Add", [value, cubic]), self.scalar((2 / np.pi) ** 0.5)])
        half = self.node("Mul", [value, self.scalar(0.5)])
        return self.node("Mul", [half, self.node("Add", [self.node("Tanh", [inner]), self.scalar(1)])])


def bert(name, layers, width, heads, tokens, vocabulary=30522, positions=512):
    """With a pooler and two classes; logits [1, 2]."""
    g = Transformer(name, width, heads, tokens)
    ids, attention, types = (g.input(key, [1, tokens], TensorProto.INT64) for key in ("input_ids", "attention_mask", "token_type_ids"))
    mask = g.mask(attention)
    words = g.node("Add", [g.embedded("embeddings.word", vocabulary, ids, 0.5), g.embedded("embeddings.token_type", 2, types, 0.5)])
    x = g.norm(g.node("Add", [words, g.embedded("embeddings.position", positions, g.positions(positions), 0.25)]), "embeddings.norm", 1e-12)
    for i in range(layers):
        layer = f"layer.{i}"
        query, key, value = (g.linear(x, f"{layer}.attention.{part}", width, width) for part in ("query", "key", "value"))
        mixed = g.linear(g.attention(query, key, value, mask), f"{layer}.attention.output", width, width)
        x = g.norm(g.node("Add", [mixed, x]), f"{layer}.attention.norm", 1e-12)
        inner = g.gelu(g.linear(x, f"{layer}.intermediate", width, 4 * width))
        x = g.norm(g.node("Add", [g.linear(inner, f"{layer}.output", 4 * width, width), x]), f"{layer}.norm", 1e-12)
    first = g.node("Gather", [x, g.constant(np.int64(0), "first")], axis=1)
    pooled = g.node("Tanh", [g.node("Gemm", [first, g.weight("pooler.weight", [width, width], width**-0.5), g.weight("pooler.bias", [width], 0.06)], transB=1)])
    logits = g.node("Gemm", [pooled, g.weight("classifier.weight", [2, width], width**-0.5), g.weight("classifier.bias", [2], 0.06)], transB=1)
    g.output(logits, "logits", [1, 2])
    return g.model()


def gpt2(name, layers, width, heads, tokens, positions, vocabulary=50257):
    """Without the language-model head; last_hidden_state [1, tokens, width]."""
    g = Transformer(name, width, heads, tokens)
    ids, attention = (g.input(key, [1, tokens], TensorProto.INT64) for key in ("input_ids", "attention_mask"))
    mask = g.mask(attention)
    causal = g.literal("causal", np.tril(np.ones((1, 1, tokens, tokens), dtype=bool)))
    x = g.node("Add", [g.embedded("wte", vocabulary, ids, 0.5), g.embedded("wpe", positions, g.positions(positions), 0.25)])
    for i in range(layers):
        layer = f"h.{i}"
        joined = g.linear(g.norm(x, f"{layer}.norm_1", 1e-5), f"{layer}.attention", width, 3 * width)
        parts = [f"{layer}.{part}" for part in ("query", "key", "value")]
        g.node("Split", [joined, g.shape(width, width, width)], name=parts[0], axis=2)
        g.nodes[-1].output.extend(parts[1:])
        mixed = g.linear(g.attention(*parts, mask, causal), f"{layer}.projection", width, width)
        x = g.node("Add", [mixed, x])
        inner = g.gelu_by_tanh(g.linear(g.norm(x, f"{layer}.norm_2", 1e-5), f"{layer}.mlp.inner", width, 4 * width))
        x = g.node("Add", [x, g.linear(inner, f"{layer}.mlp.outer", 4 * width, width)])
    g.output(g.norm(x, "norm", 1e-5), "last_hidden_state", [1, tokens, width])
    return g.model()
