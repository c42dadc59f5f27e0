#include "hone/neural/backed_model.h"

#include <gtest/gtest.h>

#include "hone/base/log.h"
#include "hone/cost/embedder.h"
#include "hone/session/cost_models.h"
#include "hone/session/neural_model_testing.h"

namespace hone {
namespace {

// Says that every schedule of a product takes a second, and cannot judge other kernels.
class ProductModel : public cost::CostModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "products"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    for (const cost::Query& query : queries) HONE_RETURN_IF_ERROR(check(query));
    return std::vector<double>(queries.size(), 1.0);
  }
  [[nodiscard]] Status update(std::span<const cost::Observation> observations) override {
    for (const cost::Observation& one : observations) HONE_RETURN_IF_ERROR(check(one.query));
    observed_ += observations.size();
    return ok_status();
  }
  [[nodiscard]] bool learns() const override { return true; }
  [[nodiscard]] uint64_t revision() const override { return observed_; }

 private:
  static Status check(const cost::Query& query) {
    if (compute::kernel_class(*query.candidate->dag) == "matmul") return ok_status();
    return error(Code::kUnsupported, "it has 9 loops, expected at most 6");
  }
  uint64_t observed_ = 0;
};

// The warnings that are written meanwhile.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel, std::string_view line) { lines.emplace_back(line); });
  }
  ~Warnings() { set_log_sink({}); }
  std::vector<std::string> lines;
};

const cost::net::Family& metatune() { return *cost::net::find_family("metatune").value(); }

TEST(backed_model, what_it_cannot_judge_the_default_model_guides) {
  const Sampled product(compute::testing::gemm(64, 48, 32), 4);
  const Sampled rows(compute::testing::softmax(16, 64, 1), 4);
  std::vector<cost::Query> both = product.queries;
  both.insert(both.end(), rows.queries.begin(), rows.queries.end());
  const std::string usual = cost::default_model(target::host());
  const std::vector<double> expected =
      cost::make_model(usual).value()->predict(rows.queries).value();

  const auto backed = make_backed_model(std::make_unique<ProductModel>(), "my.onnx");
  EXPECT_EQ(backed->name(), "products");
  EXPECT_EQ(backed->revision(), 0U);
  Warnings warnings;
  for (int i = 0; i < 2; ++i) {
    const std::vector<double> seconds = backed->predict(both).value();
    EXPECT_EQ(std::vector<double>(seconds.begin(), seconds.begin() + 4), std::vector<double>(4, 1));
    EXPECT_EQ(std::vector<double>(seconds.begin() + 4, seconds.end()), expected);
    EXPECT_GT(backed->revision(), 0U);
  }
  EXPECT_EQ(warnings.lines,
            (std::vector<std::string>{fmt::format(
                "cost model my.onnx: the kernel softmax is guided by '{}' instead: it has 9 loops, "
                "expected at most 6",
                usual)}));
}

TEST(backed_model, who_guides_a_kernel_learns_of_it) {
  const Sampled product(compute::testing::gemm(64, 48, 32), 4);
  const Sampled rows(compute::testing::softmax(16, 64, 1), 4);
  const auto backed = make_backed_model(std::make_unique<ProductModel>(), "my.onnx");
  const Warnings warnings;
  std::vector<cost::Observation> observations;
  for (const cost::Query& query : rows.queries) observations.push_back({query, 1e-3});
  ASSERT_TRUE(backed->update(observations).ok());
  EXPECT_EQ(warnings.lines.size(), 1U);
  const uint64_t before = backed->revision();
  observations.clear();
  for (const cost::Query& query : product.queries) observations.push_back({query, 1e-3});
  ASSERT_TRUE(backed->update(observations).ok());
  EXPECT_EQ(backed->revision(), before + 4) << "the model itself heard of the product";
  EXPECT_EQ(backed->predict(product.queries).value(), std::vector<double>(4, 1));
}

// A whole net: it reads what fits into its template, and judges nothing else.
TEST(backed_model, a_net_of_templates_leaves_larger_kernels_to_the_default_model) {
  const TempDir folder = TempDir::create().value();
  const std::string path = folder.file("super.onnx");
  cost::net::Net written =
      cost::net::make_net(metatune(), cost::net::all_inputs(), {{"super", 1}, {"width", 4}})
          .value();
  cost::net::initialise(written, 3);
  NetCard card;
  card.notes = {{"options", "super=1,width=4"}};
  ASSERT_TRUE(write_net(path, written, card).ok());
  const std::string db = folder.file("hone.db");
  const auto guide = make_cost_model({.cost = path, .db = db}).value();

  const compute::Dag dag = compute::testing::gemm(64, 48, 512);
  const auto deep =
      space::make_candidate(dag, *schedule::parse_steps("split(matmul, k, [2, 2, 2, 2, 2, 2])"))
          .value();
  const auto flat = space::make_candidate(dag, {}).value();
  const auto query = [&](const space::Candidate& candidate, uint64_t task) {
    return cost::Query{&candidate, &target::host(), 1, task};
  };
  const std::vector<cost::Query> fits = {query(flat, 1)}, larger = {query(deep, 2)};
  Warnings warnings;
  const Result<std::vector<double>> judged = guide->predict(fits), left = guide->predict(larger);
  ASSERT_TRUE(judged.ok() && left.ok()) << judged.status().message() << left.status().message();
  const auto usual = cost::make_model(cost::default_model(target::host())).value();
  EXPECT_EQ(*left, usual->predict(larger).value());
  EXPECT_NE(*judged, usual->predict(fits).value());
  ASSERT_EQ(warnings.lines.size(), 1U);
  EXPECT_NE(warnings.lines[0].find("the kernel matmul is guided by"), std::string::npos);
  EXPECT_NE(
      warnings.lines[0].find("matmul has 7 loops over terms or of a body, expected at most 4"),
      std::string::npos)
      << warnings.lines[0];
  // Who judges the net itself is told what it cannot judge.
  const auto ranks = make_cost_model({.cost = path, .db = db, .use = cost::Use::kRank}).value();
  EXPECT_EQ(ranks->predict(larger).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace hone
