#include "hone/session/size_variants.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "hone/graph/size_values.h"
#include "hone/session/size_costs.h"

namespace hone {
namespace {

// Points of a space that are compared: random ones, and those near the kernel's own schedule.
constexpr int kSamples = 150, kMutants = 100;
constexpr int64_t kShortTiles[] = {1, 2, 3, 4, 6, 8};
constexpr int kSizes = 6;  // the number of sizes at which schedules are compared
constexpr size_t kMostVariants = 2;
constexpr int kMostCorrected = 40;  // predictions by the cost model
// A schedule is faster than another if the prediction says at least this ratio, as it errs, and so
// many seconds.
constexpr double kLeastRatio = 1.2, kLeastSeconds = 3e-7;
// The least gain for which a variant is made, as code has a price: the sum of the logarithms of the
// ratios at all sizes. Likewise for weights that lie otherwise, which are the same for all sizes;
// at the largest size, the schedule that reads them may be predicted to take so much longer.
constexpr double kLeastGain = 0.18, kLeastLayoutGain = 0.4, kMostLonger = 1.04;
constexpr size_t kLayoutsTried = 4, kSchedulesTried = 4;
constexpr int kHalvings = 6;  // of the interval in which one schedule becomes better than another

// The form that decides: that of the kernel's limits that varies most; -1: none.
int deciding_form(const KernelLimits& limits, const graph::Varying& varying) {
  std::set<int> forms;
  for (const ir::ParamLimit& limit : limits.outputs) forms.insert(limit.limit.form);
  for (const auto& [stage, end] : limits.ends) forms.insert(end.form);
  const std::vector<int64_t> least = graph::sizes_of(varying, graph::smallest_symbols(varying));
  const std::vector<int64_t> most = graph::sizes_of(varying, graph::largest_symbols(varying));
  int best = -1;
  double ratio = 1;
  for (const int form : forms) {
    const auto f = static_cast<size_t>(form);
    const double own =
        static_cast<double>(most[f]) / static_cast<double>(std::max<int64_t>(least[f], 1));
    if (own > ratio) best = form, ratio = own;
  }
  return best;
}

// A schedule, with the predicted seconds at the sizes of the grid.
struct Candidate {
  SizedSchedule schedule;
  std::vector<double> seconds;
  std::optional<double> predicted;  // seconds at the largest size by the cost model, if asked
  bool is_corrected = false;        // `seconds` is corrected by that
};
// Those that read the same weights.
using Layouts = std::map<ConstantPlaces, std::vector<Candidate>>;

class Chooser {
 public:
  Chooser(const graph::TaskCall& call, const KernelLimits& limits, const VariantContext& context,
          const space::Space& space, int form)
      : context_(context),
        space_(space),
        rng_(context.seed),
        form_(form),
        task_(call.dag, limits),
        range_(*context.varying, form),
        grid_(range_.grid(kSizes)) {}

  SizeVariants choose(const schedule::Steps& own) {
    std::optional<Candidate> first = candidate(own);
    if (!first) return {};
    const ConstantPlaces places = first->schedule.places();
    seen_.insert(schedule::to_string(own));
    algorithm_ = schedule::algorithm_of(own);
    mixes_ = mixes_rows(own);
    Layouts layouts;
    layouts[places].push_back(*std::move(first));
    std::vector<space::Point> points = space_.default_points();
    for (int i = 0; i < kSamples; ++i) points.push_back(space_.sample(rng_));
    add(points, layouts);
    add(mutants(own), layouts);
    add_short_tiles(own, layouts);
    std::vector<Candidate>& same = layouts[places];
    if (!context_.may_replace || mixes_) return intervals(same);
    std::vector<Candidate>* better = better_layout(layouts, places);
    if (better == nullptr) return intervals(same);
    SizeVariants made = intervals(*better);
    made.replaces_own = (*better)[0].schedule.steps();
    return made;
  }

 private:
  [[nodiscard]] double seconds(const SizedSchedule& schedule, double part) const {
    return schedule.seconds(range_.at(part), context_.target->cpu(), context_.threads);
  }
  [[nodiscard]] std::optional<Candidate> candidate(const schedule::Steps& steps) const {
    std::optional<SizedSchedule> made = SizedSchedule::create(task_, steps);
    if (!made) return std::nullopt;
    Candidate one{*std::move(made), {}, {}};
    measure(one);
    return one;
  }
  void measure(Candidate& one) const {
    one.is_corrected = false;
    one.seconds.clear();
    for (const double part : grid_) one.seconds.push_back(seconds(one.schedule, part));
  }

