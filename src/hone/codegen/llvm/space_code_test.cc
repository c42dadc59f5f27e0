// Machine code of the search space: every sketch of a kernel family, with each way to treat a rest
// of columns, on extents that leave rests of vectors, tiles and blocks, each extent in each place
// on one of the targets, between guard pages. The oracle is the naive program in the interpreter.
// fuzz/fuzz_kernels.cc goes on with random models.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "hone/codegen/llvm/guarded_run.h"
#include "hone/codegen/llvm/inner_loop_testing.h"
#include "hone/codegen/llvm/test_support.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"
#include "hone/tensor/half.h"

namespace hone::codegen {
namespace {

using namespace compute::testing;

constexpr std::array<int64_t, 10> kExtents = {1, 2, 3, 7, 13, 17, 31, 33, 97, 224};
using Extents = std::array<int64_t, 4>;

struct Family {
  size_t places;
  int64_t most;  // of the product of the extents
  std::function<compute::Dag(const Extents&)> make;
  // What must be covered on every target: algorithm, which sketch of it, its tail.
  std::vector<std::string> sketches;
  bool is_sum = true;   // NaN and infinity go through it as through the naive program
  bool narrow = false;  // only sketches with constants in 16 bits (--accuracy fast)
};

// `extent` at `place`, the others by chance and small enough.
Extents extents_with(const Family& family, size_t place, int64_t extent, Rng& rng) {
  Extents e = {1, 1, 1, 1};
  int64_t product = extent;
  e[place] = extent;
  for (size_t p = 0; p < family.places; ++p) {
    if (p == place) continue;
    std::vector<int64_t> fitting;
    for (const int64_t x : kExtents) {
      if (product * x <= family.most) fitting.push_back(x);
    }
    e[p] = fitting.empty() ? 1 : rng.choice(fitting);
    product *= e[p];
  }
  return e;
}

// "winograd_4.0 peel": the first sketch of this algorithm, the rest of columns in a loop of its own
// (mask: tested; no word: the sketch has no such decision); rest: so is the last tile of channels.
std::string name_of(const space::Space& space, const space::Point& point) {
  int before = 0;
  for (int s = 0; s < point.sketch; ++s)
    before += space.algorithm(s) == space.algorithm(point.sketch) ? 1 : 0;
  std::string name = fmt::format("{}.{}", space.algorithm(point.sketch), before);
  const std::vector<space::Decision>& decisions = space.decisions(point.sketch);
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i].kind != space::DecisionKind::kTail) continue;
    const bool peels = decisions[i].options[static_cast<size_t>(point.choices[i])] == 1;
    if (decisions[i].name.ends_with(".rest")) {
      name += peels ? " rest" : "";
    } else {
      name += peels ? " peel" : " mask";
    }
  }
  return name;
}

// Of the sketches' default points and a sample, the one whose name was met least.
space::Point rarest_point(const space::Space& space, bool narrow,
                          const std::map<std::string, int>& met, Rng& rng) {
  const auto times = [&](const space::Point& point) {
    const auto found = met.find(name_of(space, point));
    return found == met.end() ? 0 : found->second;
  };
  std::vector<space::Point> points = space.default_points();
  for (int i = 0; i < 12 * space.num_sketches(); ++i) points.push_back(space.sample(rng));
  if (narrow) {
    std::erase_if(points, [&](const space::Point& point) {
      return !schedule::is_narrow(space.algorithm(point.sketch));
    });
  }
  rng.shuffle(points);
  return *std::min_element(points.begin(), points.end(),
                           [&](const auto& a, const auto& b) { return times(a) < times(b); });
}

std::vector<Tensor> arguments_of(const ir::Program& program, uint64_t seed, bool special) {
  std::vector<Tensor> args = ir::random_arguments(program, seed);
  Rng rng(seed);
  for (size_t p = 0; special && p < args.size(); ++p) {
    if (program.params[p].role != ir::Role::kInput) continue;
    args[p].set(rng.below(args[p].size()), std::numeric_limits<double>::quiet_NaN());
    args[p].set(rng.below(args[p].size()), std::numeric_limits<double>::infinity());
  }
  // Constants that 16 bits can hold, so that these are as exact as 32.
  for (size_t p = 0; p < args.size(); ++p) {
    if (program.params[p].role != ir::Role::kConstant || args[p].dtype() != DType::kF32) continue;
    for (float& value : args[p].as<float>())
      value = static_cast<float>(bf16_to_double(double_to_bf16(value)));
  }
  return args;
}

