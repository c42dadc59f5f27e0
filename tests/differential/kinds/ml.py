"""Operators of ai.onnx.ml on numbers, one behind the other and among other nodes, as pipelines of learners are written."""
import ml_operators_test as makers
from kinds.kind import Kind
from kinds.maker import PLAIN, KindMaker
from kinds.nodes import NodesOfGraph

BEFORE_5 = [(makers.tree_regressor, 2), (makers.tree_classifier, 2), (makers.grown_trees, 1), (makers.vine, 1)]
OF_5 = [(makers.tree_ensemble, 4)]
COLUMNS = [(makers.scaler, 2), (makers.normalizer, 2), (makers.imputer, 2), (makers.binarizer, 2), (makers.extractor, 2), (makers.vectorizer, 1), (makers.one_hot, 1), (makers.linear_regressor, 2),
           (makers.linear_classifier, 2), (makers.svm_regressor, 2), (makers.svm_classifier, 2)]
ENCODED = [(makers.label_encoder, 2)]  # of before version 4, both oracles do not find the key NaN


def template(maker):
    return lambda m: maker(NodesOfGraph(m, linked=0.5, bounds=False))


def templates(version):
    chosen = COLUMNS + (ENCODED if version >= 4 else []) + (OF_5 if version >= 5 else BEFORE_5)
    return [(template(maker), weight) for maker, weight in chosen]


def make(prefix, opset, imports, rng):
    m = KindMaker(prefix, opset, rng, imports=imports)
    for _ in range(m.between(2, 5)):
        m.grow(templates(imports["ai.onnx.ml"]), len(m.graph.nodes) + m.between(1, 2))
        m.grow(PLAIN, len(m.graph.nodes) + m.below(2))
    return m.graph


KIND = Kind("ml", make, opsets=(13, 15, 17, 18, 19, 21, 22), imports=lambda rng: {"ai.onnx.ml": int(rng.integers(1, 6))})
