#include "hone/cost/fingerprint_queries.h"

namespace hone::cost {
namespace {

using compute::Axis;
using compute::make_axis;
using compute::variables;
using compute::View;

compute::Dag built(compute::DagBuilder&& builder) {
  Result<compute::Dag> dag = std::move(builder).build();
  HONE_ASSERT(dag.ok(), dag.status().message().c_str());
  return *std::move(dag);
}

compute::Dag matmul() {
  constexpr int64_t kRows = 100, kColumns = 200, kTerms = 1500;
  compute::DagBuilder b;
  const auto data = b.input("data", {kRows, kTerms});
  const auto weight = b.constant("weight", {kTerms, kColumns}),
             bias = b.constant("bias", {kColumns});
  const auto sums = b.intermediate("sums", {kRows, kColumns}),
             out = b.output("out", {kRows, kColumns});
  const auto axes = [] { return std::vector{make_axis("m", kRows), make_axis("n", kColumns)}; };
  const std::vector<Axis> point = axes(), last = axes(), terms = {make_axis("k", kTerms)};
  const auto at = variables(point), end = variables(last);
  const ir::Expr k = variables(terms)[0];
  b.sum("matmul", point, terms, View(sums),
        ir::load(data, {at[0], k}) * ir::load(weight, {k, at[1]}));
  b.pointwise("bias", last, View(out), ir::load(sums, end) + ir::load(bias, {end[1]}));
  return built(std::move(b));
}

compute::Dag convolution() {
  constexpr int64_t kHeight = 14, kWidth = 28, kIn = 24, kOut = 40, kTaps = 3;
  const std::vector<int64_t> shape = {1, kHeight, kWidth, kOut};
  compute::DagBuilder b;
  const auto data = b.input("data", {1, kHeight + kTaps - 1, kWidth + kTaps - 1, kIn});
  const auto weight = b.constant("weight", {kOut, kIn, kTaps, kTaps}),
             bias = b.constant("bias", {kOut});
  const auto sums = b.intermediate("sums", shape), biased = b.intermediate("biased", shape);
  const auto out = b.output("out", shape);
  const auto axes = [] {
    return std::vector{make_axis("n", 1), make_axis("oh", kHeight), make_axis("ow", kWidth),
                       make_axis("oc", kOut)};
  };
  const std::vector<Axis> window = {make_axis("kh", kTaps), make_axis("kw", kTaps),
                                    make_axis("ic", kIn)};
  auto point = axes();
  auto at = variables(point);
  const auto tap = variables(window);
  b.sum("conv2d", point, window, View(sums),
        ir::load(data, {at[0], at[1] + tap[0], at[2] + tap[1], tap[2]}) *
            ir::load(weight, {at[3], tap[2], tap[0], tap[1]}));
  point = axes(), at = variables(point);
  b.pointwise("bias", point, View(biased), ir::load(sums, at) + ir::load(bias, {at[3]}));
  point = axes(), at = variables(point);
  b.pointwise("relu", point, View(out), ir::max(ir::load(biased, at), ir::constant_float(0)));
  return built(std::move(b));
}

// Along rows.
compute::Dag softmax() {
  constexpr int64_t kRows = 96, kLength = 500;
  compute::DagBuilder b;
  const auto data = b.input("data", {kRows, kLength}), out = b.output("out", {kRows, kLength});
  const auto most = b.intermediate("most", {kRows}), total = b.intermediate("total", {kRows}),
             powers = b.intermediate("powers", {kRows, kLength});
  const auto reduce = [&](const ir::BufferPtr& from, const ir::BufferPtr& to, bool adds) {
    const std::vector<Axis> row = {make_axis("m", kRows)}, terms = {make_axis("r", kLength)};
    const ir::Expr value = ir::load(from, {variables(row)[0], variables(terms)[0]});
    if (adds)
      b.sum("sum", row, terms, View(to), value);
    else
      b.max("most", row, terms, View(to), value);
  };
  const auto axes = [] { return std::vector{make_axis("m", kRows), make_axis("n", kLength)}; };
  reduce(data, most, false);
  auto point = axes();
  auto at = variables(point);
  b.pointwise("exp", point, View(powers),
              ir::make(ir::Op::kExp, {ir::load(data, at) - ir::load(most, {at[0]})}));
  reduce(powers, total, true);
  point = axes(), at = variables(point);
  b.pointwise("softmax", point, View(out), ir::load(powers, at) / ir::load(total, {at[0]}));
  return built(std::move(b));
}

// Vectors of 8, half of AVX-512's; no tile divides its axis.
constexpr std::string_view kMatmul = R"(cache_read(weight, matmul)
split(bias, n, [3, 8], pad)
split(bias, m, [8], peel)
reorder(bias, [n.0, m.0, m.1, n.1, n.2])
fuse(bias, [n.0, m.0])
parallel(bias, n.0@m.0)
unroll(bias, m.1)
unroll(bias, n.1)
vectorize(bias, n.2)
compute_at(matmul, bias, n.0@m.0)
scope(matmul, register)
split(matmul, n, [8], mask)
split(matmul, k, [8], peel)
reorder(matmul, [k.0, k.1, m, n.0, n.1])
unroll(matmul, k.1)
unroll(matmul, m)
unroll(matmul, n.0)
vectorize(matmul, n.1)
layout(weight.cache, [n/24, k/8, k%8, n/8%3, n%8])
)";

// Two rows of six columns and 32 channels: more accumulators than AVX2 has registers.
constexpr std::string_view kConvolution = R"(inline(bias)
cache_read(weight, conv2d)
split(relu, oc, [2, 16], pad)
split(relu, oh, [2, 2], mask)
split(relu, ow, [6], peel)
reorder(relu, [n, oh.0, oc.0, oh.1, ow.0, oh.2, ow.1, oc.1, oc.2])
fuse(relu, [n, oh.0, oc.0])
parallel(relu, n@oh.0@oc.0)
unroll(relu, oh.2)
unroll(relu, ow.1)
unroll(relu, oc.1)
vectorize(relu, oc.2)
compute_at(conv2d, relu, ow.0)
scope(conv2d, register)
split(conv2d, oc, [16], mask)
reorder(conv2d, [ic, kh, kw, n, oh, ow, oc.0, oc.1])
unroll(conv2d, kw)
unroll(conv2d, n)
unroll(conv2d, oh)
unroll(conv2d, ow)
unroll(conv2d, oc.0)
vectorize(conv2d, oc.1)
layout(weight.cache, [oc/32, ic, kh, kw, oc/16%2, oc%16])
)";

