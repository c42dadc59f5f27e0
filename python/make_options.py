"""Makes the keyword arguments of hone.compile and hone.tune of the C++ interface's options.

    make_options.py options.h OPTIONS.inc DOCS.py

Each field of the structs below becomes a keyword argument of its name. OPTIONS.inc sets the fields, DOCS.py has their
types, defaults and comments, so that every option is described in one place.
"""
import re
import sys
from pathlib import Path

# The structs, and how a TuneOptions reaches each of them. Fields of the last are options of tune only.
GROUPS = {"ModelOptions": "compile.model", "TargetOptions": "compile.target", "LibraryOptions": "compile.library",
          "RecordOptions": "compile.records", "AdvancedOptions": "compile.advanced", "SearchOptions": "search"}
TYPES = {"std::string": "str", "int": "int", "int64_t": "int", "uint64_t": "int", "double": "float", "bool": "bool",
         "std::optional<bool>": "bool | None", "std::vector<std::string>": "list[str]",
         "std::map<std::string, Shape>": "dict[str, tuple[int, ...]]", "std::map<std::string, Tensor>": "dict[str, array]",
         "std::map<std::string, ShapeRange>": "dict[str, list[int | str | tuple[int, int] | tuple[int, int, str]]]"}
# Fields that are no plain values, or that the Python interface decides by itself.
LEFT_OUT = {"hooks", "spent_seconds", "sync", "available"}


def fields_of(body):
    """(name, C++ type, default, comment) of each field of a struct's body."""
    found, comment = [], []
    for line in body.splitlines():
        line = line.strip()
        if line.startswith("//"):
            comment.append(line[2:].strip())
            continue
        match = re.match(r"(?P<type>[\w:<>, ]+?)\*?\s+(?P<name>\w+)(?:\s*=\s*(?P<default>[^;]+))?;(?:\s*//\s*(?P<behind>.*))?$", line)
        if match:
            text = " ".join(comment) or match["behind"] or ""
            found.append((match["name"], match["type"].removeprefix("const "), match["default"], text))
        if line:
            comment = []
    return found


def python_value(default, kind):
    """The text of a default as Python writes it."""
    if default is None:
        return {"str": '""', "list[str]": "[]", "bool | None": "None"}.get(kind, "{}")
    return {"true": "True", "false": "False"}.get(default, default)


def options_of(header):
    """(group, name, Python type, default, comment) of all options."""
    options = []
    for struct, group in GROUPS.items():
        match = re.search(rf"struct {struct} {{\n(.*?)\n}};", header, re.S)
        if not match:
            sys.exit(f"make_options: no struct {struct} in the header")
        for name, kind, default, comment in fields_of(match[1]):
            if name in LEFT_OUT:
                continue
            if kind not in TYPES or not comment:
                sys.exit(f"make_options: {struct}::{name} has the type '{kind}' and the comment '{comment}', expected one of {', '.join(TYPES)}, "
                         "and a comment")
            options.append((group, name, TYPES[kind], python_value(default, TYPES[kind]), comment))
    return options


def main():
    header, code, docs = sys.argv[1:]
    options = options_of(Path(header).read_text())
    names = [name for _, name, *_ in options]
    if len(set(names)) != len(names):
        sys.exit("make_options: two options have one name")
    Path(code).write_text("".join(f'{{"{name}", {"true" if group == "search" else "false"}, '
                                  f"[](TuneOptions& o, nb::handle v) {{ assign(o.{group}.{name}, v); }}}},\n" for group, name, *_ in options))
    lines = ['"""The options of hone.compile and hone.tune, from the C++ interface."""', "OPTIONS = {"]
    lines += [f"    {name!r}: ({group == 'search'}, {kind!r}, {default!r}, {comment!r})," for group, name, kind, default, comment in options]
    Path(docs).write_text("\n".join([*lines, "}", ""]))


if __name__ == "__main__":
    main()
