#include "table.h"

#include <gtest/gtest.h>

#include "command.h"

namespace hone::tool {
namespace {

TEST(table, columns_are_as_wide_as_their_widest_cell) {
  Table table({"kernel", "time"});
  table.add({"conv2d+bias+relu", "1.00 ms"});
  table.add({"gemm", ""});
  EXPECT_EQ(table.text(),
            "kernel               time\n"
            "-------------------------\n"
            "conv2d+bias+relu  1.00 ms\n"
            "gemm\n");
}

TEST(table, the_first_columns_may_be_texts) {
  Table table({"a", "b", "c"}, 2);
  table.add({"1", "conv", "1.00 ms"});
  EXPECT_EQ(table.text(),
            "a  b           c\n"
            "----------------\n"
            "1  conv  1.00 ms\n");
}

TEST(table, times_have_three_digits_and_a_unit) {
  EXPECT_EQ(format_seconds(0), "-");
  EXPECT_EQ(format_seconds(45e-9), "45.0 ns");
  EXPECT_EQ(format_seconds(1.234e-6), "1.23 us");
  EXPECT_EQ(format_seconds(99.96e-6), "100 us");
  EXPECT_EQ(format_seconds(999.6e-6), "1.00 ms");
  EXPECT_EQ(format_seconds(12.34e-3), "12.3 ms");
  EXPECT_EQ(format_seconds(0.9996), "1.00 s");
  EXPECT_EQ(format_seconds(61.5), "61.5 s");
}

TEST(table, counts_have_a_magnitude) {
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(12345), "12.3k");
  EXPECT_EQ(format_count(44.6e6), "44.6M");
}

TEST(table, long_names_lose_their_middle) {
  EXPECT_EQ(shorten("conv2d", 6), "conv2d");
  EXPECT_EQ(shorten("/layer1/layer1.0/conv1/Conv", 14), "/layer..1/Conv");
  EXPECT_EQ(shorten("conv2d", 3), "con");
}

TEST(command, only_bugs_are_internal_failures) {
  EXPECT_EQ(exit_code(Code::kOk), 0);
  EXPECT_EQ(exit_code(Code::kInternal), 1);
  for (const Code code :
       {Code::kInvalid, Code::kNotFound, Code::kUnsupported, Code::kIo, Code::kTimeout}) {
    EXPECT_EQ(exit_code(code), 2);
  }
  EXPECT_EQ(exit_code(Code::kCancelled), 130);
}

TEST(command, a_message_is_one_line) {
  EXPECT_EQ(one_line("two\nlines\tand  \x1b[31m blanks \n"), "two lines and [31m blanks");
}

}  // namespace
}  // namespace hone::tool