constexpr std::string_view kWinograd = R"(inline(bias)
winograd(conv2d, 4)
fuse(relu, [n, oh])
parallel(relu, n@oh)
vectorize(relu, oc)
vectorize(conv2d, oc)
vectorize(conv2d.y1, oc)
reorder(conv2d.m, [oh_t, ow_t, oh_x, ow_x, n, ic, oc])
parallel(conv2d.m, oh_t)
unroll(conv2d.m, n)
vectorize(conv2d.m, oc)
reorder(conv2d.v, [oh_t, ow_t, oh_x, ow_x, n, ic])
parallel(conv2d.v, oh_t)
unroll(conv2d.v, n)
vectorize(conv2d.v, ic)
)";

// Rows as vectors, which lie a row apart: gathered and scattered.
constexpr std::string_view kStrided = R"(reorder(matmul, [n, k, m])
vectorize(matmul, m)
split(bias, n, [48], mask)
vectorize(bias, n.1)
)";

// Copies, weights of 16 bits, and tails that are tested where the sums are.
constexpr std::string_view kIm2col = R"(inline(bias)
im2col(conv2d, data)
cache_read(weight, conv2d)
split(relu, ow, [5], mask)
fuse(relu, [n, oh])
parallel(relu, n@oh)
vectorize(relu, oc)
compute_at(conv2d, relu, ow.0)
split(conv2d, oc, [3, 16], mask)
split(conv2d, ic, [5], mask)
reorder(conv2d, [oc.0, kh, ic.0, ic.1, kw, n, oh, ow, oc.1, oc.2])
unroll(conv2d, ow)
unroll(conv2d, oc.1)
vectorize(conv2d, oc.2)
prefetch(conv2d, weight.cache, ic.0, 2)
compute_at(data.col, relu, n@oh)
narrow(weight.cache, bf16)
)";

