// Passes and schedules made wrong on purpose: found, named, left out.
#include "hone/commands/check/checked_writer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/commands/tune.h"
#include "hone/graph/test_model.h"
#include "hone/session/compile_graph.h"

namespace hone {
namespace {

using graph::TestModel;

// Changes the first node of a type that it can.
using Sabotage = std::function<bool(graph::Graph&, graph::Node&)>;

Sabotage scale_constant(size_t operand, double factor) {
  return [=](graph::Graph& graph, graph::Node& node) {
    if (!node.has_input(operand)) return false;
    auto& constant = graph.value(node.inputs[operand]).constant;
    if (!constant) return false;
    Tensor scaled = constant->clone();
    for (int64_t i = 0; i < scaled.size(); ++i) scaled.set(i, factor * scaled.at(i));
    constant = scaled;
    return true;
  };
}

Sabotage set_attribute(const std::string& name, const graph::Attribute& value) {
  return [=](graph::Graph&, graph::Node& node) {
    node.attributes.set(name, value);
    return true;
  };
}

// One pass that is wrong: the graph after it has a node that computes something else.
struct Fault {
  std::string pass, type;
  Sabotage sabotage;
  std::string node;  // that must be named; empty: any
};

std::function<void(const std::string&, graph::Graph&)> planted(const Fault& fault) {
  return [fault](const std::string& pass, graph::Graph& graph) {
    if (pass != fault.pass) return;
    for (graph::Node& node : graph.nodes) {
      if (node.type == fault.type && fault.sabotage(graph, node)) return;
    }
  };
}

graph::AttributeList pads(int64_t pad) { return {{"pads", Shape{pad, pad, pad, pad}}}; }

// A convolution, and what its passes take into it.
graph::Graph convolution() {
  Rng rng(5);
  TestModel model;
  model.input("x", {1, 4, 8, 8});
  model.constant("w0", graph::random_tensor({8, 4, 3, 3}, rng))
      .constant("w1", graph::random_tensor({8, 8, 3, 3}, rng))
      .constant("s", graph::random_tensor({8, 1, 1}, rng, 0.5, 2))
      .constant("around", graph::ints({0, 0, 1, 1, 0, 0, 1, 1}));
  for (const char* name : {"scale", "shift", "mean", "var"})
    model.constant(name, graph::random_tensor({8}, rng, 0.5, 2));
  model.node("Conv", {"x", "w0"}, {"c"}, pads(1));
  model.node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"n"});
  model.node("Relu", {"n"}, {"r"}).node("Pad", {"r", "around"}, {"p"});
  model.node("Conv", {"p", "w1"}, {"d"}).node("Mul", {"d", "s"}, {"y"}).output("y");
  return model.graph();
}

// Layer normalization and attention as exporters write them.
graph::Graph transformer() {
  Rng rng(6);
  TestModel model;
  model.input("x", {1, 6, 8});
  model.constant("eps", graph::floats({}, {1e-5F})).constant("two", graph::floats({}, {2}));
  model.constant("gain", graph::random_tensor({8}, rng, 0.5, 2))
      .constant("bias", graph::random_tensor({8}, rng))
      .constant("heads", graph::ints({1, 6, 2, 4}))
      .constant("joined", graph::ints({1, 6, 8}));
  const graph::AttributeList last = {{"axes", Shape{-1}}};
  model.node("ReduceMean", {"x"}, {"m"}, last).node("Sub", {"x", "m"}, {"d"});
  model.node("Pow", {"d", "two"}, {"q2"}).node("ReduceMean", {"q2"}, {"v"}, last);
  model.node("Add", {"v", "eps"}, {"ve"}).node("Sqrt", {"ve"}, {"root"});
  model.node("Div", {"d", "root"}, {"unit"}).node("Mul", {"unit", "gain"}, {"g"});
  model.node("Add", {"g", "bias"}, {"h"}).node("Reshape", {"h", "heads"}, {"split"});
  model.node("Transpose", {"split"}, {"q"}, {{"perm", Shape{0, 2, 1, 3}}})
      .node("Transpose", {"split"}, {"k"}, {{"perm", Shape{0, 2, 3, 1}}});
  model.node("MatMul", {"q", "k"}, {"products"}).node("Div", {"products", "two"}, {"scores"});
  model.node("Softmax", {"scores"}, {"weights"}, {{"axis", int64_t{-1}}});
  model.node("MatMul", {"weights", "q"}, {"sums"});
  model.node("Transpose", {"sums"}, {"t"}, {{"perm", Shape{0, 2, 1, 3}}});
  model.node("Reshape", {"t", "joined"}, {"y"}).output("y");
  return model.graph();
}

