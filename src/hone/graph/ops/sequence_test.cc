// Sequences and optional values: what is left of them are the values that they hold.
#include <gtest/gtest.h>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

std::vector<float> run(const TestModel& model, const std::vector<Tensor>& inputs) {
  const auto outputs = run_plainly(model.graph(), inputs);
  if (outputs.size() != 1) return {};
  const auto values = outputs[0].as<float>();
  return {values.begin(), values.end()};
}

void expect_error(const TestModel& model, const std::string& part) {
  const Status status = model.import().status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TestModel two_vectors() {
  TestModel model(17);
  model.input("a", {2}).input("b", {2});
  model.node("SequenceConstruct", {"a", "b"}, {"s"});
  return model;
}

const std::vector<Tensor> kTwo = {floats({2}, {1, 2}), floats({2}, {3, 4})};

TEST(sequence, is_joined_along_an_axis_that_is_there_or_new) {
  EXPECT_EQ(run(std::move(two_vectors()
                              .node("ConcatFromSequence", {"s"}, {"y"}, {{"axis", int64_t{0}}})
                              .output("y")),
                kTwo),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(run(std::move(two_vectors()
                              .node("ConcatFromSequence", {"s"}, {"y"},
                                    {{"axis", int64_t{-1}}, {"new_axis", int64_t{1}}})
                              .output("y")),
                kTwo),
            (std::vector<float>{1, 3, 2, 4}));
}

TEST(sequence, takes_and_gives_parts_by_position) {
  const auto with = [](const std::vector<int64_t>& insert_at, int64_t take) {
    TestModel model = two_vectors();
    model.node("Neg", {"a"}, {"n"});
    std::vector<std::string> operands = {"s", "n"};
    if (!insert_at.empty()) {
      model.constant("at", ints(insert_at));
      operands.emplace_back("at");
    }
    model.node("SequenceInsert", operands, {"t"}).node("SequenceErase", {"t"}, {"u"});
    model.constant("take", ints({take})).node("SequenceAt", {"u", "take"}, {"y"}).output("y");
    return model;
  };
  EXPECT_EQ(run(with({0}, 0), kTwo), (std::vector<float>{-1, -2}));    // n a
  EXPECT_EQ(run(with({-1}, -1), kTwo), (std::vector<float>{-1, -2}));  // a n
  EXPECT_EQ(run(with({}, 1), kTwo), (std::vector<float>{3, 4}));       // a b
  expect_error(with({3}, 0), "node 'node_t' (SequenceInsert): position [3], expected -2 to 2");
  expect_error(with({0}, 2), "node 'node_y' (SequenceAt): position 2, expected -2 to 1");
}

TEST(sequence, has_a_length_that_shapes_may_follow) {
  TestModel model = two_vectors();
  model.node("SequenceLength", {"s"}, {"n"}).constant("zero", ints({0}));
  model.node("Unsqueeze", {"n", "zero"}, {"shape"}).node("Expand", {"one", "shape"}, {"y"});
  model.constant("one", floats({}, {7})).output("y");
  EXPECT_EQ(run(model, kTwo), (std::vector<float>{7, 7}));
}

TEST(sequence, is_made_of_pieces_of_a_tensor) {
  const auto piece = [](const Tensor* split, int64_t keep, int64_t take, bool squeezed) {
    TestModel model(17);
    model.input("x", {5, 1});
    std::vector<std::string> operands = {"x"};
    if (split != nullptr) {
      model.constant("split", *split);
      operands.emplace_back("split");
    }
    model.node("SplitToSequence", operands, {"s"}, {{"keepdims", keep}});
    model.constant("take", ints({take})).node("SequenceAt", {"s", "take"}, {"y"}).output("y");
    const Graph graph = model.graph();
    EXPECT_EQ(graph.value(graph.outputs[0]).shape.size(), squeezed ? 1U : 2U);
    return run(model, {floats({5, 1}, {1, 2, 3, 4, 5})});
  };
  Tensor two(DType::kI64, {});
  two.set(0, 2);
  const Tensor lengths = ints({1, 4});
  EXPECT_EQ(piece(nullptr, 1, 3, false), std::vector<float>{4});
  EXPECT_EQ(piece(nullptr, 0, 3, true), std::vector<float>{4});
  EXPECT_EQ(piece(&two, 0, 2, false), std::vector<float>{5});
  EXPECT_EQ(piece(&lengths, 1, 1, false), (std::vector<float>{2, 3, 4, 5}));
}

TEST(sequence, grows_in_a_loop_and_is_chosen_by_a_condition) {
  TestModel model(17);
  model.input("x", {2}).input("c", {}, DType::kBool).constant("n", ints({3}));
  model.node("SequenceEmpty", {}, {"none"});
  model.text(R"(graph {
    node { op_type: 'Loop' name: 'loop' input: 'n' input: '' input: 'none' input: 'x'
      output: 's' output: 'last'
      attribute { name: 'body' type: GRAPH g { name: 'b'
        node { op_type: 'Identity' input: 'go' output: 'on' }
        node { op_type: 'Add' input: 'v' input: 'x' output: 'w' }
        node { op_type: 'SequenceInsert' input: 't' input: 'w' output: 'u' }
        input { name: 'i' } input { name: 'go' } input { name: 't' } input { name: 'v' }
        output { name: 'on' } output { name: 'u' } output { name: 'w' } } } }
    node { op_type: 'If' name: 'if' input: 'c' output: 'p'
      attribute { name: 'then_branch' type: GRAPH g { name: 't'
        node { op_type: 'Identity' input: 's' output: 'same' } output { name: 'same' } } }
      attribute { name: 'else_branch' type: GRAPH g { name: 'e'
        node { op_type: 'SequenceConstruct' input: 'x' input: 'x' input: 'x' output: 'xs' }
        output { name: 'xs' } } } } })");
  model.node("ConcatFromSequence", {"p"}, {"y"}, {{"axis", int64_t{0}}}).output("y");
  Tensor yes(DType::kBool, {}), no(DType::kBool, {});
  yes.set(0, 1);
  const Tensor x = floats({2}, {1, 10});
  EXPECT_EQ(run(model, {x, yes}), (std::vector<float>{2, 20, 3, 30, 4, 40}));
  EXPECT_EQ(run(model, {x, no}), (std::vector<float>{1, 10, 1, 10, 1, 10}));
}

TEST(sequence, is_mapped_by_a_body) {
  TestModel model = two_vectors();
  model.text(R"(graph { node { op_type: 'SequenceMap' name: 'map' input: 's' input: 'b' output: 't'
      attribute { name: 'body' type: GRAPH g { name: 'b'
        node { op_type: 'Mul' input: 'p' input: 'q' output: 'm' }
        node { op_type: 'Add' input: 'm' input: 'a' output: 'r' }
        input { name: 'p' } input { name: 'q' } output { name: 'r' } } } } })");
  model.node("ConcatFromSequence", {"t"}, {"y"}, {{"axis", int64_t{0}}}).output("y");
  EXPECT_EQ(run(model, kTwo), (std::vector<float>{4, 10, 10, 18}));  // s b + a
}