  // Adds points of the space to those that read the same weights. Sums of rows, as Strassen's and
  // Winograd's algorithms compute, are not those of another algorithm.
  void add(const std::vector<space::Point>& points, Layouts& layouts) {
    for (const space::Point& point : points) add(space_.steps(point), layouts);
  }
  void add(const schedule::Steps& steps, Layouts& layouts) {
    const std::string algorithm = schedule::algorithm_of(steps);
    if (algorithm != algorithm_ && (mixes_ || mixes_rows(steps))) return;
    if (!seen_.insert(schedule::to_string(steps)).second) return;
    std::optional<Candidate> one = candidate(steps);
    if (!one) return;
    std::vector<Candidate>& same = layouts[one->schedule.places()];
    same.push_back(*std::move(one));
  }
  // Adds schedules with other innermost tiles, also such as the space leaves out as they keep the
  // processor busy only if there are no more rows: one row of a product.
  void add_short_tiles(const schedule::Steps& of, Layouts& layouts) {
    std::set<std::pair<std::string, std::vector<int64_t>>> loops;
    for (const schedule::Step& step : of) {
      const auto* split = std::get_if<schedule::Split>(&step);
      if (split == nullptr || !loops.emplace(split->loop, split->lengths).second) continue;
      for (const int64_t length : kShortTiles) {
        if (length >= split->lengths.back()) continue;
        schedule::Steps changed = of;
        for (schedule::Step& other : changed) {
          auto* also = std::get_if<schedule::Split>(&other);
          if (also != nullptr && also->loop == split->loop && also->lengths == split->lengths)
            also->lengths.back() = length;
        }
        add(changed, layouts);
      }
    }
  }
  // All points that differ from one in a single decision: tiles of any number of rows.
  void add_sweeps(const space::Point& of, std::vector<space::Point>& points) const {
    const std::vector<space::Decision>& decisions = space_.decisions(of.sketch);
    for (size_t d = 0; d < decisions.size(); ++d) {
      for (size_t i = 0; i < decisions[d].options.size(); ++i) {
        space::Point point = of;
        point.choices[d] = static_cast<int>(i);
        if (space_.legal(point)) points.push_back(space_.canonical(std::move(point)));
      }
    }
  }
  [[nodiscard]] std::vector<space::Point> mutants(const schedule::Steps& of) {
    std::vector<space::Point> points;
    const std::optional<space::Point> at = space_.locate(of);
    if (at) add_sweeps(*at, points);
    for (int i = 0; at && i < kMutants; ++i) points.push_back(space_.mutate(*at, rng_));
    return points;
  }

  double predicted(Candidate& one) const {
    if (!one.predicted) one.predicted = context_.predict(one.schedule.steps());
    return *one.predicted;
  }
  // The static measure does not know all that the cost model does, such as rows that fall into the
  // same sets of a cache: what that says of the largest size holds for all sizes. Times are those
  // of the first candidate, by the static measure, times a ratio.
  void correct(Candidate& one, Candidate& first) const {
    one.is_corrected = true;
    const double measured = one.seconds.back() / first.seconds.back();
    // The first one was chosen for the largest size: none is better there.
    const double factor = std::max(predicted(one) / predicted(first), 1.0) / measured;
    if (!std::isfinite(factor)) return;
    for (double& seconds : one.seconds) seconds *= factor;
  }

  // What a candidate gains at the sizes below the largest.
  [[nodiscard]] double gain(const Candidate& one, const std::vector<double>& best) const {
    double sum = 0;
    for (size_t k = 0; k + 1 < best.size(); ++k)
      if (is_faster(one.seconds[k], best[k])) sum += std::log(best[k] / one.seconds[k]);
    return sum;
  }
  static bool is_faster(double seconds, double than) {
    return seconds * kLeastRatio < than && seconds + kLeastSeconds < than;
  }

