#!/usr/bin/env python3
"""Tests of the checks in this folder: each must find what it is there to find."""
import pathlib
import tempfile
import unittest

import check_docs
import check_duplicates
import check_layers
import check_file_sizes
import check_functions
import check_gradients
import check_types
import check_words
import unity_groups

P = pathlib.PurePosixPath


class Functions(unittest.TestCase):
    def test_lines_and_public_functions_are_counted(self):
        text = """#define WRONG(x) {
namespace a {
// A comment { of a function( ) {
int first(const char* text = "}") {  // }

  if (text) {
    return '{';
  }
  return [](int x) { return x; }(1);
}
struct Point {
  Point() : x_{1}, y_(2) {}
  int sum() const;
  std::function<int(int)> field = nullptr;
 private:
  int hidden();
  int x_, y_;
};
class Shape : public Point {
  void own() {}

 public:
  bool operator==(const Shape&) const { return true; }
  template <typename T>
  T of(T x) {
    return x;
  }
};
}"""
        self.assertEqual(list(check_functions.visit(text)),
                         [("lines", "first", 6), ("lines", "Point", 1), ("public", "Point", 2), ("lines", "own", 1),
                          ("lines", "operator==", 1), ("lines", "of", 4), ("public", "Shape", 2)])


class Layers(unittest.TestCase):
    def problem(self, path, target, kind='"'):
        return check_layers.check_include(P(path), check_layers.layer_of(P(path)), kind, target)

    def test_folders_above_are_free(self):
        self.assertIsNone(self.problem("src/hone/search/a.cc", "hone/space/space.h"))
        self.assertIsNone(self.problem("src/hone/ir/a.cc", "hone/ir/expr.h"))
        self.assertIsNone(self.problem("src/hone/commands/tune.cc", "hone/graph/graph.h"))
        self.assertIsNone(self.problem("tools/hone/run_command.cc", "hone/base/clock.h"))
        self.assertIsNone(self.problem("tools/hone/run_command.cc", "command.h"))

    def test_the_public_interface_has_nothing_behind_it(self):
        self.assertIsNone(self.problem("include/hone/tune.h", "hone/options.h"))
        self.assertIsNone(self.problem("include/hone/tune.h", "string", "<"))
        self.assertIn("neither public", self.problem("include/hone/tune.h", "hone/base/status.h"))
        self.assertIn("neither public", self.problem("include/hone/tune.h", "fmt/format.h", "<"))
        self.assertIsNone(self.problem("src/hone/ir/a.cc", "hone/tensor.h"))
        self.assertIsNone(self.problem("tools/hone/run_command.cc", "hone/tune.h"))
        self.assertIn("is internal", self.problem("tools/hone/run_command.cc", "hone/commands/tune.h"))
        self.assertIsNone(self.problem("tools/hone/limits_test.cc", "hone/db/roofline_store.h"))

    def test_folders_below_are_not(self):
        self.assertIn("ir may not know of schedule",
                      self.problem("src/hone/ir/a.cc", "hone/schedule/step.h"))
        self.assertIn("search may not know of commands",
                      self.problem("src/hone/search/a.cc", "hone/commands/tune.h"))
        self.assertIn("no known layer", self.problem("src/hone/ir/a.cc", "hone/misc/a.h"))
        self.assertIn("not written from src/", self.problem("src/hone/ir/a.cc", "expr.h"))

    def test_llvm_stays_in_its_folder(self):
        self.assertIsNone(self.problem("src/hone/backend/cpu/a.cc", "llvm/IR/Module.h", "<"))
        for path in ("src/hone/backend/clike/a.cc", "src/hone/measure/a.cc", "src/hone/commands/tune.cc"):
            self.assertIn("belongs to backend/cpu", self.problem(path, "llvm/IR/Module.h", "<"))
        self.assertIn("belongs to learn/torch", self.problem("src/hone/cost/net/train.cc", "ATen/ATen.h", "<"))
        self.assertIn("belongs to db", self.problem("src/hone/search/a.cc", "sqlite3.h", "<"))


    def test_a_back_end_is_reached_through_its_interface(self):
        private = "hone/backend/cpu/compiler.h"
        for path in ("src/hone/session/kernel.cc", "src/hone/measure/job.h", "src/hone/api/devices.cc"):
            self.assertIn("only its interface", self.problem(path, private))
            self.assertIsNone(self.problem(path, "hone/backend/registry.h"))
        for path in ("src/hone/backend/registry.cc", "src/hone/backend/cpu/emitter.h",
                     "src/hone/measure/worker_test.cc", "src/hone/search/tune_tasks_testing.h",
                     "tests/generated_code.cc", "benchmarks/compile_times.cc"):
            self.assertIsNone(self.problem(path, private))

    def test_a_link_without_an_include_is_needless(self):
        text = """# hone_library(hone_ir SOURCES a.cc DEPS hone_neural)
            hone_library(hone_db
              SOURCES a.cc  # hone_cost
              DEPS hone_base hone_trial hone_runtime SQLite::SQLite3)
            target_link_libraries(hone_db PRIVATE hone_backend ${CMAKE_DL_LIBS})
            hone_test(hone_db_test SOURCES a_test.cc DEPS hone_db hone_space hone_graph_testing)
            add_library(hone_shared SHARED ${objects})
            target_link_libraries(hone_shared PRIVATE hone_learn)"""
        included = {P("src/hone/db/a.cc"): ["hone/base/file.h", "hone/runtime/pool.h"],
                    P("src/hone/db/a_test.cc"): ["hone/db/a.h", "hone/space/space.h", "hone/backend/cpu/emit_object.h"],
                    P("src/hone/cost/b.h"): ["hone/trial/record.h"]}
        found = list(check_layers.needless_links(P("src/hone/db/CMakeLists.txt"), text, included))
        self.assertEqual([line.split(": ")[1] for line in found],
                         ["hone_db links hone_trial, but includes nothing of it",
                          "hone_db links hone_backend, but includes nothing of it"])

    def test_the_longest_chain_goes_by_what_the_program_includes(self):
        included = {P("tools/hone/main.cc"): ["hone/commands/tune.h", "hone/ir/expr.h"],
                    P("src/hone/commands/tune.h"): ["hone/search/a.h"],
                    P("src/hone/commands/tune.cc"): ["hone/commands/tune.h", "hone/session/plan.h"],
                    P("src/hone/session/plan.h"): ["hone/search/a.h"],
                    P("src/hone/search/a.cc"): ["hone/search/a.h", "hone/base/file.h"],
                    P("src/hone/search/a_test.cc"): ["hone/neural/m.h"],
                    P("src/hone/neural/m.h"): ["hone/search/a.h", "hone/ir/expr.h"],
                    P("tests/b.cc"): ["hone/neural/m.h"]}
        chain, circle = check_layers.longest_chain(included)
        self.assertEqual(chain, ["base", "search", "session", "commands", "tools/hone"])
        included[P("tools/hone/main.cc")].append("hone/tune.h")
        included[P("src/hone/api/a.cc")] = ["hone/commands/tune.h", "hone/tune.h"]
        chain, _ = check_layers.longest_chain(included)
        self.assertEqual(chain, ["base", "search", "session", "commands", "api", "tools/hone"])
        self.assertIsNone(circle)
        included[P("src/hone/session/plan.cc")] = ["hone/commands/tune.h"]
        _, circle = check_layers.longest_chain(included)
        self.assertEqual(circle, ["commands", "session", "commands"])


