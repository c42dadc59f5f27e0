#include "hone/cost/gpu_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/cost/boosting.h"
#include "hone/cost/registry.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::cost {
namespace {

const target::Target& device() {
  static const target::Target target = target::find("cuda-sm_90a").value();
  return target;
}

// Numbers of the row of one schedule, by name.
class Row {
 public:
  Row(const compute::Dag& dag, std::string_view steps, const target::Target& target = device()) {
    const space::Candidate candidate =
        space::make_candidate(dag, schedule::parse_steps(steps).value()).value();
    row_ = gpu_features({&candidate, &target, 1, 0}).row;
  }
  double operator[](std::string_view name) const {
    const std::vector<std::string>& names = gpu_feature_names();
    const auto found = std::find(names.begin(), names.end(), name);
    EXPECT_NE(found, names.end()) << name;
    return found == names.end() ? NAN : row_[static_cast<size_t>(found - names.begin())];
  }

 private:
  std::vector<float> row_;
};

TEST(gpu_features, have_distinct_names) {
  std::vector<std::string> names = gpu_feature_names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end())
      << *std::adjacent_find(names.begin(), names.end());
}

TEST(gpu_features, say_how_a_product_is_divided) {
  const compute::Dag dag = compute::testing::gemm(256, 512, 64);
  const Row row(
      dag, schedule::product_in_threads({.m_threads = 16, .m = 4, .n_threads = 8, .n = 8, .k = 8}));
  EXPECT_EQ(row["launch.blocks"], std::log2(1.0F + 32));
  EXPECT_EQ(row["launch.threads"], std::log2(1.0F + 128));
  EXPECT_EQ(row["launch.lanes_used"], 1);
  EXPECT_EQ(row["stages.shared"], 2);
  EXPECT_EQ(row["stages.fragment"], 1);
  // Rows of the left operand move with m, those of the right one with n.
  EXPECT_EQ(row["tile.second.threads"], 3);
  EXPECT_EQ(row["tile.second.unrolled"], 3);
  EXPECT_EQ(row["tile.neither.blocks"], 5);  // what a block has in shared memory moves with none
  EXPECT_EQ(row["tile.column.threads"], 4);
  EXPECT_EQ(row["tile.column.unrolled"], 2);
  EXPECT_EQ(row["tile.sum.turns"], 3);
  EXPECT_EQ(row["tile.sum.serial"], 3);
  EXPECT_EQ(row["main.turns"], std::log2(1.0F + 8));
  EXPECT_EQ(row["main.independent"], std::log2(1.0F + 32));
  EXPECT_EQ(row["first.scope"], static_cast<double>(ir::Scope::kShared));
}

TEST(gpu_features, tell_how_lanes_access_memory) {
  const compute::Dag dag = compute::testing::gemm(512, 512, 8);
  const auto with = [&](std::string_view thread) {
    return Row(dag, fmt::format("parallel(matmul, m)\nsplit(matmul, n, [32])\n"
                                "reorder(matmul, [m, {0}, {1}])\nbind(matmul, {1}, thread)\n",
                                thread == "n.1" ? "n.0" : "n.1", thread));
  };
  const Row beside = with("n.1"), apart = with("n.0");
  EXPECT_EQ(beside["result.cost"], 4);  // 32 floats beside each other
  EXPECT_EQ(apart["result.cost"], 16);  // 16 threads, 32 floats apart
  EXPECT_EQ(beside["result.lane"], std::log2(1.0F + 4));
  EXPECT_EQ(apart["result.lane"], std::log2(1.0F + 128));
}

// On a device with so little shared memory a block does not fit, and no number may be infinite.
TEST(gpu_features, are_finite_where_a_block_does_not_fit) {
  target::Target small = device();
  small.gpu().shared_bytes_opt_in = small.gpu().shared_bytes_per_sm = 1024;
  const compute::Dag dag = compute::testing::gemm(256, 512, 64);
  const Row row(
      dag, schedule::product_in_threads({.m_threads = 16, .m = 4, .n_threads = 8, .n = 8, .k = 8}),
      small);
  for (const std::string& name : gpu_feature_names()) EXPECT_TRUE(std::isfinite(row[name])) << name;
}

// The measured times are those of another device than the measure describes: half of the blocks'
// threads cost twice as much. Trees learn it while tuning.
TEST(gpu_model, starts_as_the_analytic_one_and_learns) {
  if (!boosting_status().ok()) GTEST_SKIP() << boosting_status().message();
  const std::unique_ptr<CostModel> model = make_model("gpu").value();
  const std::unique_ptr<CostModel> analytic = make_model("analytic").value();
  EXPECT_FALSE(model->knows(target::Kind::kCpu));
  const compute::Dag dag = compute::testing::gemm(512, 512, 256);
  const space::Space space = space::Space::create(dag, device()).value();
  std::vector<space::Candidate> candidates;
  Rng rng(7);
  while (candidates.size() < 96) {
    Result<space::Candidate> candidate = space.instantiate(space.sample(rng));
    if (candidate.ok()) candidates.push_back(std::move(candidate).value());
  }
  std::vector<Query> queries;
  for (const space::Candidate& candidate : candidates)
    queries.push_back({&candidate, &device(), 1, 1});
  const std::vector<double> guessed = analytic->predict(queries).value();
  EXPECT_EQ(model->predict(queries).value(), guessed);

  std::vector<Observation> observations;
  const auto& names = gpu_feature_names();
  const auto threads =
      static_cast<size_t>(std::find(names.begin(), names.end(), "launch.threads") - names.begin());
  for (size_t i = 0; i < queries.size(); ++i) {
    const bool slow = gpu_features(queries[i]).row[threads] > 7;
    observations.push_back({queries[i], guessed[i] * (slow ? 8 : 1)});
  }
  ASSERT_TRUE(model->update(observations).ok());
  const std::vector<double> learned = model->predict(queries).value();
  int right = 0, wrong = 0, before = 0;
  for (size_t i = 0; i < queries.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool slower = observations[i].seconds > observations[j].seconds;
      ++((learned[i] > learned[j]) == slower ? right : wrong);
      before += (guessed[i] > guessed[j]) == slower;
    }
  }
  EXPECT_GT(right, before);
  EXPECT_LT(wrong, 0.25 * right);
}

TEST(gpu_model, trees_of_cpus_do_not_predict_for_gpus) {
  const compute::Dag dag = compute::testing::gemm(64, 64, 64);
  const space::Candidate candidate = space::default_candidate(dag, device()).value();
  const Query query{&candidate, &device(), 1, 0};
  EXPECT_EQ(make_model("combined").value()->predict(std::span(&query, 1)).status().message(),
            "cost model 'combined' does not know devices like cuda-sm_90a");
}

}  // namespace
}  // namespace hone::cost
