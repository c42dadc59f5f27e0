#include "hone/compute/dag_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

// out[i, k, j] = data[k, i, j] + bias[j, i], or data[k, j, i] + bias[j, i] if `reversed`.
compute::Dag permuted(int64_t i, int64_t j, int64_t k, bool reversed) {
  compute::DagBuilder b;
  const auto data = reversed ? b.input("data", {k, j, i}) : b.input("data", {k, i, j});
  const auto bias = b.input("bias", {j, i}), out = b.output("out", {i, k, j});
  const std::vector<compute::Axis> a = {compute::make_axis("i", i), compute::make_axis("k", k),
                                        compute::make_axis("j", j)};
  const auto v = compute::variables(a);
  const ir::Expr x =
      reversed ? ir::load(data, {v[1], v[2], v[0]}) : ir::load(data, {v[1], v[0], v[2]});
  b.pointwise("permuted", a, compute::View(out), x + ir::load(bias, {v[2], v[0]}));
  return schedule::built(std::move(b));
}

std::string default_steps(const compute::Dag& dag, const target::Target& target = small_gpu()) {
  const Result<Space> space = Space::create(dag, target);
  EXPECT_TRUE(space.ok()) << space.status().message();
  return space.ok() ? schedule::to_string(space->steps(space->default_point())) : "";
}

TEST(gpu_transposes, odd_shapes) {
  for (const int64_t n : {1, 2, 3, 7, 13, 17, 31, 33, 97}) {
    for (const int64_t m : {7, 36, 64}) {
      SCOPED_TRACE(fmt::format("{} x {}", n, m));
      expect_points(transpose(m, n, 3, 0), 4);
      expect_points(permuted(n, m, 2, true), 3);
    }
    expect_points(transpose(13, 3, n, 1), 4);
    expect_points(permuted(33, n, 2, false), 3);
  }
}

// The rows of what is copied would lie along another dimension than the last one.
TEST(gpu_transposes, an_operand_with_one_column_is_read_as_it_is) {
  const compute::Dag dag = transpose(24, 40, 1, 0);
  EXPECT_EQ(default_steps(dag).find("cache_read"), std::string::npos);
  expect_points(dag, 4);
}

TEST(gpu_transposes, an_operand_without_dimensions_is_read_as_it_is) {
  compute::DagBuilder b;
  const auto data = b.input("data", {24, 40}), scale = b.input("scale", {});
  const auto out = b.output("out", {24, 40});
  const std::vector<compute::Axis> a = {compute::make_axis("i", 24), compute::make_axis("j", 40)};
  b.pointwise("scaled", a, compute::View(out),
              ir::load(data, compute::variables(a)) * ir::load(scale, {}));
  const compute::Dag dag = schedule::built(std::move(b));
  EXPECT_EQ(default_steps(dag).find("cache_read"), std::string::npos);
}

TEST(gpu_transposes, tiles_pass_through_shared_memory) {
  for (const compute::Dag& dag : {transpose(64, 9, 9, 0), permuted(40, 24, 3, true)}) {
    const std::string steps = default_steps(dag);
    EXPECT_NE(steps.find("scope(data.cache, shared)"), std::string::npos) << steps;
  }
  // Each operand that lies in another order has a tile; others are read as they are.
  const std::string both = default_steps(permuted(40, 24, 3, true));
  EXPECT_NE(both.find("scope(bias.cache, shared)"), std::string::npos) << both;
  const std::string one = default_steps(permuted(40, 24, 3, false));
  EXPECT_EQ(one.find("data.cache"), std::string::npos) << one;
  EXPECT_NE(one.find("scope(bias.cache, shared)"), std::string::npos) << one;
}

TEST(gpu_transposes, tiles_are_smaller_where_there_are_few) {
  target::Target target = small_gpu();
  const std::string few = default_steps(transpose(256, 16, 16, 0), target);
  target.gpu().sms = 100;
  const std::string many = default_steps(transpose(256, 16, 16, 0), target);
  EXPECT_NE(few.find("[64]"), std::string::npos) << few;
  EXPECT_EQ(many.find("[64]"), std::string::npos) << many;
}

// Short rows of results are better read by neighbouring threads.
TEST(gpu_transposes, images_of_three_channels_need_no_tiles) {
  EXPECT_EQ(default_steps(transpose(3, 64, 64, 0)).find("shared"), std::string::npos);
}

// A block of few threads does what it can.
TEST(gpu_transposes, small_devices) {
  target::Target target = small_gpu();
  target.gpu().threads_per_block = 12;
  target.gpu().shared_bytes = 600;
  expect_points(transpose(64, 9, 9, 0), 4, 1e-5, target);
}

}  // namespace
}  // namespace hone::space