struct Fixture {
  TempDir folder = std::move(TempDir::create()).value();
  std::string library = folder.file("model.so");
  JobHooks hooks;
  CompileOptions options;
  std::vector<std::string> warnings;
  Fixture() {
    options.records.use_db = false;
    options.target.threads = 2;
    options.advanced.cost = "analytic";
    options.library.check = true;
    options.advanced.hooks = &hooks;
    set_log_sink([this](LogLevel, std::string_view line) { warnings.emplace_back(line); });
  }
  ~Fixture() { set_log_sink({}); }

  void expect_right(const graph::Graph& graph) {
    Rng rng(9);
    std::vector<Tensor> inputs;
    for (const graph::ValueId id : graph.inputs)
      inputs.push_back(graph::random_tensor(graph.value(id).shape, rng));
    Result<Model> model = load(library, 2);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Result<std::vector<Tensor>> outputs = model->run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_LT(graph::relative_error((*outputs)[0], graph::run_plainly(graph, inputs)[0]), 1e-5);
  }
};

void expect_healed(const graph::Graph& graph, const Fault& fault) {
  Fixture f;
  f.hooks.after_pass = planted(fault);
  const Result<CompileSummary> summary = compile(graph, f.library, f.options);
  ASSERT_TRUE(summary.ok()) << fault.pass << ": " << summary.status().message();
  EXPECT_TRUE(summary->check.checked) << summary->check.skipped;
  ASSERT_EQ(summary->check.healed.size(), 1U) << fault.pass;
  const HealedFault& healed = summary->check.healed[0];
  EXPECT_EQ(healed.pass, fault.pass);
  EXPECT_FALSE(healed.node.empty()) << fault.pass;
  if (!fault.node.empty()) {
    EXPECT_EQ(healed.node, fault.node) << fault.pass;
  }
  EXPECT_GT(healed.error, 1e-3);
  EXPECT_EQ(healed.output, "y");
  ASSERT_EQ(f.warnings.size(), 1U) << fault.pass;
  EXPECT_NE(f.warnings[0].find("the pass " + fault.pass + " at node '" + healed.node + "'"),
            std::string::npos)
      << f.warnings[0];
  f.expect_right(graph);
}

TEST(checked_writer, a_right_library_is_found_right) {
  for (const graph::Graph& graph : {convolution(), transformer()}) {
    for (const char* accuracy : {"strict", "fast"}) {
      Fixture f;
      f.options.target.accuracy = accuracy;
      const Result<CompileSummary> summary = compile(graph, f.library, f.options);
      ASSERT_TRUE(summary.ok()) << summary.status().message();
      EXPECT_TRUE(summary->check.checked) << summary->check.skipped;
      EXPECT_EQ(summary->check.inputs, 3);
      EXPECT_TRUE(summary->check.healed.empty());
      EXPECT_TRUE(summary->check.left_out.empty());
      EXPECT_LT(summary->check.worst_error, summary->check.tolerance);
      EXPECT_TRUE(f.warnings.empty());
    }
  }
}

TEST(checked_writer, passes_that_are_wrong_at_convolutions_are_left_out) {
  expect_healed(convolution(), {"fold_batch_norm", "Conv", scale_constant(1, 1.01), ""});
  expect_healed(convolution(), {"fold_scales", "Conv", scale_constant(1, 0.99), ""});
  expect_healed(convolution(),
                {"merge_pads", "Conv", set_attribute("pads", Shape{2, 2, 0, 0}), ""});
}

TEST(checked_writer, passes_that_are_wrong_at_transformers_are_left_out) {
  expect_healed(transformer(), {"recognize_patterns", "LayerNormalization",
                                set_attribute("epsilon", 0.1F), "node_h"});
  expect_healed(transformer(),
                {"fuse_attention", "hone.Attention", set_attribute("scale", 0.25F), ""});
  expect_healed(transformer(),
                {"simplify_algebra", "LayerNormalization", scale_constant(1, 1.5), "node_h"});
}

