#!/usr/bin/env python3
"""A folder of src/hone may include only itself and the folders above it, and only the folder that
owns a third-party library may include its headers. A back end is reached through the interface of `backend`
alone, except by tests. A folder links only folders above it of which it includes something. Headers of the public
interface (include/hone) include nothing but each other and the standard library, everyone may include them, and the
command line includes them and hone/base only. The longest chain of folders, from base to the command line, each of
which includes the one before it, must not grow."""
import posixpath
import re
import sys

import sources

# From the ground up. Above them is everything outside src/hone.
LAYERS = ["base", "tensor", "runtime", "ir", "compute", "schedule", "target", "trial", "db", "space", "analysis",
          "backend", "artifact", "measure", "machine", "remote", "cost", "learn", "search", "graph", "neural", "session",
          "commands", "api"]
OUTSIDE = len(LAYERS)
PUBLIC = -1  # the layer of include/hone: below all others

COMMAND_LINE = "tools/hone"
LONGEST_CHAIN = 12  # a change that makes it shorter lowers this
# The command line may include this of src/hone: its strings, files and parsers of options. Everything else goes through
# the public interface.
COMMAND_LINE_BASE = "hone/base/"

# Third-party headers -> the only folder of src/hone that may include them.
OWNERS = {
    r"llvm(-c)?/": "backend/cpu",
    r"(ATen|torch|c10)/": "learn/torch",
    r"onnx/": "graph",
    r"google/protobuf/": "graph",
    r"sqlite3\.h": "db",
    r"libpq": "db",
    r"hwloc": "target",
    r"zlib\.h": "tensor",
    r"toml\+\+/": "remote",
    r"(grpc|grpcpp)/|remote\.(grpc\.)?pb\.h": "remote/grpc",
}
STANDARD = re.compile(r"[a-z_]+")  # as <string>; no header of C, which would be <string.h>
# Headers of this project -> the only folder of src/hone that may include them, tests apart.
PRIVATE = {
    r"hone/backend/[a-z]+/": "backend",
}
INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')
LINK = re.compile(r"\bhone_([a-z]+)\b(?!\.)")
# hone_library(NAME SOURCES a.cc ... DEPS hone_base ...), hone_test(...) and what is linked apart from them.
COMMAND = re.compile(r"\b(hone_library|hone_test|add_library|add_executable|target_link_libraries)\s*\(\s*(\w+)([^()]*)\)")
FOR_TESTS = re.compile(r"(_test|_testing|_test_support|_benchmark)\.(h|cc)$|/test_\w+\.(h|cc)$")


def is_public(header):
    """Whether an included header, such as hone/tensor.h, is one of include/hone."""
    return header.startswith("hone/") and header.count("/") == 1


def layer_of(path):
    """The layer of a file in the project, or of an include such as hone/ir/expr.h."""
    if path.parts[0] == "include" or is_public(str(path)):
        return PUBLIC
    parts = path.parts[1:] if path.parts[0] == "src" else path.parts
    if parts[0] != "hone":
        return OUTSIDE
    return LAYERS.index(parts[1]) if parts[1] in LAYERS else None


def name_of(layer):
    return "the outside" if layer == OUTSIDE else "the public interface" if layer == PUBLIC else LAYERS[layer]


def check_include(path, layer, kind, target):
    if layer == PUBLIC and not (is_public(target) or STANDARD.fullmatch(target)):
        return f"{target} is neither public nor of the standard library"
    if str(path.parent) == COMMAND_LINE and not FOR_TESTS.search(str(path)) and target.startswith("hone/") and \
            not is_public(target) and not target.startswith(COMMAND_LINE_BASE):
        return f"{target} is internal: the command line is written on include/hone"
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
    for pattern, owner in PRIVATE.items():
        if re.match(pattern, target) and path.parts[0] == "src" and \
                not str(path).startswith(f"src/hone/{owner}/") and not FOR_TESTS.search(str(path)):
            return f"{target} is a part of {owner} that only its interface may be used of"
    return None


def check_links(path, layer):
    for number, line in enumerate(sources.lines(path), 1):
        for target in LINK.findall(line.split("#")[0]):
            if target in LAYERS and LAYERS.index(target) > layer:
                yield f"{path}:{number}: links hone_{target}, which is above {name_of(layer)}"


