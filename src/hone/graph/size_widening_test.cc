// Operators that take what varies in its largest extent, or scale by it.
#include "hone/graph/size_check.h"

namespace hone::graph {
namespace {

// The scale is that of the size of a head in the run.
TEST(size_widening, sizes_of_heads_that_vary) {
  for (const bool flexible : {false, true}) {
    SCOPED_TRACE(flexible);
    TestModel model(23);
    model.open_input("q", {"2", "2", "3", "size"}).open_input("k", {"2", "2", "4", "size"});
    model.open_input("v", {"2", "2", "4", "5"});
    model.node(flexible ? "FlexAttention" : "Attention", {"q", "k", "v"}, {"y"}, {},
               flexible ? "ai.onnx.preview" : "");
    expect_right(model.output("y"), {{"size", {{1, 9, ""}}}}, {{9}, {1}, {4}, {7}});
  }
}

// Without a dimension for the one head.
TEST(size_widening, sizes_of_packed_heads_that_vary) {
  TestModel model(23);
  model.open_input("x", {"N", "3", "size"});
  model.node("Attention", {"x", "x", "x"}, {"y"},
             {{"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}});
  expect_right(model.output("y"), {{"N", {{1, 2, ""}}}, {"size", {{1, 6, ""}}}},
               {{2, 6}, {1, 1}, {2, 3}, {1, 4}});
}

// The signal is shorter than the transform, or longer.
TEST(size_widening, transforms_of_a_given_length) {
  for (const int64_t parts : {1, 2}) {
    for (const bool inverse : {false, true}) {
      for (const bool onesided : {false, true}) {
        if (onesided && parts == (inverse ? 1 : 2)) continue;
        SCOPED_TRACE(fmt::format("{} {} {}", parts, inverse, onesided));
        TestModel model(17);
        model.open_input("x", {"2", "n", std::to_string(parts)})
            .constant("length", ints({6}))
            .node("DFT", {"x", "length"}, {"y"},
                  {{"inverse", int64_t{inverse}}, {"onesided", int64_t{onesided}}})
            .output("y");
        expect_right(model, {{"n", {{1, 9, ""}}}}, {{9}, {1}, {4}, {5}, {6}, {7}});
        expect_right(model, {{"n", {{1, 5, ""}}}}, {{5}, {1}, {3}});
      }
    }
  }
}

// The offsets and the mask are made of the data, as networks do it.
TEST(size_widening, deformed_convolutions_of_sides_that_vary) {
  Rng rng(21);
  for (const int64_t stride : {1, 2}) {
    SCOPED_TRACE(stride);
    const AttributeList window = {{"strides", Shape{stride, stride}}, {"pads", Shape{1, 1, 1, 1}}};
    TestModel model(19);
    model.open_input("x", {"N", "4", "h", "w"})
        .constant("wo", random_tensor({36, 4, 3, 3}, rng))
        .constant("wm", random_tensor({18, 4, 3, 3}, rng))
        .constant("w", random_tensor({5, 4, 3, 3}, rng))
        .constant("b", random_tensor({5}, rng))
        .node("Conv", {"x", "wo"}, {"offsets"}, window)
        .node("Conv", {"x", "wm"}, {"mask"}, window);
    AttributeList attributes = window;
    attributes.insert(attributes.end(), {{"offset_group", int64_t{2}}});
    model.node("DeformConv", {"x", "w", "offsets", "b", "mask"}, {"y"}, attributes).output("y");
    expect_right(model, {{"N", {{1, 2, ""}}}, {"h", {{1, 9, ""}}}, {"w", {{2, 5, ""}}}},
                 {{2, 9, 5}, {1, 1, 2}, {2, 4, 5}, {1, 7, 3}, {2, 8, 4}});
  }
}

// Rows that are too short for the n-grams that are counted.
TEST(size_widening, n_grams_of_short_rows) {
  for (const int64_t skipped : {0, 3}) {
    SCOPED_TRACE(skipped);
    TestModel model(17);
    model.open_input("x", {"N", "n"})
        .node("Cast", {"x"}, {"i"}, {{"to", int64_t{7}}})
        .node("TfIdfVectorizer", {"i"}, {"y"},
              {{"mode", std::string("TF")},
               {"min_gram_length", int64_t{1}},
               {"max_gram_length", int64_t{3}},
               {"max_skip_count", skipped},
               {"ngram_counts", Shape{0, 2, 6}},
               {"ngram_indexes", Shape{0, 1, 2, 3, 4}},
               {"pool_int64s", Shape{0, 1, 0, 2, 2, 1, 0, 0, 1}}})
        .output("y");
    expect_right(model, {{"N", {{1, 3, ""}}}, {"n", {{1, 9, ""}}}},
                 {{3, 9}, {1, 1}, {2, 2}, {3, 5}, {2, 3}},
                 [](Rng& rng) { return static_cast<double>(rng.below(4)); });
  }
}

}  // namespace
}  // namespace hone::graph