TEST(sequence, is_mapped_with_others_of_as_many_parts) {
  const auto with = [](const std::string& second) {
    TestModel model = two_vectors();
    model.node("SequenceConstruct", {"b", "a"}, {"turned"}).node("SequenceErase", {"s"}, {"one"});
    model.node("Optional", {"turned"}, {"optional"});
    model.text(fmt::format(R"(graph {{
      node {{ op_type: 'SequenceMap' name: 'map' input: 's' input: '{}' output: 't'
      attribute {{ name: 'body' type: GRAPH g {{ name: 'b'
        node {{ op_type: 'Mul' input: 'p' input: 'q' output: 'm' }}
        input {{ name: 'p' }} input {{ name: 'q' }} output {{ name: 'm' }} }} }} }} }})",
                           second));
    model.node("ConcatFromSequence", {"t"}, {"y"}, {{"axis", int64_t{0}}});
    return std::move(model.output("y"));
  };
  EXPECT_EQ(run(with("s"), kTwo), (std::vector<float>{1, 4, 9, 16}));
  EXPECT_EQ(run(with("turned"), kTwo), (std::vector<float>{3, 8, 3, 8}));
  EXPECT_EQ(run(with("optional"), kTwo), (std::vector<float>{3, 8, 3, 8}));
  expect_error(with("one"), "node 'map' (SequenceMap): sequences of 2 and 1 parts");
}