constexpr std::string_view kSoftmax = R"(parallel(softmax, m)
vectorize(softmax, n)
compute_at(sum, softmax, m)
scope(sum, register)
split(sum, r, [16], mask)
unroll(sum, m)
vectorize(sum, r.1)
compute_at(exp, softmax, m)
vectorize(exp, n)
compute_at(most, softmax, m)
vectorize(most, r)
)";

space::Candidate scheduled(const compute::Dag& dag, std::string_view text) {
  const Result<schedule::Steps> steps = schedule::parse_steps(text);
  HONE_ASSERT(steps.ok(), steps.status().message().c_str());
  Result<space::Candidate> candidate = space::make_candidate(dag, *steps);
  HONE_ASSERT(candidate.ok(), candidate.status().message().c_str());
  return *std::move(candidate);
}

// Numbers of their own: those of named targets may be corrected.
target::Target with_avx512() {
  return {
      .name = "avx512",
      .part = target::Cpu{
          .triple = "x86_64-linux-gnu",
          .model = "x86-64-v4",
          .vector_bytes = 64,
          .vector_registers = 32,
          .masked_memory = true,
          .broadcast_operand = true,
          .fma_per_cycle = 1,
          .fma_latency = 4,
          .loads_per_cycle = 1,
          .cores = 2,
          .ghz = 3.5,
          .caches = {{1, 32 << 10, 64, 1, 64}, {2, 1 << 20, 64, 1, 32}, {3, 32 << 20, 64, 2, 16}},
          .memory_bytes_per_cycle = 6}};
}

target::Target with_avx2() {
  return {
      .name = "avx2",
      .part = target::Cpu{
          .triple = "x86_64-linux-gnu",
          .model = "x86-64-v3",
          .vector_bytes = 32,
          .vector_registers = 16,
          .fma_per_cycle = 2,
          .fma_latency = 5,
          .loads_per_cycle = 2,
          .cores = 4,
          .ghz = 2.5,
          .caches = {{1, 48 << 10, 64, 1, 48}, {2, 256 << 10, 64, 1, 24}, {3, 8 << 20, 64, 4, 12}},
          .memory_bytes_per_cycle = 4}};
}

// Tiles of 64 x 48 points in 16 x 12 threads, 8 terms at a time in shared memory.
constexpr std::string_view kGpuTiles = R"(cache_read(data, matmul)
cache_read(weight, matmul)
split(bias, m, [16, 4], pad)
split(bias, n, [12, 4], pad)
reorder(bias, [m.0, n.0, m.1, n.1, m.2, n.2])
fuse(bias, [m.0, n.0])
parallel(bias, m.0@n.0)
bind(bias, m.1, thread)
bind(bias, n.1, thread)
unroll(bias, m.2)
vectorize(bias, n.2)
compute_at(matmul, bias, m.0@n.0)
scope(matmul, fragment)
layout(matmul, [m/4, n/4, m%4, n%4])
split(matmul, m, [4])
split(matmul, n, [4])
split(matmul, k, [8], peel)
reorder(matmul, [k.0, m.0, n.0, k.1, m.1, n.1])
bind(matmul, m.0, thread)
bind(matmul, n.0, thread)
unroll(matmul, m.1)
unroll(matmul, n.1)
compute_at(data.cache, matmul, k.0)
scope(data.cache, shared)
fuse(data.cache, [m, k])
split(data.cache, m@k, [192])
reorder(data.cache, [m@k.1, m@k.0])
bind(data.cache, m@k.1, thread)
pipeline(data.cache, 3, async)
compute_at(weight.cache, matmul, k.0)
scope(weight.cache, shared)
bind(weight.cache, n, thread)
)";

// Each thread sums 4 neighbouring columns of a row.
constexpr std::string_view kGpuPoints = R"(split(bias, n, [4])
reorder(bias, [m, n.0, n.1])
fuse(bias, [m, n.0])
split(bias, m@n.0, [64])
parallel(bias, m@n.0.0)
bind(bias, m@n.0.1, thread)
vectorize(bias, n.1)
compute_at(matmul, bias, m@n.0.1)
scope(matmul, register)
reorder(matmul, [k, m, n])
vectorize(matmul, n)
)";

