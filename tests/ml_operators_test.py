"""Operators of ai.onnx.ml on numbers, compared with ONNX Runtime on random nodes with all their attributes."""
import numpy as np
from onnx import helper, numpy_helper

import support
from random_nodes import Nodes, RandomNodes
from varying_models import RangeCase

ML = "ai.onnx.ml"


def add(n, op, arrays, results=1, **attributes):
    n.add(op, arrays, results, domain=ML, **attributes)


def floats(n, *shape):
    return [float(x) for x in n.array(*shape).ravel()]


# ---- columns ----


def scaler(n):
    columns = n.below(1, 5)
    count = n.pick(1, columns)
    x = n.pick(4 * n.array(3, columns), n.rng.integers(-5, 6, (3, columns)))
    add(n, "Scaler", [x], offset=floats(n, count), scale=floats(n, count))


def normalizer(n):
    x = n.array(4, n.below(1, 6))
    x[1] = 0
    add(n, "Normalizer", [np.abs(x) if n.chance() else x], norm=n.pick("MAX", "L1", "L2"))


def imputer(n):
    columns = n.below(1, 5)
    count = n.pick(1, columns)
    if n.chance(0.4):
        x = n.rng.integers(-1, 2, (4, columns))
        add(n, "Imputer", [x], imputed_value_int64s=[int(v) for v in n.rng.integers(5, 9, count)], replaced_value_int64=-1)
        return
    x, replaced = n.array(4, columns), n.pick(float("nan"), 0.0)
    x[n.rng.random(x.shape) < 0.4] = replaced
    add(n, "Imputer", [x], imputed_value_floats=floats(n, count), replaced_value_float=replaced)


def binarizer(n):
    x = n.array(3, 4)
    x[0, 0] = 0.25
    add(n, "Binarizer", [x], threshold=n.pick(0.0, 0.25))


def extractor(n):
    x = n.pick(n.array(3, 5), n.array(2, 3, 5), n.array(5), n.rng.integers(0, 9, (3, 5)))
    add(n, "ArrayFeatureExtractor", [x, n.rng.integers(0, 5, n.below(1, 4))])


def vectorizer(n):
    parts = [n.array(3, n.below(1, 5)) for _ in range(n.below(1, 4))] if n.chance(0.7) else [n.rng.integers(-9, 9, (2, 3))]
    add(n, "FeatureVectorizer", parts, inputdimensions=[max(1, part.shape[1] + n.below(-1, 2)) for part in parts])


def one_hot(n):
    x = n.pick(n.rng.integers(-1, 4, (3, 2)), 3 * n.array(4), n.rng.integers(0, 4, ()))
    add(n, "OneHotEncoder", [x], cats_int64s=n.pick([0, 1, 2, 3], [2, -1, 0]), zeros=1)


def label_encoder(n):
    kind = n.pick("integers", "floats", "to floats", "from floats")
    keys = {"keys_floats": [float("nan"), 0.5, -1.0, 2.0]} if kind in ("floats", "from floats") else {"keys_int64s": [3, -1, 7, 0]}
    values = {"values_floats": floats(n, 4)} if kind in ("floats", "to floats") else {"values_int64s": [10, 20, 30, 40]}
    x = (n.rng.choice(np.float32([0.5, np.nan, 2.0, 3.0, -1.0]), (3, 4)) if "keys_floats" in keys else n.rng.integers(-2, 9, (3, 4)))
    default = {"default_float": 0.75} if "values_floats" in values else {"default_int64": 5}
    add(n, "LabelEncoder", [x], **keys, **values, **(default if n.chance() else {}))


# ---- linear models and support vectors ----


def linear_regressor(n):
    targets, features = n.below(1, 4), n.below(1, 5)
    x = n.array(3, features)
    bias = {"intercepts": floats(n, targets)} if n.chance() else {}
    transform = {} if targets == 1 else {"post_transform": n.pick("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")}
    if n.chance(0.2):  # of shares between 0 and 1
        x, bias, transform = np.abs(x) / 8, {"intercepts": [0.25] * targets}, {"post_transform": "PROBIT"}
        add(n, "LinearRegressor", [x], targets=targets, coefficients=np.abs(floats(n, targets, features)).tolist(), **bias, **transform)
        return
    add(n, "LinearRegressor", [x], targets=targets, coefficients=floats(n, targets, features), **bias, **transform)