def includes_of(path):
    """(number of the line, quote, header) of each include."""
    for number, line in enumerate(sources.lines(path), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, *match.groups()


def links_of(text):
    """(target, whether it is a test, its sources, the libraries of this project that it links) of the text of a
    CMakeLists.txt; what only helps tests counts as a test."""
    targets = {}
    for command, name, words in COMMAND.findall(re.sub(r"#.*", "", text)):
        test = command == "hone_test" or "_test" in name or "_benchmark" in name
        _, own, links = targets.setdefault(name, (test, [], []))
        words = words.split()
        own.extend(word for word in words if word.endswith(".cc"))
        links.extend(match[1] for match in map(LINK.fullmatch, words) if match)
    return [(name, *rest) for name, rest in targets.items()]


def owners_of_public(included):
    """{public header: the folders that have a source of it, one that includes it first}"""
    owners = {}
    for file, headers in included.items():
        if file.suffix == ".cc" and headers and is_public(headers[0]) and layer_of(file) in range(OUTSIDE):
            owners.setdefault(headers[0], set()).add(file.parts[2])
    return owners


def needless_links(path, text, included):
    """Links of a CMakeLists.txt without which nothing would be missing: no header of theirs is included.
    `included`: the headers that each file of the project includes."""
    owners = owners_of_public(included)
    for name, test, own, links in links_of(text):
        if not own:  # it puts other libraries together
            continue
        folders = {posixpath.normpath(str(path.parent / source).rpartition("/")[0]) for source in own}
        used = {header for file, headers in included.items() if str(file.parent) in folders
                for header in headers if test or not FOR_TESTS.search(str(file))}
        for link in links:
            if link not in LAYERS:
                continue
            if not any(header.startswith(f"hone/{link}/") or (is_public(header) and link in owners.get(header, {"api"}))
                       for header in used):
                yield f"{path}: {name} links hone_{link}, but includes nothing of it"


def place_of(path):
    """The link of a chain that a file or an included header belongs to: its folder. None: it is no part of the
    program."""
    parts = path.parts[1:] if path.parts[0] == "src" else path.parts
    if is_public(str(path)):
        return "api"  # where it is linked from
    if parts[0] == "hone":
        return parts[1]
    return COMMAND_LINE if str(path.parent) == COMMAND_LINE else None


def longest_chain(included):
    """The longest chain of places from `base` to the command line, each of which includes the one before it; and a
    circle of places, if there is one."""
    below = {}
    for file, headers in included.items():
        place = None if FOR_TESTS.search(str(file)) else place_of(file)
        if place:
            below.setdefault(place, set()).update(
                place_of(type(file)(header)) for header in headers
                if header.startswith("hone/") and not (is_public(header) and place != COMMAND_LINE))
    chains, circles = {}, []

    def chain_to(place, above=()):
        if place in above:
            circles.append([*above[above.index(place):], place])
            return []
        if place not in chains:
            steps = (chain_to(other, (*above, place)) for other in sorted(below.get(place, set()) - {place}))
            chains[place] = max(steps, key=len, default=[]) + [place]
        return chains[place]

    return chain_to(COMMAND_LINE), circles[0] if circles else None


def main():
    problems = []
    included = {}
    for path in sources.files(*sources.CPP):
        layer = layer_of(path)
        if layer is None:
            problems.append(f"{path}: {path.parts[2]} is in no known layer")
            continue
        lines = list(includes_of(path))
        included[path] = [target for _, _, target in lines]
        for number, kind, target in lines:
            problem = check_include(path, layer, kind, target)
            if problem:
                problems.append(f"{path}:{number}: {problem}")
    for path in sources.files("CMakeLists.txt"):
        layer = layer_of(path) if path.parts[0] == "src" else None
        if layer is not None:
            problems.extend(check_links(path, layer))
        problems.extend(needless_links(path, "\n".join(sources.lines(path)), included))
    chain, circle = longest_chain(included)
    if circle:
        problems.append(f"a circle of includes: {' -> '.join(circle)}")
    if len(chain) > LONGEST_CHAIN:
        problems.append(f"the longest chain of folders has {len(chain)}, expected {LONGEST_CHAIN} at most: "
                        f"{' -> '.join(chain)}")
    print("\n".join(problems) or f"layers: {len(LAYERS)} in order; the longest chain has {len(chain)}: "
          f"{' -> '.join(chain)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