class Duplicates(unittest.TestCase):
    def found(self, **bodies):
        return list(check_duplicates.runs(
            {name: list(enumerate(body, 1)) for name, body in bodies.items()}))

    def test_a_run_is_found_once_and_whole(self):
        shared = [f"x{i}" for i in range(check_duplicates.RUN + 3)]
        self.assertEqual(self.found(a=["p", *shared, "q"], b=["r", "s", *shared, "t"]),
                         [("b", 2, "a", 1, len(shared))])

    def test_short_runs_and_runs_within_a_file_pass(self):
        short = [f"x{i}" for i in range(check_duplicates.RUN - 1)]
        self.assertEqual(self.found(a=[*short, "p"], b=[*short, "q"]), [])
        long = [f"x{i}" for i in range(check_duplicates.RUN)]
        self.assertEqual(self.found(a=[*long, "p", *long]), [])

    def test_what_does_not_count(self):
        for line in ("#include <x>", "#pragma once", "namespace hone {", "", "}", "});", "} {"):
            self.assertTrue(check_duplicates.SKIP.match(line), line)
        for line in ("return x;", "} else {", "f();"):
            self.assertFalse(check_duplicates.SKIP.match(line), line)


class Docs(unittest.TestCase):
    def test_wide_prose_is_found(self):
        wide = "word " * 24 + "end."
        exempt = ["| " + wide, "```", wide, "```", "https://" + "x" * 200, "- https://" + "x" * 200]
        self.assertEqual(list(check_docs.wide_lines([*exempt, wide, wide[:check_docs.WIDTH], "- " + wide])), [7, 9])

    def test_anchors_are_those_of_github(self):
        lines = ["# One `two`, (three)!", "## A [link](x.md)", "```", "# no heading", "```", "## Twice", "## Twice"]
        self.assertEqual(check_docs.anchors(lines), {"one-two-three", "a-link", "twice", "twice-1"})

    def test_links_stand_outside_of_code(self):
        lines = ["[a](b.md) ![c](d.svg) `[e](f.md)`", "[g", "h](i.md#j)", "```", "[k](l.md)", "```", "[m](https://n)"]
        self.assertEqual(list(check_docs.links(lines)), [(1, "b.md"), (1, "d.svg"), (2, "i.md#j")])

    def test_broken_links_are_found(self):
        readme = P("docs/user/security.md")
        self.assertIsNone(check_docs.broken(readme, "../../README.md#build"))
        self.assertIsNone(check_docs.broken(readme, "#prefixes"))
        self.assertIn("there is no docs/user/none.m", check_docs.broken(readme, "none.md"))
        self.assertIn("no heading #none", check_docs.broken(readme, "../../README.md#none"))

    def test_missing_sources_are_found(self):
        missing = "`ir/none.h`"
        lines = ["`ir/printer.h` `scripts/check_docs.py` `ir/NAME.h` ir/none.h", "```", missing, "```", missing]
        self.assertEqual(list(check_docs.missing_sources(lines)), [(5, "ir/none.h")])

    def test_what_sources_name_is_seen(self):
        names = {name for path, _, name in check_docs.named_files() if path == "src/hone/ir/printer.h"}
        self.assertEqual(names, {"docs/formats/ir.md"})


