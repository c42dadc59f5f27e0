#include "output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace hone::tool {
namespace {

// What arrives when the parts are flushed one by one.
std::string written(std::initializer_list<std::string_view> parts) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  std::FILE* const stream = filtered_output(ends[1]);
  for (const std::string_view part : parts) {
    std::fwrite(part.data(), 1, part.size(), stream);
    EXPECT_EQ(std::fflush(stream), 0);
  }
  EXPECT_EQ(std::fclose(stream), 0);
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = read(ends[0], text.data(), text.size());
  close(ends[0]);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

TEST(output, hides_nothing_and_obeys_nothing) {
  EXPECT_EQ(written({"a table\n  of n\u00e4mes\n"}), "a table\n  of n\u00e4mes\n");
  EXPECT_EQ(written({"\x1b[2J\t\u202e\xff\n"}), "\\x1b[2J\\x09\\u202e\\xff\n");
  EXPECT_EQ(written({"{\"a\": \"\u202e\x7f\u0085\"}\n"}), "{\"a\": \"\\u202e\\u007f\\u0085\"}\n")
      << "it is JSON before and after";
}

TEST(output, a_character_may_come_in_parts) {
  EXPECT_EQ(written({"a\xe2", "\x82", "\xac", "b\xe2\x80", "\xae"}),
            "a\u20ac"
            "b\\u202e");
  EXPECT_EQ(written({"a\xe2\x82"}), "a\\xe2\\x82") << "the rest never came";
  EXPECT_EQ(written({"\x80\x80\x80\x80"}), "\\x80\\x80\\x80\\x80");
}

TEST(output, a_full_disk_is_an_error) {
  std::FILE* const full = std::fopen("/dev/full", "w");
  if (full == nullptr) GTEST_SKIP() << "there is no /dev/full";
  std::FILE* const stream = filtered_output(fileno(full));
  std::fputs("text\n", stream);
  EXPECT_NE(std::fflush(stream), 0);
  std::fclose(stream);
  std::fclose(full);
}

}  // namespace
}  // namespace hone::tool
