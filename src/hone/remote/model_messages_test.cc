#include "hone/remote/model_messages.h"

#include <gtest/gtest.h>

namespace hone::remote {
namespace {

// Every beginning of a body, and one with a byte more, is an error.
template <typename T>
void expect_only_whole(const T& value) {
  const std::string body = to_body(value);
  EXPECT_TRUE(from_body<T>(body).ok());
  for (size_t size = 0; size < body.size(); ++size)
    EXPECT_FALSE(from_body<T>(body.substr(0, size)).ok()) << size;
  EXPECT_FALSE(from_body<T>(body + 'x').ok());
}

ModelFacts facts() {
  return {.inputs = {{"x", DType::kF32, {8, 4}, {"batch", ""}, {1, 4}}},
          .outputs = {{"y", DType::kI64, {8}, {}, {}}},
          .device = "",
          .device_bytes = 3};
}

RunReport report() {
  RunReport report{.seconds = {1, 2}, .step_seconds = {3, 4}, .shapes = {{2, 2}}, .bytes = 64};
  report.steps = {{"conv", "conv2d", 7, 0, 5, 4, 3}};
  report.outputs = {{48, 16}};
  report.digest = {1, 2};
  return report;
}

TEST(model_messages, are_read_as_they_were_written) {
  const ModelFacts read = from_body<ModelFacts>(to_body(facts())).value();
  EXPECT_EQ(read.inputs[0].dims, (std::vector<std::string>{"batch", ""}));
  EXPECT_EQ(read.inputs[0].least, (Shape{1, 4}));
  EXPECT_EQ(read.outputs[0].dtype, DType::kI64);
  const RunReport of_run = from_body<RunReport>(to_body(report())).value();
  EXPECT_EQ(of_run.steps[0].kernel_class, "conv2d");
  EXPECT_EQ(of_run.step_seconds, (std::vector<double>{3, 4}));
  EXPECT_EQ(of_run.outputs[0].offset, 48);
}

TEST(model_messages, parts_of_them_are_errors) {
  expect_only_whole(LoadModel{"model.so", 2, 0});
  expect_only_whole(facts());
  expect_only_whole(NamedShape{true, 1, {2, 3}});
  expect_only_whole(RunModel{3, 1, true, {{0, 4}}});
  expect_only_whole(report());
  expect_only_whole(Part{1, 2});
}

TEST(model_messages, arrays_that_cannot_be_are_errors) {
  const auto is_refused = [](auto value, const auto& change) {
    change(value);
    return !from_body<decltype(value)>(to_body(value)).ok();
  };
  EXPECT_TRUE(is_refused(facts(), [](auto& m) { m.inputs[0].shape = {-1, 4}; }));
  EXPECT_TRUE(is_refused(facts(), [](auto& m) { m.inputs[0].shape = {INT64_MAX, 4}; }));
  EXPECT_TRUE(is_refused(facts(), [](auto& m) { m.inputs[0].least = {1}; }));
  EXPECT_TRUE(is_refused(facts(), [](auto& m) { m.inputs[0].dtype = static_cast<DType>(200); }));
  EXPECT_TRUE(is_refused(report(), [](auto& m) { m.outputs[0].bytes = 17; }));
  EXPECT_TRUE(is_refused(report(), [](auto& m) { m.outputs[0].offset = -8; }));
  EXPECT_TRUE(is_refused(report(), [](auto& m) { m.outputs.clear(); }));
  EXPECT_TRUE(is_refused(report(), [](auto& m) { m.step_seconds.pop_back(); }));
  EXPECT_TRUE(is_refused(report(), [](auto& m) { m.seconds.clear(); }));
}

}  // namespace
}  // namespace hone::remote
