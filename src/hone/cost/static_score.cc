#include "hone/cost/static_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hone/base/assert.h"
#include "hone/base/option_fields.h"
#include "hone/base/options.h"

namespace hone::cost {
namespace {

constexpr std::array<std::string_view, 16> kNames = {
    "fma",       "arithmetic", "load",       "store",     "shuffle",   "scalar",
    "branch",    "cycles",     "mca_cycles", "l1_cycles", "l2_cycles", "l3_cycles",
    "l1_shared", "l2_shared",  "l3_shared",  "launches"};
// The groups of features that a fit may leave out, by the indices of the first and the last one.
struct Group {
  int StaticOptions::*used;
  size_t first, last;
};
constexpr Group kGroups[] = {{&StaticOptions::counts, 0, 6},
                             {&StaticOptions::scheduler, 7, 7},
                             {&StaticOptions::mca, 8, 8},
                             {&StaticOptions::shared, 12, 14}};
constexpr OptionField<StaticOptions> kStaticOptions[] = {
    {"counts", "0: without counted instructions", 0, 1, &StaticOptions::counts},
    {"scheduler", "0: without the cycles of the list scheduler", 0, 1, &StaticOptions::scheduler},
    {"mca", "0: without the cycles of LLVM MCA", 0, 1, &StaticOptions::mca},
    {"shared", "0: without data movement that counts once what stages share", 0, 1,
     &StaticOptions::shared},
};
constexpr std::string_view kStaticFile = "hone static score";
constexpr int kSweeps = 3000;    // of coordinate descent
constexpr double kRidge = 1e-9;  // keeps features that are multiples of one another apart
constexpr double kNanosecond = 1e-9;

std::string features_line() {
  return fmt::format("features {} of version {}", kNames.size(), kStaticFeatureVersion);
}

// Takes the next line off the text; the last one needs no end.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::span<const std::string_view> static_feature_names() { return kNames; }

double StaticScore::seconds(std::span<const double> features, double ghz) const {
  HONE_ASSERT(features.size() == coefficients.size(), "one coefficient per feature");
  double cycles = 0;
  for (size_t i = 0; i < features.size(); ++i) cycles += coefficients[i] * features[i];
  return cycles * kNanosecond / ghz;
}

std::string instruction_set(const target::Cpu& target) {
  return fmt::format("{} with {} bits", target.triple.substr(0, target.triple.find('-')),
                     8 * target.vector_bytes);
}

Result<StaticOptions> parse_static_options(std::string_view text) {
  return parse_fields<StaticOptions>(text, kStaticOptions, {});
}

std::vector<std::string> static_option_help() {
  return fields_help<StaticOptions>(kStaticOptions, {});
}

// Coordinate descent on the normal equations of A x = 1, where a row of A is a sample's features
// over its cycles; columns are scaled to length 1. The problem is convex, so each sweep comes
// closer to the only minimum.
std::vector<double> fit_static(std::span<const StaticSample> samples,
                               const StaticOptions& options) {
  const size_t n = kNames.size();
  std::vector<double> length(n, 0), target(n, 0), x(n, 0);
  std::vector<std::vector<double>> rows, gram(n, std::vector<double>(n, 0));
  for (const StaticSample& sample : samples) {
    HONE_ASSERT(sample.features.size() == n && sample.seconds > 0, "a whole sample");
    std::vector<double>& row = rows.emplace_back(sample.features);
    for (double& value : row) value *= kNanosecond / (sample.ghz * sample.seconds);
    for (const Group& group : kGroups) {
      if (options.*group.used == 0) std::fill(&row[group.first], &row[group.last] + 1, 0.0);
    }
    for (size_t i = 0; i < n; ++i) length[i] += row[i] * row[i];
  }
  for (double& value : length) value = value > 0 ? std::sqrt(value) : 1;
  for (const std::vector<double>& row : rows) {
    for (size_t i = 0; i < n; ++i) {
      target[i] += row[i] / length[i];
      for (size_t j = 0; j < n; ++j) gram[i][j] += row[i] * row[j] / (length[i] * length[j]);
    }
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t i = 0; i < n; ++i) {
      if (gram[i][i] <= 0) continue;
      double rest = target[i];
      for (size_t j = 0; j < n; ++j) rest -= j == i ? 0 : gram[i][j] * x[j];
      x[i] = std::max(0.0, rest / (gram[i][i] + kRidge));
    }
  }
  for (size_t i = 0; i < n; ++i) x[i] /= length[i];
  return x;
}

std::string format(const StaticScore& score) {
  std::string text = fmt::format("{}\ninstructions {}\n{}\n", kStaticTitle, score.instruction_set,
                                 features_line());
  for (const auto& [name, value] : score.card) {
    std::string line = value;
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += fmt::format("card {} {}\n", name, line);
  }
  for (size_t i = 0; i < kNames.size(); ++i)
    text += fmt::format("{} {:.17g}\n", kNames[i], score.coefficients[i]);
  return text;
}

bool is_static_score(std::string_view text) { return text.starts_with(kStaticFile); }

Result<StaticScore> parse_static(std::string_view text, std::string_view name) {
  const auto expect = [&](std::string_view found, const std::string& expected) -> Status {
    if (found == expected) return ok_status();
    return invalid("{}: found '{}', expected '{}': fit it anew (hone train --cost static)", name,
                   found, expected);
  };
  StaticScore score;
  HONE_RETURN_IF_ERROR(expect(take_line(text), std::string(kStaticTitle)));
  constexpr std::string_view kSet = "instructions ";
  std::string_view line = take_line(text);
  if (!line.starts_with(kSet))
    return invalid("{}: found '{}', expected '{}' and the instruction set", name, line, kSet);
  score.instruction_set = line.substr(kSet.size());
  HONE_RETURN_IF_ERROR(expect(take_line(text), features_line()));
  constexpr std::string_view kCard = "card ";
  for (line = take_line(text); line.starts_with(kCard); line = take_line(text)) {
    const std::string_view note = line.substr(kCard.size());
    const size_t end = std::min(note.find(' '), note.size());
    score.card.emplace(note.substr(0, end), note.substr(std::min(end + 1, note.size())));
  }
  for (const std::string_view feature : kNames) {
    const std::string start = fmt::format("{} ", feature);
    if (!line.starts_with(start))
      return invalid("{}: found '{}', expected the coefficient of '{}'", name, line, feature);
    const Result<double> value = parse_real(std::string(line.substr(start.size())), 0, 1e12);
    if (!value.ok()) return invalid("{}: {}: {}", name, feature, value.status().message());
    score.coefficients.push_back(*value);
    line = take_line(text);
  }
  if (!line.empty()) return invalid("{}: found '{}' behind the coefficients", name, line);
  return score;
}

}  // namespace hone::cost
