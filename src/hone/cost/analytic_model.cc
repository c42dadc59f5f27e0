#include "hone/cost/analytic_model.h"

#include "hone/analysis/cpu_measure.h"
#include "hone/analysis/gpu_measure.h"

namespace hone::cost {
namespace {

class AnalyticModel : public CostModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "analytic"; }
  [[nodiscard]] Result<std::vector<double>> predict(std::span<const Query> queries) const override {
    std::vector<double> seconds;
    for (const Query& query : queries) seconds.push_back(predict(query));
    return seconds;
  }
  [[nodiscard]] static double predict(const Query& query) {
    const space::Candidate& candidate = *query.candidate;
    if (query.target->kind() == target::Kind::kGpu) {
      const target::Gpu& gpu = query.target->gpu();
      return analysis::measure_gpu(candidate.state, candidate.bounds, gpu).seconds(gpu);
    }
    return analysis::measure_cpu(candidate.state, candidate.bounds, query.cpu(), query.threads)
        .seconds(query.cpu(), query.threads);
  }
  [[nodiscard]] bool knows(target::Kind) const override { return true; }
  // Its constants describe the target; measurements correct it elsewhere, per task.
  [[nodiscard]] Status update(std::span<const Observation>) override { return ok_status(); }
};

}  // namespace

std::unique_ptr<CostModel> make_analytic_model() { return std::make_unique<AnalyticModel>(); }

}  // namespace hone::cost
