// Forms of extents that are multiples of others, or are rounded up to multiples, as padding to
// whole windows makes them. The sizes at which the model was looked at may leave several of the
// latter.
#include <algorithm>
#include <map>
#include <numeric>

#include "hone/graph/size_follower.h"
#include "hone/graph/size_sums.h"

namespace hone::graph {
namespace {

// Any numbers are a multiple, plus a number, of a form that was seen with two values.
constexpr size_t kLeastValues = 3;

}  // namespace

void SizeFollower::add_roundings(const SizeForm& extent, int64_t most, int64_t step,
                                 const std::vector<SizeSample>& samples,
                                 std::vector<Rounding>& found) const {
  const int64_t rest = samples[0].number % step;
  std::vector<SizeSample> numbers = samples;
  for (SizeSample& sample : numbers) sample.number /= step;
  std::optional<Rounding> last;
  // At the largest sizes, (extent + offset) / step has to be the number of steps.
  const int64_t least = numbers[0].number * step - most;
  for (int64_t offset = least; offset < least + step; ++offset) {
    const auto quotient = quotient_of(graph_.varying, extent, offset, step);
    if (!quotient || quotient->divisor > kMostDivisor) return;
    if (!gives(*quotient, numbers)) continue;
    const bool is_plain = rest == 0 && offset == step - 1;
    if (is_plain || !last) found.push_back({step, rest, *quotient, is_plain});
    last = Rounding{step, rest, *quotient, is_plain};
  }
  if (last) found.push_back(*std::move(last));
}

bool SizeFollower::are_alike(const std::vector<Rounding>& roundings) const {
  const auto number = [&](const Rounding& one, const std::vector<int64_t>& symbols) {
    return one.step * value_of(graph_.varying, one.quotient, symbols) + one.rest;
  };
  return at_all_sizes([&](const std::vector<int64_t>& symbols) {
    return std::all_of(roundings.begin(), roundings.end(), [&](const Rounding& one) {
      return number(one, symbols) == number(roundings[0], symbols);
    });
  });
}

std::optional<int> SizeFollower::index_of(const Rounding& rounding) {
  const auto quotient = index_of(rounding.quotient);
  if (!quotient) return std::nullopt;
  return index_of(
      {.terms = {{rounding.step, {factor_of_form(*quotient)}}}, .offset = rounding.rest});
}

std::optional<SizeFollower::Rounding> SizeFollower::multiple_of(
    const SizeForm& form, const std::vector<SizeSample>& samples) const {
  std::map<int64_t, int64_t> numbers;  // by the value of the form
  for (const SizeSample& sample : samples)
    numbers.emplace(value_of(graph_.varying, form, *sample.symbols), sample.number);
  if (numbers.size() < kLeastValues) return std::nullopt;
  const auto [least, first] = *numbers.begin();
  const auto [most, last] = *numbers.rbegin();
  const int64_t step = (last - first) / (most - least), rest = first - step * least;
  const bool fits = std::all_of(samples.begin(), samples.end(), [&](const SizeSample& one) {
    return step * value_of(graph_.varying, form, *one.symbols) + rest == one.number;
  });
  return fits && step >= 2 && rest >= 0 ? std::optional(Rounding{step, rest, form}) : std::nullopt;
}

std::optional<int> SizeFollower::multiple_of_known(const std::vector<SizeSample>& samples) {
  if (samples.size() <= probes_.size()) return std::nullopt;
  std::vector<Rounding> found;
  for (const SizeForm& form : graph_.varying.forms) {
    // fit_form() finds the multiples of a form that has no divisor. One with bounds may give the
    // numbers by chance.
    if (form.divisor == 1 || form.is_bounded() || !is_of_symbols(form)) continue;
    if (const auto multiple = multiple_of(form, samples)) found.push_back(*multiple);
  }
  return !found.empty() && are_alike(found) ? index_of(found[0]) : std::nullopt;
}

std::optional<SizePart> SizeFollower::rounded_part(ValueId id, size_t dim, const DimParts& from) {
  const auto samples = samples_of(id, dim);
  const bool varies = from.size() == 1 && from[0].form != kNoForm;
  if (!varies || !samples || fitted_form(*samples)) return seen_part(id, dim);
  int64_t common = 0;
  for (const SizeSample& sample : *samples) {
    if (sample.number < 0) return std::nullopt;
    common = std::gcd(common, sample.number - (*samples)[0].number);
  }
  const SizeForm extent = varying_form(from[0].form);
  std::vector<Rounding> found;
  for (int64_t step = 2; step <= std::min(common, kMostDivisor); ++step)
    if (common % step == 0) add_roundings(extent, from[0].most, step, *samples, found);
  if (found.empty()) return seen_part(id, dim);
  if (!are_alike(found)) std::erase_if(found, [](const Rounding& one) { return !one.is_plain; });
  if (found.empty() || !are_alike(found)) return std::nullopt;
  const auto index = index_of(found[0]);
  return index ? std::optional(SizePart{*index, graph_.value(id).shape[dim]}) : std::nullopt;
}

}  // namespace hone::graph
