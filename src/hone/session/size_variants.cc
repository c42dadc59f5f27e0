#include "hone/session/size_variants.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "hone/graph/size_values.h"
#include "hone/session/size_costs.h"

namespace hone {
namespace {

constexpr size_t kMostVariants = 2;
constexpr int kMostCorrected = 40;  // predictions by the cost model
// A schedule is faster than another if its time is so much shorter, by this ratio and by so many
// seconds, as times err. The least gain for which a variant is made, as code has a price, is the
// sum of the logarithms of the ratios at all sizes.
struct Margins {
  double ratio, seconds, gain;
};
constexpr Margins kPredicted = {1.2, 3e-7, 0.18}, kMeasured = {1.05, 1e-7, 0.1};
// The least predicted gain for which weights lie otherwise, which are the same for all sizes; at
// the largest size, the schedule that reads them may take so much longer, predicted or measured.
constexpr double kLeastLayoutGain = 0.4, kMostLonger = 1.04;
constexpr size_t kLayoutsTried = 4, kSchedulesTried = 4;
constexpr int kHalvings = 6;  // of the interval in which one schedule becomes better than another

class Chooser {
 public:
  explicit Chooser(SizeCandidates& candidates)
      : candidates_(candidates),
        grid_(candidates.grid()),
        margins_(candidates.is_measured() ? kMeasured : kPredicted) {}

  SizeVariants choose(bool may_reorder) {
    std::vector<SizeCandidate>* better = nullptr;
    if (may_reorder && !candidates_.own_mixes_rows())
      better = candidates_.is_measured() ? measured_layout() : better_layout(candidates_.layouts());
    if (better == nullptr) return intervals(candidates_.same());
    SizeVariants made = intervals(*better);
    made.replaces_own = (*better)[0].schedule.steps();
    return made;
  }

 private:
  // Returns what a candidate gains at the sizes below the largest, at those that were measured if
  // any was.
  [[nodiscard]] double gain(const SizeCandidate& one, const std::vector<double>& best) const {
    double sum = 0;
    for (size_t k = 0; k + 1 < best.size(); ++k) {
      if (candidates_.is_measured() != is_measured_at(k)) continue;
      if (is_faster(one.seconds[k], best[k])) sum += std::log(best[k] / one.seconds[k]);
    }
    return sum;
  }
  [[nodiscard]] bool is_measured_at(size_t k) const {
    const std::vector<size_t> sizes = candidates_.measured_sizes();
    return candidates_.is_measured() && std::find(sizes.begin(), sizes.end(), k) != sizes.end();
  }
  [[nodiscard]] bool is_faster(double seconds, double than) const {
    return seconds * margins_.ratio < than && seconds + margins_.seconds < than;
  }

  // Which of those that read the same weights to use, the first one always: each is added for what
  // it gains.
  [[nodiscard]] std::vector<size_t> chosen(std::vector<SizeCandidate>& all) const {
    std::vector<size_t> chosen = {0};
    std::vector<double> best = all[0].seconds;
    all[0].is_corrected = true;
    int left = kMostCorrected;
    while (chosen.size() <= kMostVariants) {
      size_t next = 0;
      double most = margins_.gain;
      for (size_t c = 1; c < all.size(); ++c) {
        const double found = gain(all[c], best);
        if (found > most && (all[c].is_corrected || left > 0)) next = c, most = found;
      }
      if (next == 0) break;
      if (!all[next].is_corrected) {
        candidates_.correct(all[next], all[0]);
        --left;
        continue;
      }
      chosen.push_back(next);
      for (size_t k = 0; k + 1 < best.size(); ++k)
        best[k] = std::min(best[k], all[next].seconds[k]);
    }
    return chosen;
  }

  // The seconds at all sizes, with variants; the first candidate runs at the largest.
  [[nodiscard]] std::vector<double> best_of(std::vector<SizeCandidate>& all) const {
    std::vector<double> best = all[0].seconds;
    for (const size_t c : chosen(all)) {
      for (size_t k = 0; k + 1 < best.size(); ++k)
        if (is_faster(all[c].seconds[k], all[0].seconds[k]))
          best[k] = std::min(best[k], all[c].seconds[k]);
    }
    return best;
  }
  // What other times gain at all sizes: less is lost for certain, more only if the ratio is large.
  [[nodiscard]] double layout_gain(const std::vector<double>& before,
                                   const std::vector<double>& after) const {
    double sum = 0;
    for (size_t k = 0; k < before.size(); ++k) {
      const bool counts = after[k] > before[k] || is_faster(after[k], before[k]);
      if (counts) sum += std::log(before[k] / after[k]);
    }
    return sum;
  }

