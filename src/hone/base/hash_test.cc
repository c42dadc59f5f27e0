#include "hone/base/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace hone {
namespace {

TEST(hash, every_byte_and_the_length_count) {
  std::set<uint64_t> seen;
  for (size_t size = 0; size <= 80; ++size) {
    std::string text(size, 'a');
    EXPECT_TRUE(seen.insert(hash_string(text)).second) << size;
    for (size_t i = 0; i < size; ++i) {
      text[i] = 'b';
      EXPECT_TRUE(seen.insert(hash_string(text)).second) << size << " " << i;
      text[i] = 'a';
    }
  }
  EXPECT_FALSE(seen.insert(hash_string("")).second);
  EXPECT_NE(hash_string("abc", 1), hash_string("abc", 2));
}

TEST(hash, alignment_does_not_matter) {
  const std::string text(100, 'x');
  std::string shifted(107, 'y');
  for (size_t shift = 0; shift < 7; ++shift) {
    shifted.replace(shift, 100, text);
    EXPECT_EQ(hash_bytes(shifted.data() + shift, 100), hash_string(text));
  }
}

// Keys in databases rest on these values: they may never change.
TEST(hash, values_are_fixed) {
  EXPECT_EQ(hash_hex(hash_string("")), "186c59c940373183");
  EXPECT_EQ(hash_hex(hash_string("hone")), "0bd8d601aaa724f2");
  EXPECT_EQ(hash_hex(hash_string("a text of more than thirty-two bytes in all")),
            "a251518d286973e1");
  EXPECT_EQ(hash_hex(hash_combine(1, 2)), "30883360cc68d7b1");
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
}

}  // namespace
}  // namespace hone
