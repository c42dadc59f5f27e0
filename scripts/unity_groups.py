#!/usr/bin/env python3
"""Divides sources into groups that one compiler run translates together, as a release build does (HONE_UNITY in
cmake/HoneTargets.cmake): headers are then parsed, and templates instantiated, once for the group. Prints the number of
the group of each source, in the order of the arguments.

Sources of a group see each other's names, so those of a group must mean the same together as apart: what one has for
itself (in an unnamed namespace, static, a constant, a type, by a using declaration or by #define) must not be spoken of
by another one, nor by the headers that only the other one includes; the headers of one must not add a function to those
of the same name that another one calls; and all have the same using directives. Names are looked for as the compiler
does: a.name and other::name speak of something else, and code of a namespace sees what that namespace and those around
it have."""
import argparse
import collections
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent

MOST_FILES = 10
MOST_BYTES = 90_000

TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.S)
SCOPE = re.compile(r"^(?:inline )?namespace (?:([\w:]+) )?\{ *(?://.*)?$|^\} *// *(?:(?:anonymous|unnamed) )?namespace\b.*$", re.M)
WORD = re.compile(r"[A-Za-z_]\w*")
# A word that is no member, and not of a namespace or a type that is named before it.
PLAIN = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*|(?<=\.\.\.)[A-Za-z_]\w*|(?<![\w>]::)(?<=::)[A-Za-z_]\w*")
OF_ANOTHER = re.compile(r"(?<!\w)(?=(\w+)::(\w+))")
INCLUDE = re.compile(r'^#include (?:"([^"]+)"|<)', re.M)
DEFINE = re.compile(r"^#\s*define (\w+)", re.M)
# These lines tell the compiler how to take all code behind them, in the sources that follow, too.
PRAGMA = re.compile(r"^[ \t]*#\s*pragma (?!once\b)|\b_Pragma\(", re.M)
DIRECTIVE = re.compile(r"^using (?:namespace|enum) ([\w:]+);", re.M)

# clang-format leaves what a namespace holds at the first column.
DECLARATION = re.compile(r"^(?:template <[^\n]*\n)?(?:\[\[[^\]\n]*\]\] )?(\w[^\n]*(?:\n {2,}[^\n]*)?)", re.M)
ARGUMENTS = re.compile(r"<[^<>]*>")
NESTED = re.compile(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
NAME_IN_LIST = re.compile(r"[\s*&]*(\w+)(?: =|;|$)")
TYPE = re.compile(r"(?:class|struct|enum class|enum|union) (\w+)(?: final)?(?: :|;| \{|\{)")
SHARED = re.compile(r"using [\w:]+::(\w+);|(?:using|namespace) (\w+) = [^;]*;")
# A function or a variable: what stands before its first parenthesis, bracket, brace, sign of equality or comma.
VALUE = re.compile(r"(?!(?:class|struct|enum|union) \w+;)[\w:,&*\s]*?[\s*&](\w+)(?:\(|\[|\{|;| =|,)")
CONSTANT = re.compile(r"(?:constexpr|const) [\w:,&*\s]*?[\s*&](\w+)(?:\[|\{| =)")
ENUMERATORS = re.compile(r"^enum(?! class\b)[^{;()]*\{([^}]*)\}", re.M)
# A type, on one line or to the first line that begins with a brace, and the variables of it that follow at once.
VARIABLES_OF_TYPE = re.compile(r"^(?:class|struct|enum|union)\b[^;{}()]*\{(?:[^\n]*|[^\n]*\n(?:[^}\n][^\n]*\n|\n)*)\} *([\w*&][^;]*;)", re.M)
CLASS = re.compile(r"^(?:struct|class) [\w:]+[^;{]*\{\n(.*?)^\};", re.S | re.M)
# These declarations give the namespace no name: a function or a value of a type, and tests.
MEMBER = re.compile(r"[\w:,&*\s]*?\w::~?\w+(?:\(|\{|;| =)")
TEST = re.compile(r"^(?:(?:TYPED_)?TEST\w*|INSTANTIATE\w*)\(\s*(\w+),\s*(\w+)", re.M)
NAMELESS = re.compile(r"(?:static_assert|(?:TYPED_)?TEST\w*|INSTANTIATE\w*)\(|using namespace |using enum ")


def without_text(code):
    """Code with blanks in place of comments and strings, so that all else stays where it is."""
    return TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)