class FileSizes(unittest.TestCase):
    def test_groups_and_kinds(self):
        self.assertEqual(check_file_sizes.group_of(P("src/hone/ir/a.cc")), "hone/ir")
        self.assertEqual(check_file_sizes.group_of(P("src/hone/commands/tune.cc")), "hone/commands")
        self.assertEqual(check_file_sizes.group_of(P("tools/hone/main.cc")), "tools")
        self.assertEqual(check_file_sizes.kind_of(P("src/hone/ir/expr_test.cc")), "tests")
        self.assertEqual(check_file_sizes.kind_of(P("src/hone/ir/expr.cc")), "code")


class Types(unittest.TestCase):
    def test_types_of_namespaces_are_found(self):
        text = """namespace a::b { struct One { struct Inner { int x; }; }; enum class Two : int { k }; class Three;
            template <typename T> class Four final : One {}; namespace { struct Hidden {}; } struct One f(struct Six); }
            class HONE_API Six {};
            struct Five { void f() { struct Local {}; } };  // struct Comment {};
            const char* s = "struct Text {"; """
        self.assertEqual(check_types.types_of(text), ["a::b::One", "a::b::Two", "a::b::Four", "Six", "Five"])

    def test_two_of_a_name_are_found(self):
        one, other = "namespace a { struct S { int x; }; }", "namespace a { class S {}; } namespace b { struct T {}; }"
        self.assertEqual(check_types.same_names({"one.h": one, "other.h": other}), {"a::S": ["one.h", "other.h"]})
        self.assertEqual(check_types.same_names({"one.h": one, "other.h": other.replace("a {", "c {")}), {})


