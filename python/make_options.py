"""Makes the keyword arguments of the package's functions of the C++ interface's options.

    make_options.py INCLUDE/hone OUTPUT_FOLDER

Each field of the structs below becomes a keyword argument of its name. options.inc, dataset_options.inc and
train_options.inc set the fields, _option_docs.py has their types, defaults and comments, so that every option is
described in one place. _option_types.py has the options of each function as a TypedDict, for type checkers.
"""
import keyword
import re
import sys
from pathlib import Path

# The structs, and how a TuneOptions reaches each of them. Fields of the last are options of tune only.
TUNE_GROUPS = {"ModelOptions": "compile.model", "TargetOptions": "compile.target", "LibraryOptions": "compile.library",
          "RecordOptions": "compile.records", "AdvancedOptions": "compile.advanced", "SearchOptions": "search"}
# By the name of the tables: the header, the struct that all others are reached from, and the structs with the fields.
JOBS = {"OPTIONS": ("options.h", "TuneOptions", TUNE_GROUPS),
        "DATASET_OPTIONS": ("dataset.h", "DatasetOptions", {"DatasetOptions": ""}),
        "TRAIN_OPTIONS": ("train.h", "TrainOptions", {"TrainOptions": "", "TrainData": "data", "NetTrainOptions": "net"})}
TYPE_NAMES = {"DATASET_OPTIONS": "DatasetOptions", "TRAIN_OPTIONS": "TrainOptions"}
TYPES = {"std::string": "str", "int": "int", "int64_t": "int", "uint64_t": "int", "double": "float", "bool": "bool",
         "std::optional<bool>": "bool | None", "std::optional<int>": "int | None", "std::optional<double>": "float | None",
         "std::vector<std::string>": "list[str]", "std::vector<int>": "list[int]", "std::vector<int64_t>": "list[int]",
         "std::set<uint64_t>": "set[int]",
         "std::map<std::string, Shape>": "dict[str, tuple[int, ...]]", "std::map<std::string, Tensor>": "dict[str, array]",
         "std::map<std::string, ShapeRange>": "dict[str, list[int | str | tuple[int, int] | tuple[int, int, str]]]"}
# Type checkers accept these types, where they are not those that document the option.
ACCEPTED = {"str": "str | os.PathLike[str]", "list[str]": "list[str] | tuple[str, ...]", "list[int]": "list[int] | tuple[int, ...]",
            "set[int]": "AbstractSet[int]", "dict[str, tuple[int, ...]]": "Mapping[str, Sequence[int]]", "dict[str, array]": "dict[str, Any]",
            "dict[str, list[int | str | tuple[int, int] | tuple[int, int, str]]]":
                "dict[str, Sequence[int | str | tuple[int, int] | tuple[int, int, str]]]"}
TYPES_BEGIN = '''"""The options of the functions of this package as types; hone.options() describes them."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypedDict
'''
# Fields that are no plain values, or that the Python interface decides by itself.
LEFT_OUT = {"hooks", "spent_seconds", "sync", "available", "interrupted", "data", "net"}
# The database is an argument of its own.
LEFT_OUT_OF = {"DatasetOptions": {"db"}, "TrainData": {"db"}}


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
        empty = {"str": '""', "list": "[]", "set": "set()", "dict": "{}"}
        return "None" if kind.endswith("None") else empty[kind.split("[")[0]]
    if kind.startswith("list"):
        return default.replace("{", "[").replace("}", "]")
    return {"true": "True", "false": "False"}.get(default, default.replace("'", "_"))


def options_of(header, groups):
    """(group, name, Python type, default, comment) of all options."""
    options = []
    for struct, group in groups.items():
        match = re.search(rf"struct {struct} {{\n(.*?)\n}};", header, re.S)
        if not match:
            sys.exit(f"make_options: no struct {struct} in the header")
        for name, kind, default, comment in fields_of(match[1]):
            if name in LEFT_OUT or name in LEFT_OUT_OF.get(struct, ()):
                continue
            if kind not in TYPES or not comment:
                sys.exit(f"make_options: {struct}::{name} has the type '{kind}' and the comment '{comment}', expected one of {', '.join(TYPES)}, "
                         "and a comment")
            options.append((group, name, TYPES[kind], python_value(default, TYPES[kind]), comment))
    return options


def argument(name):
    """The keyword argument of a field; a name that Python reserves gets an underscore behind it."""
    return f"{name}_" if keyword.iskeyword(name) else name


def typed_dict(name, base, options):
    """The text of a TypedDict with the options, none of which must be given."""
    fields = [f"    {argument(name)}: {ACCEPTED.get(kind, kind)}" for _, name, kind, *_ in options]
    return "\n".join(["", "", f"class {name}({base}, total=False):", *fields, ""])


def types_of(table, options):
    """The text of the TypedDicts of a table of options; TuneOptions has what tune takes besides the options of compile."""
    if table != "OPTIONS":
        return typed_dict(TYPE_NAMES[table], "TypedDict", options)
    tunes = [option for option in options if option[0] == "search"]
    return (typed_dict("CompileOptions", "TypedDict", [option for option in options if option not in tunes])
            + typed_dict("TuneOptions", "CompileOptions", tunes))


def main():
    headers, output = map(Path, sys.argv[1:])
    types = TYPES_BEGIN
    docs = ['"""The options of the functions of this package, from the C++ interface."""']
    for table, (header, root, groups) in JOBS.items():
        options = options_of((headers / header).read_text(), groups)
        names = [name for _, name, *_ in options]
        if len(set(names)) != len(names):
            sys.exit("make_options: two options have one name")
        lines = []
        types += types_of(table, options)
        docs.append(f"{table} = {{")
        for group, name, kind, default, comment in options:
            path = f"{group}.{name}" if group else name
            tunes = group == "search"
            lines.append(f'{{"{argument(name)}", {str(tunes).lower()}, []({root}& o, nb::handle v) {{ assign(o.{path}, v); }}}},\n')
            docs.append(f"    {argument(name)!r}: ({tunes}, {kind!r}, {default!r}, {comment!r}),")
        docs.append("}")
        (output / f"{table.lower()}.inc").write_text("".join(lines))
    (output / "_option_docs.py").write_text("\n".join([*docs, ""]))
    (output / "_option_types.py").write_text(types)


if __name__ == "__main__":
    main()
