// Loops that count for themselves or make lists, as a run repeats them.
#include <gtest/gtest.h>

#include "hone/graph/loop_body.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/reference_testing.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

Tensor number(int64_t value) {
  Tensor tensor(DType::kI64, {});
  tensor.as<int64_t>()[0] = value;
  return tensor;
}

Tensor boolean(bool value) {
  Tensor tensor(DType::kBool, {});
  tensor.set(0, value ? 1 : 0);
  return tensor;
}

// A loop `for (k = initial; ; k += step)` that goes on while `next OP limit`, with an operand M.
struct Counting {
  std::string op = "Less";
  int64_t initial = 0, step = 1, limit = 5;
  std::optional<int64_t> most = {};  // M
  bool first = true;                 // the condition before the first turn
};

bool goes_on(const std::string& op, int64_t next, int64_t limit) {
  return op == "Less" || op == "Greater" ? next < limit : next <= limit;
}

int64_t turns_of(const Counting& loop) {
  int64_t turns = 0;
  bool go = loop.first;
  for (int64_t k = loop.initial; go && turns < loop.most.value_or(INT64_MAX); ++turns) {
    k += loop.step;
    go = goes_on(loop.op, k, loop.limit);
  }
  return turns;
}

// Says which operands of a counter are constants.
struct Known {
  bool initial = true, limit = false, most = true;
};

void give(TestModel& model, std::vector<Tensor>& inputs, const std::string& name, Tensor value,
          bool known) {
  if (known) {
    model.constant(name, value);
  } else {
    model.input(name, {}, value.dtype());
    inputs.push_back(std::move(value));
  }
}

// The body stacks its counters as rows `r`, and appends them to the list `s`.
std::string loop_text(const std::string& op, bool has_most, const std::string& condition = "next",
                      const std::string& more = "") {
  const bool less = op.starts_with("Less");
  const std::string operands = fmt::format("input: '{}' input: '{}'", less ? condition : "limit",
                                           less ? "limit" : condition);
  return fmt::format(R"(graph {{ node {{ op_type: 'Loop' name: 'loop'
      input: '{}' input: 'first' input: 'initial' input: 'none'
      output: 'last' output: 's' output: 'r'
      attribute {{ name: 'body' type: GRAPH g {{ name: 'b'
        node {{ op_type: 'Mul' input: 'k' input: 'two' output: 'double' }}
        node {{ op_type: 'Add' input: 'k' input: 'step' output: 'next' }}
        node {{ op_type: 'SequenceInsert' input: 't' input: 'double' output: 'u' }}
        node {{ op_type: '{}' {} output: 'on' }}
        {}
        input {{ name: 'i' }} input {{ name: 'go' }} input {{ name: 'k' }} input {{ name: 't' }}
        output {{ name: 'on' }} output {{ name: 'next' }} output {{ name: 'u' }}
        output {{ name: 'double' }} }} }} }} }})",
                     has_most ? "most" : "", op, operands, more);
}

TestModel counting(const Counting& loop, const Known& known, std::vector<Tensor>& inputs,
                   const std::string& text) {
  TestModel model(17);
  model.constant("two", number(2)).constant("step", number(loop.step));
  give(model, inputs, "initial", number(loop.initial), known.initial);
  give(model, inputs, "limit", number(loop.limit), known.limit);
  give(model, inputs, "first", boolean(loop.first), loop.first);
  if (loop.most) give(model, inputs, "most", number(*loop.most), known.most);
  model.node("SequenceEmpty", {}, {"none"}, {{"dtype", int64_t{7}}});
  model.text(text);
  model.node("SequenceLength", {"s"}, {"count"});
  return std::move(model.output("last").output("r").output("count"));
}

bool is_counted(const Graph& graph) {
  const auto loop = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& node) { return node.loop != nullptr; });
  return loop != graph.nodes.end() && !loop->loop->conditional;
}

void expect_turns(const Counting& loop, const Known& known = {}) {
  SCOPED_TRACE(fmt::format("{} {} + {} to {}, M {}, first {}", loop.op, loop.initial, loop.step,
                           loop.limit, loop.most.value_or(-1), loop.first));
  std::vector<Tensor> inputs;
  const TestModel model = counting(loop, known, inputs, loop_text(loop.op, loop.most.has_value()));
  const Graph graph = model.graph();
  EXPECT_TRUE(is_counted(graph) || !loop.first);
  const auto found = run_optimized(graph, inputs, optional_pass_names());
  ASSERT_EQ(found.size(), 3U);
  const int64_t turns = turns_of(loop);
  EXPECT_EQ(found[0].as<int64_t>()[0], loop.initial + turns * loop.step);
  EXPECT_EQ(found[2].as<int64_t>()[0], turns);
  ASSERT_GE(found[1].size(), turns);
  for (int64_t i = 0; i < turns; ++i)
    EXPECT_EQ(found[1].as<int64_t>()[static_cast<size_t>(i)], 2 * (loop.initial + i * loop.step));
}

