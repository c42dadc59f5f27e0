// TfIdfVectorizer's borders. Its values are compared with ONNX Runtime in
// tests/onnx_operators_test.py.
#include <gtest/gtest.h>

#include <cstdint>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

using Floats = std::vector<float>;

// The pool 1, 2, (1 2), (2 1), which have the columns 0 to 3, in rows of numbers.
TestModel tf_idf(const Shape& x, const AttributeList& changed) {
  AttributeList attributes = {
      {"mode", std::string("TF")},     {"pool_int64s", Shape{1, 2, 1, 2, 2, 1}},
      {"ngram_counts", Shape{0, 2}},   {"ngram_indexes", Shape{0, 1, 2, 3}},
      {"min_gram_length", int64_t{1}}, {"max_gram_length", int64_t{2}},
      {"max_skip_count", int64_t{0}}};
  for (const auto& [name, value] : changed) {
    std::erase_if(attributes, [&, &n = name](const auto& given) { return given.first == n; });
    attributes.emplace_back(name, value);
  }
  TestModel model(17);
  model.input("x", x, DType::kI64).node("TfIdfVectorizer", {"x"}, {"y"}, attributes);
  model.output("y");
  return model;
}

void expect_counts(const AttributeList& changed, const Tensor& x, const Floats& expected) {
  const auto y = run_plainly(tf_idf(x.shape(), changed).graph(), {x});
  ASSERT_EQ(y.size(), 1U);
  EXPECT_EQ(relative_error(y[0], floats({std::ssize(expected)}, expected)), 0);
}

void expect_refused(const AttributeList& changed, const std::string& part,
                    const Shape& x = {100'000}) {
  const Status status = tf_idf(x, changed).import().status();
  EXPECT_FALSE(status.ok()) << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(tf_idf, gaps_are_as_wide_as_rows_have_room) {
  const Tensor x = ints({1, 2, 2});
  expect_counts({}, x, {1, 2, 1, 0});
  expect_counts({{"max_skip_count", int64_t{INT64_MAX}}}, x, {1, 2, 2, 0});
  expect_counts({{"max_skip_count", int64_t{INT64_MAX}}}, ints({2}), {0, 1, 0, 0});
}

TEST(tf_idf, weights_are_those_of_the_n_grams_that_are_counted) {
  expect_counts({{"mode", std::string("TFIDF")},
                 {"ngram_indexes", Shape{0, 1, 1, 0}},
                 {"weights", Floats{3, 5, 7, 11}},
                 {"max_gram_length", int64_t{1}}},
                ints({1, 2, 2}), {3, 10});
}

TEST(tf_idf, what_is_no_pool_is_refused) {
  expect_refused({{"max_skip_count", int64_t{INT64_MAX}}}, "expected at most 4096");
  expect_refused({{"ngram_counts", Shape{0, INT64_MIN}}}, "expected places in the pool of 6");
  expect_refused({{"ngram_counts", Shape{INT64_MIN, 2}}}, "expected places in the pool of 6");
  expect_refused({{"ngram_counts", Shape{0, 3}}}, "a multiple of 2 numbers");
  expect_refused({{"ngram_indexes", Shape{0, 1, 2}}}, "expected one each");
  expect_refused({{"ngram_indexes", Shape{0, 1, 2, 1 << 28}}}, "expected 0 to 9999999");
  expect_refused({{"weights", Floats{1}}}, "expected none or one each");
  expect_refused({{"mode", std::string("DF")}}, "expected TF, IDF or TFIDF");
  expect_refused({{"min_gram_length", int64_t{3}}}, "expected 1 number or more");
}

}  // namespace
}  // namespace hone::graph
