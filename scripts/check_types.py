#!/usr/bin/env python3
"""No two types of a namespace have the same name. Two that do are no error to compiler and linker: each file sees its own, and templates
of both (such as the vector's) become one function, which then writes past the end of the smaller one."""
import collections
import re
import sys

import sources

TOKENS = re.compile(r"""//[^\n]* | /\*.*?\*/ | R"(?P<mark>[^(]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
                        | \d[\w'.]* | [A-Za-z_]\w*(?:::\w+)* | \S""", re.S | re.X)


def types_of(text):
    """The qualified names of the types that a source defines in namespaces; none of unnamed ones, and none within types."""
    tokens = [t.group() for t in TOKENS.finditer(text)
              if not t.group().startswith(("//", "/*")) and t.group() != "HONE_API"]
    scopes, found, i = [], [], 0  # a scope is the name of a namespace, "" for an unnamed one, or None for other braces
    while i < len(tokens):
        token = tokens[i]
        if token == "namespace":
            end = next((j for j in range(i, len(tokens)) if tokens[j] in "{;="), len(tokens) - 1)
            if tokens[end] == "{":
                scopes.append("".join(tokens[i + 1:end]))
            i = end
        elif token in ("struct", "class", "union", "enum"):
            name = i + 1 + (tokens[i + 1] in ("struct", "class"))
            head = next((j for j in range(name + 1, len(tokens)) if tokens[j] in "{;(),=>&*"), len(tokens) - 1)
            defines = tokens[head] == "{" and tokens[name + 1] in ("{", ":", "final") and re.match(r"[A-Za-z_]", tokens[name])
            if defines and all(scopes):
                found.append("::".join([*scopes, tokens[name]]))
            if tokens[head] == "{":
                scopes.append(None)
            i = head if tokens[head] == "{" else name - 1
        elif token == "{":
            scopes.append(None)
        elif token == "}" and scopes:
            scopes.pop()
        i += 1
    return found


def same_names(texts):
    """{name: the files that define it} of what more than one file defines; texts: {file: its text}."""
    places = collections.defaultdict(set)
    for path, text in texts.items():
        for name in types_of(text):
            places[name].add(str(path))
    return {name: sorted(files) for name, files in places.items() if len(files) > 1}


def main():
    texts = {path: "\n".join(sources.lines(path)) for path in sources.files(*sources.CPP, under=("include", "src", "tools", "plugins", "fuzz"))}
    doubled = same_names(texts)
    for name, files in sorted(doubled.items()):
        print(f"{name} is defined in {' and in '.join(files)}: two types of a namespace need two names")
    return 1 if doubled else 0


if __name__ == "__main__":
    sys.exit(main())
