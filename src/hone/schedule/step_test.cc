#include "hone/schedule/step.h"

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/schedule/random_schedule_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using namespace compute::testing;

TEST(step, every_kind_prints_and_parses) {
  const Steps steps = {Split{"conv2d", "oc", {2, 16}, Tail::kPad},
                       Fuse{"relu", {"n", "oh.0"}},
                       Reorder{"relu", {"oh", "n"}},
                       ComputeAt{"conv2d", "relu", "ow.0"},
                       StoreAt{"conv2d", "relu", "n"},
                       Fold{"conv2d", "oh", 3},
                       Inline{"bias"},
                       CacheRead{"weight", "conv2d"},
                       Im2col{"conv2d", "data"},
                       CacheWrite{"conv2d"},
                       SetScope{"conv2d", ir::Scope::kRegister},
                       Layout{"weight.cache", {"oc/32", "ic", "oc/16%2", "oc%16"}},
                       RFactor{"matmul", "k", 8},
                       OnlineSoftmax{"sums", 128},
                       Winograd{"conv2d", 4},
                       Strassen{"matmul", "m", 16},
                       Narrow{"weight.cache", DType::kBF16},
                       Sink{"cum_sum", "i1.1"},
                       Vectorize{"relu", "oc.1"},
                       Unroll{"relu", "ow.1"},
                       Parallel{"relu", "n@oh"},
                       Prefetch{"conv2d", "weight.cache", "ic", 4},
                       Bind{"relu", "oc.0", ThreadLevel::kWarp},
                       Pipeline{"data.cache", 3, Transport::kRegisters},
                       MatrixProduct{"conv2d", {"oh", "ow"}, {"oc"}, 32},
                       Tensorize{"matmul", "rows.2", "columns.2", "terms.1", Rounding::kTf32},
                       Lift{"gather", {"i1", "i2"}, 4},
                       SplitUpdates{"scatter_nd"},
                       BlockBody{"top_k", 256}};
  EXPECT_EQ(steps.size(), std::variant_size_v<Step>);
  const Result<Steps> parsed = parse_steps(to_string(steps));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, steps);
  EXPECT_EQ(hash(*parsed), hash(steps));
}

TEST(step, parts_of_a_sum_are_blocks_unless_strided) {
  EXPECT_EQ(to_string(RFactor{"matmul", "k", 8}), "rfactor(matmul, k, 8)");
  const Steps strided = {RFactor{"matmul", "k", 8, Parts::kStrided}};
  EXPECT_EQ(to_string(strided), "rfactor(matmul, k, 8, strided)\n");
  const Result<Steps> parsed = parse_steps(to_string(strided));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, strided);
}

TEST(step, parse_errors_name_the_line_and_what_was_expected) {
  const std::pair<const char*, const char*> cases[] = {
      {"inline(bias)\nsplat(a)", "line 2: unknown step 'splat'"},
      {"split(a, b)", "line 1: expected another argument"},
      {"split(a, b, [x])", "expected an integer, found 'x'"},
      {"split(a, b, 4)", "expected a list in brackets, found '4'"},
      {"split(a, b, [4], half)", "expected mask, peel, pad, test or whole, found 'half'"},
      {"rfactor(a, k, 4, blocks)", "expected strided, found 'blocks'"},
      {"bind(a, b, block)", "expected thread, warp or lane, found 'block'"},
      {"pipeline(a, 2, wires)", "expected async or registers, found 'wires'"},
      {"scope(a, shelf)", "expected a scope, found 'shelf'"},
      {"inline(a, b)", "expected no more arguments, found 'b'"},
      {"inline a", "expected name(arguments)"},
  };
  for (const auto& [text, message] : cases) {
    const Result<Steps> parsed = parse_steps(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.status().message().find(message), std::string::npos)
        << parsed.status().message();
  }
}