// "" or what differs; `tolerance` is of the largest finite result. What the naive program leaves
// unwritten (a border) counts for nothing: NaN there.
std::string difference(const Tensor& want, const Tensor& got, double tolerance) {
  double largest = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    if (std::isfinite(want.at(i))) largest = std::max(largest, std::fabs(want.at(i)));
  }
  for (int64_t i = 0; i < want.size(); ++i) {
    const double w = want.at(i), g = got.at(i);
    if (w == g || (std::isnan(w) && std::isnan(g))) continue;
    if (std::fabs(w - g) <= tolerance * largest) continue;
    return fmt::format("[{}] is {}, expected {} (largest {})", i, g, w, largest);
  }
  return "";
}

// "" or what is wrong with a point's machine code.
std::string check(const compute::Dag& dag, const schedule::Steps& steps,
                  const target::Target& target, double tolerance, uint64_t seed, bool special) {
  const ir::Program naive = compute::naive_program(dag);
  std::vector<Tensor> want = arguments_of(naive, seed, special);
  if (const Status ran = ir::run(naive, want); !ran.ok()) return "naive: " + ran.message();
  const Result<ir::Program> program = schedule::lower(dag, steps);
  if (!program.ok()) return "lower: " + program.status().message();
  const int64_t alignment = seed % 2 == 0 ? 4 : 64;
  const auto code = compile(*program, target, {.argument_alignment = alignment});
  if (!code.ok()) return "compile: " + code.status().message();
  std::vector<Tensor> got = arguments_of(*program, seed, special);  // params come first, in order
  if (const Status ran = run_guarded(*program, *code, got, {.alignment = alignment}); !ran.ok())
    return ran.message();
  for (size_t p = 0; p < want.size(); ++p) {
    if (naive.params[p].role != ir::Role::kOutput) continue;
    const std::string wrong = difference(want[p], got[p], tolerance);
    if (!wrong.empty()) return naive.params[p].buffer->name + wrong;
  }
  return "";
}

// One point of the space of a task on a target.
void check_one(const Family& family, const Extents& extents, const target::Target& target,
               std::map<std::string, int>& met, Rng& rng) {
  const compute::Dag dag = family.make(extents);
  const auto accuracy = family.narrow ? space::Accuracy::kFast : space::Accuracy::kDefault;
  const Result<space::Space> space = space::Space::create(dag, target, accuracy);
  ASSERT_TRUE(space.ok()) << space.status().message();
  const space::Point point = rarest_point(*space, family.narrow, met, rng);
  const std::string name = name_of(*space, point);
  ++met[name];
  const schedule::Steps steps = space->steps(point);
  const bool direct = name.starts_with("direct") || name.starts_with("im2col");
  const bool special = direct && family.is_sum && rng.chance(0.3);
  // Winograd's transformed weights are rounded to 8 bits of fraction, and F(4x4) makes more of it
  // (0.053 was met).
  const double narrow = name.starts_with("winograd_4") ? 1e-1 : 5e-2;
  const double tolerance = direct ? 2e-5 : family.narrow ? narrow : 1e-3;
  ASSERT_EQ(check(dag, steps, target, tolerance, rng.next(), special), "")
      << compute::describe(dag) << " on " << target.name << ", " << name << "\n"
      << schedule::to_string(steps);
}

void check_family(const Family& family) {
  const std::vector<target::Target> targets = runnable_targets();
  for (size_t t = 0; t < targets.size(); ++t) {
    const target::Target& target = targets[t];
    std::map<std::string, int> met;
    Rng rng(1);
    const auto missing = [&] {
      std::string names;
      for (const std::string& name : family.sketches) {
        if (!met.contains(name)) names += (names.empty() ? "" : ", ") + name;
      }
      return names;
    };
    for (size_t place = 0; place < family.places; ++place) {
      for (size_t k = 0; k < kExtents.size(); ++k) {
        if ((place + k) % targets.size() == t)
          check_one(family, extents_with(family, place, kExtents[k], rng), target, met, rng);
      }
    }
    for (int more = 0; more < 300 && !missing().empty(); ++more) {
      const auto place = static_cast<size_t>(rng.below(static_cast<int64_t>(family.places)));
      const int64_t extent = kExtents[static_cast<size_t>(rng.below(kExtents.size()))];
      check_one(family, extents_with(family, place, extent, rng), target, met, rng);
    }
    EXPECT_EQ(missing(), "") << "not met on " << target.name;
  }
}

