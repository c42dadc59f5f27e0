// Attention in tiles of keys: the step online_softmax.
#include "hone/schedule/online_softmax.h"

#include <array>
#include <cmath>

#include "hone/compute/half_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using compute::testing::attention;
using compute::testing::gemm;

constexpr double kRounding = 1e-5;

TEST(online_softmax, gives_what_softmax_over_all_keys_gives) {
  for (const auto& [heads, m, n, depth, tile] :
       {std::array{2, 7, 12, 5, 4}, std::array{1, 1, 6, 1, 2}, std::array{3, 5, 9, 4, 9},
        std::array{1, 4, 8, 3, 1}, std::array{2, 3, 13, 4, 5}, std::array{1, 2, 3, 7, 2},
        std::array{1, 3, 31, 2, 7}, std::array{1, 2, 97, 3, 33}, std::array{1, 2, 7, 1, 6}}) {
    SCOPED_TRACE(fmt::format("{} keys in tiles of {}", n, tile));
    expect_same(attention(heads, m, n, depth), fmt::format("online_softmax(sums, {})\n", tile),
                kRounding);
  }
}

constexpr std::string_view kBlocks = R"(
online_softmax(sums, 4)
split(attention, m, [3], peel)
reorder(attention, [h, m.0, m.1, d])
fuse(attention, [h, m.0])
parallel(attention, h@m.0)
compute_at(sums, attention, h@m.0)
reorder(sums, [h, t, m, d])
vectorize(sums, d)
compute_at(sums.part, sums, t)
compute_at(total, sums, t)
compute_at(weights, sums, t)
compute_at(most, sums, t)
compute_at(masked, sums, t)
compute_at(scores, sums, t)
)";

TEST(online_softmax, keeps_the_scores_of_a_tile_alone) {
  for (const int64_t keys : {12, 13, 14}) {
    const compute::Dag dag = attention(2, 7, keys, 5);
    expect_same(dag, kBlocks, kRounding);
    int64_t seen = 0;
    const ir::TouchReport report = touches_of(dag, kBlocks);
    for (const ir::Touch& touch : report.by_buffer) {
      if (touch.buffer->name != "scores" && touch.buffer->name != "weights.t") continue;
      ++seen;
      EXPECT_EQ(touch.buffer->num_elements(), 3 * 4) << touch.buffer->name;
    }
    EXPECT_GE(seen, 2);
  }
}

// The last tile has code of its own, so that whole ones have no tests.
TEST(online_softmax, tests_no_keys_in_whole_tiles) {
  const Result<ir::Program> program = lower(attention(2, 6, 14, 5), *parse_steps(kBlocks));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = ir::print(*program);
  EXPECT_NE(text.find("for t in 0..3"), std::string::npos) << text;
  EXPECT_GT(text.find("if "), text.rfind("t * 4")) << text;  // what whole tiles read
}

TEST(online_softmax, whole_tiles_give_what_softmax_over_all_keys_gives) {
  for (const auto& [heads, m, n, depth, tile] :
       {std::array{2, 7, 12, 5, 4}, std::array{1, 1, 6, 1, 2}, std::array{3, 5, 9, 4, 16},
        std::array{2, 3, 13, 4, 5}, std::array{1, 3, 31, 2, 8}, std::array{1, 2, 97, 3, 32},
        std::array{1, 2, 1, 2, 16}}) {
    SCOPED_TRACE(fmt::format("{} keys in tiles of {}", n, tile));
    const std::string steps = fmt::format("online_softmax(sums, {}, whole)\n", tile);
    expect_same(attention(heads, m, n, depth), steps, kRounding);
    expect_same(attention(heads, m, n, depth, n / 2), steps, kRounding);
  }
}

// Each part of the tiles has its running maximum, total and sums, which are joined.
TEST(online_softmax, parts_of_the_tiles_are_joined) {
  for (const char* whole : {"", ", whole"}) {
    for (const int64_t keys : {12, 13, 29}) {
      for (const int64_t part : {1, 2, 3}) {
        const std::string steps = fmt::format(
            "online_softmax(sums, 4{})\nrfactor(sums, t, {})\ncache_write(sums.rf)\n", whole, part);
        expect_same(attention(2, 3, keys, 5), steps, kRounding);
      }
    }
  }
}

