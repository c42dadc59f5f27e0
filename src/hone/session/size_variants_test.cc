#include "hone/session/size_variants.h"

#include <gtest/gtest.h>

#include <limits>

#include "hone/compute/dag_testing.h"

namespace hone {
namespace {

target::Target avx2() {
  target::Cpu cpu;
  cpu.vector_bytes = 32;
  cpu.vector_registers = 16;
  cpu.caches = {{1, 32 << 10, 64, 1, 64}, {2, 1 << 20, 64, 1, 32}, {3, 16 << 20, 64, 2, 16}};
  return {.part = cpu};
}

// Rows 1 to 512 of a product.
struct Rows {
  graph::TaskCall call;
  graph::Varying varying;
  KernelLimits limits;
};
Rows product_of_rows(int64_t least = 1) {
  Rows rows;
  rows.call.dag = compute::testing::gemm(512, 256, 256);
  rows.varying.symbols = {{"rows", least, 512}};
  rows.varying.forms = {{{{1, {0}}}, 0, 1}};
  rows.varying.sizes = 0;
  rows.limits.outputs = {{rows.call.dag.params.size() - 1, {.form = 0, .dimension = 0}}};
  return rows;
}

SizeVariants variants_of(const Rows& rows, const schedule::Steps& own) {
  const target::Target target = avx2();
  const Task task(rows.call.dag, 1, target);
  const auto predict = [](const schedule::Steps&) { return 1.0; };
  const VariantContext context{&rows.varying, &target, trial::Accuracy::kStrict, 2, 1, predict};
  return choose_variants(rows.call, task, own, rows.limits, context);
}

schedule::Steps default_steps(const compute::Dag& dag) {
  const target::Target target = avx2();
  const Result<space::Space> space = space::Space::create(dag, target);
  return space->steps(space->default_point());
}

TEST(size_variants, few_rows_have_a_schedule_of_their_own) {
  const Rows rows = product_of_rows();
  const SizeVariants variants = variants_of(rows, default_steps(rows.call.dag));
  ASSERT_FALSE(variants.others.empty());
  // The intervals follow each other from the smallest size on; the kernel's own is the last one.
  int64_t from = 0;
  for (const SizeVariant& variant : variants.others) {
    EXPECT_EQ(variant.when.form, 0);
    EXPECT_EQ(variant.when.from, from);
    EXPECT_GE(variant.when.most, std::max<int64_t>(from, 1));
    EXPECT_LT(variant.when.most, 512);
    EXPECT_LT(variant.share, 1);
    EXPECT_TRUE(space::make_candidate(rows.call.dag, variant.steps).ok());
    from = variant.when.most + 1;
  }
  EXPECT_EQ(variants.own.form, 0);
  EXPECT_EQ(variants.own.from, from);
  EXPECT_EQ(variants.own.most, std::numeric_limits<int64_t>::max());
}

TEST(size_variants, sizes_near_the_largest_have_none) {
  const Rows rows = product_of_rows(500);
  EXPECT_TRUE(variants_of(rows, default_steps(rows.call.dag)).others.empty());
}

TEST(size_variants, a_kernel_without_limits_has_none) {
  Rows rows = product_of_rows();
  rows.limits.outputs.clear();
  EXPECT_TRUE(variants_of(rows, default_steps(rows.call.dag)).others.empty());
}

}  // namespace
}  // namespace hone
