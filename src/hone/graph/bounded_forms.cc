// Forms of numbers that are known for each extent that a dimension may have, among them those with
// bounds, min(seq, 128) or max(seq - 4, 0).
#include <algorithm>
#include <limits>

#include "hone/graph/size_follower.h"
#include "hone/graph/size_sums.h"
#include "hone/graph/size_values.h"

namespace hone::graph {
namespace {

constexpr int64_t kMostExtents = int64_t{1} << 20;  // that are looked at

// A number at an extent.
struct NumberAt {
  int64_t extent, number;
};

// Returns the least offset with which (extent + offset) / divisor, between the first and the last
// number, is each of the numbers; nullopt if there is none.
std::optional<int64_t> offset_of(const std::vector<NumberAt>& numbers, int64_t divisor) {
  const int64_t least = numbers.front().number, most = numbers.back().number;
  int64_t from = std::numeric_limits<int64_t>::min(), to = std::numeric_limits<int64_t>::max();
  for (const auto& [extent, number] : numbers) {
    if (number < least || number > most) return std::nullopt;
    const int64_t first = number * divisor - extent;
    if (number > least) from = std::max(from, first);
    if (number < most) to = std::min(to, first + divisor - 1);
  }
  return least < most && from <= to ? std::optional(from) : std::nullopt;
}

}  // namespace

std::optional<int> SizeFollower::exact_form(
    const DimParts& from, int64_t divisor, const std::function<std::optional<int>()>& seen,
    const std::function<std::optional<int64_t>(int64_t extent)>& number_at) {
  if (const auto form = form_of_numbers(from, divisor, number_at)) return form;
  const std::optional<int> form = seen();
  const std::optional<int64_t> most = number_at(extent_at(from, most_));
  const bool is_right =
      form && at_all_sizes([&](const std::vector<int64_t>& symbols) {
        const std::optional<int64_t> number = number_at(extent_at(from, symbols));
        const auto given =
            *form == kNoForm
                ? most
                : std::optional(value_of(graph_.varying, varying_form(*form), symbols));
        return !number || number == given;
      });
  return is_right ? form : std::nullopt;
}

std::optional<int> SizeFollower::form_of_numbers(
    const DimParts& from, int64_t divisor,
    const std::function<std::optional<int64_t>(int64_t extent)>& number_at) {
  if (from.size() != 1 || from[0].form == kNoForm || divisor < 1 || divisor > kMostDivisor)
    return std::nullopt;
  const SizeForm extent = varying_form(from[0].form);
  const std::vector<int64_t> smallest = smallest_symbols(graph_.varying);
  const int64_t shortest = value_of(graph_.varying, extent, smallest);
  if (from[0].most - shortest > kMostExtents) return std::nullopt;
  std::vector<NumberAt> numbers;
  for (int64_t at = shortest; at <= from[0].most; ++at) {
    if (const auto number = number_at(at)) numbers.push_back({at, *number});
  }
  const auto is_first = [&](const NumberAt& at) { return at.number == numbers[0].number; };
  if (!numbers.empty() && std::all_of(numbers.begin(), numbers.end(), is_first)) return kNoForm;
  const auto offset = numbers.empty() ? std::nullopt : offset_of(numbers, divisor);
  auto form = offset ? quotient_of(graph_.varying, extent, *offset, divisor) : std::nullopt;
  if (!form || form->divisor > kMostDivisor) return std::nullopt;
  const int64_t least = numbers.front().number, most = numbers.back().number;
  const bool is_less = value_of(graph_.varying, *form, smallest) < least;
  const bool is_more = value_of(graph_.varying, *form, most_) > most;
  if ((is_less || is_more) && !is_of_symbols(*form)) return std::nullopt;
  const SizeForm none;
  return index_of(graph::bounded(*form, is_less ? least : none.least, is_more ? most : none.most));
}

}  // namespace hone::graph