// The weights of values in 16 bits are rounded to their type, and there is no test in a product.
TEST(online_softmax, whole_tiles_are_products_of_matrices) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const std::string steps =
        "online_softmax(sums, 16, whole)\nmatrix_product(scores, [m], [n], 16)\n"
        "matrix_product(sums.part, [m], [d], 16)\n";
    const compute::Dag dag = compute::testing::half_attention(2, 7, 29, 5, type);
    expect_same(dag, steps, type == DType::kF16 ? 2e-3 : 1e-2);
    const Result<State> state = replay(dag, *parse_steps(steps));
    ASSERT_TRUE(state.ok()) << state.status().message();
    for (const char* factor : {"weights.t.left", "value.right", "key.right", "query.left"}) {
      const int stage = state->find_stage(factor);
      ASSERT_GE(stage, 0) << factor;
      EXPECT_EQ(state->stages[static_cast<size_t>(stage)].buffer()->dtype, type) << factor;
    }
  }
}

// Weights are no integers, and zeros that stand for what is behind the last key are.
TEST(online_softmax, whole_tiles_may_have_keys_and_values_of_integers) {
  for (const DType type : {DType::kI8, DType::kI16}) {
    compute::Dag dag = attention(2, 3, 13, 4);
    for (ir::Param& param : dag.params) {
      const ir::BufferPtr wide = param.buffer;
      if (wide->name != "key" && wide->name != "value") continue;
      param.buffer = ir::make_buffer(wide->name, type, wide->shape);
      for (compute::Stage& stage : dag.stages) {
        ir::Expr& value = stage.outputs[0].value;
        value = ir::rewrite(value, [&](const ir::Expr& e) -> ir::Expr {
          if (e->op != ir::Op::kLoad || e->buffer != wide) return nullptr;
          return ir::cast(DType::kF32, ir::load(param.buffer, e->args));
        });
      }
    }
    expect_same(dag, "online_softmax(sums, 4, whole)\n", kRounding);
  }
}

// Scores that are less the first key's are read out of their tile.
TEST(online_softmax, whole_tiles_read_other_keys_from_all_scores) {
  for (const bool is_first : {true, false}) {
    compute::Dag dag = attention(2, 3, 13, 4);
    compute::Stage& masked = dag.stages[1];
    ASSERT_EQ(masked.name, "masked");
    std::vector<ir::Expr> at = compute::variables(masked.axes);
    if (is_first) at[2] = ir::constant(0);
    ir::Expr& value = masked.outputs[0].value;
    value = value - ir::load(dag.stages[0].outputs[0].buffer, at) * ir::constant_float(0.125);
    expect_same(dag, "online_softmax(sums, 4, whole)\n", kRounding);
  }
}

TEST(online_softmax, whole_tiles_have_scores_of_their_own) {
  compute::Dag dag = attention(1, 2, 8, 2);
  for (ir::Param& param : dag.params) {  // the scores are a result, too
    if (param.buffer->name == "mask")
      dag.params.push_back({dag.stages[1].outputs[0].buffer, ir::Role::kOutput});
  }
  EXPECT_FALSE(lower(dag, *parse_steps("online_softmax(sums, 4, whole)\n")).ok());
}

void expect_special_scores_as_over_all(int64_t keys) {
  const compute::Dag dag = attention(1, 3, keys, 2);
  const ir::Program naive = compute::naive_program(dag);
  const Result<ir::Program> tiled = lower(dag, *parse_steps(kBlocks));
  ASSERT_TRUE(tiled.ok()) << tiled.status().message();
  const auto results = [&](const ir::Program& program, const std::vector<double>& mask) {
    std::vector<Tensor> args = integer_arguments(program, 5);
    for (size_t i = 0; i < args.size(); ++i) {
      if (program.params[i].buffer->name != "mask") continue;
      for (int64_t n = 0; n < keys; ++n) args[i].set(n, mask[static_cast<size_t>(n)]);
    }
    EXPECT_TRUE(ir::run(program, args, {}).ok());
    const auto out = std::find_if(program.params.begin(), program.params.end(),
                                  [](const auto& p) { return p.role == ir::Role::kOutput; });
    return args[static_cast<size_t>(out - program.params.begin())];
  };
  const auto mask = [&](int64_t from, int64_t to, double value) {
    std::vector<double> all(static_cast<size_t>(keys), 1);
    for (int64_t n = from; n < to; ++n) all[static_cast<size_t>(n)] = value;
    return all;
  };
  const double infinity = HUGE_VAL;
  struct Case {
    std::vector<double> mask;
    bool is_number;
  };
  const Case cases[] = {{mask(0, 4, -infinity), true},     {mask(4, keys, -infinity), true},
                        {mask(1, 9, -infinity), true},     {mask(0, keys, -infinity), false},
                        {mask(0, keys, -3e38), true},      {mask(2, 10, 3e38), true},
                        {mask(5, 6, infinity), false},     {mask(keys - 1, keys, infinity), false},
                        {mask(0, 1, std::nan("")), false}, {mask(7, 8, std::nan("")), false}};
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("mask {}", fmt::join(c.mask, " ")));
    const Tensor want = results(naive, c.mask), got = results(*tiled, c.mask);
    ASSERT_EQ(want.size(), got.size());
    for (int64_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(!std::isnan(want.at(i)), c.is_number);
      ASSERT_EQ(std::isnan(want.at(i)), std::isnan(got.at(i))) << i;
      if (!c.is_number) continue;
      EXPECT_NEAR(want.at(i), got.at(i), kRounding * 4) << i;
    }
  }
}

