#include "hone/session/size_times.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "hone/base/round_up.h"
#include "hone/trial/schedule_version.h"

namespace hone {

std::string part_text(const compute::Dag& dag, const KernelLimits& limits,
                      const std::vector<int64_t>& sizes) {
  std::vector<std::string> parts;
  for (const auto& [param, limit] : limits.outputs) {
    const int64_t extent = dag.params[param].buffer->shape[static_cast<size_t>(limit.dimension)];
    const bool repeats = limit.period > 0 && limit.period < extent;
    const int64_t all = repeats ? limit.period : extent;
    const int64_t end = limit.unit * sizes[static_cast<size_t>(limit.form)] + limit.offset;
    const int64_t needed = end <= 0 ? 0 : ceil_div(end, limit.scale);
    if (needed >= all) continue;
    parts.push_back(fmt::format("{}[{}]{}<{}", param, limit.dimension,
                                repeats ? fmt::format("%{}", limit.period) : "", needed));
  }
  for (const auto& [stage, end] : limits.ends) {
    const int64_t terms = end.unit * sizes[static_cast<size_t>(end.form)] - end.offset;
    if (terms < dag.stages[stage].reduce[0].extent)
      parts.push_back(fmt::format("sum {}<{}", stage, std::max<int64_t>(terms, 0)));
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts.empty() ? "whole" : fmt::format("{}", fmt::join(parts, ", "));
}

Status SizeTimes::load(db::TrialStore& store, uint64_t task) {
  if (std::exchange(is_loaded_[task], true)) return ok_status();
  db::Filter filter;
  filter.task = task;
  filter.device = device_;
  filter.threads = threads_;
  filter.version = kScheduleVersion;
  filter.parts = db::Filter::Parts::kParts;
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> records, store.query(filter));
  for (const trial::Record& record : records) add(record);
  return ok_status();
}

void SizeTimes::add(const trial::Record& record) {
  const bool is_ok = record.outcome == trial::Outcome::kOk;
  times_[record.task][record.steps][record.part] = is_ok ? record.centre : INFINITY;
}

const ScheduleTimes& SizeTimes::of(uint64_t task) const {
  static const ScheduleTimes none;
  const auto found = times_.find(task);
  return found != times_.end() ? found->second : none;
}

void SizeCorrection::add(double part, double predicted, double measured) {
  logs_.emplace_back(part, std::log(measured / predicted));
}

double SizeCorrection::factor(double part) const {
  if (logs_.empty()) return 1;
  const auto next = std::lower_bound(logs_.begin(), logs_.end(), part,
                                     [](const auto& one, double at) { return one.first < at; });
  if (next == logs_.begin()) return std::exp(next->second);
  if (next == logs_.end()) return std::exp(logs_.back().second);
  const auto& [before, log] = *std::prev(next);
  const double share = (part - before) / (next->first - before);
  return std::exp(log + share * (next->second - log));
}

}  // namespace hone