def without(pattern, code):
    """Code without what is inside of brackets, which may be inside of others."""
    while (shorter := pattern.sub("", code)) != code:
        code = shorter
    return code


def without_arguments(declaration):
    """A declaration whose templates have no arguments, which may look like functions."""
    return without(ARGUMENTS, declaration)


def statement_at(body, match):
    """The code from a match to the next semicolon."""
    return body[match.start():body.find(";", match.start()) + 1]


def alias(declaration):
    """The name that a using declaration or an alias gives to the namespace."""
    match = SHARED.match(declaration)
    return {match[1] or match[2]} if match else set()


def enumerators(body):
    """The names that enumerations without a class give to the namespace."""
    return {word for listed in ENUMERATORS.findall(body) for word in WORD.findall(listed)}


def names_in_list(parts):
    """The names of variables that a declaration lists."""
    return {found[1] for part in parts if (found := NAME_IN_LIST.match(part))}


def names_beside(body):
    """The names that come with types and tests: enumerators without a class, variables behind a type, and the classes
    that GoogleTest makes."""
    names = {f"{suite}_{test}_Test" for suite, test in TEST.findall(body)}
    return names.union(enumerators(body), *(names_in_list(without(NESTED, listed).split(",")) for listed in VARIABLES_OF_TYPE.findall(body)))


def names_declared(patterns, declaration, statement):
    """The names that a declaration gives to the namespace: one, or those of a list of variables."""
    shorter = without_arguments(declaration)
    match = next((match for pattern in patterns if (match := pattern.match(shorter))), None)
    if not match:
        return set()
    names = {match[1]}
    if not match[0].endswith("(") and not TYPE.match(shorter):
        names |= names_in_list(without(NESTED, statement).split(",")[1:])
    return names


class Words:
    """What the code of a source or of a header speaks of and what it declares."""

    def __init__(self, text, code):
        self.namespaces = {match[1] for match in SCOPE.finditer(code) if match[1]} or {""}
        self.every = set(WORD.findall(code))
        self.plain = set(PLAIN.findall(code))
        self.of_another = collections.defaultdict(set)
        for of, word in OF_ANOTHER.findall(code):
            self.of_another[of].add(word)
        self.functions = set()
        self.types = collections.defaultdict(set)  # and aliases and enumerators, by the namespace that has them
        for scope, _, body in parts(text, code):
            for match in DECLARATION.finditer(body):
                self.functions |= names_declared([VALUE], match[1], statement_at(body, match))
                self.types[scope] |= names_declared([TYPE], match[1], "") | alias(match[1])
            self.types[scope] |= names_beside(body)
        self.declared = self.functions.union(*self.types.values())

    def speak_of(self, names, scope):
        """Whether one of these names of a namespace may be meant."""
        inside = scope == "" or any(f"{namespace}::".startswith(f"{scope}::") or not namespace.startswith("hone")
                                    for namespace in self.namespaces)
        return inside and not names.isdisjoint(self.plain) or not names.isdisjoint(self.of_another[scope.rpartition("::")[2]])


def files_included(text, folder):
    names = [name for name in INCLUDE.findall(text) if name]
    places = [next((path for base in (folder, ROOT / "src", ROOT / "include") if (path := base / name).exists()), None)
              for name in names]
    return {path for path in places if path}


@functools.cache
def header(path):
    """The words of a header of the project and the headers that it includes."""
    text = path.read_text(encoding="utf-8")
    return Words(text, without_text(text)), files_included(text, path.parent)


def all_included(text, folder):
    """The headers of the project that a source includes by itself or through others."""
    seen, waiting = set(), list(files_included(text, folder))
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += header(path)[1]
    return seen


