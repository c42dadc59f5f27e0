#include "hone/search/nearest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "hone/base/option_fields.h"
#include "hone/base/rank_correlation.h"

namespace hone::search {
namespace {

constexpr double kMostSources = 1 << 20;
constexpr OptionField<Nearest> kSpearmanFields[] = {
    {"tau", "least correlation of the tasks' extents", -1, 1, &Nearest::tau},
    {"sources", "records that are tried at most", 1, kMostSources, &Nearest::sources}};
constexpr auto kShapesFields = std::span(kSpearmanFields).last<1>();

// The extents that follow each name: "data[1,58,58,64]" and "conv2d(oh=56 ..)".
std::map<std::string, std::vector<double>> extents(std::string_view text) {
  std::map<std::string, std::vector<double>> found;
  std::string name;
  bool naming = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c >= '0' && c <= '9' && !naming) {
      double value = 0;
      for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
        value = 10 * value + (text[i] - '0');
      found[name].push_back(value);
      continue;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                        (naming && ((c >= '0' && c <= '9') || c == '.'));
    if (letter) {
      if (!naming) name.clear();
      name += c;
    }
    naming = letter;
    ++i;
  }
  return found;
}

// Returns the extents that two texts have at the same places.
std::pair<std::vector<double>, std::vector<double>> common_extents(std::string_view a,
                                                                   std::string_view b) {
  const auto mine = extents(a), other = extents(b);
  std::pair<std::vector<double>, std::vector<double>> common;
  for (const auto& [name, lengths] : mine) {
    const auto it = other.find(name);
    if (it == other.end() || it->second.size() != lengths.size()) continue;
    for (size_t i = 0; i < lengths.size(); ++i) {
      common.first.push_back(std::max(lengths[i], 1.0));
      common.second.push_back(std::max(it->second[i], 1.0));
    }
  }
  return common;
}

}  // namespace

Result<Nearest> parse_nearest(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view options =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  Nearest nearest;
  if (name == "spearman") {
    nearest.by = Nearest::By::kSpearman;
  } else if (name != "shapes") {
    return invalid("'{}', expected shapes or spearman, and options as in spearman:tau=0.6", text);
  }
  if (colon + 1 == text.size()) return invalid("'{}': expected options such as sources=8", text);
  const bool by_rank = nearest.by == Nearest::By::kSpearman;
  const std::span<const OptionField<Nearest>> fields =
      by_rank ? std::span<const OptionField<Nearest>>(kSpearmanFields) : kShapesFields;
  return of_option(name, parse_fields<Nearest>(options, fields, nearest));
}

double shape_distance(std::string_view a, std::string_view b) {
  const auto [mine, other] = common_extents(a, b);
  double distance = 0;
  for (size_t i = 0; i < mine.size(); ++i) distance += std::abs(std::log2(mine[i] / other[i]));
  return mine.empty() ? INFINITY : distance / static_cast<double>(mine.size());
}

double attribute_correlation(std::string_view a, std::string_view b) {
  const auto [mine, other] = common_extents(a, b);
  return spearman(std::vector<float>(mine.begin(), mine.end()),
                  std::vector<float>(other.begin(), other.end()));
}

}  // namespace hone::search