class Gradients(unittest.TestCase):
    OPERATOR = """template <typename T>
class Product final : public torch::autograd::Function<Product<T>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a) { return refuse_second_derivative("forward"), a; }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    // refuse_second_derivative("comment")
    SAYS
    return {product(gradients[0])};
  }
};"""

    def silent(self, says, operator=OPERATOR):
        return check_gradients.silent_operators(operator.replace("SAYS", says))

    def test_an_operator_that_says_nothing_is_found(self):
        self.assertEqual(self.silent(""), ["Product"])
        self.assertEqual(self.silent('const char* text = "refuse_second_derivative()";'), ["Product"])
        self.assertEqual(self.silent("", "struct Own : Function<Own> { static variable_list backward(int); }; void f() { is_differentiated_again(); }"), ["Own"])
        self.assertEqual(self.silent("", "class Raw : public torch::autograd::Node { variable_list apply(variable_list&& g) override { return g; } };"), ["Raw"])

    def test_one_that_asks_or_refuses_is_not(self):
        self.assertEqual(self.silent('refuse_second_derivative("product");'), [])
        self.assertEqual(self.silent("if (torch_module::is_differentiated_again()) return {batched_matmul(gradients[0])};"), [])

    def test_other_types_are_none(self):
        self.assertEqual(self.silent("", "class Function; struct Node { int apply() { return 1; } }; class A : public B { std::function<int()> f; };"), [])


class Words(unittest.TestCase):
    def found(self, *lines):
        return [number for number, _ in check_words.fragments(lines)]

    def test_fragments_are_found(self):
        self.assertEqual(self.found("// a/b.h - what tests share."), [1])
        self.assertEqual(self.found("// Whether it is.", "bool is();", "  int bytes;  // of all", "// Returns it.", "//", "// ... or not."),
                         [1, 3, 6])

    def test_sentences_and_what_goes_on_are_not(self):
        self.assertEqual(self.found("// a/b.h - tells", "// what tests share.", "int a;  // the least", "        // of all", "int b;  // what it holds",
                                    'const char* c = "//  // of";', "// Office hours."), [])

    def test_folders(self):
        self.assertEqual(check_words.folder_of(P("src/hone/commands/check/compare.h")), "commands")
        self.assertEqual(check_words.folder_of(P("src/hone/cost/net/net.h")), "cost")


class Unity(unittest.TestCase):
    """Sources that are translated together mean what they mean apart."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def source(self, text):
        return unity_groups.Source(text, self.folder)

    def groups(self, *texts, **limits):
        return unity_groups.group([self.source(text) for text in texts], **limits)

    def assert_apart(self, *texts):
        self.assertEqual(self.groups(*texts), list(range(len(texts))))

    def assert_together(self, *texts):
        self.assertEqual(self.groups(*texts), [0] * len(texts))

    def header(self, name, text):
        (self.folder / name).write_text(text)
        return f'#include "{name}"\n'

    def own(self, body, before="", namespace="hone::a"):
        return f"{before}namespace {namespace} {{\nnamespace {{\n{body}\n}}  // namespace\nint visible() {{\n  return 1;\n}}\n" \
            f"}}  // namespace {namespace}\n"

    def speaks(self, text, namespace="hone::a", before=""):
        return f"{before}namespace {namespace} {{\n{text}\n}}  // namespace {namespace}\n"

    def test_own_names_are_found(self):
        source = self.source(self.own("""