def linear_classifier(n):
    classes, features = n.below(2, 5), n.below(1, 5)
    rows = 1 if classes == 2 and n.chance() else classes
    transform = n.pick("NONE", "LOGISTIC") if rows == 1 else n.pick("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
    labels = [int(x) for x in n.rng.permutation(9)[:classes]]
    add(n, "LinearClassifier", [n.array(5, features)], 2, classlabels_ints=labels, coefficients=floats(n, rows, features), intercepts=floats(n, rows),
        multi_class=n.below(0, 2), post_transform=transform)


def kernels(n):
    kind = n.pick("LINEAR", "POLY", "RBF", "SIGMOID")
    return {"kernel_type": kind, "kernel_params": [0.5, 0.25, float(n.pick(2.0, 3.0))]}


def svm_regressor(n):
    features, vectors = n.below(1, 4), n.pick(0, 3, 5)
    terms = vectors or features
    kernel = kernels(n) if vectors else {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]}
    more = {"support_vectors": floats(n, vectors, features)} if vectors else {}
    if n.chance(0.3) and vectors:
        more["one_class"] = 1
    add(n, "SVMRegressor", [n.array(4, features)], coefficients=floats(n, terms), rho=floats(n, 1), n_supports=vectors, **kernel, **more)


def svm_classifier(n, transforms=("NONE", "LOGISTIC", "SOFTMAX"), **more):
    classes, features = n.below(2, 5), n.below(1, 4)
    per_class = [n.below(1, 4) for _ in range(classes)]
    count = sum(per_class)
    add(n, "SVMClassifier", [n.array(5, features)], 2, classlabels_ints=[int(x) for x in n.rng.permutation(9)[:classes]],
        coefficients=floats(n, classes - 1, count), support_vectors=floats(n, count, features), vectors_per_class=per_class,
        rho=floats(n, pairs_of(classes)), post_transform=n.pick(*transforms), **kernels(n), **{name: make(classes) for name, make in more.items()})


def pairs_of(classes):
    return classes * (classes - 1) // 2


def svm_probabilities(n):
    """The probabilities of two classes do not decide the label, and those of more are found by an iteration that ends early."""
    svm_classifier(n, ("NONE", "LOGISTIC", "SOFTMAX", "PROBIT"), prob_a=lambda classes: [-0.5 - abs(x) for x in floats(n, pairs_of(classes))],
                   prob_b=lambda classes: [3 * x for x in floats(n, pairs_of(classes))])


# ---- trees ----

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


class Trees:
    """The lists of random trees in the form of before version 5."""

    def __init__(self, n, features, mixed, trees=None, depths=(0, 4), stops=0.2):
        self.n, self.features, self.mixed, self.stops = n, features, mixed, stops
        self.lists = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                                            "missing_value_tracks_true")}
        self.leaves = []  # (tree, node)
        for tree in range(trees or n.below(1, 5)):
            self.next = 0
            self.grow(tree, n.below(*depths))

    def grow(self, tree, depth):
        node, row = self.next, len(self.lists["nodeids"])
        self.next += 1
        leaf = depth == 0 or self.n.chance(self.stops)
        values = {"treeids": tree, "nodeids": node, "featureids": 0 if leaf else self.n.below(0, self.features),
                  "values": 0.0 if leaf else float(self.n.pick(-0.5, 0.0, 0.25, 0.5)),
                  "modes": "LEAF" if leaf else self.n.pick(*MODES) if self.mixed else "BRANCH_LEQ",
                  "truenodeids": 0, "falsenodeids": 0, "missing_value_tracks_true": 0 if leaf else self.n.below(0, 2)}
        for name, value in values.items():
            self.lists[name].append(value)
        if leaf:
            self.leaves.append((tree, node))
            return node
        self.lists["truenodeids"][row] = self.grow(tree, depth - 1)
        self.lists["falsenodeids"][row] = self.grow(tree, depth - 1)
        return node

    def attributes(self):
        return {f"nodes_{name}": values for name, values in self.lists.items()}


