"""Operators of com.microsoft as ONNX Runtime's optimiser and exporters write them, among other nodes."""
import microsoft_operators_test as makers
import quantized_operators_test as quantized
from kinds.kind import Kind
from kinds.maker import PLAIN, KindMaker
from kinds.nodes import NodesOfGraph

# All but DynamicQuantizeLSTM, in which a state at the edge of two bytes may become either.
MAKERS = [makers.fused_conv, makers.nhwc_conv, makers.fused_gemm, makers.fused_matmul, makers.transpose_matmul, makers.skip_layer_norm,
          makers.simplified_layer_norm, makers.embed_layer_norm, makers.group_norm, makers.attention, makers.multi_head_attention,
          makers.rotary_embedding]
# All but those that add nodes by themselves, and DynamicQuantizeMatMul, whose data at the edge of two bytes may become either.
QUANTIZED = [quantized.qlinear_binary, quantized.qlinear_activation, quantized.qlinear_softmax, quantized.qlinear_where, quantized.qlinear_pool,
             quantized.qlinear_reduce_mean, quantized.nhwc_max_pool, quantized.qgemm, quantized.matmul_integer_to_float, quantized.qlinear_conv,
             quantized.qattention, quantized.matmul_nbits, quantized.matmul_nbits_of_onnxruntime]


def activation(n):
    """One of those that makers.activations() makes all."""
    kept, add = n.below(0, 8), n.add
    made = []
    n.add = lambda *arguments, **options: made.append((arguments, options))
    makers.activations(n)
    del n.add
    arguments, options = made[kept]
    add(*arguments, **options)


def template(maker):
    return lambda m: maker(NodesOfGraph(m))


TEMPLATES = [(template(maker), 1) for maker in MAKERS + QUANTIZED] + [(template(activation), 3)]


def make(prefix, opset, imports, rng):
    m = KindMaker(prefix, opset, rng, imports={**imports, "com.microsoft": 1})
    for _ in range(m.between(2, 5)):
        m.grow(TEMPLATES, len(m.graph.nodes) + m.between(1, 2))
        m.grow(PLAIN, len(m.graph.nodes) + m.below(3))
    return m.graph


KIND = Kind("microsoft", make, opsets=(13, 14, 15, 16, 17, 18, 19, 20, 21, 22))
