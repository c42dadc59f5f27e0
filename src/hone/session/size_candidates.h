// session/size_candidates.h - schedules of a kernel that may be good for runs of smaller sizes than
// the largest, with their predicted seconds at some sizes, which measurements correct.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hone/graph/size_form.h"
#include "hone/session/size_costs.h"
#include "hone/session/size_times.h"
#include "hone/session/task.h"

namespace hone {

// The facts beside the kernel on which the choice of its variants depends.
struct VariantContext {
  const graph::Varying* varying;
  const target::Target* target;
  trial::Accuracy accuracy;
  int threads;
  uint64_t seed;
  // Returns the seconds of the task with other steps at the largest size, by the session's cost
  // model.
  std::function<double(const schedule::Steps&)> predict;
  // Another schedule may take the place of the kernel's own, so that weights lie otherwise. If the
  // own one was measured, only measured times can replace it.
  bool may_replace = false, is_tuned = false;
  const ScheduleTimes* times = nullptr;  // what was measured of the task at some sizes; may be null
};

// Returns schedules that were measured before and that the accuracy allows, so many at most.
[[nodiscard]] std::vector<schedule::Steps> known_schedules(
    const VariantContext& context, size_t most = std::numeric_limits<size_t>::max());

// Returns whether a schedule computes sums of rows in place of rows (Winograd, Strassen).
[[nodiscard]] bool mixes_rows(const schedule::Steps& steps);

// A schedule, with the predicted seconds at the sizes of the grid.
struct SizeCandidate {
  SizedSchedule schedule;
  std::vector<double> seconds;
  std::optional<double> predicted;  // seconds at the largest size by the cost model, if asked
  bool is_corrected = false;        // `seconds` is corrected by that
  SizeCorrection measured;
};
// Those that read the same weights.
using Layouts = std::map<ConstantPlaces, std::vector<SizeCandidate>>;

class SizeCandidates {
 public:
  // Returns the form that decides which schedule runs: that of the kernel's limits that varies
  // most; -1: none.
  [[nodiscard]] static int deciding_form(const KernelLimits& limits, const graph::Varying& varying);

  // All arguments must outlive it.
  SizeCandidates(const graph::TaskCall& call, const KernelLimits& limits,
                 const VariantContext& context, const space::Space& space, int form);
  // Adds the kernel's own schedule, and others: points of its space, random ones and those near
  // its own, schedules with shorter innermost tiles, and all that were measured. Returns false if
  // its own does not apply.
  [[nodiscard]] bool add_all(const schedule::Steps& own);
  // Adds a schedule, unless it is there or computes sums of rows where the kernel's own does not.
  void add(const schedule::Steps& steps);
  // Adds schedules that are near this one.
  void add_near(const schedule::Steps& of);

  [[nodiscard]] Layouts& layouts() { return layouts_; }
  [[nodiscard]] const ConstantPlaces& own_places() const { return own_places_; }
  // Returns those that read the weights of the kernel's own schedule, which is the first one.
  [[nodiscard]] std::vector<SizeCandidate>& same() { return layouts_[own_places_]; }
  [[nodiscard]] bool own_mixes_rows() const { return mixes_; }
  [[nodiscard]] const SizeRange& range() const { return range_; }
  [[nodiscard]] const std::vector<double>& grid() const { return grid_; }
  // Returns the sizes at which schedules are measured, as indices into the grid: the smallest, that
  // near a quarter of the largest, the largest.
  [[nodiscard]] std::vector<size_t> measured_sizes() const;
  // If the kernel's own schedule was measured at these sizes, all schedules that were not are
  // removed, and the times of the others become those that were measured.
  void take_measured();
  [[nodiscard]] bool is_measured() const { return is_measured_; }  // whether that was so

  [[nodiscard]] double seconds(const SizeCandidate& one, double part) const;
  void measure(SizeCandidate& one) const;  // anew, without the cost model's correction
  double predicted(SizeCandidate& one) const;
  // Applies the ratio that the cost model predicts for the largest size to all sizes: times become
  // those of the first candidate there, by the static measure, times this ratio.
  void correct(SizeCandidate& one, SizeCandidate& first) const;

 private:
  [[nodiscard]] std::optional<SizeCandidate> candidate(const schedule::Steps& steps) const;
  void add(const std::vector<space::Point>& points);
  void add_short_tiles(const schedule::Steps& of);
  void add_sweeps(const space::Point& of, std::vector<space::Point>& points) const;
  [[nodiscard]] std::vector<space::Point> mutants(const schedule::Steps& of);
  void add_times(SizeCandidate& one) const;

  const compute::Dag& dag_;
  const KernelLimits& limits_;
  const VariantContext& context_;
  const space::Space& space_;
  Rng rng_;
  std::set<std::string> seen_;  // texts of schedules
  std::string algorithm_;       // that of the kernel's own schedule
  bool mixes_ = false;          // whether that mixes rows
  bool is_measured_ = false;
  ConstantPlaces own_places_;
  Layouts layouts_;
  const SizedTask task_;
  const SizeRange range_;
  const std::vector<double> grid_;
  std::vector<std::vector<int64_t>> grid_sizes_;  // the values of all forms, by the grid
};

}  // namespace hone
