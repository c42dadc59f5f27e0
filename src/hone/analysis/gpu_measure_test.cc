#include "hone/analysis/gpu_measure.h"

#include <cmath>

#include "hone/analysis/gpu_access.h"
#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"

namespace hone::analysis {
namespace {

using namespace compute::testing;

target::Gpu gpu() {
  target::Gpu gpu;
  gpu.sms = 4;
  gpu.fma_per_cycle = 128;
  gpu.warps_per_sm = 64;
  gpu.blocks_per_sm = 32;
  gpu.shared_bytes_opt_in = gpu.shared_bytes_per_sm = 96 << 10;
  gpu.l2_bytes = 4 << 20;
  gpu.memory_bandwidth = 500e9;
  return gpu;
}

// A product in blocks of 64 x 64 results; each of 16 x 16 threads has 4 x 4 of them, or, with
// `wide`, each of 8 x 8 threads 8 x 8.
std::string product(bool wide) {
  const int own = wide ? 8 : 4, threads = 64 / own;
  return schedule::product_in_threads(
      {.m_threads = threads, .m = own, .n_threads = threads, .n = own, .k = 8});
}

GpuMeasure measure(const compute::Dag& dag, std::string_view text, const target::Gpu& device) {
  const Result<schedule::Steps> steps = schedule::parse_steps(text);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  const Result<space::Candidate> candidate = space::make_candidate(dag, *steps);
  EXPECT_TRUE(candidate.ok()) << candidate.status().message();
  return measure_gpu(candidate->state, candidate->bounds, device);
}

const GpuStageMeasure& heaviest(const GpuRootMeasure& root) {
  return *std::max_element(root.stages.begin(), root.stages.end(),
                           [](const GpuStageMeasure& a, const GpuStageMeasure& b) {
                             return a.arithmetic < b.arithmetic;
                           });
}

// The parts of a row meet in shared memory, behind a barrier, or lanes exchange them.
TEST(gpu_measure, lanes_that_exchange_their_parts_are_faster) {
  target::Gpu device = gpu();
  device.subgroups = true;
  const Result<space::Space> space =
      space::Space::create(softmax(512, 256, 1), {.name = "shuffling", .part = device});
  ASSERT_TRUE(space.ok()) << space.status().message();
  const space::Point lanes = space->default_point();
  space::Point shared = lanes;
  const std::vector<space::Decision>& decisions = space->decisions(lanes.sketch);
  const auto at = std::find_if(decisions.begin(), decisions.end(),
                               [](const auto& d) { return d.role_name() == "exchange"; });
  ASSERT_NE(at, decisions.end());
  ASSERT_EQ(std::exchange(shared.choices[static_cast<size_t>(at - decisions.begin())], 0), 1);
  const auto measured = [&](const space::Point& point) {
    const Result<space::Candidate> candidate = space->instantiate(point);
    EXPECT_TRUE(candidate.ok()) << candidate.status().message();
    return measure_gpu(candidate->state, candidate->bounds, device);
  };
  EXPECT_LT(measured(lanes).seconds(device), measured(shared).seconds(device));
  EXPECT_LT(measured(lanes).roots[0].latency_cycles, measured(shared).roots[0].latency_cycles);
  EXPECT_EQ(measured(lanes).roots[0].shared_bytes, 0);
}

// With few blocks each chunk would wait for memory.
TEST(gpu_measure, copies_that_work_ahead_are_waited_for_less) {
  const compute::Dag dag = gemm(128, 128, 1024);
  const auto latency = [&](int64_t depth) {
    std::string steps = product(false);
    for (const char* copy : {"data.cache", "weight.cache"}) {
      if (depth > 1) steps += fmt::format("pipeline({}, {}, async)\n", copy, depth);
    }
    return measure(dag, steps, gpu()).roots[0].latency_cycles;
  };
  EXPECT_LT(latency(2), 0.9 * latency(1));
  EXPECT_LE(latency(3), latency(2));
  std::string steps = product(false) + "pipeline(data.cache, 3, async)\n";
  EXPECT_EQ(measure(dag, steps, gpu()).roots[0].shared_bytes, (3 + 1) * 64 * 8 * 4);
}

TEST(gpu_measure, counts_blocks_threads_and_storage_of_a_product) {
  const GpuMeasure made = measure(gemm(256, 128, 64), product(false), gpu());
  ASSERT_EQ(made.roots.size(), 1U);
  const GpuRootMeasure& root = made.roots[0];
  EXPECT_EQ(root.blocks, 8);
  EXPECT_EQ(root.threads, 256);
  EXPECT_EQ(root.shared_bytes, 2 * 64 * 8 * 4);
  const GpuStageMeasure& sum = heaviest(root);
  EXPECT_EQ(sum.threads, 256);
  EXPECT_EQ(sum.passes, 64);  // one for each term
  EXPECT_NEAR(sum.arithmetic, 64 * (16 + 2), 64 * 16 * 0.5);
  EXPECT_EQ(sum.global_requests, 0);
  EXPECT_EQ(sum.shared_requests, 64 * (4 + 4));
  EXPECT_GE(root.registers, 16);
  // L2 gives each block its rows of one operand and its columns of the other.
  EXPECT_NEAR(root.l2_bytes, 8.0 * (2 * 64 * 64 + 64 * 64) * 4, 0.7 * root.l2_bytes);
}

// A thread keeps the points of a chain of stages in registers, and those of two stages are alive at
// a time. A stage that the last one reads again is alive until then.
TEST(gpu_measure, counts_the_registers_that_are_alive_at_a_time) {
  const auto registers = [](int stages, bool again) {
    compute::DagBuilder b;
    std::vector<ir::BufferPtr> made = {b.input("x", {4096})};
    std::string inside;  // readers first
    const std::string steps =
        "split(last, i, [32, 8])\nparallel(last, i.0)\nbind(last, i.1, thread)\nunroll(last, i.2)\n";
    for (int k = 0; k <= stages; ++k) {
      const std::string name = k == stages ? "last" : fmt::format("y{}", k);
      const compute::Axis i = compute::make_axis("i", 4096);
      const std::vector<ir::Expr> at = {ir::variable(i.var)};
      const auto to = k == stages ? b.output(name, {4096}) : b.intermediate(name, {4096});
      ir::Expr value = ir::load(made.back(), at) + ir::constant_float(1);
      if (again && k == stages) value = value + ir::load(made[1], at);
      b.pointwise(name, {i}, compute::View(to), value);
      made.push_back(to);
      if (k < stages)
        inside = fmt::format("compute_at({0}, last, i.1)\nscope({0}, register)\nunroll({0}, i)\n",
                             name) +
                 inside;
    }
    return measure(schedule::built(std::move(b)), steps + inside, gpu()).roots[0].registers;
  };
  EXPECT_EQ(registers(2, false) - registers(1, false), 8);
  EXPECT_EQ(registers(5, false), registers(2, false));
  EXPECT_EQ(registers(5, true) - registers(5, false), 8);
}

// Scores and what becomes of them are alive one after the other: all together would not fit.
TEST(gpu_measure, attention_by_matrix_instructions_fits_the_registers) {
  const target::Target h100 = *target::find("cuda-sm_90a");
  const Result<space::Space> space =
      space::Space::create(attention(96, 197, 197, 64), h100, trial::Accuracy::kFast);
  ASSERT_TRUE(space.ok()) << space.status().message();
  const Result<space::Candidate> candidate = space->instantiate(space->default_points()[0]);
  ASSERT_TRUE(candidate.ok()) << candidate.status().message();
  const GpuMeasure made = measure_gpu(candidate->state, candidate->bounds, h100.gpu());
  ASSERT_EQ(made.roots.size(), 1);
  const GpuRootMeasure& root = made.roots[0];
  const auto heavy = std::find_if(root.stages.begin(), root.stages.end(),
                                  [](const GpuStageMeasure& stage) { return stage.matrix > 0; });
  ASSERT_NE(heavy, root.stages.end());
  EXPECT_GT(root.registers, 128);
  EXPECT_LT(root.registers, root.register_limit);
}

TEST(gpu_measure, larger_tiles_of_registers_load_less_of_shared_memory) {
  const compute::Dag dag = gemm(1024, 1024, 64);
  const GpuMeasure narrow = measure(dag, product(false), gpu());
  const GpuMeasure wide = measure(dag, product(true), gpu());
  const GpuStageMeasure &few = heaviest(wide.roots[0]), &many = heaviest(narrow.roots[0]);
  EXPECT_EQ(2 * few.shared_requests * few.threads, many.shared_requests * many.threads);
}

TEST(gpu_measure, rows_of_a_power_of_two_collide_in_the_banks_of_shared_memory) {
  const auto cycles_per_request = [](std::string_view text) {
    const GpuMeasure made = measure(gemm(256, 256, 64), text, gpu());
    const GpuStageMeasure& sum = heaviest(made.roots[0]);
    return sum.shared_cycles / sum.shared_requests;
  };
  const std::string plain = product(true);
  const size_t scope = plain.find("scope(data.cache, shared)");
  std::string turned = plain;  // neighbouring rows are neighbours in memory
  turned.insert(scope, "layout(data.cache, [k, m])\n");
  EXPECT_LT(cycles_per_request(turned), cycles_per_request(plain));
}

TEST(gpu_measure, a_block_that_does_not_fit_takes_for_ever) {
  const compute::Dag dag = gemm(256, 256, 64);
  target::Gpu small = gpu();
  EXPECT_TRUE(std::isfinite(measure(dag, product(false), small).seconds(small)));
  small.shared_bytes_opt_in = 2048;
  EXPECT_TRUE(std::isinf(measure(dag, product(false), small).seconds(small)));
  small = gpu();
  small.threads_per_block = 128;
  EXPECT_TRUE(std::isinf(measure(dag, product(false), small).seconds(small)));
}

TEST(gpu_measure, lanes_beside_each_other_share_sectors) {
  const compute::Dag dag = gemm(512, 512, 8);
  const auto with = [&](std::string_view thread) {
    return measure(dag,
                   fmt::format("parallel(matmul, m)\nsplit(matmul, n, [32])\n"
                               "reorder(matmul, [m, {0}, {1}])\nbind(matmul, {1}, thread)\n",
                               thread == "n.1" ? "n.0" : "n.1", thread),
                   gpu());
  };
  const GpuMeasure beside = with("n.1");  // one element apart
  const GpuMeasure apart = with("n.0");   // 32 elements apart
  EXPECT_LT(beside.roots[0].stages[0].global_sectors, apart.roots[0].stages[0].global_sectors);
}

// The accesses of the first stage of a schedule by a warp of 32.
std::vector<WarpAccess> accesses(const compute::Dag& dag, std::string_view text) {
  const space::Candidate candidate =
      space::make_candidate(dag, schedule::parse_steps(text).value()).value();
  const Nest nest = build_nests(candidate.state, candidate.bounds).front();
  std::vector<WarpAccess> found;
  for (const NestAccess& access : nest.accesses) found.push_back(warp_access(nest, access, 32));
  return found;
}

TEST(gpu_measure, vectors_move_more_by_each_instruction_and_not_more_often) {
  const compute::Dag dag = gemm(512, 512, 8);
  const std::string columns =
      "parallel(matmul, m)\nsplit(matmul, n, [{}])\nreorder(matmul, [m, k, n.0, n.1])\n"
      "bind(matmul, n.0, thread)\n{}(matmul, n.1)\n";
  const auto with = [&](int own, std::string_view annotation) {
    return accesses(dag, fmt::format(fmt::runtime(columns), own, annotation)).back();
  };
  const WarpAccess vectors = with(4, "vectorize"), singles = with(4, "unroll");
  EXPECT_EQ(vectors.elements, 4);
  EXPECT_EQ(vectors.sectors, 16);    // 32 lanes x 16 bytes
  EXPECT_EQ(vectors.wavefronts, 4);  // 128 words of 32 banks
  EXPECT_EQ(vectors.lane_bytes, 16);
  EXPECT_EQ(singles.elements, 1);
  EXPECT_EQ(singles.sectors, 16);  // the same sectors for a quarter of the data
  EXPECT_EQ(singles.wavefronts, 4);
  EXPECT_EQ(with(1, "unroll").sectors, 4);
  EXPECT_EQ(with(32, "unroll").wavefronts, 16);  // 16 threads, all words of one bank
}

TEST(gpu_measure, long_chunks_of_a_sum_wait_less_often) {
  const compute::Dag dag = gemm(256, 256, 1024);
  const auto with = [&](int chunk) {
    return measure(dag,
                   schedule::product_in_threads(
                       {.m_threads = 16, .m = 2, .n_threads = 16, .n = 2, .k = chunk}),
                   gpu());
  };
  const GpuRootMeasure few = with(32).roots[0], many = with(8).roots[0];
  const auto copy = [](const GpuRootMeasure& root) {  // by all threads
    return *std::find_if(root.stages.begin(), root.stages.end(), [](const GpuStageMeasure& s) {
      return s.threads == 256 && s.global_requests > 0 && s.shared_requests > 0;
    });
  };
  EXPECT_EQ(copy(few).turns, 32);
  EXPECT_EQ(copy(many).turns, 128);
  EXPECT_LT(3 * copy(few).wait_cycles, copy(many).wait_cycles);
  EXPECT_NEAR(few.arithmetic_cycles, many.arithmetic_cycles, 0.05 * many.arithmetic_cycles);
}

// With one block for each multiprocessor, what a block does decides, not how many there are.
TEST(gpu_measure, a_block_takes_as_long_as_one_for_each_multiprocessor) {
  const auto seconds = [](int64_t rows) {
    return measure(gemm(rows, 64, 4096), product(false), gpu()).seconds(gpu());
  };
  EXPECT_NEAR(seconds(64), seconds(256), 0.4 * seconds(256));
  EXPECT_LT(seconds(256), 0.75 * seconds(5 * 256));
}

TEST(gpu_measure, sums_of_two_reach_the_bandwidth_of_memory) {
  const int64_t rows = 64, n = 1 << 18;
  target::Gpu slow = gpu();
  slow.memory_bandwidth = 100e9;
  const GpuMeasure made = measure(sum_of_two(rows, n),
                                  "split(add, column, [256, 4])\nfuse(add, [row, column.0])\n"
                                  "parallel(add, row@column.0)\nbind(add, column.1, thread)\n"
                                  "vectorize(add, column.2)\n",
                                  slow);
  const double bytes = 3.0 * static_cast<double>(rows * n) * 4;
  const double least = bytes / slow.memory_bandwidth;
  EXPECT_EQ(made.roots[0].memory_bytes, bytes);
  EXPECT_GT(made.seconds(slow), least);
  EXPECT_LT(made.seconds(slow), 1.25 * least);
}

// Blocks that run together share rows and columns; others fetch them again.
TEST(gpu_measure, operands_beyond_l2_are_fetched_again_but_not_by_every_block) {
  const int64_t n = 4096;
  const GpuMeasure made = measure(gemm(n, n, n), product(true), gpu());
  const double unique = 3.0 * static_cast<double>(n * n) * 4;
  EXPECT_GT(made.roots[0].memory_bytes, 2 * unique);
  EXPECT_LT(made.roots[0].memory_bytes, 0.5 * made.roots[0].l2_bytes);
  target::Gpu large = gpu();
  large.l2_bytes = int64_t{1} << 30;
  EXPECT_EQ(measure(gemm(n, n, n), product(true), large).roots[0].memory_bytes, unique);
}

TEST(gpu_measure, threads_of_large_blocks_have_fewer_registers) {
  const compute::Dag dag = gemm(512, 512, 64);
  const auto limit = [&](int threads) {
    return measure(dag,
                   schedule::product_in_threads(
                       {.m_threads = threads, .m = 4, .n_threads = 32, .n = 4, .k = 8}),
                   gpu())
        .roots[0]
        .register_limit;
  };
  EXPECT_EQ(limit(4), gpu().registers_per_thread);
  EXPECT_EQ(limit(32), 64);
}

// The product in half precision has the first sketch with matrix instructions.
TEST(gpu_measure, matrix_instructions_have_their_rate) {
  const int64_t n = 1024;
  const compute::Dag dag = half_gemm(n, n, n);
  const target::Target device = target::find("cuda-sm_80").value();
  const space::Space space = space::Space::create(dag, device).value();
  for (const space::Point& point : space.default_points()) {
    const schedule::Steps steps = space.steps(point);
    const bool matrices = std::any_of(steps.begin(), steps.end(), [](const schedule::Step& step) {
      return std::holds_alternative<schedule::Tensorize>(step);
    });
    if (!matrices) continue;
    const GpuMeasure made = measure(dag, schedule::to_string(steps), device.gpu());
    const auto main =
        std::find_if(made.roots.begin(), made.roots.end(), [](const GpuRootMeasure& root) {
          return std::any_of(root.stages.begin(), root.stages.end(),
                             [](const GpuStageMeasure& stage) { return stage.matrix > 0; });
        });
    ASSERT_NE(main, made.roots.end());
    EXPECT_EQ(main->threads, 32 * main->warps(device.gpu()));
    const double products = static_cast<double>(n * n * n);
    const double peak = 1024 * device.gpu().sms * device.gpu().ghz * 1e9;  // of bf16 and fp16
    EXPECT_GE(main->times(device.gpu()).arithmetic, 0.99 * products / peak);
    EXPECT_LT(main->times(device.gpu()).arithmetic, 3 * products / peak);
    return;
  }
  FAIL() << "no sketch has matrix instructions";
}

TEST(gpu_measure, more_multiprocessors_take_less_time) {
  const compute::Dag dag = gemm(2048, 2048, 512);
  target::Gpu many = gpu();
  many.sms = 64;
  EXPECT_LT(2 * measure(dag, product(true), many).seconds(many),
            measure(dag, product(true), gpu()).seconds(gpu()));
}

// Rows of a table, by a thread for each row or by threads for neighbouring vectors.
TEST(gpu_measure, bodies_are_counted_by_their_statements) {
  const compute::Dag dag = gather_rows(4096, 768, 30000);
  const GpuMeasure rows = measure(
      dag, "split(gather, i, [32])\nparallel(gather, i.0)\nbind(gather, i.1, thread)", gpu());
  const GpuMeasure vectors = measure(dag,
                                     "lift(gather, [j], 4)\nfuse(gather, [i, j])\n"
                                     "split(gather, i@j, [256])\nparallel(gather, i@j.0)\n"
                                     "bind(gather, i@j.1, thread)",
                                     gpu());
  ASSERT_EQ(rows.roots.size(), 1);
  ASSERT_EQ(vectors.roots.size(), 1);
  const GpuRootMeasure& root = vectors.roots[0];
  EXPECT_EQ(root.threads, 256);
  EXPECT_EQ(root.blocks, 4096 * 768 / 4 / 256);
  EXPECT_EQ(root.stages[0].global_requests, 3);  // the index, a vector read and one written
  EXPECT_EQ(root.stages[0].global_sectors, 1 + 16 + 16);
  const double bytes = 4096 * 768 * 4;
  EXPECT_GE(root.memory_bytes, 2 * bytes);
  EXPECT_LT(root.memory_bytes, 2.1 * bytes);
  EXPECT_GT(rows.seconds(gpu()), 4 * vectors.seconds(gpu()));
  EXPECT_GT(vectors.seconds(gpu()), 2 * bytes / gpu().memory_bandwidth);
}

}  // namespace
}  // namespace hone::analysis