def tree_data(n, features, rows=6):
    x = n.rng.choice(np.float32([-1, -0.5, 0, -0.0, 1e-40, 0.25, 0.3, 0.5, 1, np.inf, -np.inf]), (rows, features))
    x[n.rng.random(x.shape) < 0.15] = np.nan
    return x


def tree_regressor(n):
    features, targets = n.below(1, 4), n.below(1, 4)
    trees = Trees(n, features, n.chance())
    aggregate = n.pick("SUM", "SUM", "AVERAGE", "MIN", "MAX")
    base = {"base_values": floats(n, targets)} if n.chance() else {}
    # ONNX Runtime forgets the base value of a target to which no leaf of a row adds.
    some = 1 if targets == 1 or base else 0.8
    weights = [(tree, node, target) for tree, node in trees.leaves for target in range(targets) if n.chance(some)]
    if not weights:
        return
    add(n, "TreeEnsembleRegressor", [tree_data(n, features)], n_targets=targets, aggregate_function=aggregate, target_treeids=[w[0] for w in weights],
        target_nodeids=[w[1] for w in weights], target_ids=[w[2] for w in weights], target_weights=floats(n, len(weights)), **trees.attributes(), **base)


def tree_classifier(n):
    # Of two classes, weights of one: of weights of both, ONNX Runtime takes no label but 0 and 1, by the sign of the second score.
    features, classes = n.below(1, 4), n.pick(2, 2, 3, 4)
    trees = Trees(n, features, n.chance())
    one_class, shares = classes == 2, n.chance()
    one = n.below(0, 2)
    weights = [(tree, node, k) for tree, node in trees.leaves for k in ([one] if one_class else range(classes))]
    values = floats(n, len(weights))
    if shares:
        values = [abs(v) / 4 for v in values]
    transform = n.pick("NONE", "LOGISTIC") if one_class else n.pick("NONE", "LOGISTIC", "SOFTMAX")
    add(n, "TreeEnsembleClassifier", [tree_data(n, features)], 2, classlabels_int64s=[int(x) for x in n.rng.permutation(9)[:classes]],
        class_treeids=[w[0] for w in weights], class_nodeids=[w[1] for w in weights], class_ids=[w[2] for w in weights], class_weights=values,
        post_transform=transform, **trees.attributes())


def grown_trees(n):
    """Trees, rows and features of many sizes: a few rows and many, complete and uneven trees, leaves of one and of many targets."""
    features, targets = n.pick(1, 3, 40), n.pick(1, 1, 2, 5, 19)
    trees = Trees(n, features, n.chance(0.3), trees=n.pick(1, 7, 8, 30), depths=n.pick((0, 2), (3, 4), (2, 7), (11, 12)), stops=n.pick(0.0, 0.05, 0.4))
    own = n.chance()  # a tree's leaves have one target, as boosted trees of several classes do
    weights = [(tree, node, target) for tree, node in trees.leaves for target in ([tree % targets] if own else range(targets))]
    base = {"base_values": floats(n, targets)} if n.chance() and not own else {}  # of targets without a tree, see above
    add(n, "TreeEnsembleRegressor", [tree_data(n, features, n.pick(1, 2, 8, 9, 30, 257))], n_targets=targets,
        aggregate_function=n.pick("SUM", "SUM", "AVERAGE") if own else n.pick("SUM", "AVERAGE", "MIN", "MAX"), target_treeids=[w[0] for w in weights],
        target_nodeids=[w[1] for w in weights], target_ids=[w[2] for w in weights], target_weights=floats(n, len(weights)), **trees.attributes(), **base)


