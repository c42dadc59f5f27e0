"""Which operators, and which of their attributes, the generators have set: all that the program supports, but for EXCUSED."""
import collections
import functools

import onnx

FIRST_OPSET = 7

SEQUENCES = ("SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength", "SequenceMap",
             "ConcatFromSequence", "SplitToSequence", "Optional", "OptionalGetElement", "OptionalHasElement")

RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
ALONE = ("DeformConv", "TfIdfVectorizer")

# (operator, attribute; "": the whole operator): why no generator sets it.
EXCUSED = {
    ("Constant", "sparse_value"): "the program has no sparse tensors",
    ("Constant", "value_string"): "the program has no strings",
    ("Constant", "value_strings"): "the program has no strings",
    ("LSTM", "clip"): "no oracle clips the state (oracle.py)",
    ("SimplifiedLayerNormalization", ""): "it is ONNX Runtime's own (microsoft_operators_test.py)",
    **{(operator, ""): "a subgraph's values are tensors (sequences_test.py)" for operator in SEQUENCES},
    **{(operator, ""): "its numbers are of the program's own generator (random_operators_test.py)" for operator in RANDOM},
    **{(operator, ""): "random nodes with all of its attributes are compared one by one (onnx_operators_test.py)" for operator in ALONE},
    ("Scan", "directions"): "of opset 8, whose Scan the program does not take",
}

seen = collections.defaultdict(collections.Counter)  # operator -> attribute -> how often; "": the node itself


def note(node):
    counts = seen[node.op_type]
    counts[""] += 1
    for attribute in node.attribute:
        counts[attribute.name] += 1


@functools.cache
def attributes_of(operator):
    """The attributes of any of its versions since the first opset that the program takes."""
    names = set()
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == operator and s.domain == ""]
    versions = sorted(s.since_version for s in schemas)
    first = max([v for v in versions if v <= FIRST_OPSET], default=versions[0] if versions else 0)
    for schema in schemas:
        if schema.since_version >= first:
            names |= set(schema.attributes)
    return names


def missing(operators):
    """[(operator, attribute)] that no generator has set so far."""
    wanted = [(operator, name) for operator in operators for name in sorted({""} | attributes_of(operator))]
    return [pair for pair in wanted if pair not in EXCUSED and (pair[0], "") not in EXCUSED and seen[pair[0]][pair[1]] == 0]
