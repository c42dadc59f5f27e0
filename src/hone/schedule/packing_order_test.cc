#include "hone/schedule/packing_order.h"

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using compute::testing::conv2d;
using compute::testing::ConvShape;
using compute::testing::gemm;

constexpr std::string_view kPacked = R"(
cache_read(weight, conv2d)
layout(weight.cache, [oc/8, kh, kw, ic/2, ic%2, oc%8])
)";

std::string prepare_of(const compute::Dag& dag, std::string_view steps) {
  const Result<Steps> parsed = parse_steps(steps);
  EXPECT_TRUE(parsed.ok());
  const Result<ir::Program> program = lower(dag, *parsed);
  EXPECT_TRUE(program.ok()) << program.status().message();
  std::string text = ir::print(*program);
  const size_t from = text.find("phase prepare");
  return text.substr(from, text.find("phase {") - from);
}

TEST(packing_order, the_innermost_digit_of_the_layout_is_the_innermost_loop) {
  const std::string text = prepare_of(conv2d({.ic = 6, .oc = 24}), kPacked);
  const size_t parallel = text.find("parallel oc.0 in 0..3"), ic = text.find("for ic in 0..6"),
               oc = text.find("for oc.1 in 0..8");
  EXPECT_NE(parallel, std::string::npos) << text;
  EXPECT_LT(parallel, ic) << text;
  EXPECT_LT(ic, oc) << text;
  EXPECT_LT(text.find("for kw"), oc) << text;
}

TEST(packing_order, results_stay_whether_digits_fill_the_axis_or_not) {
  for (const int64_t channels : {1, 3, 7, 8, 13, 16, 24}) {
    expect_same(conv2d({.ic = 5, .oc = channels}), kPacked);
  }
}

TEST(packing_order, a_step_of_the_schedule_keeps_its_order) {
  const std::string text = prepare_of(conv2d({.ic = 6, .oc = 24}),
                                      std::string(kPacked) + "parallel(weight.cache, oc)\n");
  EXPECT_NE(text.find("parallel oc in 0..24"), std::string::npos) << text;
  EXPECT_EQ(text.find("oc.1"), std::string::npos) << text;
}

}  // namespace
}  // namespace hone::schedule
