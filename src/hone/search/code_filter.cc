#include "hone/search/code_filter.h"

#include <algorithm>
#include <cmath>

#include "hone/base/clock.h"
#include "hone/base/option_fields.h"

namespace hone::search {
namespace {

constexpr OptionField<FilterLimits> kFields[] = {
    {"factor", "how many times slower than the best a candidate may seem", 1, 1e6,
     &FilterLimits::factor},
    {"share", "share of each batch that is always measured", 0.01, 1, &FilterLimits::share}};

}  // namespace

Result<FilterLimits> parse_filter_limits(std::string_view options) {
  return parse_fields<FilterLimits>(options, kFields, {});
}

void CodeFilter::predict(Candidate& candidate, const compute::Dag& dag,
                         const target::Target& target, int threads, uint64_t task) {
  if (!candidate.runs()) return;
  const double start = real_clock().now_seconds();
  const Result<space::Candidate> made = space::make_candidate(dag, candidate.steps);
  if (made.ok()) {
    const Result<double> seconds = score_->seconds({&*made, &target, threads, task},
                                                   *candidate.program, candidate.job.executable);
    if (seconds.ok() && std::isfinite(*seconds) && *seconds > 0)
      candidate.predicted_seconds = *seconds;
  }
  const std::lock_guard lock(mutex_);
  counts_.predicted += candidate.predicted_seconds > 0 ? 1 : 0;
  counts_.seconds += real_clock().now_seconds() - start;
}

std::vector<Candidate> CodeFilter::take_out(std::vector<Candidate>& batch, double best) {
  std::vector<Candidate> left_out;
  if (best <= 0) return left_out;
  const auto run =
      std::count_if(batch.begin(), batch.end(), [](const Candidate& c) { return c.runs(); });
  const auto always = static_cast<int64_t>(std::ceil(limits_.share * static_cast<double>(run)));
  const auto stays = [&](const Candidate& candidate) {
    return !candidate.runs() || candidate.trusted ||
           candidate.predicted_seconds <= limits_.factor * best;
  };
  std::vector<const Candidate*> slow;  // the best predicted first
  for (const Candidate& candidate : batch) {
    if (!stays(candidate)) slow.push_back(&candidate);
  }
  std::stable_sort(slow.begin(), slow.end(), [](const Candidate* a, const Candidate* b) {
    return a->predicted_seconds < b->predicted_seconds;
  });
  const int64_t measured = run - std::ssize(slow);
  const int64_t again = std::clamp<int64_t>(always - measured, 0, std::ssize(slow));
  slow.erase(slow.begin(), slow.begin() + again);
  std::vector<Candidate> kept;
  for (Candidate& candidate : batch) {
    const bool goes = std::find(slow.begin(), slow.end(), &candidate) != slow.end();
    (goes ? left_out : kept).push_back(std::move(candidate));
  }
  batch = std::move(kept);
  const std::lock_guard lock(mutex_);
  counts_.left_out += static_cast<int>(left_out.size());
  return left_out;
}

CodeFilter::Counts CodeFilter::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace hone::search
