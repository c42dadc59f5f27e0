#include "hone/session/size_trials.h"

#include <algorithm>

namespace hone {
namespace {

// Of each size, so many that the static measure says are the best are predicted by the cost model,
// too, and so many of these are measured.
constexpr size_t kPredicted = 8, kBest = 3;
constexpr size_t kMostKnown = 4;  // schedules that were measured before and are measured again

class Trials {
 public:
  explicit Trials(SizeCandidates& candidates) : all_(candidates.same()) { take(0); }

  void take(const schedule::Steps& steps) {
    for (size_t i = 0; i < all_.size(); ++i)
      if (all_[i].schedule.steps() == steps) take(i);
  }
  // The best ones of a size of the grid.
  void take_best(SizeCandidates& candidates, size_t k) {
    std::vector<size_t> order(all_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto faster = [&](size_t a, size_t b) { return all_[a].seconds[k] < all_[b].seconds[k]; };
    std::stable_sort(order.begin(), order.end(), faster);
    order.resize(std::min(order.size(), kPredicted));
    for (const size_t i : order)
      if (!all_[i].is_corrected) candidates.correct(all_[i], all_[0]);
    std::stable_sort(order.begin(), order.end(), faster);
    for (size_t i = 0; i < std::min(order.size(), kBest); ++i) take(order[i]);
  }
  [[nodiscard]] std::vector<schedule::Steps> taken() const {
    std::vector<schedule::Steps> steps;
    for (const size_t i : taken_) steps.push_back(all_[i].schedule.steps());
    return steps;
  }

 private:
  void take(size_t i) {
    if (std::find(taken_.begin(), taken_.end(), i) == taken_.end()) taken_.push_back(i);
  }

  std::vector<SizeCandidate>& all_;
  std::vector<size_t> taken_;
};

}  // namespace

SizeTrials choose_size_trials(const graph::TaskCall& call, const Task& task,
                              const schedule::Steps& own, const KernelLimits& limits,
                              const VariantContext& context,
                              std::span<const schedule::Steps> more) {
  SizeTrials trials;
  const int form = SizeCandidates::deciding_form(limits, *context.varying);
  const Result<space::Space>& space = task.space(context.accuracy);
  if (form < 0 || !space.ok()) return trials;
  SizeCandidates candidates(call, limits, context, *space, form);
  if (!candidates.add_all(own)) return trials;
  VariantContext without = context;
  without.times = nullptr;
  without.may_replace = false;
  const SizeVariants variants = choose_variants(call, task, own, limits, without);
  for (const SizeVariant& variant : variants.others) candidates.add(variant.steps);
  for (const schedule::Steps& steps : more) candidates.add(steps);

  Trials chosen(candidates);
  for (const SizeVariant& variant : variants.others) chosen.take(variant.steps);
  const std::vector<double> parts = candidates.measured_parts();
  for (const double part : std::span(parts).first(parts.size() - 1)) {
    const auto at = std::find(candidates.grid().begin(), candidates.grid().end(), part);
    chosen.take_best(candidates, static_cast<size_t>(at - candidates.grid().begin()));
  }
  for (const schedule::Steps& steps : more) chosen.take(steps);
  size_t known = 0;
  for (const auto& [text, times] : context.times ? *context.times : ScheduleTimes()) {
    const Result<schedule::Steps> steps = schedule::parse_steps(text);
    if (!steps.ok() || trial::accuracy_of(text) > context.accuracy || known++ >= kMostKnown)
      continue;
    chosen.take(*steps);
  }
  trials.schedules = chosen.taken();
  for (const double part : parts) trials.sizes.push_back(candidates.range().at(part));
  return trials;
}

}  // namespace hone