constexpr int kMost = 3;
struct Point final : Base {
  int inner;
};
using Names = std::vector<std::string>;
namespace fs = std::filesystem;
std::vector<int> sums(int count,
                      int first) {
  return {};
}
template <typename T>
const T* found(T x) {
  return "word";  // another
}
std::function<int(int)> made(int x) {
[[noreturn]] void ended() {
int Point::function() {
enum class Kind : uint8_t { kA };
enum Level : uint8_t {
  kLow = 1,
  kHigh
};
const char* const texts[] = {"a"};"""))
        self.assertEqual(source.own, {"hone::a": {"kMost", "Point", "Names", "fs", "sums", "found", "made", "ended", "Kind", "Level",
                                                  "kLow", "kHigh", "texts"}})
        self.assertFalse(source.alone)
        self.assertNotIn("another", source.words.every)
        self.assertNotIn("word", source.words.every)
        self.assertIn("visible", source.words.plain)

    def test_own_names_outside_of_unnamed_namespaces_are_found(self):
        source = self.source(self.speaks("""using ir::Expr;
using Steps = std::vector<Step>;
constexpr size_t kMost = 3;
const std::string kNames[] = {"a"};
class Walk {
};
static int helper(int x) {
const std::vector<int>& seen_by_all(int x) {
int also_seen() {"""))
        self.assertEqual(source.own, {"hone::a": {"Expr", "Steps", "kMost", "kNames", "Walk", "helper"}})
        self.assertEqual(self.source(self.own("constexpr int kFirst = f(1, 2), kSecond = 2;\nint first,\n    second{3, fourth}, third;")).own,
                         {"hone::a": {"kFirst", "kSecond", "first", "second", "third"}})
        self.assertEqual(self.source("namespace fs = std::filesystem;\nnamespace hone {\n}  // namespace hone\nusing hone::f;\n").own,
                         {"": {"fs", "f"}})

    def test_a_name_of_one_keeps_apart_who_speaks_of_it(self):
        helper = self.own("int helper(int x) {\n  return x;\n}")
        self.assertEqual(self.groups(helper, self.own("int other() {\n  return 1;\n}"), helper), [0, 0, 1])
        self.assert_apart(helper, self.speaks("int user() { return helper(1); }"))
        self.assert_together(helper, self.speaks("int user() { return 1; }  // no helper"))
        self.assert_apart("static int only() {\n", "int y = only;\n")
        self.assertEqual(self.groups("#define LIMIT 3\n", "int LIMIT2 = 1;\n", "int y = x.LIMIT;\n"), [0, 0, 1])
        self.assert_apart(self.own("enum Level { kLow };"), self.speaks("int user() { return kLow; }"))
        self.assert_apart(self.speaks("constexpr int kMost = 3;"), self.speaks("int x = kMost;"))

    def test_members_and_names_of_other_namespaces_are_others(self):
        helper = self.own("int helper(int x) {\n  return x;\n}")
        self.assert_together(helper, self.speaks("int x = a.helper(1) + b->helper(2) + ir::helper(3) + T<int>::helper(4);"))
        self.assert_together(helper, self.speaks("int x = helper(1);", namespace="hone::b"))
        self.assert_apart(helper, self.speaks("int x = helper(1);", namespace="hone::a::inner"))
        self.assert_apart(helper, self.speaks("int x = a::helper(1);", namespace="hone::b"))
        self.assert_apart("static int helper() {\n", self.speaks("int x = ::helper();"))
        self.assert_apart(helper, self.speaks("void f(auto... x) { g(x...helper); }"))

    def test_a_name_of_one_keeps_apart_whose_headers_speak_of_it(self):
        helper = self.own("int helper(int x) {\n  return x;\n}")
        inner = self.header("inner.h", self.speaks("inline int f() { return helper(1); }"))
        outer = self.header("outer.h", inner)
        self.assert_apart(helper, outer)
        self.assert_together(inner + helper, outer)  # where it is, the first source compiles with that header, too
        self.assert_apart("#define LIMIT 3\n", self.header("limit.h", "struct S { int LIMIT; };\n"))

    def test_headers_of_one_add_no_functions_to_those_that_another_calls(self):
        first = self.header("first.h", self.speaks("int size(int x);"))
        second = self.header("second.h", self.speaks("int size(double x);"))
        call = self.speaks("int x = size(1);")
        self.assert_apart(second, first + call)
        self.assert_together(second, first)
        self.assert_together(second + first, first + call + second)
        self.assert_together(second, self.speaks("int x(int size) { return size; }"))
        self.assert_apart(second, self.speaks("int size(int x) { return 1; }\nint y = size(1);"))

    def test_headers_of_one_add_no_types_to_those_that_another_has(self):
        for shading in ("struct Part;", "enum Part2 { kFirst, Part };", "using Part = int;", "using ir::Part;"):
            first = self.header("first.h", self.speaks(shading))
            self.assert_apart(first, self.own("constexpr int kSome = 1, Part = 2;"))
            self.assert_apart(first, self.speaks("struct Part {\n};"))
            self.assert_together(first, self.speaks("struct Part {\n};", namespace="hone::b"))
            self.assert_together(first, self.speaks("int x = Other::Part;"))

    def test_equal_aliases_may_be_in_both(self):
        for declaration in ("using ir::Expr;", "using Expr = ir::Expr;", "namespace fs = std::filesystem;"):
            self.assert_together(self.speaks(declaration), self.speaks(f"{declaration}\nExpr x = fs::f();"))
        self.assert_apart(self.speaks("using ir::Expr;"), self.speaks("using graph::Expr;"))
        self.assertEqual(self.groups("using x::f;\n", "using x::f;\n", "int f();\n"), [0, 0, 1])

    def test_what_is_not_understood_is_alone(self):
        self.assert_apart("int x();\n", "#define MODE 1\n#include <library.h>\n", "int y();\n#define HERE 1\n#include <library.h>\n")
        self.assert_apart(self.own("MAKE_FUNCTION(f)"), "int x();\n")
        self.assert_apart(self.own("bool operator==(const A& a, const A& b) {"), "int x();\n")
        for body in ("struct Part {\n};", "using Part = int;"):
            holder = self.own(body) + self.speaks("struct Model::State {\n  Part part;\n};")
            self.assertEqual(self.source(holder).alone, body.startswith("struct"))
        self.assert_together(self.own("static_assert(kMost > 1);\nTEST(a, b) {\n}"), "int x();\n")

    def test_names_beside_types_and_tests_are_own(self):
        types = "enum Level { kLow };\nstruct Part {\n  int inner;\n\n  int other;\n} all, *first = nullptr;\nunion U { int x; } values[2];\n" \
            "struct Last {\n};\nint f() {\n}\n"
        names = {"Level", "kLow", "Part", "all", "first", "U", "values", "Last"}
        self.assertEqual(self.source(self.own(types)).own, {"hone::a": names | {"f"}})
        self.assertEqual(self.source(self.speaks(types)).own, {"hone::a": names})
        self.assert_apart(self.speaks(types), self.speaks("int user() { return kLow; }"))
        self.assert_apart(self.own(types), self.speaks("int user() { return all; }"))
        self.assert_apart(self.header("level.h", self.speaks(types)), self.own("constexpr int kLow = 1;"))
        test = self.own("TEST(topic, behaviour) {\n}\nTEST_F(topic,\n       other) {\n}")
        self.assert_apart(test, self.own("TEST(topic, behaviour) {\n}"))
        self.assert_apart(test, self.own("TEST_F(topic, other) {\n}"))
        self.assert_together(test, self.own("TEST(topic, third) {\n}"), self.own("TEST(topic, behaviour) {\n}", namespace="hone::b"))

    def test_namespaces_with_comments_are_found(self):
        for opening, closing in (("namespace {  // of helpers", "}  // namespace"), ("namespace {", "}  // anonymous namespace"),
                                 ("namespace {", "}  // namespace, of helpers")):
            text = self.speaks(f"{opening}\nint helper() {{\n}}\n{closing}\nint visible() {{\n}}")
            self.assertEqual(self.source(text).own, {"hone::a": {"helper"}})
        source = self.source(self.speaks("inline namespace v1 {  // the first\nclass Walk;\n}  // namespace v1\nclass Run;"))
        self.assertEqual(source.own, {"hone::a::v1": {"Walk"}, "hone::a": {"Run"}})

    def test_pragmas_are_alone(self):
        for pragma in ('#pragma GCC optimize("O1")', "#pragma pack(1)", "  # pragma omp simd", '_Pragma("pack(1)")'):
            self.assertTrue(self.source(f"int x;\n{pragma}\nint y();\n").alone, pragma)
        self.assert_together("#pragma once\nint x();\n", 'auto s = R"(\n#pragma unroll\n)";\n', "// #pragma pack(1)\n")

    def test_directives_are_the_same_and_groups_are_small(self):
        self.assertEqual(self.groups("using namespace x;\n", "int y;\n", "using namespace x;\n"), [0, 1, 0])
        self.assert_apart("using enum x::Role;\n", "int y;\n")
        self.assertEqual(self.groups(*["int y();\n"] * (unity_groups.MOST_FILES + 1)), [0] * unity_groups.MOST_FILES + [1])
        self.assertEqual(self.groups("x" * unity_groups.MOST_BYTES, "y"), [0, 1])
        self.assertEqual(self.groups("x" * 10, "y", most_bytes=10), [0, 1])


if __name__ == "__main__":
    unittest.main()
