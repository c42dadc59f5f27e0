#include "hone/graph/size_sums.h"

#include <gtest/gtest.h>

#include "hone/graph/size_check.h"
#include "hone/graph/size_options.h"

namespace hone::graph {
namespace {

// The forms (h + 1) / 2, (w + 1) / 2, h - 3 and h + 2 of the symbols h and w.
Varying halves() {
  Varying varying;
  varying.symbols = {{"h", 3, 9}, {"w", 3, 9}};
  varying.forms = {{.terms = {{1, {0}}}, .offset = 1, .divisor = 2},
                   {.terms = {{1, {1}}}, .offset = 1, .divisor = 2},
                   {.terms = {{1, {0}}}, .offset = -3},
                   {.terms = {{1, {0}}}, .offset = 2}};
  return varying;
}

TEST(size_options, forms_are_told_in_the_symbols_of_users) {
  Varying varying = halves();
  EXPECT_EQ(form_text(varying, varying.forms[0]), "(h + 1)/2");
  EXPECT_EQ(form_text(varying, varying.forms[2]), "h - 3");
  EXPECT_EQ(form_text(varying, {.terms = {{1, {0, 1}}}}), "h*w");
  EXPECT_EQ(form_text(varying, {.terms = {{4, {0, 1}}, {2, {}}}, .divisor = 3}), "(4*h*w + 2)/3");
  EXPECT_EQ(form_text(varying, {.terms = {{3, {factor_of_form(0), 1}}}}), "3*((h + 1)/2)*w");
  EXPECT_EQ(form_text(varying, {.offset = 7}), "7");
  EXPECT_EQ(form_text(varying, {.terms = {{1, {0}}}, .offset = 1, .divisor = 2, .most = 4}),
            "min((h + 1)/2, 4)");
  EXPECT_EQ(form_text(varying, {.terms = {{1, {1}}}, .offset = -2, .least = 0}), "max(w - 2, 0)");
  EXPECT_EQ(run_text(varying, {3, 9}), "h=3, w=9");
  // Sides in steps of 32: the symbol counts steps.
  varying.inputs = {{{{4, 288}}}};
  varying.forms.push_back({.terms = {{32, {0}}}});
  EXPECT_EQ(form_text(varying, varying.forms[4]), "h");
  EXPECT_EQ(form_text(varying, {.terms = {{4, {0}}}}), "h/8");
  EXPECT_EQ(form_text(varying, {.terms = {{96, {0, 1}}}}), "3*h*w");
  EXPECT_EQ(run_text(varying, {3, 9}), "h=96, w=9");
}

// Sides without a name are given with the shape of their input, whose batch stays that of others.
TEST(size_options, symbols_of_the_rule_stay_in_the_shape_of_an_input) {
  const std::vector<SizeSymbol> symbols = {{"batch", 1, 8}, {"x.2", 160, 224}};
  const SizeForm batch{.terms = {{1, {0}}}}, side{.terms = {{1, {1}}}};
  const InputForms inputs = {{"x", {batch, {.offset = 3}, side, {.offset = 224}}}, {"y", {batch}}};
  EXPECT_EQ(range_option(symbols[0], symbols, inputs), "--shape batch=1..8");
  EXPECT_EQ(range_option(symbols[1], symbols, inputs), "--shape x=batch,3,160..224,224");
  // One that has a name has a range of its own, too.
  std::vector<SizeSymbol> named = symbols;
  named[0].name = "rows";
  EXPECT_EQ(range_option(symbols[1], named, inputs), "--shape x=1..8x3x160..224x224");
}

TEST(size_sums, have_the_value_of_their_extents) {
  Varying varying = halves();
  const std::vector<DimParts> extents = {
      {{0, 5}, {1, 5}, {kNoForm, 3}}, {{2, 6}, {2, 6}}, {{3, 11}, {1, 5}}, {{kNoForm, 4}}};
  const auto sum = sum_of_products(varying, extents);
  ASSERT_TRUE(sum);
  varying.forms.push_back(*sum);
  const auto twice = sum_of_products(varying, {{{4, 0}}, {{4, 0}, {3, 0}}});
  ASSERT_TRUE(twice);
  for (const int64_t h : {3, 4, 9}) {
    for (const int64_t w : {3, 6, 9}) {
      const int64_t a = (h + 1) / 2, b = (w + 1) / 2;
      const int64_t expected = 3 * a * b + (h - 3) * (h - 3) + (h + 2) * b + 4;
      EXPECT_EQ(value_of(varying, *sum, {h, w}), expected);
      EXPECT_EQ(value_of(varying, *twice, {h, w}), expected + expected * (h + 2));
    }
  }
  for (const SizeForm& form : {*sum, *twice}) {
    EXPECT_GE(form.offset, 0);
    for (const SizeTerm& term : form.terms) EXPECT_GT(term.factor, 0);
  }
}

TEST(size_sums, have_forms_with_bounds_as_factors) {
  Varying varying = halves();
  varying.forms.push_back(bounded({.terms = {{1, {1}}}, .offset = -4}, 0, 3));
  const auto sum = sum_of_products(varying, {{{4, 3}, {0, 5}}, {{4, 3}}});
  const auto half = quotient_of(varying, varying.forms[4], 1, 2);
  ASSERT_TRUE(sum && half);
  for (int64_t h = 3; h <= 9; ++h) {
    for (int64_t w = 3; w <= 9; ++w) {
      const int64_t cut = std::clamp<int64_t>(w - 4, 0, 3);
      EXPECT_EQ(value_of(varying, *sum, {h, w}), cut * ((h + 1) / 2) + cut);
      EXPECT_EQ(value_of(varying, *half, {h, w}), (cut + 1) / 2);
    }
  }
}

TEST(size_sums, do_not_have_quotients_of_sums_of_forms) {
  Varying varying = halves();
  varying.forms.push_back(
      {.terms = {{1, {factor_of_form(0), factor_of_form(1)}}}, .offset = 1, .divisor = 2});
  EXPECT_FALSE(sum_of_products(varying, {{{4, 13}}}));
}

// Strides of a sound's encoder, whose product is more than what is found from numbers alone.
TEST(size_sums, quotients_of_quotients) {
  TestModel model;
  model.open_input("x", {"1", "1", "samples"});
  std::string x = "x";
  for (const int64_t stride : {7, 6, 5}) {
    const std::string y = "y" + std::to_string(stride);
    model.node("AveragePool", {x}, {y},
               {{"kernel_shape", Shape{stride + 1}}, {"strides", Shape{stride}}});
    x = y;
  }
  model.output(x);
  const auto graph = import_ranges(model, {{"samples", {{700, 2000, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const int form = graph->varying.outputs[0][2][0].form;
  for (int64_t samples = 700; samples <= 2000; ++samples) {
    const int64_t expected = (((samples - 1) / 7 - 1) / 6 - 1) / 5;
    ASSERT_EQ(sizes_of(graph->varying, {samples})[static_cast<size_t>(form)], expected) << samples;
  }
}

// Boxes of two maps of a detector, whose sides are quotients of the image's.
TEST(size_sums, of_elements_of_several_maps) {
  TestModel model;
  model.open_input("x", {"n", "2", "h", "w"}).constant("rows", [] {
    Tensor rows(DType::kI64, {3});
    rows.set(0, 0);
    rows.set(1, 2);
    rows.set(2, -1);
    return rows;
  }());
  int64_t stride = 2;
  for (const std::string map : {"a", "b", "c"}) {
    model
        .node("MaxPool", {"x"}, {map},
              {{"kernel_shape", Shape{1, 1}}, {"strides", Shape{stride, stride}}})
        .node("Reshape", {map, "rows"}, {map + "_flat"})
        .node("Transpose", {map + "_flat"}, {map + "_rows"}, {{"perm", Shape{0, 2, 1}}});
    ++stride;
  }
  model.node("Concat", {"a_rows", "b_rows", "c_rows"}, {"rows_of_all"}, {{"axis", int64_t{1}}})
      .node("Softmax", {"rows_of_all"}, {"shares"}, {{"axis", int64_t{1}}})
      .output("rows_of_all")
      .output("shares");
  const auto graph =
      import_ranges(model, {{"n", {{1, 2, ""}}}, {"h", {{5, 17, ""}}}, {"w", {{4, 11, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const auto& at : {std::vector<int64_t>{2, 17, 11}, {1, 5, 4}, {2, 8, 11}, {1, 13, 7}})
    SizeCheck{model, *graph}.at(at, at[0] == 1);
}

// Numbers that fall where a size grows are data, but no sizes.
TEST(size_sums, numbers_that_fall) {
  using Nodes = std::vector<std::pair<std::string, std::vector<std::string>>>;
  const std::vector<Nodes> cases = {
      {{"Neg", {"a"}}},
      {{"Mul", {"a", "minus"}}},
      {{"Sub", {"seven", "b"}}},
      {{"Sub", {"a", "b"}}},
      {{"Mul", {"a", "b"}}, {"Neg", {"0"}}},
      {{"Div", {"b", "three"}}, {"Neg", {"0"}}},
      {{"Neg", {"b"}}, {"Div", {"0", "three"}}},
      {{"Sub", {"a", "b"}}, {"Mul", {"0", "a"}}},
      {{"Mul", {"b", "huge"}}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    TestModel model(19);
    model.open_input("x", {"p", "q"})
        .constant("minus", ints({-1}))
        .constant("three", ints({3}))
        .constant("seven", ints({7}))
        .constant("huge", ints({int64_t{1} << 47}))
        .node("Shape", {"x"}, {"a"}, {{"start", int64_t{0}}, {"end", int64_t{1}}})
        .node("Shape", {"x"}, {"b"}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
    std::string last;
    for (size_t k = 0; k < cases[i].size(); ++k) {
      model.node(cases[i][k].first, cases[i][k].second, {std::to_string(k)});
      last = std::to_string(k);
    }
    model.node("Cast", {last}, {"number"}, {{"to", int64_t{1}}})
        .node("Add", {"x", "number"}, {"y"})
        .output("y");
    expect_right(model, {{"p", {{1, 6, ""}}}, {"q", {{1, 9, ""}}}},
                 {{6, 9}, {1, 1}, {3, 8}, {4, 2}});
  }
}

}  // namespace
}  // namespace hone::graph