// Whatever is hidden, infinite or no number; all tiles whole or not.
TEST(online_softmax, of_special_scores_is_as_over_all_keys) {
  for (const int64_t keys : {12, 13, 15}) {
    SCOPED_TRACE(keys);
    expect_special_scores_as_over_all(keys);
  }
}

TEST(online_softmax, says_why_it_is_refused) {
  const compute::Dag dag = attention(2, 6, 12, 4);
  const auto has = [](const std::string& message, std::string_view part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(refusal(dag, "online_softmax(nothing, 4)"), "no stage nothing");
  has(refusal(dag, "online_softmax(sums, 13)"), "tiles of 13 of 12 keys");
  has(refusal(dag, "online_softmax(sums, 0)"), "tiles of 0 of 12 keys");
  has(refusal(dag, "online_softmax(total, 4)"), "total is no sum weighted by a softmax");
  has(refusal(dag, "online_softmax(attention, 4)"), "attention is no sum weighted");
  has(refusal(dag, "split(sums, m, [2])\nonline_softmax(sums, 4)"), "sums is scheduled already");
  has(refusal(dag, "split(most, m, [2])\nonline_softmax(sums, 4)"), "sums is no sum weighted");
  has(refusal(dag, "online_softmax(sums, 4)\nonline_softmax(sums, 2)"), "sums is no sum weighted");
  has(refusal(gemm(3, 4, 5), "online_softmax(matmul, 4)"), "matmul is no sum weighted");
}

// Tiles that no query of a block sees are left out.
TEST(online_softmax, ends_with_the_keys_that_are_seen) {
  for (const int64_t offset : {0, 3, 20}) {
    SCOPED_TRACE(offset);
    const compute::Dag dag = attention(2, 12, 16, 5, offset);
    expect_same(dag, "online_softmax(sums, 4)\n", kRounding);
    expect_same(dag, kBlocks, kRounding);
    for (const int64_t keys : {13, 17, 19}) {
      const compute::Dag rest = attention(2, 13, keys, 5, offset);
      expect_same(rest, "online_softmax(sums, 5)\n", kRounding);
      expect_same(rest, kBlocks, kRounding);
    }
    const ir::TouchReport report = touches_of(dag, kBlocks);
    ASSERT_FALSE(report.by_buffer.empty());
    for (const ir::Touch& touch : report.by_buffer) {
      if (touch.buffer->name != "value") continue;
      // Blocks of 3 queries see 1 to 3 of 4 tiles with the first offset, and all with the last.
      EXPECT_EQ(touch.distinct == touch.buffer->num_elements(), offset > 0) << touch.distinct;
    }
  }
}

// Stages that are nearly a softmax.
TEST(online_softmax, is_of_nothing_else) {
  const auto stage = [](compute::Dag& dag, std::string_view name) -> compute::Stage& {
    return *std::find_if(dag.stages.begin(), dag.stages.end(),
                         [&](const compute::Stage& s) { return s.name == name; });
  };
  using Change = std::function<void(compute::Dag&)>;
  const auto value = [&](std::string_view name, const std::function<ir::Expr(ir::Expr)>& change) {
    return Change([=](compute::Dag& dag) {
      ir::Expr& e = stage(dag, name).outputs[0].value;
      e = change(e);
    });
  };
  const auto term = [&](std::string_view name, const std::function<ir::Expr(ir::Expr)>& change) {
    return value(name, [=](const ir::Expr& e) {
      return ir::make(e->op, {e->args[0], change(e->args[1])});
    });
  };
  const auto twice = [](const ir::Expr& e) { return e + e; };
  const Change changes[] = {
      value("weights", [](const ir::Expr& e) { return ir::max(e, ir::constant_float(0.5)); }),
      value("weights", [](const ir::Expr& e) { return e->args[0]; }),
      term("total", twice),
      term("most", twice),
      term("sums", twice),
      [&](compute::Dag& dag) {
        dag.params.push_back({stage(dag, "most").outputs[0].buffer, ir::Role::kOutput});
      }};
  for (const Change& change : changes) {
    compute::Dag dag = attention(2, 6, 12, 4);
    change(dag);
    EXPECT_NE(refusal(dag, "online_softmax(sums, 4)").find("sums is no sum weighted"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace hone::schedule
