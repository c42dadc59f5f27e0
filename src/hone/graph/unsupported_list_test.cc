#include "hone/graph/unsupported_list.h"

#include <gtest/gtest.h>

namespace hone::graph {
namespace {

Status unsupported(const std::string& text) { return {Code::kUnsupported, "m.onnx: " + text}; }

TEST(unsupported_list, names_the_file_once_and_each_kind) {
  UnsupportedList list;
  EXPECT_TRUE(list.all("m.onnx").ok());
  EXPECT_TRUE(list.add(unsupported("node 'a' (Pad): mode 'x'")).ok());
  EXPECT_TRUE(list.add(unsupported("input 'q' is no tensor")).ok());
  EXPECT_EQ(list.all("m.onnx").message(),
            "m.onnx: node 'a' (Pad): mode 'x'; input 'q' is no tensor");
  EXPECT_FALSE(list.add(invalid("truncated")).ok());
}

TEST(unsupported_list, counts_nodes_that_have_one_thing_wrong) {
  UnsupportedList list;
  for (int i = 0; i < 300; ++i)
    EXPECT_TRUE(list.add(unsupported(fmt::format("node 'n{}' (Pad): mode 'x'", i))).ok());
  EXPECT_TRUE(list.add(unsupported("node 'b' (Foo): bar")).ok());
  EXPECT_EQ(list.all("m.onnx").message(),
            "m.onnx: 300 nodes, such as 'n0', 'n1', 'n2' (Pad): mode 'x'; node 'b' (Foo): bar");
}

TEST(unsupported_list, of_very_many_kinds_has_the_first) {
  UnsupportedList list;
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(list.add(unsupported(fmt::format("node 'n{}' (Pad): mode '{}'", i, i))).ok());
  const std::string text = list.all("m.onnx").message();
  EXPECT_TRUE(text.ends_with("(Pad): mode '7'; and 92 more")) << text;
}

}  // namespace
}  // namespace hone::graph