// Of e[0] x e[1] results if the stride is 1.
compute::Dag convolution(const Extents& e, int64_t kernel, int64_t kernel_w, int64_t stride = 1) {
  return conv2d({.h = e[0] + kernel - 3,
                 .w = e[1] + kernel_w - 3,
                 .ic = e[2],
                 .oc = e[3],
                 .kernel = kernel,
                 .stride = stride,
                 .kernel_w = kernel_w});
}

TEST(space_code, products) {
  check_family({3,
                20'000,
                [](const Extents& e) { return gemm(e[0], e[1], e[2]); },
                {"direct.0 mask", "direct.0 peel", "direct.0 rest peel"}});
}
// Large enough for Strassen's algorithm.
TEST(space_code, products_of_halves) {
  check_family(
      {3,
       20'000,
       [](const Extents& e) { return gemm(32 + e[0] % 18, 128 + e[1] % 3 * 32, 128 + e[2] % 18); },
       {"direct.0 mask", "strassen.0 mask", "strassen.0 peel"}});
}
TEST(space_code, sums_in_parts) {
  check_family(
      {1, 224, [](const Extents& e) { return gemm(1, e[0], 8192); }, {"direct.0", "direct.1"}});
}
TEST(space_code, convolutions) {
  check_family(
      {4,
       20'000,
       [](const Extents& e) { return convolution(e, 3, 3); },
       {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel",
        "winograd_4.0 mask", "winograd_4.0 peel", "winograd_6.0 mask", "winograd_6.0 peel"}});
}
TEST(space_code, convolutions_along_a_row) {
  check_family({4,
                10'000,
                [](const Extents& e) { return convolution(e, 1, 3); },
                {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel",
                 "winograd_4.0 mask", "winograd_4.0 peel"}});
}
TEST(space_code, convolutions_along_a_column) {
  check_family({4,
                10'000,
                [](const Extents& e) { return convolution(e, 3, 1); },
                {"direct.0 mask", "direct.0 peel", "winograd_2.0 mask", "winograd_2.0 peel",
                 "winograd_4.0 mask", "winograd_4.0 peel"}});
}
TEST(space_code, strided_convolutions) {
  check_family({4,
                10'000,
                [](const Extents& e) { return convolution(e, 3, 3, 2); },
                {"direct.0 mask", "direct.0 peel", "im2col.0 mask", "im2col.0 peel",
                 "winograd_2.0 mask", "winograd_2.0 peel", "winograd_3.0 mask", "winograd_3.0 peel",
                 "winograd_4.0 mask", "winograd_4.0 peel"}});
}
TEST(space_code, depthwise_convolutions) {
  check_family({3,
                10'000,
                [](const Extents& e) { return depthwise(e[0], e[1], e[2], 1); },
                {"direct.0 mask", "direct.0 peel"}});
  check_family({3,
                10'000,
                [](const Extents& e) { return depthwise(e[0], e[1], e[2], 2); },
                {"direct.0 mask", "direct.0 peel"}});
}
TEST(space_code, depthwise_and_pointwise) {
  check_family({4,
                5'000,
                [](const Extents& e) { return separable(e[0], e[1], e[2], e[3]); },
                {"direct.0 peel"}});
}
TEST(space_code, attention) {
  check_family({4,
                10'000,
                [](const Extents& e) {
                  return compute::testing::attention(std::min<int64_t>(e[0], 3), e[1], e[2], e[3]);
                },
                {"direct.0 peel"},
                false});
}
TEST(space_code, attention_in_tiles_of_keys) {
  check_family({2,
                100,
                [](const Extents& e) { return compute::testing::attention(2, e[0], 512, e[1]); },
                {"direct.0 peel peel", "direct.1 peel peel", "direct.1 mask mask"},
                false});
  // So many that their scores stay in no cache, and those that a query sees.
  for (const std::optional<int64_t> offset : {std::optional<int64_t>(), {4'000}}) {
    check_family({1,
                  7,
                  [&](const Extents& e) {
                    return compute::testing::attention(1, std::min<int64_t>(e[0], 7), 4'096, 2,
                                                       offset);
                  },
                  {"direct.0 peel peel"},
                  false});
  }
}
TEST(space_code, elements) {
  check_family(
      {2, 50'000, [](const Extents& e) { return sum_of_two(e[0], 61 * e[1]); }, {"direct.0"}});
}
TEST(space_code, scans) {
  check_family({2, 10'000, [](const Extents& e) { return running_sum(e[0], e[1]); }, {"direct.0"}});
  check_family(
      {3, 10'000, [](const Extents& e) { return running_sum(e[0], e[1], e[2]); }, {"direct.0"}});
}
TEST(space_code, places_of_extremes) {
  check_family({3,
                10'000,
                [](const Extents& e) { return arg_max(e[0], e[1], e[2]); },
                {"direct.0 mask", "direct.0 peel"},
                false});
}
// Weights of 64 KiB and more, on few rows and positions.
TEST(space_code, products_with_weights_in_16_bits) {
  check_family({2,
                20'000,
                [](const Extents& e) {
                  const int64_t n = e[1];
                  return gemm(std::min<int64_t>(e[0], 3), n, 16'384 / n + 1);
                },
                {"direct_bf16.0 mask", "direct_bf16.0 peel"},
                true,
                true});
}
TEST(space_code, convolutions_with_weights_in_16_bits) {
  check_family({1,
                20'000,
                [](const Extents& e) {
                  const int64_t channels = e[0];
                  return convolution({5, 6, 1'821 / channels + 1, channels}, 3, 3);
                },
                {"direct_bf16.0 mask", "direct_bf16.0 peel", "winograd_2_bf16.0 mask",
                 "winograd_2_bf16.0 peel", "winograd_4_bf16.0 peel"},
                true,
                true});
}
TEST(space_code, pools_and_rows) {
  check_family({3, 10'000, [](const Extents& e) { return max_pool(e[0], e[1], e[2]); }, {}, false});
  check_family({3, 10'000, [](const Extents& e) { return global_pool(e[0], e[1], e[2]); }, {}});
  check_family({3, 10'000, [](const Extents& e) { return softmax(e[0], e[1], e[2]); }, {}, false});
}

// What a block of columns has of the largest and the sum is neither stored nor loaded in the loop
// over their elements: it stores the exponentials alone.
TEST(space_code, columns_are_summed_in_registers) {
  const char* const device = "x86-64-avx512";
  const compute::Dag dag = softmax(1, 21, 128);
  const Result<space::Space> space = space::Space::create(dag, *target::find(device));
  ASSERT_TRUE(space.ok()) << space.status().message();
  const schedule::Steps steps = space->steps(space->default_point());
  const Result<ir::Program> program = schedule::lower(dag, steps);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const InnerLoop loop = inner_loop_of(*program, device);
  EXPECT_TRUE(loop.is_loop);
  EXPECT_GE(loop.mix.fma, 10) << "the exponentials";
  EXPECT_EQ(loop.mix.store, 2) << schedule::to_string(steps);
  EXPECT_EQ(loop.spills, 0);
}

// What takes long to compile is what has many instructions: no point of a large task is refused,
// and its machine code is as bounded as what the passes see.
TEST(space_code, of_large_tasks_is_bounded) {
  const int64_t most = 4 * CompileOptions().max_instructions;  // bytes
  const compute::Dag dags[] = {gemm(512, 512, 512),
                               conv2d({.h = 56, .w = 56, .ic = 64, .oc = 64, .residual = true}),
                               conv2d({.h = 14, .w = 14, .ic = 256, .oc = 256})};
  for (const char* name : {"x86-64-avx2", "x86-64-avx512"}) {
    const target::Target target = *target::find(name);
    Rng rng(3);
    for (const compute::Dag& dag : dags) {
      const Result<space::Space> space = space::Space::create(dag, target);
      ASSERT_TRUE(space.ok()) << space.status().message();
      std::vector<space::Point> points = space->default_points();
      for (int i = 0; i < 2; ++i) points.push_back(space->sample(rng));
      for (const space::Point& point : points) {
        const schedule::Steps steps = space->steps(point);
        const Result<ir::Program> program = schedule::lower(dag, steps);
        ASSERT_TRUE(program.ok()) << program.status().message();
        const auto code = compile(*program, target);
        ASSERT_TRUE(code.ok()) << code.status().message() << "\n" << schedule::to_string(steps);
        EXPECT_LE(code->text_bytes, most) << schedule::to_string(steps);
      }
    }
  }
}

}  // namespace
}  // namespace hone::codegen
