#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "hone/analysis/cpu_measure.h"
#include "hone/analysis/features.h"
#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"

namespace hone::analysis {
namespace {

using namespace compute::testing;

target::Cpu small_target() {
  target::Cpu target;
  target.vector_bytes = 16;
  target.vector_registers = 16;
  target.caches = {{1, 2048, 64, 1, 64}, {2, 16384, 64, 1, 32}};
  return target;
}

// Expects the nests to count what the interpreter touches, where tiles divide the shapes.
void expect_counts_agree(const space::Candidate& candidate, bool passes = true) {
  const Result<ir::Program> program = passes
                                          ? schedule::lower(candidate.state, candidate.bounds)
                                          : schedule::lower_raw(candidate.state, candidate.bounds);
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::vector<Tensor> args = schedule::integer_arguments(*program, 1);
  ir::TouchReport report;
  ASSERT_TRUE(ir::run(*program, args, {}, &report).ok());
  for (const Nest& nest : build_nests(candidate.state, candidate.bounds)) {
    for (const NestAccess& access : nest.accesses) {
      const ir::Param* param =
          candidate.state.find_param(candidate.state.stages[nest.stage].buffer());
      if (access.write) {
        if (!param || param->role != ir::Role::kOutput) continue;
        const ir::Touch* touch = report.find(param->buffer, true);
        ASSERT_NE(touch, nullptr);
        EXPECT_EQ(touch->count, static_cast<int64_t>(nest.iterations() * nest.useful + 0.5));
        EXPECT_EQ(touch->distinct, static_cast<int64_t>(access.footprint(nest.loops, 0)));
        continue;
      }
      for (const ir::Touch& touch : report.by_buffer) {
        if (touch.is_store || touch.buffer.get() != access.buffer) continue;
        EXPECT_EQ(touch.count,
                  static_cast<int64_t>(nest.iterations() * nest.useful * access.reads + 0.5))
            << access.buffer->name;
        EXPECT_EQ(touch.distinct, static_cast<int64_t>(access.footprint(nest.loops, 0)))
            << access.buffer->name;
      }
    }
  }
}

TEST(nest, counts_what_the_interpreter_touches) {
  const std::vector<compute::Dag> dags = {
      gemm(8, 16, 12), conv2d({.h = 8, .w = 8, .ic = 4, .oc = 16, .border = 0}),
      conv2d({.h = 8, .w = 12, .ic = 4, .oc = 8, .kernel = 1, .pad = 0, .residual = true}),
      depthwise(8, 8, 16, 1), global_pool(4, 4, 16)};
  for (const compute::Dag& dag : dags) {
    const Result<space::Space> space = space::Space::create(dag, {.part = small_target()});
    ASSERT_TRUE(space.ok());
    Rng rng(2);
    int exact = 0;
    for (int i = 0; i < 400 && exact < 12; ++i) {
      const space::Point point = space->sample(rng);
      const Result<space::Candidate> candidate = space->instantiate(point);
      ASSERT_TRUE(candidate.ok());
      bool divides = true;
      for (const schedule::StageBounds& stage : candidate->bounds.stages) {
        for (const schedule::AxisBounds& axis : stage.axes)
          divides = divides && axis.reach == axis.extent && !axis.guard_high;
      }
      if (!divides) continue;
      ++exact;
      SCOPED_TRACE(schedule::to_string(space->steps(point)));
      expect_counts_agree(*candidate);
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GE(exact, 3) << compute::describe(dag);
  }
}

// A fused loop that is split counts through some digits, or through parts of them.
TEST(nest, counts_what_parts_of_fused_loops_touch) {
  for (const char* split : {"[4]", "[8]", "[16]", "[32]", "[8, 2]", "[16, 4]"}) {
    for (const char* order : {"", "reorder(matmul, [m@n.1, m@n.0])\n"}) {
      SCOPED_TRACE(std::string(split) + order);
      const std::string steps = fmt::format(
          "cache_write(matmul)\nfuse(matmul, [m, n])\nsplit(matmul, m@n, {})\n{}"
          "compute_at(matmul.acc, matmul, m@n.1)\n",
          split, order);
      const Result<space::Candidate> candidate =
          space::make_candidate(gemm(8, 16, 12), *schedule::parse_steps(steps));
      ASSERT_TRUE(candidate.ok()) << candidate.status().message();
      expect_counts_agree(*candidate, false);
    }
  }
}

// Two groups of four channels in one vector of eight take half of the multiply-adds; each loads its
// data from one vector, and the weights of both are one.
TEST(cpu_measure, groups_that_share_a_vector_count_as_one) {
  target::Cpu target = small_target();
  target.vector_bytes = 32;
  const compute::Dag dag = grouped_conv2d(8, 8, 4, 8, 4, 1);
  const auto measured = [&](const std::string& lanes, const std::string& sum) {
    const std::string steps = "split(relu, ow, [4], peel)\n" + lanes +
                              "scope(grouped_conv2d, register)\n" + sum +
                              "unroll(grouped_conv2d, n)\nunroll(grouped_conv2d, oh)\n" +
                              "unroll(grouped_conv2d, ow)\nunroll(relu, ow.1)\n";
    Result<space::Candidate> candidate = space::make_candidate(dag, *schedule::parse_steps(steps));
    HONE_ASSERT(candidate.ok(), candidate.status().message().c_str());
    expect_counts_agree(*candidate);
    return *std::move(candidate);
  };
  const space::Candidate apart = measured(
      "reorder(relu, [n, oh, g, ow.0, ow.1, oc])\nvectorize(relu, oc)\n"
      "compute_at(grouped_conv2d, relu, ow.0)\n",
      "reorder(grouped_conv2d, [kh, kw, ic, n, oh, g, ow, oc])\n"
      "vectorize(grouped_conv2d, oc)\nunroll(grouped_conv2d, g)\n");
  const space::Candidate joined = measured(
      "split(relu, g, [2], mask)\nreorder(relu, [n, oh, g.0, ow.0, ow.1, g.1, oc])\n"
      "fuse(relu, [g.1, oc])\nvectorize(relu, g.1@oc)\n"
      "compute_at(grouped_conv2d, relu, ow.0)\n",
      "reorder(grouped_conv2d, [kh, kw, ic, n, oh, ow, g, oc])\n"
      "fuse(grouped_conv2d, [g, oc])\nvectorize(grouped_conv2d, g@oc)\n");
  const auto sums = [&](const space::Candidate& candidate) {
    return measure_cpu(candidate.state, candidate.bounds, target, 1).roots.at(0).stages.at(0);
  };
  EXPECT_EQ(sums(joined).accumulators, sums(apart).accumulators);
  EXPECT_LE(sums(joined).bounds.loads, sums(apart).bounds.loads);
  EXPECT_LT(sums(joined).compute_cycles, 0.75 * sums(apart).compute_cycles);
  const auto lanes = [&](const space::Candidate& candidate) {
    return register_tile(build_nests(candidate.state, candidate.bounds)[0], target).lanes_used;
  };
  EXPECT_EQ(lanes(joined), 1);
  EXPECT_EQ(lanes(apart), 0.5);
}

TEST(features, rows_are_finite_and_tell_schedules_apart) {
  const Result<space::Space> space = space::Space::create(
      conv2d({.h = 14, .w = 14, .ic = 16, .oc = 32}), {.part = small_target()});
  ASSERT_TRUE(space.ok());
  Rng rng(4);
  std::set<std::vector<float>> rows;
  std::set<uint64_t> points;
  for (int i = 0; i < 60; ++i) {
    const space::Point point = space->sample(rng);
    points.insert(space::hash(point));
    const Result<space::Candidate> candidate = space->instantiate(point);
    ASSERT_TRUE(candidate.ok());
    std::vector<float> all;
    for (const Nest& nest : build_nests(candidate->state, candidate->bounds)) {
      for (const float x : features_of(nest, small_target(), 2)) {
        ASSERT_TRUE(std::isfinite(x));
        all.push_back(x);
      }
    }
    rows.insert(all);
  }
  EXPECT_GT(rows.size(), points.size() * 3 / 4);
}

TEST(features, names_are_distinct_and_cover_the_row) {
  const std::vector<std::string>& names = feature_names();
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumFeatures));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(nest, rows_that_are_powers_of_two_apart_share_few_sets) {
  const std::vector<NestLoop> loops = {{0, 0, 8, {}, false}, {0, 1, 16, {}, false}};
  const auto access = [](int64_t row) {
    NestAccess a;
    a.shape = {64, row};
    a.move = Moves(2, 2);
    a.move[0][0] = a.move[1][1] = 1;
    a.spread = {0, 0};
    return a;
  };
  const auto bytes = [&](int64_t row) { return access(row).occupied_bytes(loops, 0, 64, 64); };
  const double one_way = 64 * 64;
  EXPECT_EQ(bytes(16), one_way) << "a run of 8 lines";
  EXPECT_EQ(bytes(1024), 8 * one_way) << "8 lines in one set";
  EXPECT_EQ(bytes(512), 4 * one_way) << "8 lines in two sets";
  EXPECT_EQ(bytes(1040), one_way) << "8 lines in as many sets";
}

struct Scheduled {
  schedule::State state;
  schedule::Bounds bounds;
};
Scheduled scheduled(const compute::Dag& dag, std::string_view text) {
  const Result<schedule::Steps> steps = schedule::parse_steps(text);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  const Result<schedule::State> state = schedule::replay(dag, *steps);
  EXPECT_TRUE(state.ok()) << state.status().message();
  const Result<schedule::Bounds> bounds = schedule::infer_bounds(*state);
  EXPECT_TRUE(bounds.ok()) << bounds.status().message();
  return {*state, *bounds};
}
StageMeasure measured(const compute::Dag& dag, std::string_view text) {
  const Scheduled s = scheduled(dag, text);
  return measure_cpu(s.state, s.bounds, small_target(), 1).roots.at(0).stages.at(0);
}

TEST(nest, tails_of_a_peeled_sum_are_not_counted_twice) {
  const Scheduled s = scheduled(gemm(4, 4, 10), "split(matmul, k, [4], peel)");
  const Nest nest = build_nests(s.state, s.bounds).at(0);
  EXPECT_DOUBLE_EQ(nest.iterations() * nest.useful, 4 * 4 * 10);
}

// The last tile of keys runs only the keys that are left, in all that is computed in it.
TEST(nest, a_shorter_tile_of_keys_is_not_counted_as_a_whole_one) {
  const auto points = [](int64_t keys) {
    const Scheduled s = scheduled(attention(2, 8, keys, 5), R"(
online_softmax(sums, 4)
reorder(sums, [h, t, m, d])
compute_at(sums.part, sums, t)
compute_at(total, sums, t)
compute_at(weights, sums, t)
compute_at(most, sums, t)
compute_at(masked, sums, t)
compute_at(scores, masked, n)
)");
    std::map<std::string, double> points;
    for (const Nest& nest : build_nests(s.state, s.bounds))
      points[s.state.stages[static_cast<size_t>(nest.stage)].name()] =
          nest.iterations() * nest.useful;
    return points;
  };
  for (const int64_t keys : {13, 16}) {
    std::map<std::string, double> found = points(keys);
    EXPECT_DOUBLE_EQ(found["weights"], 2.0 * 8 * static_cast<double>(keys));
    EXPECT_DOUBLE_EQ(found["masked"], 2.0 * 8 * static_cast<double>(keys));
    EXPECT_DOUBLE_EQ(found["scores"], 2.0 * 8 * static_cast<double>(keys) * 5);
    EXPECT_DOUBLE_EQ(found["sums.part"], 2.0 * 8 * static_cast<double>(keys) * 5);
    EXPECT_DOUBLE_EQ(found["sums"], 2.0 * 8 * 5 * 4);  // four tiles
  }
}

TEST(nest, tests_of_a_border_move_with_the_window_but_not_with_the_channels) {
  const Scheduled s = scheduled(max_pool(8, 8, 16), "");
  const Nest nest = build_nests(s.state, s.bounds).at(0);
  int tested = 0;
  for (size_t i = 0; i < nest.loops.size(); ++i) {
    const bool channels = nest.accesses.back().stride(i) == 1;
    EXPECT_FALSE(nest.tests[i] && channels);
    tested += nest.tests[i] ? 1 : 0;
  }
  EXPECT_EQ(tested, 4) << "rows and columns of the result and of the window";
}

TEST(cpu_measure, a_square_that_is_turned_costs_less_than_stores_lane_by_lane) {
  const compute::Dag dag = transpose(16, 8, 16, 0);
  const std::string split = "split(transpose, c, [4], mask)\nsplit(transpose, w, [4], mask)\n";
  const StageMeasure scattered = measured(
      dag, split + "reorder(transpose, [n, h, c.0, w.0, c.1, w.1])\nvectorize(transpose, w.1)");
  const StageMeasure turned =
      measured(dag, split +
                        "reorder(transpose, [n, h, c.0, w.0, c.1, w.1])\n"
                        "unroll(transpose, c.1)\nvectorize(transpose, w.1)");
  EXPECT_LT(1.5 * turned.compute_cycles, scattered.compute_cycles);
  EXPECT_LE(turned.bytes.at(0), scattered.bytes.at(0));
}

TEST(cpu_measure, a_register_tile_beats_one_accumulator_and_threads_help) {
  const target::Cpu target = small_target();
  const compute::Dag dag = gemm(64, 64, 64);
  const auto seconds = [&](std::string_view text, int threads) {
    const Scheduled s = scheduled(dag, text);
    return measure_cpu(s.state, s.bounds, target, threads).seconds(target, threads);
  };
  EXPECT_LT(seconds(schedule::kGemmTile, 1) * 3, seconds("parallel(matmul, m)", 1));
  EXPECT_LT(seconds(schedule::kGemmTile, 2), 0.8 * seconds(schedule::kGemmTile, 1));
}

TEST(cpu_measure, columns_that_points_share_are_summed_up_once) {
  const compute::Dag dag = max_pool(17, 17, 64);
  const std::string tile =
      "split(max_pool, ow, [4])\nreorder(max_pool, [ow.0, kh, kw, ow.1, c])\n"
      "vectorize(max_pool, c)\nunroll(max_pool, ow.1)\nunroll(max_pool, kw)\n";
  const StageMeasure row = measured(dag, tile);
  const StageMeasure whole = measured(dag, tile + "unroll(max_pool, kh)");
  // Stride 2: 9 columns of 2 and 12 more where 36 are compared, thrice as many as in a row.
  EXPECT_DOUBLE_EQ(whole.bounds.arithmetic, 3 * row.bounds.arithmetic * 30 / 36);
}

TEST(cpu_measure, what_neighbouring_windows_share_is_one_load) {
  const compute::Dag dag = depthwise(8, 8, 16, 1);
  const std::string tile =
      "split(depthwise, ow, [4])\nreorder(depthwise, [ow.0, kh, kw, ow.1, c])\n"
      "vectorize(depthwise, c)\nunroll(depthwise, ow.1)\n";
  const StageMeasure one = measured(dag, tile);
  EXPECT_EQ(one.distinct_loads, 4 * 4 + 16) << "4 points of 4 vectors, 16 strided weights";
  const StageMeasure three = measured(dag, tile + "unroll(depthwise, kw)");
  EXPECT_EQ(three.distinct_loads, 6 * 4 + 48) << "6 points, not 12";
  EXPECT_EQ(three.accumulators, one.accumulators);
  for (const StageMeasure& stage : {one, three}) {
    const BodyCycles& b = stage.bounds;
    EXPECT_GE(stage.body_cycles, std::max({b.arithmetic, b.loads, b.stores, b.issue, b.latency}));
  }
}

TEST(cpu_measure, vectors_of_half_the_width_start_more_often_where_whole_ones_run_in_halves) {
  target::Cpu target = small_target();
  target.vector_bytes = 64;
  const auto bounds = [&](int lanes, int per_cycle) {
    target.fma_per_cycle = per_cycle;
    const Scheduled s = scheduled(
        gemm(4, 16, 8), fmt::format("split(matmul, n, [{}])\nreorder(matmul, [m, n.0, k, n.1])\n"
                                    "vectorize(matmul, n.1)",
                                    lanes));
    return measure_cpu(s.state, s.bounds, target, 1).roots.at(0).stages.at(0).bounds;
  };
  EXPECT_LT(bounds(8, 1).arithmetic, bounds(16, 1).arithmetic);
  EXPECT_GT(2 * bounds(8, 1).arithmetic, bounds(16, 1).arithmetic) << "there are more instructions";
  EXPECT_EQ(bounds(8, 2).arithmetic, bounds(16, 2).arithmetic);
}

TEST(cpu_measure, a_models_own_half_types_cost_less_than_what_a_schedule_rounds) {
  target::Cpu target = small_target();
  const auto arithmetic = [&](const compute::Dag& dag, int vector_bytes, std::string_view more = "",
                              int vectors = 1) {
    target.vector_bytes = vector_bytes;
    const Scheduled s = scheduled(
        dag, fmt::format("cache_write(matmul)\ncache_read(weight, matmul.acc)\n"
                         "split(matmul, n, [{}])\nreorder(matmul, [m, n.0, n.1])\n"
                         "compute_at(matmul.acc, matmul, n.0)\nreorder(matmul.acc, [k, m, n])\n"
                         "vectorize(matmul.acc, n)\n{}",
                         vectors * vector_bytes / 4, more));
    const CpuMeasure measure = measure_cpu(s.state, s.bounds, target, 1);
    for (const RootMeasure& root : measure.roots) {
      for (const StageMeasure& stage : root.stages)
        if (s.state.stages[stage.stage].name() == "matmul.acc") return stage.bounds.arithmetic;
    }
    return 0.0;
  };
  const auto half = [](DType type) { return half_gemm(4, 32, 8, {.type = type}); };
  const double plain = arithmetic(gemm(4, 32, 8), 32);
  const double f16 =
      (arithmetic(half(DType::kF16), 32) - plain) / 2;  // both operands are converted
  const double bf16 = (arithmetic(half(DType::kBF16), 32) - plain) / 2;
  const double narrowed = arithmetic(gemm(4, 32, 8), 32, "narrow(weight.cache, bf16)") - plain;
  EXPECT_GT(f16, 0);
  EXPECT_LT(f16, bf16);
  EXPECT_LT(bf16, narrowed);
  EXPECT_EQ(arithmetic(half(DType::kF16), 64), arithmetic(half(DType::kBF16), 64));  // not measured
  // A conversion delays the multiply-adds less where fewer conversions share a cycle with them.
  const auto delay_of_conversion = [&](int64_t rows) {
    const auto tile = [&](const compute::Dag& dag) {
      return arithmetic(dag, 32, "unroll(matmul.acc, m)", 4);
    };
    const double delay =
        tile(half_gemm(rows, 32, 8, {.type = DType::kBF16})) - tile(gemm(rows, 32, 8));
    return delay / static_cast<double>(rows + 4);
  };
  EXPECT_LT(1.05 * delay_of_conversion(32), delay_of_conversion(16));
}

TEST(cpu_measure, says_where_a_cache_is_full) {
  const StageMeasure stage = measured(gemm(64, 64, 64), "parallel(matmul, m)");
  ASSERT_EQ(stage.caches.size(), 2u);
  for (const CacheUse& use : stage.caches) {
    EXPECT_LE(use.held, 1);
    EXPECT_GE(use.beyond, use.held);
  }
  EXPECT_GE(stage.caches[0].first, stage.caches[1].first) << "the larger one holds more loops";
  EXPECT_GT(stage.caches[0].beyond, 1);
  EXPECT_GT(stage.caches[0].constant_bytes, 0);
  EXPECT_LE(stage.caches[0].constant_bytes + stage.caches[0].written_bytes, stage.bytes[0]);
}

}  // namespace
}  // namespace hone::analysis
