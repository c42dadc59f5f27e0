#include "hone/analysis/shared_traffic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "hone/analysis/cpu_measure.h"
#include "hone/compute/dag_testing.h"
#include "hone/space/space.h"

namespace hone::analysis {
namespace {

// Two products in one nest, as in listing 1 of Tuna: for each tile (it, jt),
//   C[i, j] += A[i, k] B[k, j]   for i, j, k
//   E[i, l] += C[i, j] D[j, l]   for i, l, j
constexpr int64_t kI = 8, kJ = 16, kTiles = 4, kK = 32, kL = 48;  // lengths inside a tile, tiles

struct TwoProducts {
  std::map<char, ir::BufferPtr> buffers;
  std::vector<Nest> nests;

  // A loop of a stage, and how far it moves along the rows and columns of each buffer.
  struct Step {
    int loop;
    int64_t extent;
    std::map<char, std::pair<int64_t, int64_t>> moves;
  };
  void add(int stage, const std::string& touched, const std::vector<Step>& steps) {
    Nest& nest = nests.emplace_back();
    nest.stage = stage, nest.root = 1, nest.outer = 2;
    nest.ops.fma = 1;
    for (size_t i = 0; i < steps.size(); ++i)
      nest.loops.push_back({i < 2 ? 1 : stage, steps[i].loop, steps[i].extent,
                            schedule::Annotation::kNone, i + 1 == steps.size()});
    nest.tests.assign(steps.size(), false);
    for (const char name : touched) {
      NestAccess access;
      access.buffer = buffers.at(name).get();
      access.write = name == touched.back();
      const std::vector<int64_t>& shape = buffers.at(name)->shape;
      access.shape.assign(shape.begin(), shape.end());
      access.spread.resize(2);
      access.move = Moves(2, steps.size());
      for (size_t i = 0; i < steps.size(); ++i) {
        const auto found = steps[i].moves.find(name);
        if (found == steps[i].moves.end()) continue;
        access.move[0][i] = found->second.first;
        access.move[1][i] = found->second.second;
      }
      access.remember_reaches(nest.loops);
      nest.accesses.push_back(std::move(access));
    }
  }
  TwoProducts() {
    const int64_t rows = kI * kTiles, columns = kJ * kTiles;
    const std::map<char, std::vector<int64_t>> shapes = {{'A', {rows, kK}},
                                                         {'B', {kK, columns}},
                                                         {'C', {rows, columns}},
                                                         {'D', {columns, kL}},
                                                         {'E', {rows, kL}}};
    for (const auto& [name, shape] : shapes)
      buffers[name] = ir::make_buffer(std::string(1, name), DType::kF32, shape);
    const Step it = {0, kTiles, {{'A', {kI, 0}}, {'C', {kI, 0}}, {'E', {kI, 0}}}};
    const Step jt = {1, kTiles, {{'B', {0, kJ}}, {'C', {0, kJ}}, {'D', {kJ, 0}}}};
    add(0, "ABC",
        {it,
         jt,
         {2, kI, {{'A', {1, 0}}, {'C', {1, 0}}}},
         {3, kJ, {{'B', {0, 1}}, {'C', {0, 1}}}},
         {4, kK, {{'A', {0, 1}}, {'B', {1, 0}}}}});
    add(1, "CDE",
        {it,
         jt,
         {2, kI, {{'C', {1, 0}}, {'E', {1, 0}}}},
         {3, kL, {{'D', {0, 1}}, {'E', {0, 1}}}},
         {4, kJ, {{'C', {0, 1}}, {'D', {1, 0}}}}});
  }
};

// The cost of loading rows of so many floats each, as NestAccess::transfer_bytes() has it.
double moved(int64_t rows, int64_t floats) {
  const double lines = std::ceil(static_cast<double>(floats) * 4 / 64);
  return static_cast<double>(rows) * lines * 64 * (1 + 0.6 / lines);
}

target::Cpu with_cache(double usable) {
  target::Cpu cpu = target::find("x86-64-avx2").value().cpu();
  cpu.caches.resize(1);
  cpu.caches[0].shared_by = 1;
  cpu.caches[0].bytes = static_cast<int64_t>(usable / 0.75) + 64;
  return cpu;
}

// By hand, as the paper does it. A tile's data are those of A (whole rows), of B and C (16 floats
// of each row), of D and E (whole rows).
TEST(shared_traffic, two_products_share_the_tile_between_them) {
  const TwoProducts products;
  const double a = moved(1, kI * kK), b = moved(kK, kJ), c = moved(kI, kJ), d = moved(1, kJ * kL),
               e = moved(1, kI * kL);
  const double tile = a + b + c + d + e;  // C once
  const auto bytes = [&](double usable) {
    const std::vector<RootTraffic> found = shared_traffic(products.nests, with_cache(usable), 1);
    EXPECT_EQ(found.size(), 1U);
    return found.at(0).bytes.at(0);
  };
  // One tile stays in the cache: over jt, A and E come once, whole rows of C, all of B and D.
  const double strip =
      a + moved(1, kK * kJ * kTiles) + moved(1, kI * kJ * kTiles) + moved(1, kTiles * kJ * kL) + e;
  EXPECT_NEAR(bytes(tile), kTiles * strip, 1e-6);
  // All of it fits: each byte once, C too.
  const double all = moved(1, kTiles * kI * kK) + moved(1, kK * kJ * kTiles) +
                     moved(1, kTiles * kI * kJ * kTiles) + moved(1, kTiles * kJ * kL) +
                     moved(1, kTiles * kI * kL);
  EXPECT_NEAR(bytes(all), all, 1e-6);
  // A tile does not fit, but each product's own does: both fetch C.
  const double less = tile - 128;
  ASSERT_GT(less, a + b + c);
  ASSERT_GT(less, c + d + e);
  EXPECT_NEAR(bytes(less), kTiles * kTiles * (a + b + c + c + d + e), 1e-6);

  // Stages on their own, as the features for other models have them: C twice.
  const CpuMeasure apart = measure_cpu(products.nests, with_cache(tile), 1);
  ASSERT_EQ(apart.roots.size(), 1U);
  EXPECT_NEAR(apart.roots[0].stages[0].bytes[0] + apart.roots[0].stages[1].bytes[0],
              kTiles * (strip + moved(1, kI * kJ * kTiles)), 1e-6);
}

// A root of one stage shares nothing. This measure leaves out lines that collide in the sets of the
// first cache.
TEST(shared_traffic, a_stage_alone_moves_what_it_moves) {
  const target::Target target = target::find("x86-64-avx2").value();
  int alone = 0, moved_some = 0;
  for (const compute::Dag& dag :
       {compute::testing::sum_of_two(1500, 1500), compute::testing::transpose(96, 512, 256, 0)}) {
    const space::Space space = space::Space::create(dag, target).value();
    Rng rng(3);
    for (int i = 0; i < 20; ++i) {
      const space::Candidate candidate = space.instantiate(space.sample(rng)).value();
      const std::vector<Nest> nests = build_nests(candidate.state, candidate.bounds);
      const std::vector<RootTraffic> shared = shared_traffic(nests, target.cpu(), 1);
      const CpuMeasure apart = measure_cpu(nests, target.cpu(), 1);
      ASSERT_EQ(shared.size(), apart.roots.size());
      for (size_t r = 0; r < shared.size(); ++r) {
        ASSERT_EQ(shared[r].root, apart.roots[r].stage);
        ASSERT_EQ(shared[r].bytes.size(), target.cpu().caches.size());
        if (apart.roots[r].stages.size() > 1) continue;
        ++alone;
        for (size_t level = 1; level < shared[r].bytes.size(); ++level) {
          const double bytes = apart.roots[r].stages[0].bytes[level];
          moved_some += bytes > 0 ? 1 : 0;
          EXPECT_NEAR(shared[r].bytes[level], bytes, 1e-9 * bytes);
        }
      }
    }
  }
  EXPECT_GT(alone, 0);
  EXPECT_GT(moved_some, 0);
}

}  // namespace
}  // namespace hone::analysis