def vine(n):
    """Trees of which each node has a leaf, deeper than complete ones may be."""
    trees, depth = n.pick(1, 9), n.pick(11, 40, 300)
    nodes, leaves = range(2 * depth + 1), {2 * i + 1 for i in range(depth)} | {2 * depth}
    lists = {"treeids": [], "nodeids": [], "featureids": [], "values": [], "modes": [], "truenodeids": [], "falsenodeids": []}
    mode = n.pick(*MODES)
    for tree in range(trees):
        swap = n.below(0, 2)
        for node in nodes:
            leaf = node in leaves
            children = [0, 0] if leaf else [node + 1 + swap, node + 2 - swap]
            values = [tree, node, n.below(0, 3), float(n.pick(-0.5, 0.0, 0.25, 0.5)), "LEAF" if leaf else mode, *children]
            for name, value in zip(lists, values, strict=True):
                lists[name].append(value)
    weights = [(tree, node) for tree in range(trees) for node in sorted(leaves)]
    add(n, "TreeEnsembleRegressor", [tree_data(n, 3, n.pick(1, 20))], n_targets=1, target_treeids=[w[0] for w in weights],
        target_nodeids=[w[1] for w in weights], target_ids=[0] * len(weights), target_weights=floats(n, len(weights)),
        **{f"nodes_{name}": values for name, values in lists.items()})


def tree_ensemble(n):
    """The form of version 5, with sets of values."""
    features, targets = n.below(1, 4), n.below(1, 3)
    dtype = n.pick(np.float32, np.float64)
    inner, leaves, members, roots = [], [], [], []

    def leaf():
        leaves.append((n.below(0, targets), float(n.array(1)[0])))
        return len(leaves) - 1, 1

    def grow(depth):
        if depth == 0 or n.chance(0.2):
            return leaf()
        at, mode = len(inner), n.below(0, 7)
        inner.append(None)
        if mode == 6:
            members.append((at, [-1.0, 1.0, 0.0][:n.below(1, 4)]))  # ONNX Runtime takes integers alone
        on_true, on_false = grow(depth - 1), grow(depth - 1)
        inner[at] = (n.below(0, features), float(n.pick(-0.5, 0.0, 0.25, 0.5)), mode, *on_true, *on_false, n.below(0, 2))
        return at, 0

    for _ in range(n.below(1, 4)):
        at, is_leaf = grow(n.below(1, 4))
        if is_leaf:
            inner.append((0, 0.0, 0, at, 1, at, 1, 0))
            at = len(inner) - 1
        roots.append(at)
    tensor = lambda values, kind: numpy_helper.from_array(np.asarray(values, kind))
    columns = list(zip(*inner, strict=True))
    sets = {}
    if members:
        values = [x for _, listed in sorted(members) for x in [*listed, np.nan]]
        sets["membership_values"] = tensor(values, dtype)
    x = n.rng.choice([-1, 0, 1, 2], (6, features)).astype(dtype)  # of others, ONNX Runtime looks for the integer part in sets
    add(n, "TreeEnsemble", [x], n_targets=targets, aggregate_function=n.below(0, 4), tree_roots=roots, nodes_featureids=list(columns[0]),
        nodes_splits=tensor(columns[1], dtype), nodes_modes=tensor(columns[2], np.uint8), nodes_truenodeids=list(columns[3]),
        nodes_trueleafs=list(columns[4]), nodes_falsenodeids=list(columns[5]), nodes_falseleafs=list(columns[6]),
        leaf_targetids=[x[0] for x in leaves], leaf_weights=tensor([x[1] for x in leaves], dtype), **sets)


