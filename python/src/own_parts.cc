#include "own_parts.h"

#include <nanobind/stl/string.h>

#include <cmath>
#include <utility>

#include "errors.h"
#include "number_arrays.h"
#include "tasks.h"

namespace hone::python {

PythonStrategy::PythonStrategy(nb::handle strategy, PythonCalls& calls)
    : strategy_(nb::borrow(strategy)), calls_(calls) {
  const nb::object size = nb::getattr(strategy, "batch_size", nb::none());
  if (size.is_none()) return;
  if (!nb::try_cast(size, batch_size_) || batch_size_ < 1)
    raise_input_error(std::string("the strategy's batch_size is ") + nb::repr(size).c_str() +
                      ", expected a whole number above 0 or None");
}

nb::object PythonStrategy::object_of(const ModelTask& task) {
  for (const auto& [known, object] : tasks_) {
    if (known == task) return object;
  }
  return tasks_.emplace_back(task, task_object(task)).second;
}

Result<PointRows> PythonStrategy::propose(const ModelTask& task, int count) {
  PointRows points;
  const Status status = calls_.run([&] {
    const nb::object proposed = strategy_.attr("propose")(object_of(task), count);
    if (proposed.is_none()) return;
    points = points_from(proposed, "the strategy's proposal");
    if (std::cmp_greater(points.size(), count))
      raise_input_error("the strategy proposed " + std::to_string(points.size()) +
                        " points, expected at most " + std::to_string(count));
    static_cast<void>(value_or_raise(task.legal(points)));  // each of them exists
  });
  if (!status.ok()) return status;
  return points;
}

Status PythonStrategy::observe(const ModelTask& task, const PointRows& points,
                               std::span<const double> seconds) {
  return calls_.run([&] {
    strategy_.attr("observe")(object_of(task), to_rows(points),
                              to_numbers(std::vector<double>(seconds.begin(), seconds.end())));
  });
}

PythonCostModel::PythonCostModel(nb::handle model, PythonCalls& calls)
    : model_(nb::borrow(model)),
      batch_(nb::module_::import_("hone._search").attr("Batch")),
      calls_(calls),
      learns_(nb::cast<bool>(nb::module_::import_("hone._search").attr("learns")(model))) {
  const nb::object features = nb::getattr(model, "features", nb::none());
  if (features.is_none()) return;
  if (!nb::try_cast(features, features_))
    raise_input_error(std::string("the cost model's features are of the Python type ") +
                      nb::type_name(features.type()).c_str() +
                      ", expected a name of hone.feature_sets() or None");
}

nb::object PythonCostModel::batch_object(FeatureBatch batch) const {
  const size_t count = batch.rows.size(), width = batch.rows.width;
  return batch_(to_rows(std::move(batch.rows.values), count, width),
                to_numbers(std::move(batch.rows.estimates)), batch.task, batch.threads);
}

namespace {

void check_times(std::span<const double> seconds, size_t count) {
  if (seconds.size() != count)
    raise_input_error("the cost model predicted " + std::to_string(seconds.size()) +
                      " times, expected " + std::to_string(count));
  for (size_t i = 0; i < count; ++i) {
    if (!(seconds[i] > 0) || !std::isfinite(seconds[i]))
      raise_input_error("the cost model predicted " + std::to_string(seconds[i]) +
                        " seconds for row " + std::to_string(i) + ", expected a number above 0");
  }
}

}  // namespace

Result<std::vector<double>> PythonCostModel::predict(FeatureBatch batch) {
  const size_t count = batch.rows.size();
  std::vector<double> seconds;
  const Status status = calls_.run([&] {
    seconds = numbers_from(model_.attr("predict")(batch_object(std::move(batch))),
                           "the cost model's prediction");
    check_times(seconds, count);
  });
  if (!status.ok()) return status;
  return seconds;
}

Result<bool> PythonCostModel::update(FeatureBatch batch, std::span<const double> seconds) {
  bool changed = true;
  const Status status = calls_.run([&] {
    const nb::object result =
        model_.attr("update")(batch_object(std::move(batch)),
                              to_numbers(std::vector<double>(seconds.begin(), seconds.end())));
    changed = result.ptr() != Py_False;
  });
  if (!status.ok()) return status;
  return changed;
}

}  // namespace hone::python