class Source:
    """What a source has for itself and what it speaks of."""

    def __init__(self, text, folder=ROOT):
        self.size = len(text)
        self.headers = all_included(text, folder)
        code = without_text(text)
        self.words = Words(text, code)
        self.directives = frozenset(DIRECTIVE.findall(code))
        self.macros = set(DEFINE.findall(code))
        # A macro may change the headers behind it, which cannot be seen.
        last_include = max((match.start() for match in INCLUDE.finditer(text)), default=0)
        self.alone = any(match.start() < last_include for match in DEFINE.finditer(code)) or PRAGMA.search(code) is not None
        self.own_types = set()
        self.own = collections.defaultdict(set)  # the names by the namespace that has them
        self.shared = {}  # names by declarations that another source may have as well, in the same words
        for scope, unnamed, body in parts(text, code):
            for match in DECLARATION.finditer(body):
                self.add(scope, unnamed, match[1], statement_at(body, match))
            if names := names_beside(body):
                self.own[scope] |= names
        self.words.plain.update(*self.own.values())
        # gcc warns of a class with parts that no other source knows, unless it stands in the file that is translated.
        classes = [body for _, unnamed, code in parts(text, code) if not unnamed for body in CLASS.findall(code)]
        self.alone |= any(not self.own_types.isdisjoint(WORD.findall(body)) for body in classes)
        # Names that have a meaning without any other source.
        self.known = self.words.plain & self.words.declared.union(*self.own.values(),
                                                                  *(header(path)[0].declared for path in self.headers))
        self.disturbed = {}

    def add(self, scope, unnamed, declaration, statement):
        """Keeps the names that a declaration gives to the namespace, if no other source is to see them."""
        if names := alias(declaration):
            self.own[scope] |= names
            self.shared[SHARED.match(declaration)[0]] = names
            return
        unnamed = unnamed or declaration.startswith("static ")
        if unnamed:
            self.own_types |= names_declared([TYPE], declaration, "")
        names = names_declared([TYPE, VALUE if unnamed else CONSTANT], declaration, statement)
        self.own[scope] |= names
        if unnamed and not names and not MEMBER.match(without_arguments(declaration)) and not NAMELESS.match(declaration):
            self.alone = True

    def meant_by(self, words, same=frozenset()):
        """Whether code may mean a name of this source, other than the same ones."""
        return not self.macros.isdisjoint(words.every) or any(words.speak_of(names - same, scope)
                                                              for scope, names in self.own.items())

    def meant_by_header(self, path):
        if path not in self.disturbed:
            self.disturbed[path] = self.meant_by(header(path)[0])
        return self.disturbed[path]

    def disturbs(self, other):
        """Whether the other source or its headers would mean something of this one or of its headers."""
        same = set().union(*(self.shared[declaration] for declaration in self.shared.keys() & other.shared.keys()))
        return self.meant_by(other.words, same) or any(map(self.meant_by_header, other.headers - self.headers)) or \
            any(other.is_shaded_by(header(path)[0]) for path in self.headers - other.headers)

    def is_shaded_by(self, words):
        """Whether a header declares names that this source, which does not include it, has by another meaning."""
        return not self.known.isdisjoint(words.functions) or \
            any(self.words.speak_of(self.known & names, scope) for scope, names in words.types.items())

    def fits(self, other):
        """Whether both mean together what they mean apart."""
        return not (self.alone or other.alone) and self.directives == other.directives and \
            not self.disturbs(other) and not other.disturbs(self)


def parts(text, code):
    """The code of a source between the beginnings and ends of namespaces: the namespace, whether it is inside of an
    unnamed one there, and the code."""
    scopes = []
    begin = 0
    for match in [*SCOPE.finditer(text), None]:
        yield "::".join(filter(None, scopes)), None in scopes, code[begin:match and match.start()]
        if match is None:
            return
        begin = match.end()
        if not match[0].startswith("}"):
            scopes.append(match[1])
        elif scopes:
            scopes.pop()


def group(sources, most_bytes=MOST_BYTES):
    """The number of the group of each source: the first one that it fits into."""
    groups = []
    numbers = []
    for source in sources:
        for number, members in enumerate(groups):
            if len(members) < MOST_FILES and sum(member.size for member in members) + source.size <= most_bytes and \
                    all(source.fits(member) for member in members):
                break
        else:
            number = len(groups)
            groups.append([])
        groups[number].append(source)
        numbers.append(number)
    return numbers


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most-bytes", type=int, default=MOST_BYTES, help="what a group has at most")
    parser.add_argument("sources", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    sources = [Source(path.read_text(encoding="utf-8"), path.resolve().parent) for path in args.sources]
    print(";".join(map(str, group(sources, args.most_bytes))), end="")


if __name__ == "__main__":
    main()
