// Loops in models of ranges: their bodies follow the sizes of a run, and so does their number of
// turns.
#include "hone/graph/size_check.h"

namespace hone::graph {
namespace {

struct BodyNode {
  std::string type;
  std::vector<std::string> inputs, outputs;
  std::string attributes;
};

std::string strings(const char* field, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format(" {}: '{}'", field, name);
  return text;
}

// The text of a graph as an attribute.
std::string body_text(const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const std::vector<BodyNode>& nodes) {
  std::string text = "attribute { name: 'body' type: GRAPH g { name: 'body'";
  for (const BodyNode& node : nodes) {
    text +=
        fmt::format(" node {{ op_type: '{}'{}{} {} }}", node.type, strings("input", node.inputs),
                    strings("output", node.outputs), node.attributes);
  }
  for (const std::string& name : inputs) text += fmt::format(" input {{ name: '{}' }}", name);
  for (const std::string& name : outputs) text += fmt::format(" output {{ name: '{}' }}", name);
  return text + " } }";
}

void add_loop(TestModel& model, const char* type, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const std::string& attributes) {
  model.text(fmt::format("graph {{ node {{ op_type: '{0}' name: '{0}'{1}{2} {3} }} }}", type,
                         strings("input", inputs), strings("output", outputs), attributes));
}

std::string axis(int value) {
  return fmt::format("attribute {{ name: 'axis' type: INT i: {} }}", value);
}
std::string axes(int value) {
  return fmt::format("attribute {{ name: 'axes' type: INTS ints: {} }}", value);
}

// x [batch, seq, 4], a square matrix w, and a number n, of which only the run knows that it is 3.
TestModel with_turns() {
  Rng rng(4);
  TestModel model(17);
  model.open_input("x", {"batch", "seq", "4"})
      .open_input("b", {"1"})
      .constant("w", random_tensor({4, 4}, rng))
      .constant("zero", floats({}, {0}))
      .constant("three", floats({}, {3}))
      .constant("none", Tensor(DType::kI64, {}))
      .node("ReduceMax", {"b"}, {"most"}, {{"keepdims", int64_t{0}}})
      .node("Mul", {"most", "zero"}, {"nothing"})
      .node("Add", {"nothing", "three"}, {"number"})
      .node("Cast", {"number"}, {"n"}, {{"to", int64_t{7}}})
      .node("Shape", {"x"}, {"shape"});
  return model;
}

Result<Graph> import_loops(const TestModel& model) {
  return import_at(model, {.ranges = {{"batch", {{1, 3, ""}}}, {"seq", {{1, 6, ""}}}},
                           .open_ranges = true,
                           .max_turns = 8});
}

void check_sizes(const TestModel& model, int64_t expected_loops = 1) {
  const auto graph = import_loops(model);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto loops = std::count_if(graph->nodes.begin(), graph->nodes.end(),
                                   [](const Node& node) { return node.loop != nullptr; });
  EXPECT_EQ(loops, expected_loops);
  const SizeCheck check{.model = model, .graph = *graph, .max_turns = 8};
  check.at({1, 1}, false);
  check.at({2, 5}, false);
  check.at({3, 6}, true);
  check.at({2, 3}, true);
}

// A product, a softmax and a mean along the length, in each turn.
TEST(follow_loops, bodies_mix_only_what_a_run_has) {
  TestModel model = with_turns();
  const std::vector<BodyNode> nodes = {
      {"Identity", {"go"}, {"on"}},
      {"MatMul", {"s", "w"}, {"a"}},
      {"Transpose", {"x"}, {"t"}, "attribute { name: 'perm' type: INTS ints: 0 ints: 2 ints: 1 }"},
      {"MatMul", {"a", "t"}, {"scores"}},
      {"Softmax", {"scores"}, {"p"}, axis(-1)},
      {"MatMul", {"p", "s"}, {"m"}},
      {"ReduceMean", {"m"}, {"mean"}, axes(1)},
      {"Sub", {"m", "mean"}, {"next"}},
      {"ReduceMax", {"next"}, {"row"}, axes(1)}};
  add_loop(model, "Loop", {"n", "", "x"}, {"last", "rows"},
           body_text({"i", "go", "s"}, {"on", "next", "row"}, nodes));
  check_sizes(model.output("last").output("rows"));
}

// As many turns as the sequence is long, from zeros of the batch; it is unrolled at no size.
TEST(follow_loops, turns_follow_from_a_size) {
  TestModel model = with_turns();
  Tensor second(DType::kI64, {});
  second.set(0, 1);
  model.constant("second", second)
      .constant("first", ints({0}))
      .constant("four", ints({4}))
      .node("Gather", {"shape", "second"}, {"length"})
      .node("Gather", {"shape", "first"}, {"batch"})
      .node("Concat", {"batch", "four"}, {"of_state"}, {{"axis", int64_t{0}}})
      .node("ConstantOfShape", {"of_state"}, {"zeros"});
  const std::vector<BodyNode> nodes = {
      {"Identity", {"go"}, {"on"}},  {"Gather", {"x", "i"}, {"row"}, axis(1)},
      {"MatMul", {"s", "w"}, {"a"}}, {"Add", {"a", "row"}, {"sum"}},
      {"Tanh", {"sum"}, {"next"}},   {"Neg", {"next"}, {"stacked"}}};
  add_loop(model, "Loop", {"length", "", "zeros"}, {"last", "rows"},
           body_text({"i", "go", "s"}, {"on", "next", "stacked"}, nodes));
  model.node("ReduceMean", {"rows"}, {"mean"}, {{"axes", Shape{0}}});
  check_sizes(model.output("last").output("rows").output("mean"));
}

// What is stacked backwards begins at the first row of a run, too.
TEST(follow_loops, scans_of_a_sequence) {
  TestModel model = with_turns();
  model.node("ReduceMax", {"x"}, {"state"}, {{"axes", Shape{1}}, {"keepdims", int64_t{0}}});
  const std::vector<BodyNode> nodes = {{"Add", {"s", "r"}, {"sum"}},
                                       {"Tanh", {"sum"}, {"next"}},
                                       {"Sub", {"next", "q"}, {"down"}},
                                       {"Neg", {"down"}, {"up"}}};
  const auto list = [](const char* name, int a, int b) {
    return fmt::format(" attribute {{ name: '{}' type: INTS ints: {} ints: {} }}", name, a, b);
  };
  add_loop(model, "Scan", {"state", "x", "x"}, {"last", "rows", "reversed"},
           body_text({"s", "r", "q"}, {"next", "down", "up"}, nodes) +
               " attribute { name: 'num_scan_inputs' type: INT i: 2 }" +
               list("scan_input_axes", 1, 1) + list("scan_input_directions", 0, 1) +
               list("scan_output_axes", 0, 1) + list("scan_output_directions", 0, 1));
  check_sizes(model.output("last").output("rows").output("reversed"));
}

// A loop that counts for itself, as exporters write `for`, and makes a sequence of one tensor for
// each row of a run.
TEST(follow_loops, sequences_of_a_loop_that_counts) {
  for (const bool fresh : {false, true}) {
    SCOPED_TRACE(fresh);
    TestModel model = with_turns();
    Tensor zero(DType::kI64, {}), one(DType::kI64, {}), end(DType::kI64, {});
    one.set(0, 1);
    end.set(0, -1);
    model.constant("start", zero).constant("one", one).constant("second", one).constant("end", end);
    model.node("Gather", {"shape", "second"}, {"length"})
        .node("Less", {"start", "length"}, {"go0"});
    model.node("SequenceEmpty", {}, {"no_parts"});
    const std::vector<BodyNode> nodes = {{"Gather", {"x", "k"}, {"row"}, axis(1)},
                                         {"MatMul", {"row", "w"}, {"part"}},
                                         {"SequenceInsert", {"parts", "part"}, {"more"}},
                                         {"Identity", {"more"}, {"longer"}},
                                         {"Add", {"k", "one"}, {"next"}},
                                         {"Less", {"next", "length"}, {"on"}}};
    add_loop(model, "Loop", {"", "go0", "start", "no_parts"}, {"last", "all"},
             body_text({"i", "go", "k", "parts"}, {"on", "next", "longer"}, nodes));
    model.node("ConcatFromSequence", {"all"}, {"y"},
               {{"axis", int64_t{1}}, {"new_axis", int64_t{fresh}}});
    model.node("SequenceLength", {"all"}, {"count"})
        .node("SequenceAt", {"all", "start"}, {"first"})
        .node("SequenceAt", {"all", "end"}, {"tail"});
    model.output("y").output("first").output("tail").output("count").output("last");
    check_sizes(model, 3);  // with those that end a run without such a position
  }
}

// A list outside the loop follows from the sizes: where each part of a text begins.
TEST(follow_loops, bodies_read_lists_that_follow_from_the_sizes) {
  TestModel model = with_turns();
  Tensor zero(DType::kI64, {}), first(DType::kI64, {}), second(DType::kI64, {});
  second.set(0, 1);
  model.constant("zero_turn", zero).constant("first", first).constant("second", second);
  model.constant("flat", ints({-1, 4})).constant("list", ints({1}));
  model.node("Gather", {"shape", "first"}, {"texts"})
      .node("Gather", {"shape", "second"}, {"length"});
  model.node("Mul", {"texts", "length"}, {"all"}).node("Reshape", {"x", "flat"}, {"rows"});
  model.node("Range", {"zero_turn", "all", "length"}, {"begins"});
  const std::vector<BodyNode> nodes = {{"Gather", {"begins", "i"}, {"at"}},
                                       {"Reshape", {"at", "list"}, {"begin"}},
                                       {"Add", {"begin", "list"}, {"end"}},
                                       {"Slice", {"rows", "begin", "end"}, {"row"}},
                                       {"Identity", {"go"}, {"on"}}};
  add_loop(model, "Loop", {"texts", ""}, {"y"}, body_text({"i", "go"}, {"on", "row"}, nodes));
  check_sizes(model.output("y"));
}

// From -1 on, by two, up to the length and no further than a number that only the run knows.
TEST(follow_loops, turns_that_a_loop_counts_by_steps) {
  TestModel model = with_turns();
  Tensor one(DType::kI64, {}), two(DType::kI64, {}), start(DType::kI64, {});
  one.set(0, 1);
  two.set(0, 2);
  start.set(0, -1);
  model.constant("start", start).constant("two", two).constant("second", one);
  model.node("Gather", {"shape", "second"}, {"length"})
      .node("ReduceMax", {"x"}, {"state"}, {{"axes", Shape{1}}});
  const std::vector<BodyNode> nodes = {{"Add", {"s", "x"}, {"sum"}},
                                       {"ReduceMean", {"sum"}, {"t"}, axes(1)},
                                       {"Add", {"k", "two"}, {"next"}},
                                       {"LessOrEqual", {"next", "length"}, {"on"}}};
  add_loop(model, "Loop", {"n", "", "start", "state"}, {"last", "mean", "rows"},
           body_text({"i", "go", "k", "s"}, {"on", "next", "t", "sum"}, nodes));
  check_sizes(model.output("last").output("mean").output("rows"));
}

// A list that is one row longer after each turn, from none on.
TEST(follow_loops, carried_values_grow) {
  TestModel model = with_turns();
  model.constant("empty", Tensor(DType::kF32, {0, 4}))
      .constant("first", ints({0}))
      .node("ReduceMean", {"x"}, {"start"}, {{"axes", Shape{0, 1}}, {"keepdims", int64_t{0}}});
  const std::vector<BodyNode> nodes = {
      {"Identity", {"go"}, {"on"}},
      {"Unsqueeze", {"s", "first"}, {"row"}},
      {"Concat", {"list", "row"}, {"longer"}, axis(0)},
      {"MatMul", {"longer", "w"}, {"scores"}},
      {"Softmax", {"scores"}, {"p"}, axis(0)},
      {"Mul", {"p", "longer"}, {"weighted"}},
      {"ReduceMean",
       {"weighted"},
       {"next"},
       axes(0) + " attribute { name: 'keepdims' type: INT i: 0 }"}};
  add_loop(model, "Loop", {"n", "", "start", "empty"}, {"last", "all"},
           body_text({"i", "go", "s", "list"}, {"on", "next", "longer"}, nodes));
  check_sizes(model.output("last").output("all"));
}

std::string branch_text(const char* name, const std::vector<std::string>& outputs,
                        const std::vector<BodyNode>& nodes) {
  std::string text = body_text({}, outputs, nodes);
  return text.replace(text.find("'body'"), 6, fmt::format("'{}'", name)) + " ";
}

// A net becomes as many steps as its sequence has, in a branch, too: of a condition that is known
// the other branch is left out, and else both are computed.
TEST(follow_loops, recurrent_nets_in_branches) {
  for (const bool known : {true, false}) {
    SCOPED_TRACE(known);
    Rng rng(5);
    Tensor yes(DType::kBool, {});
    yes.set(0, 1);
    TestModel model = with_turns();
    for (const char* name : {"w1", "w2"}) model.constant(name, random_tensor({1, 12, 4}, rng));
    model.constant("r", random_tensor({1, 12, 3}, rng)).constant("known", yes);
    model.node("Equal", {"nothing", "zero"}, {"computed"});
    const auto branch = [](const char* name, const char* weights) {
      return branch_text(name, {"all", "last"},
                         {{"Transpose",
                           {"x"},
                           {"t"},
                           "attribute { name: 'perm' type: INTS ints: 1 ints: 0 ints: 2 }"},
                          {"LSTM",
                           {"t", weights, "r"},
                           {"all", "last"},
                           "attribute { name: 'hidden_size' type: INT i: 3 }"}});
    };
    add_loop(model, "If", {known ? "known" : "computed"}, {"steps", "state"},
             branch("then_branch", "w1") + branch("else_branch", "w2"));
    model.node("Softmax", {"steps"}, {"shares"}, {{"axis", int64_t{0}}});
    check_sizes(model.output("steps").output("state").output("shares"), 0);
  }
}

// The error of the branch names shapes, which differ from size to size.
TEST(follow_loops, a_branch_that_is_not_valid_is_left_out_at_all_sizes) {
  TestModel model = with_turns();
  model.constant("wrong", Tensor(DType::kF32, {3, 4})).node("Equal", {"nothing", "zero"}, {"yes"});
  const auto branch = [](const char* name, const char* weights) {
    return branch_text(name, {"out"}, {{"MatMul", {"x", weights}, {"out"}}});
  };
  add_loop(model, "If", {"yes"}, {"y"},
           branch("then_branch", "w") + branch("else_branch", "wrong"));
  check_sizes(model.output("y"), 2);  // each branch is a loop of one turn at most
}

}  // namespace
}  // namespace hone::graph