TEST(plain_loop, counts_as_its_condition_says) {
  for (const char* op : {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    for (const int64_t step : {1, 3}) {
      for (const int64_t limit : {-4, 2, 3, 7, 8, 9}) {
        expect_turns({op, 2, step, limit});
        expect_turns({op, -2, step, limit, 3}, {.most = false});
        expect_turns({op, -2, step, limit, 9});
      }
      expect_turns({op, 0, step, 6, {}, false});
      expect_turns({op, 0, step, 6, 2}, {.initial = false, .most = false});
      expect_turns({op, 0, step, 6, 20}, {.initial = false, .most = false});
    }
  }
}

TEST(plain_loop, limits_without_end_are_ended_by_the_number_of_turns) {
  for (const char* op : {"Less", "LessOrEqual"}) {
    for (const int64_t initial : {int64_t{-1}, int64_t{0}, int64_t{5}, -(int64_t{1} << 62)}) {
      for (const int64_t limit : {INT64_MAX - 200, INT64_MIN, INT64_MIN + 3}) {
        for (const bool known : {true, false}) {
          if (limit < 0 && known) continue;  // one turn: it is unrolled
          expect_turns({op, initial, 2, limit, 70}, {.initial = known, .limit = known});
        }
      }
    }
  }
  expect_turns({"LessOrEqual", INT64_MIN, 3, INT64_MIN + 10, 70}, {.initial = false});
  expect_turns({"LessOrEqual", INT64_MAX - 30, 3, INT64_MAX - 20, 70}, {.initial = false});
}

// A limit of which the run decides leaves the rows as many as M.
TEST(plain_loop, a_constant_number_of_turns_bounds_the_rows) {
  std::vector<Tensor> inputs;
  const Graph graph =
      counting({.limit = 5, .most = 20}, {}, inputs, loop_text("Less", true)).graph();
  EXPECT_TRUE(is_counted(graph));
  EXPECT_EQ(graph.value(graph.outputs[1]).shape, (Shape{20}));
}

TEST(plain_loop, other_conditions_stay) {
  const Counting loop{.limit = 6};
  std::vector<Tensor> inputs;
  // The counter of this turn: one turn more.
  const Graph old = counting(loop, {}, inputs, loop_text("Less", false, "k")).graph();
  EXPECT_FALSE(is_counted(old));
  EXPECT_EQ(run_optimized(old, inputs, optional_pass_names())[2].as<int64_t>()[0], 7);
  // A step of which 32 bits hold another number, or which is no integer before it is converted.
  const auto is_counted_with = [&](const std::string& step, const std::string& nodes) {
    std::string text = loop_text("Less", false);
    const std::string added = "input: 'step'";
    text.replace(text.find(added), added.size(), fmt::format("input: '{}'", step));
    const std::string first = "node { op_type: 'Mul'";
    text.insert(text.find(first), nodes);
    std::vector<Tensor> given;
    return is_counted(counting(loop, {}, given, text).graph());
  };
  const auto constant = [](const std::string& value) {
    return "node { op_type: 'Constant' output: 'c' attribute { " + value + " } }";
  };
  const auto cast = [](const char* from, const char* name, int to) {
    return fmt::format(
        "node {{ op_type: 'Cast' input: '{}' output: '{}' attribute {{ name: 'to' type: INT i: {} "
        "}} }}",
        from, name, to);
  };
  const auto integer = [&](int64_t value) {
    return constant(fmt::format("name: 'value_int' type: INT i: {}", value));
  };
  const std::string half = constant("name: 'value_float' type: FLOAT f: 1.5");
  EXPECT_TRUE(is_counted_with("c", integer(2)));
  EXPECT_TRUE(is_counted_with("e", integer(2) + cast("c", "d", 6) + cast("d", "e", 7)));
  EXPECT_FALSE(is_counted_with("e", integer(2) + cast("c", "d", 9) + cast("d", "e", 7)));
  EXPECT_FALSE(is_counted_with("d", half + cast("c", "d", 7)));
  EXPECT_FALSE(is_counted_with("c", integer(int64_t{1} << 33)));
}

TEST(plain_loop, a_number_of_turns_is_an_integer) {
  TestModel model(17);
  model.constant("two", number(2)).constant("step", number(1)).constant("initial", number(0));
  model.constant("first", boolean(true)).input("limit", {}, DType::kI64).input("most", {});
  model.node("SequenceEmpty", {}, {"none"}, {{"dtype", int64_t{7}}});
  const Status status = model.text(loop_text("Less", true)).output("last").import().status();
  EXPECT_NE(status.message().find("a number of turns f32 [], expected one integer"),
            std::string::npos)
      << status.message();
}

TEST(plain_loop, a_sequence_that_is_read_in_the_body_stays) {
  std::vector<Tensor> inputs;
  const std::string read = "node { op_type: 'SequenceLength' input: 'u' output: 'n' }";
  const Status status =
      counting({}, {}, inputs, loop_text("Less", false, "next", read)).import().status();
  EXPECT_NE(status.message().find("carries a sequence"), std::string::npos) << status.message();
}

// A list of 70 rows x + i, and what reads it.
TestModel list_of_rows(const std::string& readers, bool varies = false) {
  TestModel model(17);
  model.input("x", {2}).constant("turns", number(70)).constant("one", floats({}, {1}));
  if (varies) model.input("most", {}, DType::kI64);
  model.node("SequenceEmpty", {}, {"none"});
  model.text(fmt::format(R"(graph {{
    node {{ op_type: 'Loop' name: 'loop' input: '{}' input: '' input: 'none' input: 'x'
      output: 's' output: 'last'
      attribute {{ name: 'body' type: GRAPH g {{ name: 'b'
        node {{ op_type: 'Identity' input: 'go' output: 'on' }}
        node {{ op_type: 'Add' input: 'v' input: 'one' output: 'w' }}
        node {{ op_type: 'SequenceInsert' input: 't' input: 'w' output: 'u' }}
        input {{ name: 'i' }} input {{ name: 'go' }} input {{ name: 't' }} input {{ name: 'v' }}
        output {{ name: 'on' }} output {{ name: 'u' }} output {{ name: 'w' }} }} }} }}
    {} }})",
                         varies ? "most" : "turns", readers));
  return model;
}