TEST(legality, says_why_a_step_is_refused) {
  const compute::Dag dag = conv2d({});
  const std::pair<const char*, const char*> cases[] = {
      {"split(nothing, oc, [4])", "no stage nothing"},
      {"split(conv2d, xx, [4])", "conv2d has no loop xx"},
      {"split(conv2d, oc, [0])", "length 0 is out of range"},
      {"vectorize(conv2d, ic)\nsplit(conv2d, ic, [4])", "loop ic is annotated"},
      {"fuse(conv2d, [n, ow])", "loop ow does not follow n"},
      {"fuse(conv2d, [oc, kh])", "mixes spatial and reduce loops"},
      {"inline(conv2d)", "conv2d is a reduction"},
      {"inline(relu)", "relu writes an output of the task"},
      {"compute_at(relu, bias, n)", "relu writes an output of the task"},
      {"compute_at(conv2d, relu, n)", "also read by bias, which lies outside of relu"},
      {"compute_at(bias, relu, n)\ncompute_at(relu, bias, n)", "bias is computed inside relu"},
      {"compute_at(bias, relu, oh)\nreorder(relu, [ow, oh])", "relu holds the computation of bias"},
      {"compute_at(bias, relu, oh)\nsplit(relu, oh, [2])", "loop oh holds other stages"},
      {"scope(conv2d, register)", "conv2d is at root"},
      {"parallel(conv2d, oh)", "loop oh is not the outermost"},
      {"parallel(conv2d, n)\nparallel(conv2d, n)", "loop n is annotated"},
      {"layout(conv2d, [n, oh, ow])", "dimension 3 of conv2d is missing"},
      {"layout(conv2d, [n, oh, ow, oc/4, oc%3])", "do not make a whole"},
      {"layout(conv2d, [n, oh, ow, oc+x])", "expected a number of elements after '+'"},
      {"layout(conv2d, [n, oh, ow, oc+1025])", "after '+', at most 1024, found 'oc+1025'"},
      {"fold(conv2d, oh, 3)", "nothing to fold"},
      {"store_at(conv2d, relu, n)", "conv2d is not computed inside relu"},
      {"rfactor(bias, oc, 2)", "bias has no reduce axis oc"},
      {"prefetch(conv2d, bias, n, 2)", "conv2d does not read bias"},
      {"cache_read(bias, conv2d)", "conv2d does not read bias"},
  };
  for (const auto& [text, message] : cases) {
    const Result<Steps> steps = parse_steps(text);
    ASSERT_TRUE(steps.ok()) << text << ": " << steps.status().message();
    const Result<State> state = replay(dag, *steps);
    ASSERT_FALSE(state.ok()) << text;
    EXPECT_NE(state.status().message().find(message), std::string::npos)
        << text << ": " << state.status().message();
  }
}

// The first of equal elements is kept, by comparing each with what came before it.
TEST(legality, a_stage_that_keeps_places_sees_its_elements_in_order) {
  const compute::Dag dag = compute::testing::arg_max(3, 8, 19);
  const auto apply = [&](std::string_view text) {
    return replay(dag, *parse_steps(text)).status();
  };
  EXPECT_TRUE(apply("split(extreme, r, [2])\nreorder(extreme, [r.0, column, r.1, row])").ok());
  const Status refused = apply("split(extreme, r, [2])\nreorder(extreme, [r.1, r.0])");
  EXPECT_NE(refused.message().find("keeps places"), std::string::npos) << refused.message();
}

TEST(legality, bounds_refuse_what_steps_alone_cannot_see) {
  const std::pair<const char*, const char*> cases[] = {
      {"compute_at(conv2d, bias, n)\nscope(conv2d, register)",
       "conv2d is in registers, but its loop oh is not unrolled"},
      {"compute_at(conv2d, bias, n)\nscope(conv2d, register)\nunroll(conv2d, oh)\n"
       "unroll(conv2d, ow)\nunroll(conv2d, oc)",
       "conv2d is in registers, but bias reads it in loop oh, which is not unrolled"},
      {"split(relu, oc, [4])\nreorder(relu, [oc.0, n])\nparallel(relu, oc.0)\n"
       "reorder(relu, [n, oc.0])",
       "parallel loop oc.0 is not the outermost"},
      {"split(relu, oc, [4])\nreorder(relu, [oc.1, oc.0])\nvectorize(relu, oc.1)",
       "is not the innermost"},
  };
  for (const auto& [text, message] : cases) {
    const Result<State> state = replay(conv2d({}), *parse_steps(text));
    ASSERT_TRUE(state.ok()) << state.status().message();
    const Result<Bounds> bounds = infer_bounds(*state);
    ASSERT_FALSE(bounds.ok()) << text;
    EXPECT_NE(bounds.status().message().find(message), std::string::npos)
        << bounds.status().message();
  }
}

TEST(replay, the_same_steps_fit_another_extent) {
  const std::string_view steps = R"(
inline(bias)
split(relu, ow, [4], peel)
split(relu, oc, [8], mask)
reorder(relu, [n, oh, ow.0, oc.0, ow.1, oc.1])
parallel(relu, n)
compute_at(conv2d, relu, oc.0)
)";
  for (const int64_t w : {1, 3, 4, 9}) {
    for (const int64_t oc : {1, 8, 13})
      expect_same(conv2d({.h = 3, .w = w + 2, .ic = 2, .oc = oc}), steps);
  }
}

TEST(random_steps, are_many_and_legal) {
  int64_t kept = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    const compute::Dag dag = random_dag(rng);
    const Steps steps = random_steps(dag, rng, 30);
    kept += static_cast<int64_t>(steps.size());
    EXPECT_TRUE(replay(dag, steps).ok());
  }
  EXPECT_GT(kept, 50 * 5);
}

}  // namespace
}  // namespace hone::schedule