class MlOperators(RandomNodes):
    def test_columns(self):
        self.compare(scaler, normalizer, imputer, binarizer, extractor, vectorizer, one_hot, count=8)
        self.compare(label_encoder, count=8, ml_version=4)

    def test_linear_models(self):
        self.compare(linear_regressor, linear_classifier, count=12)

    def test_support_vectors(self):
        self.compare(svm_regressor, svm_classifier, count=12)
        self.compare(svm_probabilities, count=16, atol=1e-5)

    def test_trees(self):
        self.compare(tree_regressor, tree_classifier, count=14)

    def test_trees_of_many_sizes(self):
        self.compare(grown_trees, vine, count=14)

    def test_trees_of_version_5(self):
        self.compare(tree_ensemble, count=12, ml_version=5)

    def test_what_is_no_number_is_refused_with_the_way_out(self):
        nodes = Nodes(1)
        add(nodes, "LinearClassifier", [nodes.array(1, 2)], 2, classlabels_strings=["no", "yes"], coefficients=[1.0, 2.0, 3.0, 4.0], intercepts=[0.0, 1.0])
        self.refuse("labels that are texts, expected numbers: train on the classes' numbers", "show", self.save(nodes.model()))
        nodes = Nodes(1)
        add(nodes, "ZipMap", [nodes.array(1, 2)], classlabels_int64s=[0, 1])
        self.refuse("ai.onnx.ml.ZipMap, which makes maps: take its operand as the output, as skl2onnx does with zipmap=False (node 'ZipMap_0')", "show", self.save(nodes.model()))
        nodes = Nodes(1)
        add(nodes, "LabelEncoder", [nodes.rng.integers(0, 3, (1, 2))], keys_strings=["a", "b"], values_int64s=[0, 1])
        self.refuse("node 'LabelEncoder_0' (ai.onnx.ml.LabelEncoder): keys that are no numbers: encode texts before the model", "show", self.save(nodes.model()))

    def test_texts_of_labels_that_no_output_needs(self):
        nodes = Nodes(1)
        texts = {"classlabels_strings": ["no", "yes", "maybe"]}
        add(nodes, "LinearClassifier", [nodes.array(3, 2)], 2, coefficients=floats(nodes, 6), intercepts=floats(nodes, 3), **texts)
        add(nodes, "SVMClassifier", [nodes.array(5, 2)], 2, coefficients=floats(nodes, 6), support_vectors=floats(nodes, 6), vectors_per_class=[1, 1, 1],
            rho=floats(nodes, 3), kernel_type="RBF", kernel_params=[0.5, 0.0, 0.0], **texts)
        model = nodes.model()
        model.graph.node.append(helper.make_node("Identity", ["y0_0"], ["same"]))  # nothing needs it either
        for i in 2, 0:
            del model.graph.output[i]
        path = self.save(model)
        found = self.outputs(path, nodes.feeds)
        for name, expected in nodes.run_reference().items():
            if name.endswith("_1"):
                np.testing.assert_allclose(found.pop(name), expected, rtol=1e-4, atol=2e-5, err_msg=name)
        self.assertFalse(found)

    def test_probit_of_one_score_is_refused(self):
        nodes = Nodes(1)
        add(nodes, "LinearClassifier", [nodes.array(3, 2)], 2, coefficients=[1.0, 2.0], intercepts=[0.0], classlabels_ints=[0, 1], post_transform="PROBIT")
        self.refuse("post_transform 'PROBIT' of one score that stands for two classes, expected NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO", "show", self.save(nodes.model()))

    def test_a_file_without_operators_of_onnx(self):
        nodes = Nodes(1)
        add(nodes, "Scaler", [nodes.array(2, 3)], offset=[0.5], scale=[2.0])
        model = nodes.model()
        del model.opset_import[:]
        model.opset_import.append(helper.make_opsetid(ML, 1))
        self.succeed("show", self.save(model))


class RowsOfTables(RangeCase):
    """Files of skl2onnx and others leave the number of rows open."""

    def test_any_number_of_rows(self):
        nodes = Nodes(4)
        for maker in (tree_regressor, tree_classifier, tree_classifier, linear_classifier, svm_classifier, svm_probabilities):
            maker(nodes)
        model = nodes.model()
        for info in model.graph.input:
            info.type.tensor_type.shape.dim[0].dim_param = "rows"
        path = self.compile(model, "rows=1..40")
        for rows in (40, 1, 2, 17):
            inputs = {name: array[np.arange(rows) % len(array)] for name, array in nodes.feeds.items()}
            self.expect_near(self.outputs(self.folder / "model.so", inputs, "--threads", 2), path, inputs)


if __name__ == "__main__":
    support.main()