// A window for each thread; 96 threads do not divide the points.
constexpr std::string_view kGpuWindow = R"(inline(bias)
fuse(relu, [n, oh, ow, oc])
split(relu, n@oh@ow@oc, [96], mask)
parallel(relu, n@oh@ow@oc.0)
bind(relu, n@oh@ow@oc.1, thread)
compute_at(conv2d, relu, n@oh@ow@oc.1)
scope(conv2d, register)
split(conv2d, ic, [5], mask)
unroll(conv2d, kw)
)";

constexpr std::string_view kGpuSoftmax = R"(parallel(softmax, m)
bind(softmax, n, thread)
compute_at(sum, softmax, m)
scope(sum, shared)
bind(sum, m, thread)
compute_at(exp, softmax, m)
scope(exp, shared)
bind(exp, n, thread)
compute_at(most, softmax, m)
scope(most, shared)
bind(most, m, thread)
)";

target::Target gpu_of_cuda() {
  target::Gpu gpu;
  gpu.arch = "sm_80", gpu.capability = 80;
  gpu.sms = 100, gpu.warps_per_sm = 64, gpu.blocks_per_sm = 32;
  gpu.shared_bytes_opt_in = gpu.shared_bytes_per_sm = 160 << 10;
  gpu.shared_bytes_reserved = 1 << 10;
  gpu.l2_bytes = 40 << 20;
  gpu.memory_bandwidth = 1500e9;
  gpu.ghz = 1.5;
  return {.name = "cuda", .part = gpu};
}

target::Target gpu_of_opencl() {
  target::Gpu gpu;
  gpu.api = target::GpuApi::kOpenCl;
  gpu.arch = "small";
  gpu.sms = 4, gpu.warp = 16, gpu.threads_per_block = 512, gpu.is_cpu = true;
  gpu.registers_per_sm = 0;
  gpu.l2_bytes = 1 << 20;
  gpu.memory_bandwidth = 50e9;
  return {.name = "opencl", .part = gpu};
}

struct Machine {
  target::Target target;
  int threads;
};
struct Task {
  const char* name;
  space::Candidate candidate;
};

std::vector<FingerprintQuery> queries_of(std::span<const Task> tasks,
                                         std::span<const Machine> machines) {
  std::vector<FingerprintQuery> queries;
  for (const Task& task : tasks) {
    const uint64_t key = compute::task_key(*task.candidate.dag);
    for (const auto& [target, threads] : machines) {
      queries.push_back({fmt::format("{} on {}", task.name, target.name),
                         {&task.candidate, &target, threads, key}});
    }
  }
  return queries;
}

}  // namespace

const std::vector<FingerprintQuery>& fingerprint_queries() {
  static const std::vector<Machine> kMachines = {{with_avx512(), 2}, {with_avx2(), 1}};
  static const std::vector<Task> kTasks = {{"matmul", scheduled(matmul(), kMatmul)},
                                           {"strided", scheduled(matmul(), kStrided)},
                                           {"conv2d", scheduled(convolution(), kConvolution)},
                                           {"im2col", scheduled(convolution(), kIm2col)},
                                           {"winograd", scheduled(convolution(), kWinograd)},
                                           {"softmax", scheduled(softmax(), kSoftmax)}};
  static const std::vector<FingerprintQuery> kQueries = queries_of(kTasks, kMachines);
  return kQueries;
}

const std::vector<FingerprintQuery>& gpu_fingerprint_queries() {
  static const std::vector<Machine> kMachines = {{gpu_of_cuda(), 1}, {gpu_of_opencl(), 1}};
  static const std::vector<Task> kTasks = {{"matmul", scheduled(matmul(), kGpuTiles)},
                                           {"points", scheduled(matmul(), kGpuPoints)},
                                           {"conv2d", scheduled(convolution(), kGpuWindow)},
                                           {"softmax", scheduled(softmax(), kGpuSoftmax)}};
  static const std::vector<FingerprintQuery> kQueries = queries_of(kTasks, kMachines);
  return kQueries;
}

}  // namespace hone::cost