TEST(checked_writer, two_wrong_passes_are_both_left_out) {
  Fixture f;
  const auto first = planted({"fold_batch_norm", "Conv", scale_constant(1, 1.1), ""});
  const auto second = planted({"merge_pads", "Conv", set_attribute("pads", Shape{2, 2, 0, 0}), ""});
  f.hooks.after_pass = [&](const std::string& pass, graph::Graph& graph) {
    first(pass, graph);
    second(pass, graph);
  };
  const Result<CompileSummary> summary = compile(convolution(), f.library, f.options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  ASSERT_EQ(summary->check.healed.size(), 2U);
  EXPECT_EQ(summary->check.healed[0].pass, "fold_batch_norm");
  EXPECT_EQ(summary->check.healed[1].pass, "merge_pads");
  EXPECT_EQ(f.warnings.size(), 1U);
  f.expect_right(convolution());
}

TEST(checked_writer, a_static_library_is_checked_too) {
  Fixture f;
  f.library = f.folder.file("model.a");
  f.hooks.after_pass = planted({"fold_batch_norm", "Conv", scale_constant(1, 1.01), ""});
  const Result<CompileSummary> summary = compile(convolution(), f.library, f.options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  ASSERT_EQ(summary->check.healed.size(), 1U);
  EXPECT_TRUE(file_exists(f.library));
}

TEST(checked_writer, nothing_is_written_if_all_is_wrong) {
  Fixture f;
  std::ofstream(f.library) << "as it was";
  f.hooks.after_pass = [](const std::string& pass, graph::Graph& graph) {
    if (pass != "assign_layouts") return;  // which always runs
    for (graph::Node& node : graph.nodes) {
      if (node.type == "Conv" && scale_constant(1, 1.5)(graph, node)) return;
    }
  };
  const Result<CompileSummary> summary = compile(convolution(), f.library, f.options);
  EXPECT_EQ(summary.status().code(), Code::kInternal);
  EXPECT_NE(summary.status().message().find("output 'y' is wrong"), std::string::npos)
      << summary.status().message();
  EXPECT_EQ(*read_file(f.library), "as it was");
}

TEST(checked_writer, without_a_check_faults_stay) {
  Fixture f;
  f.options.library.check = false;
  f.hooks.after_pass = planted({"fold_batch_norm", "Conv", scale_constant(1, 1.01), ""});
  const Result<CompileSummary> summary = compile(convolution(), f.library, f.options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_FALSE(summary->check.checked);
  EXPECT_EQ(summary->check.skipped, "switched off");
  EXPECT_TRUE(f.warnings.empty());
}

TEST(checked_writer, an_interrupted_compilation_writes_nothing) {
  Fixture f;
  std::atomic<bool> interrupted = true;
  f.options.interrupted = &interrupted;
  EXPECT_EQ(compile(convolution(), f.library, f.options).status().code(), Code::kCancelled);
  EXPECT_FALSE(file_exists(f.library));
}

TEST(checked_writer, checks_each_library_that_it_writes) {
  Fixture f;
  const graph::Graph graph = convolution();
  CheckedWriter writer(graph, {.when = CheckPolicy::When::kAlways}, nullptr);
  const auto session = Session::open(f.options, {.store = SessionOptions::Store::kNone}).value();
  Result<Untuned> untuned = make_untuned(*session, graph, f.options);
  ASSERT_TRUE(untuned.ok()) << untuned.status().message();
  LibraryParts parts{untuned->model, untuned->schedules, untuned->sources};
  CompileOptions options = f.options;
  for (int i = 0; i < 2; ++i) {
    const Result<Written> written = writer.write(parts, f.library, options, {});
    ASSERT_TRUE(written.ok()) << written.status().message();
    EXPECT_TRUE(writer.summary().checked);
    EXPECT_EQ(writer.summary().inputs, 3);
  }
  EXPECT_TRUE(options.advanced.skip_passes.empty());
}

}  // namespace
}  // namespace hone
