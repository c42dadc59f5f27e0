#include "hone/session/size_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hone/graph/size_values.h"

namespace hone {
namespace {

// Points of a space that are compared: random ones, and those near the kernel's own schedule.
constexpr int kSamples = 150, kMutants = 100;
constexpr int64_t kShortTiles[] = {1, 2, 3, 4, 6, 8};
constexpr int kSizes = 6;           // the number of sizes at which schedules are compared
constexpr double kMiddleShare = 4;  // the largest size / that between the ends that is measured

// Returns whether a split makes the vectors of its stage.
bool makes_vectors(const schedule::Steps& steps, const schedule::Split& split) {
  const std::string innermost = fmt::format("{}.{}", split.loop, split.lengths.size());
  return std::any_of(steps.begin(), steps.end(), [&](const schedule::Step& step) {
    const auto* vectors = std::get_if<schedule::Vectorize>(&step);
    return vectors != nullptr && vectors->stage == split.stage && vectors->loop == innermost;
  });
}

// Returns the axes that layouts divide, as "k" in k/8: data lies in groups as long as their tiles.
std::set<std::string> divided_axes(const schedule::Steps& steps) {
  std::set<std::string> axes;
  for (const schedule::Step& step : steps) {
    const auto* layout = std::get_if<schedule::Layout>(&step);
    if (layout == nullptr) continue;
    for (const std::string& dim : layout->dims) {
      const size_t end = dim.find_first_of("/%");
      if (end != std::string::npos) axes.insert(dim.substr(0, end));
    }
  }
  return axes;
}

}  // namespace

bool mixes_rows(const schedule::Steps& steps) {
  const std::string algorithm = schedule::algorithm_of(steps);
  return algorithm.starts_with("winograd") || algorithm.starts_with("strassen");
}

std::vector<schedule::Steps> known_schedules(const VariantContext& context, size_t most) {
  std::vector<schedule::Steps> known;
  if (context.times == nullptr) return known;
  for (const auto& [text, times] : *context.times) {
    if (known.size() == most) break;
    if (trial::accuracy_of(text) > context.accuracy) continue;
    Result<schedule::Steps> steps = schedule::parse_steps(text);
    if (steps.ok()) known.push_back(*std::move(steps));
  }
  return known;
}

int SizeCandidates::deciding_form(const KernelLimits& limits, const graph::Varying& varying) {
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

SizeCandidates::SizeCandidates(const graph::TaskCall& call, const KernelLimits& limits,
                               const VariantContext& context, const space::Space& space, int form)
    : dag_(call.dag),
      limits_(limits),
      context_(context),
      space_(space),
      rng_(context.seed),
      task_(call.dag, limits),
      range_(*context.varying, form),
      grid_(range_.grid(kSizes)) {
  for (const double part : grid_) grid_sizes_.push_back(range_.at(part));
}

bool SizeCandidates::add_all(const schedule::Steps& own) {
  std::optional<SizeCandidate> first = candidate(own);
  if (!first) return false;
  own_places_ = first->schedule.places();
  seen_.insert(schedule::to_string(own));
  algorithm_ = schedule::algorithm_of(own);
  mixes_ = mixes_rows(own);
  layouts_[own_places_].push_back(*std::move(first));
  std::vector<space::Point> points = space_.default_points();
  for (int i = 0; i < kSamples; ++i) points.push_back(space_.sample(rng_));
  add(points);
  add_near(own);
  for (const schedule::Steps& steps : known_schedules(context_)) add(steps);
  return true;
}

void SizeCandidates::add_near(const schedule::Steps& of) {
  add(mutants(of));
  add_short_tiles(of);
}

std::optional<SizeCandidate> SizeCandidates::candidate(const schedule::Steps& steps) const {
  std::optional<SizedSchedule> made = SizedSchedule::create(task_, steps);
  if (!made) return std::nullopt;
  SizeCandidate one{*std::move(made), {}, {}, false, {}};
  measure(one);
  return one;
}

double SizeCandidates::seconds(const SizeCandidate& one, double part) const {
  return one.schedule.seconds(range_.at(part), context_.target->cpu(), context_.threads) *
         one.measured.factor(part);
}

void SizeCandidates::measure(SizeCandidate& one) const {
  one.is_corrected = false;
  one.seconds.clear();
  for (size_t k = 0; k < grid_.size(); ++k) {
    const double predicted =
        one.schedule.seconds(grid_sizes_[k], context_.target->cpu(), context_.threads);
    one.seconds.push_back(predicted * one.measured.factor(grid_[k]));
  }
}

// Points of the space go to those that read the same weights. Sums of rows, as Strassen's and
// Winograd's algorithms compute, are not those of another algorithm.
void SizeCandidates::add(const std::vector<space::Point>& points) {
  for (const space::Point& point : points) add(space_.steps(point));
}

void SizeCandidates::add(const schedule::Steps& steps) {
  const std::string algorithm = schedule::algorithm_of(steps);
  if (algorithm != algorithm_ && (mixes_ || mixes_rows(steps))) return;
  if (!seen_.insert(schedule::to_string(steps)).second) return;
  std::optional<SizeCandidate> one = candidate(steps);
  if (!one) return;
  std::vector<SizeCandidate>& same = layouts_[one->schedule.places()];
  same.push_back(*std::move(one));
}

// Adds schedules with other innermost tiles, also such as the space leaves out as they keep the
// processor busy only if there are no more rows: one row of a product. Terms of a sum that are
// added in groups of another length than weights lie in would be looked for one by one.
void SizeCandidates::add_short_tiles(const schedule::Steps& of) {
  const std::set<std::string> divided = divided_axes(of);
  std::set<std::pair<std::string, std::vector<int64_t>>> loops;
  for (const schedule::Step& step : of) {
    const auto* split = std::get_if<schedule::Split>(&step);
    if (split == nullptr || makes_vectors(of, *split) ||
        divided.contains(split->loop.substr(0, split->loop.find('.'))) ||
        !loops.emplace(split->loop, split->lengths).second)
      continue;
    for (const int64_t length : kShortTiles) {
      if (length >= split->lengths.back()) continue;
      schedule::Steps changed = of;
      for (schedule::Step& other : changed) {
        auto* also = std::get_if<schedule::Split>(&other);
        if (also != nullptr && also->loop == split->loop && also->lengths == split->lengths)
          also->lengths.back() = length;
      }
      add(changed);
    }
  }
}

// All points that differ from one in a single decision: tiles of any number of rows.
void SizeCandidates::add_sweeps(const space::Point& of, std::vector<space::Point>& points) const {
  const std::vector<space::Decision>& decisions = space_.decisions(of.sketch);
  for (size_t d = 0; d < decisions.size(); ++d) {
    for (size_t i = 0; i < decisions[d].options.size(); ++i) {
      space::Point point = of;
      point.choices[d] = static_cast<int>(i);
      if (space_.legal(point)) points.push_back(space_.canonical(std::move(point)));
    }
  }
}

std::vector<space::Point> SizeCandidates::mutants(const schedule::Steps& of) {
  std::vector<space::Point> points;
  const std::optional<space::Point> at = space_.locate(of);
  if (at) add_sweeps(*at, points);
  for (int i = 0; at && i < kMutants; ++i) points.push_back(space_.mutate(*at, rng_));
  return points;
}

double SizeCandidates::predicted(SizeCandidate& one) const {
  if (!one.predicted) one.predicted = context_.predict(one.schedule.steps());
  return *one.predicted;
}

// The static measure does not know all that the cost model does, such as rows that fall into the
// same sets of a cache.
void SizeCandidates::correct(SizeCandidate& one, SizeCandidate& first) const {
  one.is_corrected = true;
  const double measured = one.seconds.back() / first.seconds.back();
  // The first one was chosen for the largest size: none is better there.
  const double factor = std::max(predicted(one) / predicted(first), 1.0) / measured;
  if (!std::isfinite(factor)) return;
  for (double& seconds : one.seconds) seconds *= factor;
}

std::vector<size_t> SizeCandidates::measured_sizes() const {
  const double middle = static_cast<double>(range_.value(1)) / kMiddleShare;
  const auto distance = [&](double part) {
    return std::abs(
        std::log(static_cast<double>(std::max<int64_t>(range_.value(part), 1)) / middle));
  };
  const auto nearest = std::min_element(
      grid_.begin(), grid_.end(), [&](double a, double b) { return distance(a) < distance(b); });
  std::vector<size_t> sizes = {0, static_cast<size_t>(nearest - grid_.begin()), grid_.size() - 1};
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

void SizeCandidates::add_times(SizeCandidate& one) const {
  const auto times = context_.times->find(schedule::to_string(one.schedule.steps()));
  if (times == context_.times->end()) return;
  for (const size_t k : measured_sizes()) {
    const std::vector<int64_t> sizes = range_.at(grid_[k]);
    const auto found = times->second.find(part_text(dag_, limits_, sizes));
    if (found == times->second.end() || !std::isfinite(found->second) || found->second <= 0)
      continue;
    const double expected = one.schedule.seconds(sizes, context_.target->cpu(), context_.threads);
    one.measured.add(grid_[k], expected, found->second);
  }
}

void SizeCandidates::take_measured() {
  if (context_.times == nullptr || context_.times->empty()) return;
  SizeCandidate& own = same()[0];
  const size_t wanted = measured_sizes().size();
  add_times(own);
  is_measured_ = own.measured.count() == wanted;
  if (!is_measured_) {
    own.measured = {};
    return;
  }
  for (auto& [places, all] : layouts_) {
    for (SizeCandidate& one : all)
      if (&one != &own) add_times(one);
    std::erase_if(all, [&](const SizeCandidate& one) { return one.measured.count() < wanted; });
    for (SizeCandidate& one : all) {
      measure(one);
      one.is_corrected = true;
    }
  }
  std::erase_if(layouts_, [](const auto& layout) { return layout.second.empty(); });
}

}  // namespace hone