  // The schedules that read weights in a better order, that for the largest size first; null if
  // there are none. With its variants it must gain at the smaller sizes, and by the cost model,
  // which knows more than the static measure, lose little at the largest.
  [[nodiscard]] std::vector<SizeCandidate>* better_layout(Layouts& layouts) {
    const ConstantPlaces& own = candidates_.own_places();
    fill_up(layouts, own);
    const std::vector<double> before = best_of(layouts[own]);
    std::vector<std::pair<double, std::vector<SizeCandidate>*>> ranked;
    for (auto& [places, all] : layouts) {
      if (places == own) continue;
      std::sort(all.begin(), all.end(), is_faster_at_largest);
      const double found = layout_gain(before, best_of(all));
      if (found > kLeastLayoutGain) ranked.emplace_back(-found, &all);
    }
    std::sort(ranked.begin(), ranked.end());
    if (ranked.empty()) return nullptr;
    const double limit = kMostLonger * candidates_.predicted(layouts[own][0]);
    for (size_t i = 0; i < std::min(ranked.size(), kLayoutsTried); ++i) {
      std::vector<SizeCandidate>& all = *ranked[i].second;
      auto best = all.end();
      double least = limit;
      for (size_t c = 0; c < std::min(all.size(), kSchedulesTried); ++c) {
        const double found = candidates_.predicted(all[c]);
        if (found < least) best = all.begin() + static_cast<std::ptrdiff_t>(c), least = found;
      }
      if (best == all.end()) continue;
      std::iter_swap(all.begin(), best);
      for (SizeCandidate& one : all) candidates_.measure(one);
      return &all;
    }
    return nullptr;
  }

  // The sum of the logarithms of the least measured times of all sizes.
  [[nodiscard]] double log_times(const std::vector<SizeCandidate>& all) const {
    double sum = 0;
    for (const size_t k : candidates_.measured_sizes()) {
      double least = std::numeric_limits<double>::infinity();
      for (const SizeCandidate& one : all) least = std::min(least, one.seconds[k]);
      sum += std::log(least);
    }
    return sum;
  }

  // The schedules that read weights in the order with the least geometric mean of measured times,
  // that for the largest size first; null if that of the kernel's own schedule is about as good, or
  // clearly better at the largest size.
  [[nodiscard]] std::vector<SizeCandidate>* measured_layout() {
    const std::vector<SizeCandidate>& own = candidates_.same();
    const auto sizes = static_cast<double>(candidates_.measured_sizes().size());
    double least = log_times(own) - sizes * std::log(margins_.ratio);
    std::vector<SizeCandidate>* best = nullptr;
    for (auto& [places, all] : candidates_.layouts()) {
      if (places == candidates_.own_places()) continue;
      const auto largest = std::min_element(all.begin(), all.end(), is_faster_at_largest);
      const double found = log_times(all);
      if (found >= least || largest->seconds.back() > kMostLonger * own[0].seconds.back()) continue;
      std::iter_swap(all.begin(), largest);
      least = found;
      best = &all;
    }
    return best;
  }

  static bool is_faster_at_largest(const SizeCandidate& a, const SizeCandidate& b) {
    return a.seconds.back() < b.seconds.back();
  }

  // Adds schedules that read weights as the best for the largest size do.
  void fill_up(const Layouts& layouts, const ConstantPlaces& own) {
    std::vector<std::pair<double, schedule::Steps>> ranked;
    for (const auto& [places, all] : layouts) {
      if (places == own) continue;
      const auto best = std::min_element(all.begin(), all.end(), is_faster_at_largest);
      ranked.emplace_back(best->seconds.back(), best->schedule.steps());
    }
    const size_t count = std::min(ranked.size(), kLayoutsTried);
    std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count),
                      ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < count; ++i) candidates_.add_near(ranked[i].second);
  }

