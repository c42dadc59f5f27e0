// The text of a trained model: lines of header, then one per tree (trees.h). The header says the
// file's version, what kind of trees these are and which features they look at, their fingerprint
// (fingerprint.h), line by line what the card has, and how many trees follow.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "hone/base/next_line.h"
#include "hone/cost/fingerprint.h"
#include "hone/cost/gbdt_model.h"
#include "hone/cost/static_score.h"

namespace hone::cost {
namespace {

constexpr std::string_view kFile = "hone cost model";
constexpr std::string_view kTitle = "hone cost model 2";
constexpr std::string_view kCard = "card ";

std::string fingerprint_start(std::string_view part) {
  return fmt::format("fingerprint {} ", part);
}

// Names come from models and devices: none may end its line.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::string header(const TrainedTrees& trained) {
  std::string text = fmt::format("{}\nkind {}\n{}\n", kTitle, model_name(trained.features),
                                 features_line(trained.features));
  for (const std::string& part : fingerprint_parts(trained.features))
    text += fmt::format("{}{}\n", fingerprint_start(part), fingerprint(part));
  for (const auto& [name, value] : trained.card) {
    if (!value.empty()) text += fmt::format("{}{} {}\n", kCard, name, one_line(value));
  }
  return text + fmt::format("trees {}\n", trained.trees.size());
}

Status old_or_wrong(std::string_view name, std::string_view found, std::string_view expected) {
  return invalid("{}: found '{}', expected '{}': train it anew (hone train)", name, found,
                 expected);
}

Status check_title(std::string_view line, std::string_view name) {
  if (line == kTitle) return ok_status();
  if (is_static_score(line))
    return invalid("{}: a score of machine code (hone train --cost static), expected trees", name);
  if (line.starts_with(kFile)) return old_or_wrong(name, line, kTitle);
  return invalid("{}: no cost model, expected the first line '{}'", name, kTitle);
}

Result<FeatureSet> parse_kind(std::string_view line, std::string_view name) {
  for (const FeatureSet set : kTreeFeatures) {
    if (line == fmt::format("kind {}", model_name(set))) return set;
  }
  return invalid("{}: found '{}', expected kind gbdt, combined or gpu", name, line);
}

enum class Fingerprints : uint8_t { kCompared, kSkipped };

Status check_part(std::string_view line, std::string_view part, std::string_view name,
                  Fingerprints fingerprints) {
  const std::string start = fingerprint_start(part);
  if (!line.starts_with(start))
    return invalid("{}: found '{}', expected '{}' and its numbers", name, line, start);
  if (fingerprints == Fingerprints::kSkipped) return ok_status();
  return check_fingerprint(part, line.substr(start.size()), name);
}

Result<TrainedTrees> parse_model(std::string_view text, std::string_view name,
                                 Fingerprints fingerprints) {
  TrainedTrees trained;
  HONE_RETURN_IF_ERROR(check_title(next_line(text), name));
  HONE_ASSIGN_OR_RETURN(trained.features, parse_kind(next_line(text), name));
  const std::string features = features_line(trained.features);
  if (const std::string_view found = next_line(text); found != features)
    return old_or_wrong(name, found, features);
  for (const std::string& part : fingerprint_parts(trained.features))
    HONE_RETURN_IF_ERROR(check_part(next_line(text), part, name, fingerprints));
  std::string_view line = next_line(text);
  for (; line.starts_with(kCard); line = next_line(text)) {
    const std::string_view note = line.substr(kCard.size());
    const size_t end = std::min(note.find(' '), note.size());
    trained.card.emplace(note.substr(0, end), note.substr(std::min(end + 1, note.size())));
  }
  const auto count = static_cast<int>(candidate_feature_names(trained.features).size());
  Result<Trees> parsed = Trees::parse(text, count);
  if (!parsed.ok()) return invalid("{}: {}", name, parsed.status().message());
  if (line != fmt::format("trees {}", parsed->size()))
    return invalid("{}: {} trees, but the header says '{}'", name, parsed->size(), line);
  trained.trees = std::move(parsed).value();
  return trained;
}

}  // namespace

std::string format(const TrainedTrees& trained) { return header(trained) + trained.trees.format(); }

Result<TrainedTrees> parse_trained(std::string_view text, std::string_view name) {
  return parse_model(text, name, Fingerprints::kCompared);
}

Result<TrainedTrees> parse_shipped(std::string_view text, std::string_view name) {
  return parse_model(text, name, Fingerprints::kSkipped);
}

}  // namespace hone::cost