// The first elements of the rows.
std::vector<float> firsts(TestModel&& model, std::vector<Tensor> more = {}) {
  model.node("ConcatFromSequence", {"p"}, {"y"}, {{"axis", int64_t{0}}}).output("y");
  more.insert(more.begin(), floats({2}, {0, 100}));
  const auto found = run_optimized(model.graph(), more);
  std::vector<float> elements;
  for (size_t i = 0; !found.empty() && i < static_cast<size_t>(found[0].size()); i += 2)
    elements.push_back(found[0].as<float>()[i]);
  return elements;
}

std::vector<float> range(int count) {
  std::vector<float> numbers;
  for (int i = 1; i <= count; ++i) numbers.push_back(static_cast<float>(i));
  return numbers;
}

TEST(plain_loop, a_list_of_many_turns_is_one_of_parts_where_it_is_changed) {
  std::vector<float> expected = range(69);
  EXPECT_EQ(firsts(list_of_rows("node { op_type: 'SequenceErase' input: 's' output: 'p' }")),
            expected);
  expected = range(70);
  expected.push_back(0);
  EXPECT_EQ(
      firsts(list_of_rows("node { op_type: 'SequenceInsert' input: 's' input: 'x' output: 'p' }")),
      expected);
  expected = range(70);
  for (float& value : expected) value *= 2;
  EXPECT_EQ(firsts(list_of_rows(R"(
      node { op_type: 'SequenceMap' name: 'map' input: 's' input: 's' output: 'p'
        attribute { name: 'body' type: GRAPH g { name: 'm'
          node { op_type: 'Add' input: 'q' input: 'z' output: 'r' }
          input { name: 'q' } input { name: 'z' } output { name: 'r' } } } })")),
            expected);
}

TEST(plain_loop, a_list_of_many_turns_is_carried_on_by_a_second_loop) {
  for (const int turns : {2, 80}) {
    std::vector<float> expected = range(70);
    expected.resize(70 + static_cast<size_t>(turns), 0);
    TestModel model = list_of_rows(R"(
        node { op_type: 'Loop' name: 'second' input: 'more' input: '' input: 's' output: 'p'
          attribute { name: 'body' type: GRAPH g { name: 'c'
            node { op_type: 'Identity' input: 'go2' output: 'on2' }
            node { op_type: 'SequenceInsert' input: 't2' input: 'x' output: 'u2' }
            input { name: 'i2' } input { name: 'go2' } input { name: 't2' }
            output { name: 'on2' } output { name: 'u2' } } } })");
    EXPECT_EQ(firsts(std::move(model.constant("more", number(turns)))), expected);
  }
}

TEST(plain_loop, a_list_of_many_turns_is_chosen_by_a_condition) {
  for (const bool longer : {true, false}) {
    TestModel model = list_of_rows(R"(
        node { op_type: 'SequenceInsert' input: 's' input: 'x' output: 'n' }
        node { op_type: 'SequenceErase' input: 'n' output: 'e' }
        node { op_type: 'SequenceErase' input: 's' input: 'zero' output: 'f' }
        node { op_type: 'SequenceInsert' input: 'f' input: 'x' output: 'g' }
        node { op_type: 'If' name: 'if' input: 'c' output: 'p'
          attribute { name: 'then_branch' type: GRAPH g { name: 't'
            node { op_type: 'Identity' input: 's' output: 'same' } output { name: 'same' } } }
          attribute { name: 'else_branch' type: GRAPH g { name: 'e'
            node { op_type: 'Identity' input: 'g' output: 'other' } output { name: 'other' } } } })");
    model.constant("zero", number(0)).input("c", {}, DType::kBool);
    std::vector<float> expected = range(70);
    if (!longer) expected.erase(expected.begin()), expected.push_back(0);
    EXPECT_EQ(firsts(std::move(model), {boolean(longer)}), expected);
  }
}

TEST(plain_loop, rows_are_counted_from_the_end) {
  const std::string reader = "node { op_type: 'SequenceAt' input: 's' input: 'place' output: 'y' }";
  for (const bool varies : {false, true}) {
    for (const bool known : {false, true}) {
      for (const int64_t place : {-1, -3, 0, 2}) {
        SCOPED_TRACE(fmt::format("{} of {}, {}", place, varies ? "most" : "turns", known));
        TestModel model = list_of_rows(reader, varies);
        std::vector<Tensor> inputs = {floats({2}, {0, 100})};
        if (varies) inputs.push_back(number(5));
        give(model, inputs, "place", number(place), known);
        const auto found = run_optimized(model.output("y").graph(), inputs);
        ASSERT_EQ(found.size(), 1U);
        const int64_t row = place < 0 ? (varies ? 5 : 70) + place : place;
        EXPECT_EQ(found[0].as<float>()[0], static_cast<float>(row + 1));
        EXPECT_EQ(found[0].as<float>()[1], static_cast<float>(row + 101));
      }
    }
  }
}

TEST(plain_loop, a_row_that_a_run_does_not_have_is_an_error) {
  const std::string reader = "node { op_type: 'SequenceAt' input: 's' input: 'place' output: 'y' }";
  for (const bool known : {false, true}) {
    for (const int64_t place : {5, -6}) {
      SCOPED_TRACE(fmt::format("{}, {}", place, known));
      TestModel model = list_of_rows(reader, true);
      std::vector<Tensor> inputs = {floats({2}, {0, 100}), number(5)};
      give(model, inputs, "place", number(place), known);
      const auto found = run_reference(model.output("y").graph(), inputs);
      ASSERT_FALSE(found.ok());
      EXPECT_NE(found.status().message().find("no tensor at this position in this run"),
                std::string::npos)
          << found.status().message();
    }
  }
}

// The largest integer is no bound to which anything can be added.
TEST(plain_loop, a_number_of_turns_that_is_bounded_by_the_largest_integer) {
  TestModel model(17);
  model.input("n", {}, DType::kI64)
      .constant("zero", number(0))
      .constant("one", number(1))
      .constant("largest", number(INT64_MAX))
      .node("Min", {"n", "largest"}, {"some"})
      .node("Add", {"some", "one"}, {"turns"});
  model.text(R"(graph { node { op_type: 'Loop' name: 'loop'
      input: 'turns' input: '' input: 'zero' output: 'last'
      attribute { name: 'body' type: GRAPH g { name: 'b'
        node { op_type: 'Add' input: 'k' input: 'one' output: 'next' }
        node { op_type: 'Identity' input: 'go' output: 'on' }
        input { name: 'i' } input { name: 'go' } input { name: 'k' }
        output { name: 'on' } output { name: 'next' } } } } })");
  const auto found = run_optimized(model.output("last").graph(), {number(3)});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].at(0), 4);
}

}  // namespace
}  // namespace hone::graph