TEST(optional, holds_a_value_or_none) {
  TestModel model(17);
  model.input("x", {2}).node("Optional", {"x"}, {"o"}).node("OptionalHasElement", {"o"}, {"h"});
  model.node("Cast", {"h"}, {"one"}, {{"to", int64_t{1}}}).node("OptionalGetElement", {"o"}, {"e"});
  model.node("Optional", {}, {"none"}).node("OptionalHasElement", {"none"}, {"g"});
  model.node("Cast", {"g"}, {"zero"}, {{"to", int64_t{1}}});
  model.node("Add", {"e", "one"}, {"f"}).node("Mul", {"f", "zero"}, {"m"});
  model.node("Add", {"m", "f"}, {"y"}).output("y");
  EXPECT_EQ(run(model, {floats({2}, {1, 2})}), (std::vector<float>{2, 3}));
  expect_error(std::move(TestModel(17)
                             .input("x", {1})
                             .node("Optional", {}, {"o"})
                             .node("OptionalGetElement", {"o"}, {"e"})
                             .node("Add", {"x", "e"}, {"y"})
                             .output("y")),
               "node 'node_e' (OptionalGetElement): an optional value that holds nothing, "
               "expected one with an element");
}

TEST(optional, input_is_a_tensor_that_every_run_gives) {
  TestModel model(18);
  model.text(R"(graph { input { name: 'x' type { optional_type { elem_type { tensor_type {
    elem_type: 1 shape { dim { dim_value: 2 } } } } } } } })");
  model.node("OptionalHasElement", {"x"}, {"h"}).node("Cast", {"h"}, {"one"}, {{"to", int64_t{1}}});
  model.node("OptionalGetElement", {"x"}, {"e"}).node("Add", {"e", "one"}, {"y"}).output("y");
  EXPECT_EQ(run(model, {floats({2}, {1, 2})}), (std::vector<float>{2, 3}));
}

TEST(sequence, is_refused_where_a_tensor_is_expected) {
  expect_error(std::move(two_vectors().output("s")), "the output 's' is a sequence");
  expect_error(std::move(two_vectors().node("Neg", {"s"}, {"y"}).output("y")),
               "node 'node_y' (Neg): operand 0 ('s') is a sequence, expected a tensor");
  expect_error(std::move(two_vectors().node("SequenceLength", {"a"}, {"y"}).output("y")),
               "node 'node_y' (SequenceLength): operand 0 is a tensor, expected a sequence");
  TestModel mixed(17);
  mixed.input("a", {1}).input("b", {1}, DType::kI64);
  expect_error(std::move(mixed.node("SequenceConstruct", {"a", "b"}, {"s"})
                             .node("ConcatFromSequence", {"s"}, {"y"}, {{"axis", int64_t{0}}})
                             .output("y")),
               "node 'node_s' (SequenceConstruct): a tensor of type i64 in a sequence of type f32, "
               "expected tensors of one type");
  TestModel empty(17);
  empty.input("a", {1}).node("SequenceEmpty", {}, {"s"});
  expect_error(
      std::move(empty.node("ConcatFromSequence", {"s"}, {"y"}, {{"axis", int64_t{0}}}).output("y")),
      "node 'node_y' (ConcatFromSequence): an empty sequence");
  TestModel varying(17);
  varying.input("x", {3}).input("c", {3}, DType::kBool).node("Compress", {"x", "c"}, {"z"});
  expect_error(
      varying.node("SplitToSequence", {"z"}, {"s"})
          .node("SequenceLength", {"s"}, {"y"})
          .output("y"),
      "node 'node_s' (SplitToSequence): data of which other data decide how many elements are split");
  TestModel unknown = two_vectors();
  unknown.node("Concat", {"a", "a"}, {"longer"}, {{"axis", int64_t{0}}});
  unknown.node("SequenceConstruct", {"a", "longer"}, {"uneven"});
  unknown.input("i", {}, DType::kI64).node("SequenceAt", {"uneven", "i"}, {"y"}).output("y");
  expect_error(unknown, "bind it (ModelOptions::bind, --bind i=NUMBER)");
}

}  // namespace
}  // namespace hone::graph