  // Which of those that read the same weights to use, the first one always: each is added for what
  // it gains.
  [[nodiscard]] std::vector<size_t> chosen(std::vector<Candidate>& all) const {
    std::vector<size_t> chosen = {0};
    std::vector<double> best = all[0].seconds;
    all[0].is_corrected = true;
    int left = kMostCorrected;
    while (chosen.size() <= kMostVariants) {
      size_t next = 0;
      double most = kLeastGain;
      for (size_t c = 1; c < all.size(); ++c) {
        const double found = gain(all[c], best);
        if (found > most && (all[c].is_corrected || left > 0)) next = c, most = found;
      }
      if (next == 0) break;
      if (!all[next].is_corrected) {
        correct(all[next], all[0]);
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
  [[nodiscard]] std::vector<double> best_of(std::vector<Candidate>& all) const {
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
  [[nodiscard]] std::vector<Candidate>* better_layout(Layouts& layouts, const ConstantPlaces& own) {
    fill_up(layouts, own);
    const std::vector<double> before = best_of(layouts[own]);
    std::vector<std::pair<double, std::vector<Candidate>*>> ranked;
    for (auto& [places, all] : layouts) {
      if (places == own) continue;
      std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
        return a.seconds.back() < b.seconds.back();
      });
      const double found = layout_gain(before, best_of(all));
      if (found > kLeastLayoutGain) ranked.emplace_back(-found, &all);
    }
    std::sort(ranked.begin(), ranked.end());
    if (ranked.empty()) return nullptr;
    const double limit = kMostLonger * predicted(layouts[own][0]);
    for (size_t i = 0; i < std::min(ranked.size(), kLayoutsTried); ++i) {
      std::vector<Candidate>& all = *ranked[i].second;
      auto best = all.end();
      double least = limit;
      for (size_t c = 0; c < std::min(all.size(), kSchedulesTried); ++c) {
        const double found = predicted(all[c]);
        if (found < least) best = all.begin() + static_cast<std::ptrdiff_t>(c), least = found;
      }
      if (best == all.end()) continue;
      std::iter_swap(all.begin(), best);
      for (Candidate& one : all) measure(one);
      return &all;
    }
    return nullptr;
  }

  // Adds schedules that read weights as the best for the largest size do.
  void fill_up(Layouts& layouts, const ConstantPlaces& own) {
    std::vector<std::pair<double, schedule::Steps>> ranked;
    for (const auto& [places, all] : layouts) {
      if (places == own) continue;
      const auto best =
          std::min_element(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
            return a.seconds.back() < b.seconds.back();
          });
      ranked.emplace_back(best->seconds.back(), best->schedule.steps());
    }
    const size_t count = std::min(ranked.size(), kLayoutsTried);
    std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count),
                      ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < count; ++i) {
      add(mutants(ranked[i].second), layouts);
      add_short_tiles(ranked[i].second, layouts);
    }
  }

  // From the smallest size on, each schedule has one interval; the first one has the last.
  [[nodiscard]] SizeVariants intervals(std::vector<Candidate>& all) const {
    const std::vector<size_t> used = chosen(all);
    std::set<size_t> left(used.begin(), used.end());
    SizeVariants made;
    const Candidate* last = nullptr;
    int64_t from = 0;
    for (size_t k = 0; k < grid_.size() && left.contains(0); ++k) {
      size_t best = 0;
      for (const size_t c : used) {
        if (k + 1 == grid_.size() || !is_faster(all[c].seconds[k], all[0].seconds[k])) continue;
        if (all[c].seconds[k] < all[best].seconds[k]) best = c;
      }
      if (!left.contains(best)) continue;
      if (last != nullptr) {
        const double factor = best == 0 ? kLeastRatio : 1;  // is the other still faster?
        const double end = last_part(*last, all[best], factor, k);
        const int64_t most =
            std::clamp(range_.value(end), range_.value(grid_[k - 1]), range_.value(grid_[k]) - 1);
        const double share = seconds(last->schedule, end) / all[0].seconds.back();
        made.others.push_back({last->schedule.steps(), {form_, from, most}, share});
        from = most + 1;
      }
      last = &all[best];
      left.erase(best);
    }
    if (!made.others.empty()) made.own = {form_, from, std::numeric_limits<int64_t>::max()};
    return made;
  }

  // Up to where, from the size k - 1 of the grid on and before k, the first is as good as the
  // second divided by a factor.
  [[nodiscard]] double last_part(const Candidate& first, const Candidate& second, double factor,
                                 size_t k) const {
    double low = grid_[k - 1], high = grid_[k];
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      const bool before =
          factor * seconds(first.schedule, middle) < seconds(second.schedule, middle);
      (before ? low : high) = middle;
    }
    return low;
  }

  const VariantContext& context_;
  const space::Space& space_;
  Rng rng_;
  std::set<std::string> seen_;  // texts of schedules
  std::string algorithm_;       // of the kernel's own schedule
  bool mixes_ = false;          // whether that mixes rows
  const int form_;
  const SizedTask task_;
  const SizeRange range_;
  const std::vector<double> grid_;
};

}  // namespace

bool mixes_rows(const schedule::Steps& steps) {
  const std::string algorithm = schedule::algorithm_of(steps);
  return algorithm.starts_with("winograd") || algorithm.starts_with("strassen");
}

SizeVariants choose_variants(const graph::TaskCall& call, const Task& task,
                             const schedule::Steps& own, const KernelLimits& limits,
                             const VariantContext& context) {
  const int form = deciding_form(limits, *context.varying);
  const Result<space::Space>& space = task.space(context.accuracy);
  if (form < 0 || !space.ok()) return {};
  return Chooser(call, limits, context, *space, form).choose(own);
}

}  // namespace hone
