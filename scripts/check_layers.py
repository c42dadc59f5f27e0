#!/usr/bin/env python3
"""A folder of src/hone may include only itself and the folders above it, and only the folder that
owns a third-party library may include its headers. Also read: the links in CMakeLists.txt."""
import re
import sys

import sources

# From the ground up. After them come src/hone/*.h, the facade, then everything outside src/hone.
LAYERS = ["base", "tensor", "ir", "compute", "schedule", "target", "space", "analysis", "codegen",
          "measure", "db", "cost", "search", "graph", "assembly", "model", "neural"]
FACADE = len(LAYERS)
OUTSIDE = FACADE + 1

# Third-party headers -> the only folder of src/hone that may include them.
OWNERS = {
    r"llvm(-c)?/": "codegen/llvm",
    r"(ATen|torch|c10)/": "cost/torch",
    r"onnx/": "graph",
    r"google/protobuf/": "graph",
    r"sqlite3\.h": "db",
    r"libpq": "db",
    r"hwloc": "target",
    r"zlib\.h": "tensor",
}
INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')
LINK = re.compile(r"\bhone_([a-z]+)\b(?!\.)")


def layer_of(path):
    """The layer of a file in the project, or of an include such as hone/ir/expr.h."""
    parts = path.parts[1:] if path.parts[0] == "src" else path.parts
    if parts[0] != "hone":
        return OUTSIDE
    if len(parts) == 2:
        return FACADE
    return LAYERS.index(parts[1]) if parts[1] in LAYERS else None


def name_of(layer):
    return {FACADE: "the facade", OUTSIDE: "the outside"}.get(layer) or LAYERS[layer]


def check_include(path, layer, kind, target):
    if kind == '"' and layer != OUTSIDE and not target.startswith("hone/"):
        return f'"{target}" is not written from src/ on'
    if target.startswith("hone/"):
        wanted = layer_of(type(path)(target))
        if wanted is None:
            return f"{target} is in no known layer"
        if wanted > layer:
            return f"{target} is above: {name_of(layer)} may not know of {name_of(wanted)}"
    for pattern, owner in OWNERS.items():
        if re.match(pattern, target) and path.parts[0] == "src" and \
                not str(path).startswith(f"src/hone/{owner}/"):
            return f"<{target}> belongs to {owner} alone"
    return None


def check_links(path, layer):
    for number, line in enumerate(sources.lines(path), 1):
        for target in LINK.findall(line.split("#")[0]):
            if target in LAYERS and LAYERS.index(target) > layer:
                yield f"{path}:{number}: links hone_{target}, which is above {name_of(layer)}"


def main():
    problems = []
    for path in sources.files(*sources.CPP):
        layer = layer_of(path)
        if layer is None:
            problems.append(f"{path}: {path.parts[2]} is in no known layer")
            continue
        for number, line in enumerate(sources.lines(path), 1):
            match = INCLUDE.match(line)
            problem = match and check_include(path, layer, *match.groups())
            if problem:
                problems.append(f"{path}:{number}: {problem}")
    for path in sources.files("CMakeLists.txt", under=["src/hone"]):
        layer = layer_of(path)
        if layer is not None:
            problems.extend(check_links(path, layer))
    print("\n".join(problems) or f"layers: {len(LAYERS)} in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
