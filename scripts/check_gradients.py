#!/usr/bin/env python3
"""An operator that computes its own gradient says what becomes of the gradient's gradient. libtorch takes what a backward pass computes from raw memory for a
constant, so second derivatives would be 0 without a word. Each torch::autograd::Function or Node asks is_differentiated_again() in its backward pass, and then
computes by recorded operators, or calls refuse_second_derivative() (src/hone/learn/torch/raw_gradient.h). Tests may have operators that do neither."""
import sys

import sources
from check_types import TOKENS

BASES = {"Function": "backward", "Node": "apply"}  # what an operator derives from: its backward pass
ANSWERS = ("is_differentiated_again", "refuse_second_derivative")


def tokens_of(text):
    return [t.group() for t in TOKENS.finditer(text) if not t.group().startswith(("//", "/*"))]


def end_of(tokens, opened):
    """The index behind the brace or parenthesis that closes the one at `opened`."""
    pairs = {"{": "}", "(": ")"}
    first, last, depth = tokens[opened], pairs[tokens[opened]], 0
    for i in range(opened, len(tokens)):
        depth += (tokens[i] == first) - (tokens[i] == last)
        if depth == 0:
            return i + 1
    return len(tokens)


def body_of(tokens, function):
    """The tokens of the body of a function that is defined among these; none if it is only declared."""
    for i in range(len(tokens) - 1):
        if tokens[i].split("::")[-1] != function or tokens[i + 1] != "(":
            continue
        brace = next((j for j in range(end_of(tokens, i + 1), len(tokens)) if tokens[j] in "{;"), len(tokens))
        if brace < len(tokens) and tokens[brace] == "{":
            return tokens[brace:end_of(tokens, brace)]
    return []


def silent_operators(text):
    """Names of the operators whose backward pass says nothing of second derivatives."""
    tokens, found = tokens_of(text), []
    for i, token in enumerate(tokens[:-2]):
        if token not in ("struct", "class"):
            continue
        head = next((j for j in range(i + 2, len(tokens)) if tokens[j] in "{;()"), len(tokens) - 1)
        base = next((part.split("::")[-1] for part in tokens[i + 2:head] if part.split("::")[-1] in BASES), None)
        if tokens[head] != "{" or ":" not in tokens[i + 2:head] or base is None:
            continue
        body = body_of(tokens[head + 1:end_of(tokens, head)], BASES[base])
        if not any(called.split("::")[-1] in ANSWERS and body[j + 1:j + 2] == ["("] for j, called in enumerate(body)):
            found.append(tokens[i + 1])
    return found


def main():
    failed = False
    for path in sources.files(*sources.CPP, under=("src", "tools", "plugins", "python")):
        text = "\n".join(sources.lines(path))
        if "autograd" not in text or path.stem.endswith(("_test", "_testing")):
            continue
        for name in silent_operators(text):
            print(f"{path}: the backward pass of {name} may read raw memory, expected a call of {' or '.join(ANSWERS)} in it (learn/torch/raw_gradient.h)")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
