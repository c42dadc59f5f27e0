#include "hone/base/small_vector.h"

#include <gtest/gtest.h>

#include <vector>

namespace hone {
namespace {

using Numbers = SmallVector<int, 3>;

Numbers first(int count) {
  Numbers numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

TEST(small_vector, holds_what_was_added_inside_and_beyond) {
  for (const int count : {0, 1, 3, 4, 20}) {
    const Numbers numbers = first(count);
    ASSERT_EQ(numbers.size(), static_cast<size_t>(count));
    EXPECT_EQ(numbers.empty(), count == 0);
    for (int i = 0; i < count; ++i) EXPECT_EQ(numbers[static_cast<size_t>(i)], i);
    if (count > 0) {
      EXPECT_EQ(numbers.back(), count - 1);
    }
  }
}

TEST(small_vector, copies_are_their_own) {
  for (const int count : {2, 10}) {
    const Numbers from = first(count);
    Numbers copy = from;
    copy[0] = 7;
    EXPECT_EQ(from[0], 0);
    copy = from;
    EXPECT_EQ(copy, from);
    Numbers& same = copy;
    copy = same;
    EXPECT_EQ(copy, from);
    copy.push_back(1);
    EXPECT_NE(copy, from);
  }
}

TEST(small_vector, moves_from_and_to_the_heap) {
  for (const int from : {2, 10}) {
    for (const int to : {1, 8}) {
      Numbers source = first(from), target = first(to);
      target = std::move(source);
      EXPECT_EQ(target, first(from));
      source = first(4);
      EXPECT_EQ(source, first(4)) << "it can be used again";
      const Numbers made = std::move(target);
      EXPECT_EQ(made, first(from));
    }
  }
}

TEST(small_vector, changes_its_size) {
  Numbers numbers = {5, 6};
  numbers.resize(5, 9);
  EXPECT_EQ(numbers, Numbers({5, 6, 9, 9, 9}));
  numbers.resize(1);
  EXPECT_EQ(numbers, Numbers({5}));
  numbers.pop_back();
  EXPECT_TRUE(numbers.empty());
  numbers.assign(std::vector<int>{1, 2, 3, 4});
  EXPECT_EQ(numbers, Numbers({1, 2, 3, 4}));
  numbers.clear();
  EXPECT_EQ(numbers, Numbers());
}

}  // namespace
}  // namespace hone