  // Says which schedule runs at each size of the grid, with the sum of the logarithms of their
  // times.
  struct Assignment {
    std::vector<size_t> at;
    double log_times = 0;
  };
  // Tries all continuations: the schedule of the last size goes on, or one begins that did not run
  // yet. So each schedule has one interval, and the first one has that of the largest size. Another
  // one may be a little slower than it at some sizes, and counts as slower unless it is clearly
  // faster.
  void assign(const std::vector<SizeCandidate>& all, const std::vector<size_t>& used,
              const Assignment& begun, Assignment& best) const {
    const size_t k = begun.at.size();
    if (k == grid_.size()) {
      if (begun.at.back() == 0 && begun.log_times < best.log_times) best = begun;
      return;
    }
    const double own = all[0].seconds[k];
    for (const size_t c : used) {
      const double seconds = all[c].seconds[k];
      const bool goes_on = k > 0 && begun.at.back() == c;
      const bool ran = std::find(begun.at.begin(), begun.at.end(), c) != begun.at.end();
      if ((ran && !goes_on) || seconds > margins_.ratio * own) continue;
      const bool counts = c == 0 || is_faster(seconds, own);
      Assignment longer = begun;
      longer.at.push_back(c);
      longer.log_times += std::log(seconds * (counts ? 1 : margins_.ratio));
      assign(all, used, longer, best);
    }
  }
  [[nodiscard]] Assignment assigned(std::vector<SizeCandidate>& all) const {
    Assignment best = {std::vector<size_t>(grid_.size(), 0), -margins_.gain};
    for (const double own : all[0].seconds) best.log_times += std::log(own);
    assign(all, chosen(all), {}, best);
    return best;
  }

  [[nodiscard]] SizeVariants intervals(std::vector<SizeCandidate>& all) const {
    const Assignment best = assigned(all);
    SizeVariants made;
    std::vector<const SizeCandidate*> in_order;
    int64_t from = 0;
    for (size_t k = 1; k < grid_.size(); ++k) {
      const size_t before = best.at[k - 1], now = best.at[k];
      if (before == now) continue;
      const SizeCandidate& last = all[before];
      const double factor = now == 0 ? margins_.ratio : 1;  // is the other still faster?
      const double end = last_part(last, all[now], factor, k);
      const int64_t most =
          std::clamp(candidates_.range().value(end), candidates_.range().value(grid_[k - 1]),
                     candidates_.range().value(grid_[k]) - 1);
      const double share = candidates_.seconds(last, end) / all[0].seconds.back();
      made.others.push_back({last.schedule.steps(), {form(), from, most}, share});
      in_order.push_back(&last);
      from = most + 1;
    }
    if (!made.others.empty()) made.own = {form(), from, std::numeric_limits<int64_t>::max()};
    in_order.push_back(all.data());
    made.form = form();
    made.compared = compared(in_order);
    return made;
  }

  // The sizes of the grid, with what these schedules take.
  [[nodiscard]] std::vector<ComparedSize> compared(
      const std::vector<const SizeCandidate*>& schedules) const {
    std::vector<ComparedSize> sizes;
    for (size_t k = 0; k < grid_.size(); ++k) {
      ComparedSize& size = sizes.emplace_back();
      size.symbols = candidates_.range().symbols(grid_[k]);
      size.value = candidates_.range().value(grid_[k]);
      for (const SizeCandidate* one : schedules) size.seconds.push_back(one->seconds[k]);
      size.is_measured = is_measured_at(k);
    }
    return sizes;
  }

  // Up to where, from the size k - 1 of the grid on and before k, the first is as good as the
  // second divided by a factor.
  [[nodiscard]] double last_part(const SizeCandidate& first, const SizeCandidate& second,
                                 double factor, size_t k) const {
    double low = grid_[k - 1], high = grid_[k];
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      const bool before =
          factor * candidates_.seconds(first, middle) < candidates_.seconds(second, middle);
      (before ? low : high) = middle;
    }
    return low;
  }

  [[nodiscard]] int form() const { return candidates_.range().form(); }

  SizeCandidates& candidates_;
  const std::vector<double>& grid_;
  const Margins margins_;
};

}  // namespace

SizeVariants choose_variants(const graph::TaskCall& call, const Task& task,
                             const schedule::Steps& own, const KernelLimits& limits,
                             const VariantContext& context) {
  const int form = SizeCandidates::deciding_form(limits, *context.varying);
  const Result<space::Space>& space = task.space(context.accuracy);
  if (form < 0 || !space.ok()) return {};
  SizeCandidates candidates(call, limits, context, *space, form);
  if (!candidates.add_all(own)) return {};
  candidates.take_measured();
  const bool may_predict = candidates.is_measured() || !context.is_tuned;
  return choose_variants(candidates, context.may_replace && may_predict);
}

SizeVariants choose_variants(SizeCandidates& candidates, bool may_reorder) {
  return Chooser(candidates).choose(may_reorder);
}

}  // namespace hone
