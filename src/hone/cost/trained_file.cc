// The text of a trained model: four lines of header, then a line per tree (trees.h).
#include <fmt/format.h>

#include <optional>

#include "hone/cost/gbdt_model.h"

namespace hone::cost {
namespace {

constexpr std::string_view kTitle = "hone cost model";

// Takes the next line off the text; nullopt if there is none.
std::optional<std::string_view> next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::string header(FeatureSet features) {
  return fmt::format("{}\nkind {}\nfeatures {} of version {}\n", kTitle, model_name(features),
                     candidate_feature_names(features).size(), kCandidateFeatureVersion);
}

}  // namespace

std::string format(const TrainedTrees& trained) {
  return fmt::format("{}trees {}\n{}", header(trained.features), trained.trees.size(),
                     trained.trees.format());
}

Result<TrainedTrees> parse_trained(std::string_view text, std::string_view name) {
  TrainedTrees trained;
  if (!text.starts_with(fmt::format("{}\n", kTitle)))
    return invalid("{}: no cost model, expected the first line '{}'", name, kTitle);
  (void)next_line(text);
  const std::string_view kind = next_line(text).value_or("");
  bool known = false;
  for (const FeatureSet set : kTreeFeatures) {
    if (kind != fmt::format("kind {}", model_name(set))) continue;
    trained.features = set;
    known = true;
  }
  if (!known) return invalid("{}: found '{}', expected kind gbdt or combined", name, kind);
  const int count = static_cast<int>(candidate_feature_names(trained.features).size());
  const std::string features =
      fmt::format("features {} of version {}", count, kCandidateFeatureVersion);
  if (const std::string_view found = next_line(text).value_or(""); found != features) {
    return invalid("{}: found '{}', expected '{}': train it anew (hone train)", name, found,
                   features);
  }
  const std::string_view trees = next_line(text).value_or("");
  Result<Trees> parsed = Trees::parse(text, count);
  if (!parsed.ok()) return invalid("{}: {}", name, parsed.status().message());
  if (trees != fmt::format("trees {}", parsed->size()))
    return invalid("{}: {} trees, but the header says '{}'", name, parsed->size(), trees);
  trained.trees = std::move(parsed).value();
  return trained;
}

}  // namespace hone::cost
