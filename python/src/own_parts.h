// own_parts.h - search strategies and cost models that are objects of Python.
#pragma once

#include <hone/own_search.h>
#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "python_calls.h"

namespace hone::python {

// An object with propose(task, n), observe(task, points, seconds) and maybe batch_size, as
// hone.SearchStrategy has.
class PythonStrategy : public OwnStrategy {
 public:
  // Both must outlive it, and it is made and destroyed with the GIL.
  PythonStrategy(nanobind::handle strategy, PythonCalls& calls);
  [[nodiscard]] int batch_size() const override { return batch_size_; }
  [[nodiscard]] Result<PointRows> propose(const ModelTask& task, int count) override;
  [[nodiscard]] Status observe(const ModelTask& task, const PointRows& points,
                               std::span<const double> seconds) override;

 private:
  // The object of a task is always the same one.
  [[nodiscard]] nanobind::object object_of(const ModelTask& task);

  nanobind::object strategy_;
  PythonCalls& calls_;
  std::vector<std::pair<ModelTask, nanobind::object>> tasks_;
  int batch_size_ = 0;
};

// An object with predict(batch) and maybe update(batch, seconds) and features, as hone.CostModel
// has.
class PythonCostModel : public OwnCostModel {
 public:
  PythonCostModel(nanobind::handle model, PythonCalls& calls);
  [[nodiscard]] std::string features() const override { return features_; }
  [[nodiscard]] bool learns() const override { return learns_; }
  [[nodiscard]] Result<std::vector<double>> predict(FeatureBatch batch) override;
  [[nodiscard]] Result<bool> update(FeatureBatch batch, std::span<const double> seconds) override;

 private:
  [[nodiscard]] nanobind::object batch_object(FeatureBatch batch) const;

  nanobind::object model_, batch_;
  PythonCalls& calls_;
  std::string features_;
  bool learns_;
};

}  // namespace hone::python
