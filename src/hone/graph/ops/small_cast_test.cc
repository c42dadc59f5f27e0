// Tests that generated conversions of small types agree with those of the host (small_types.h).
#include "hone/graph/ops/small_cast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/rng.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

Tensor cast(const Tensor& x, DType to, const AttributeList& more = {}) {
  TestModel model(25);
  AttributeList attributes = {{"to", static_cast<int64_t>(to)}};
  attributes.insert(attributes.end(), more.begin(), more.end());
  model.input("x", x.shape(), x.dtype()).node("Cast", {"x"}, {"y"}, attributes).output("y");
  return run_optimized(model.graph(), {x})[0];
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST(small_cast, floats_are_rounded_as_on_the_host) {
  Rng rng(7);
  for (const DType from : {DType::kF32, DType::kF64, DType::kF16}) {
    Tensor x(from, {300});
    for (int64_t i = 0; i < x.size(); ++i)
      x.set(i, std::ldexp(rng.normal(), static_cast<int>(rng.below(40)) - 24));
    x.set(0, std::nan("")), x.set(1, HUGE_VAL), x.set(2, -HUGE_VAL), x.set(3, -0.0);
    for (const DType to : {kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF4E2M1}) {
      const Tensor y = cast(x, to);
      ASSERT_EQ(y.dtype(), to);
      Tensor expected(to, x.shape());
      for (int64_t i = 0; i < x.size(); ++i) {
        expected.set(i, x.at(i));
        EXPECT_TRUE(same(y.at(i), expected.at(i))) << x.at(i) << ": " << y.at(i);
      }
    }
  }
}

TEST(small_cast, without_saturation_what_is_beyond_is_infinite_or_no_number) {
  Tensor x(DType::kF32, {2});
  x.set(0, -1e9), x.set(1, 448);
  const AttributeList open = {{"saturate", int64_t{0}}};
  EXPECT_EQ(cast(x, kF8E5M2, open).at(0), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(cast(x, kF8E4M3FN, open).at(0)));
  EXPECT_EQ(cast(x, kF8E4M3FN, open).at(1), 448);
  EXPECT_EQ(cast(x, kF8E4M3FN).at(0), -448);
}

TEST(small_cast, all_codes_become_their_values) {
  for (const DType from :
       {kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF4E2M1, kF8E8M0, kI4, kU4, kI2, kU2}) {
    const int64_t codes = elements_per_byte(from) == 1 ? 256 : 1 << (8 / elements_per_byte(from));
    Tensor x(from, {codes});
    for (int64_t i = 0; i < codes; ++i)
      x.as<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
    const Tensor y = cast(x, DType::kF32);
    for (int64_t i = 0; i < codes; ++i)
      EXPECT_TRUE(same(y.at(i), x.at(i))) << i << ": " << y.at(i) << ", expected " << x.at(i);
  }
}

TEST(small_cast, integers_wrap) {
  Tensor x(DType::kF32, {4});
  x.set(0, 9.7), x.set(1, -1.5), x.set(2, 300), x.set(3, -8);
  const Tensor y = cast(x, kI4), z = cast(x, kU2);
  const double signed_expected[] = {-7, -1, -4, -8}, expected[] = {1, 3, 0, 0};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(y.at(i), signed_expected[i]);
    EXPECT_EQ(z.at(i), expected[i]);
  }
}

// A conversion in between rounds, although the types around it would make the pair one conversion.
TEST(small_cast, pairs_of_conversions_stay) {
  TestModel model(25);
  Tensor x(DType::kF32, {2});
  x.set(0, 1e6), x.set(1, 2.6);
  const auto to = [](DType dtype) {
    return AttributeList{{"to", static_cast<int64_t>(dtype)}, {"saturate", int64_t{0}}};
  };
  model.input("x", {2}).node("Cast", {"x"}, {"a"}, to(DType::kF64));
  model.node("Cast", {"a"}, {"b"}, to(kF8E4M3FN)).node("Cast", {"b"}, {"c"}, to(DType::kI32));
  model.node("Cast", {"c"}, {"y"}, to(DType::kF32)).output("y").output("b");
  const std::vector<Tensor> found = run_optimized(model.graph(), {x});
  EXPECT_TRUE(std::isnan(found[1].at(0)));
  EXPECT_EQ(found[1].at(1), 2.5);
  EXPECT_EQ(found[0].at(1), 2);
}

}  // namespace
}  // namespace hone::graph
