#include "hone/base/printable.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(printable, leaves_what_can_be_seen) {
  for (const char* text :
       {"", "conv1/relu:0", "n\u00e4me \u4f60\u597d \u0395\u05d0 \U0001f600", "C:\\a"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_lines(text), text);
    EXPECT_EQ(printable_json(text), text);
  }
  EXPECT_EQ(printable_lines("a\nb\n"), "a\nb\n");
  EXPECT_EQ(printable_json("{\n  1\n}\n"), "{\n  1\n}\n");
}

TEST(printable, escapes_every_control_character) {
  for (int c = 0; c < 0x20; ++c) {
    const std::string text = {'a', static_cast<char>(c), 'b'};
    EXPECT_EQ(printable(text), fmt::format("a\\x{:02x}b", c));
    if (c != '\n') {
      EXPECT_EQ(printable_lines(text), fmt::format("a\\x{:02x}b", c));
    }
  }
  EXPECT_EQ(printable("\x7f"), "\\u007f");
  EXPECT_EQ(printable("\u0080\u009b\u009f\u00a0"), "\\u0080\\u009b\\u009f\u00a0");
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\x07"), "\\x1b[2J\\x1b]0;title\\x07");
}

TEST(printable, escapes_marks_of_direction_and_what_is_invisible) {
  EXPECT_EQ(printable("\u061c\u200e\u200f"), "\\u061c\\u200e\\u200f");
  EXPECT_EQ(printable("\u202a\u202b\u202c\u202d\u202e"), "\\u202a\\u202b\\u202c\\u202d\\u202e");
  EXPECT_EQ(printable("\u2066\u2067\u2068\u2069"), "\\u2066\\u2067\\u2068\\u2069");
  EXPECT_EQ(printable("\u200b\u200c\u200d\u2060\ufeff\u00ad"),
            "\\u200b\\u200c\\u200d\\u2060\\ufeff\\u00ad");
  EXPECT_EQ(printable_lines("\u2028\u2029"), "\\u2028\\u2029");
  EXPECT_EQ(printable("\U000e0041"), "\\udb40\\udc41");
  EXPECT_EQ(printable("\u200a\u2010\u2027\u202f\u205f\u2070"),
            "\u200a\u2010\u2027\u202f\u205f\u2070");
}

// Cut off, continued without a beginning, too long a form, a surrogate, beyond the last character.
TEST(printable, escapes_bytes_that_are_not_utf8) {
  EXPECT_EQ(printable("a\xff"), "a\\xff");
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");
  EXPECT_EQ(printable("\x9b\x33"), "\\x9b\x33");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe2\xe2\x80\xae"), "\\xe2\\u202e");
}

TEST(printable, json_keeps_its_strings) {
  EXPECT_EQ(printable_json("\"\u202e \x7f \u009b\""), "\"\\u202e \\u007f \\u009b\"");
  EXPECT_EQ(printable_json("\U000e0041"), "\\udb40\\udc41");
}

TEST(printable, a_text_is_cut_between_characters) {
  EXPECT_EQ(whole_characters("abc", 3), "abc");
  EXPECT_EQ(whole_characters("abc", 2), "ab");
  EXPECT_EQ(whole_characters("a\u20ac", 3), "a");
  EXPECT_EQ(whole_characters("a\u20ac", 4), "a\u20ac");
  EXPECT_EQ(whole_characters("\u20ac", 2), "");
  EXPECT_EQ(whole_characters(std::string(9, '\x80'), 5).size(), 5U);
}

}  // namespace
}  // namespace hone
