#include "hone/base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace hone {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return invalid("found {}, expected an even number", n);
  return n / 2;
}

Result<int> quarter(int n) {
  HONE_ASSIGN_OR_RETURN(const int h, half(n));
  HONE_ASSIGN_OR_RETURN(const int q, half(h));
  return q;
}

Status check_quarter(int n) {
  HONE_RETURN_IF_ERROR(quarter(n).status());
  return ok_status();
}

TEST(status, errors_pass_through) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(10).status().message(), "found 5, expected an even number");
  EXPECT_EQ(quarter(7).status().code(), Code::kInvalid);
  EXPECT_TRUE(check_quarter(8).ok());
  EXPECT_EQ(check_quarter(6).message(), "found 3, expected an even number");
}

TEST(status, values_may_be_moved_only) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result.ok());
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 5);
}

TEST(status_death, value_of_an_error_is_a_bug) {
  EXPECT_DEATH((void)half(3).value(), "bug: value\\(\\) of an error");
}

}  // namespace
}  // namespace hone
