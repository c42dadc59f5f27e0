// session/size_costs.h - predicts the seconds of schedules in runs of smaller sizes, by the static
// measure of their loop nests (analysis/cpu_measure.h): loops end where the elements end that such
// a run needs.
#pragma once

#include <optional>
#include <vector>

#include "hone/analysis/limited_nests.h"
#include "hone/graph/size_form.h"
#include "hone/session/limit_tasks.h"
#include "hone/space/space.h"

namespace hone {

// The part of an axis of a stage that is needed: ceil((unit * size - beyond) / scale), within 1 to
// most.
struct SizedAxis {
  int stage = 0, axis = 0;
  int form = 0;
  int64_t unit = 1, beyond = 0, scale = 1;
  int64_t most = 1, period = 0;  // as analysis::AxisPart::period
};

// A task of which smaller runs need a part. Both arguments must outlive it.
class SizedTask {
 public:
  SizedTask(const compute::Dag& dag, const KernelLimits& limits);
  [[nodiscard]] const compute::Dag& dag() const { return dag_; }
  // Returns the axes of a schedule's stages of which a part is enough.
  [[nodiscard]] std::vector<SizedAxis> axes_of(const schedule::State& state) const;

 private:
  [[nodiscard]] std::vector<ir::SizeLimit> limits_of(const ir::BufferPtr& buffer) const;
  void add_limits(int s, const schedule::StageState& stage, std::vector<SizedAxis>& axes) const;
  void add_end(int s, const schedule::StageState& stage, std::vector<SizedAxis>& axes) const;

  const compute::Dag& dag_;
  const KernelLimits& limits_;
  ir::Program naive_;
  ir::SizeLimits found_;
};

// The places of a schedule's constants when the kernel runs: schedules with equal places read the
// same bytes.
using ConstantPlaces = std::vector<std::vector<int64_t>>;

class SizedSchedule {
 public:
  // Returns nothing if the steps do not apply.
  static std::optional<SizedSchedule> create(const SizedTask& task, schedule::Steps steps);
  [[nodiscard]] const schedule::Steps& steps() const { return candidate_.steps; }
  [[nodiscard]] const ConstantPlaces& places() const { return places_; }
  // Returns the predicted seconds; `sizes` are the values of the forms.
  [[nodiscard]] double seconds(const std::vector<int64_t>& sizes, const target::Cpu& cpu,
                               int threads) const;

 private:
  std::vector<SizedAxis> axes_;
  std::vector<analysis::Nest> nests_;
  analysis::NestLimits limits_;  // those of the axes
  space::Candidate candidate_;
  ConstantPlaces places_;
};

// The sizes of runs from the smallest to the largest, which all symbols approach together.
class SizeRange {
 public:
  // `form` counts in value() and grid().
  SizeRange(const graph::Varying& varying, int form) : varying_(varying), form_(form) {}
  // Returns the values of all forms. `part` is from 0, the smallest size, to 1; sizes that are as
  // far apart have a ratio in common.
  [[nodiscard]] std::vector<int64_t> at(double part) const;
  [[nodiscard]] std::vector<int64_t> symbols(double part) const;  // those of this size
  [[nodiscard]] int form() const { return form_; }
  [[nodiscard]] int64_t value(double part) const { return at(part)[static_cast<size_t>(form_)]; }
  // Returns at most `count` parts, from 0 to 1, with different values of the form.
  [[nodiscard]] std::vector<double> grid(int count) const;

 private:
  const graph::Varying& varying_;
  const int form_;
};

}  // namespace hone
