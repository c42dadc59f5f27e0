// search/searcher_testing.h - a real space with made-up times, for tests of strategies.
#pragma once

#include <algorithm>
#include <cmath>

#include "hone/compute/dag_testing.h"
#include "hone/search/policy.h"

namespace hone::search::testing {

// Knows nothing or, with a skew, ranks schedules by the number of loops of their last stage, as a
// bad model does.
class BlindModel : public cost::CostModel {
 public:
  explicit BlindModel(double skew = 0) : skew_(skew) {}
  [[nodiscard]] std::string_view name() const override { return "blind"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    std::vector<double> seconds;
    for (const cost::Query& query : queries) {
      seconds.push_back(
          1e-3 *
          (1 + skew_ * static_cast<double>(query.candidate->state.stages.back().order.size())));
    }
    return seconds;
  }
  [[nodiscard]] Status update(std::span<const cost::Observation>) override { return ok_status(); }

 private:
  double skew_;
};

inline std::unique_ptr<Searcher> make_searcher(std::string_view strategy, const SearchTask& task) {
  return std::move(make_policy(strategy)).value()->make_searcher(task);
}

struct Fixture {
  target::Target target;
  compute::Dag dag = compute::testing::conv2d({.h = 14, .w = 14, .ic = 32, .oc = 64});
  Result<space::Space> space = space::Space::create(dag, target);
  BlindModel model;
  [[nodiscard]] SearchTask task(uint64_t seed) const {
    return {&*space, &target, &model, 1, 42, seed};
  }
  // Returns the seconds of a point, which are smooth in its decisions and least somewhere inside.
  [[nodiscard]] double seconds(const space::Point& point) const {
    double cost = 1;
    const std::vector<float> x = space->encode(point);
    for (size_t i = 0; i < x.size(); ++i)
      cost += std::pow(x[i] - 0.3 - 0.4 * static_cast<double>(i % 2), 2);
    return cost * 1e-4;
  }
  // Measures `trials` points in batches of 8 and returns their seconds.
  [[nodiscard]] std::vector<double> run(std::string_view name, uint64_t seed, int trials) const {
    const std::unique_ptr<Searcher> searcher = make_searcher(name, task(seed));
    std::vector<double> all;
    while (static_cast<int>(all.size()) < trials) {
      const std::vector<space::Point> points = searcher->propose(8);
      if (points.empty()) break;
      std::vector<double> times;
      for (const space::Point& point : points) times.push_back(seconds(point));
      searcher->observe(points, times);
      all.insert(all.end(), times.begin(), times.end());
    }
    return all;
  }
};

inline double best_of(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

}  // namespace hone::search::testing
