#include "hone/session/size_trials.h"

#include <algorithm>

namespace hone {
namespace {

// Of each size, so many that the static measure says are the best are predicted by the cost model,
// too, and so many of these are measured.
constexpr size_t kPredicted = 8, kBest = 3;
constexpr size_t kMostKnown = 4;  // schedules that were measured before and are measured again
// Other orders of weights that are measured, with so many schedules for each size.
constexpr size_t kMostOrders = 2, kBestOfOrder = 1;

// The schedules of one layout that are measured. The first one always is.
class Trials {
 public:
  Trials(SizeCandidates& candidates, std::vector<SizeCandidate>& all)
      : candidates_(candidates), all_(all) {
    take(0);
  }

  void take(const schedule::Steps& steps) {
    for (size_t i = 0; i < all_.size(); ++i)
      if (all_[i].schedule.steps() == steps) take(i);
  }
  // The best ones of each size but the largest.
  void take_best(size_t count) {
    const std::vector<size_t> sizes = candidates_.measured_sizes();
    for (const size_t k : std::span(sizes).first(sizes.size() - 1)) take_best_at(k, count);
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
  void take_best_at(size_t k, size_t count) {
    std::vector<size_t> order(all_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto faster = [&](size_t a, size_t b) { return all_[a].seconds[k] < all_[b].seconds[k]; };
    std::stable_sort(order.begin(), order.end(), faster);
    order.resize(std::min(order.size(), kPredicted));
    for (const size_t i : order)
      if (!all_[i].is_corrected) candidates_.correct(all_[i], candidates_.same()[0]);
    std::stable_sort(order.begin(), order.end(), faster);
    for (size_t i = 0; i < std::min(order.size(), count); ++i) take(order[i]);
  }

  SizeCandidates& candidates_;
  std::vector<SizeCandidate>& all_;
  std::vector<size_t> taken_;
};

// Schedules that read weights in other orders: in those of `leaders`, which run at the largest
// size, each with the best ones for smaller sizes.
void add_other_orders(SizeCandidates& candidates, const std::vector<schedule::Steps>& leaders,
                      SizeTrials& trials) {
  std::vector<const std::vector<SizeCandidate>*> used = {&candidates.same()};
  for (const schedule::Steps& leader : leaders) {
    for (auto& [places, all] : candidates.layouts()) {
      const auto first = std::find_if(all.begin(), all.end(), [&](const SizeCandidate& one) {
        return one.schedule.steps() == leader;
      });
      const bool is_used = std::find(used.begin(), used.end(), &all) != used.end();
      if (first == all.end() || is_used || used.size() > kMostOrders) continue;
      std::iter_swap(all.begin(), first);
      used.push_back(&all);
      Trials chosen(candidates, all);
      chosen.take_best(kBestOfOrder);
      trials.layouts.push_back(chosen.taken());
    }
  }
}

}  // namespace

size_t SizeTrials::schedules() const {
  size_t count = 0;
  for (const std::vector<schedule::Steps>& one : layouts) count += one.size();
  return count;
}

SizeTrials choose_size_trials(const graph::TaskCall& call, const Task& task,
                              const schedule::Steps& own, const KernelLimits& limits,
                              const VariantContext& context,
                              std::span<const schedule::Steps> more) {
  SizeTrials trials;
  const int form = SizeCandidates::deciding_form(limits, *context.varying);
  const Result<space::Space>& space = task.space(context.accuracy);
  if (form < 0 || !space.ok()) return trials;
  VariantContext predicted = context;
  predicted.times = nullptr;
  SizeCandidates candidates(call, limits, predicted, *space, form);
  if (!candidates.add_all(own)) return trials;
  const SizeVariants variants = choose_variants(candidates, false);
  std::vector<schedule::Steps> leaders;
  const bool may_reorder = context.may_replace && !candidates.own_mixes_rows();
  if (may_reorder) {
    const SizeVariants reordered = choose_variants(candidates, true);
    if (reordered.replaces_own) leaders.push_back(*reordered.replaces_own);
    leaders.insert(leaders.end(), more.begin(), more.end());
  }
  const std::vector<schedule::Steps> known = known_schedules(context, kMostKnown);
  for (const schedule::Steps& steps : more) candidates.add(steps);
  for (const schedule::Steps& steps : known) candidates.add(steps);

  Trials chosen(candidates, candidates.same());
  for (const SizeVariant& variant : variants.others) chosen.take(variant.steps);
  chosen.take_best(kBest);
  for (const schedule::Steps& steps : more) chosen.take(steps);
  for (const schedule::Steps& steps : known) chosen.take(steps);
  trials.layouts.push_back(chosen.taken());
  add_other_orders(candidates, leaders, trials);
  for (const size_t k : candidates.measured_sizes())
    trials.sizes.push_back(candidates.range().at(candidates.grid()[k]));
  return trials;
}

}  // namespace hone
