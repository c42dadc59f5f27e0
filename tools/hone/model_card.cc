#include "model_card.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/cost/gbdt_model.h"
#include "hone/cost/pretrained.h"
#include "hone/cost/registry.h"
#include "hone/net_file.h"

#include "option_texts.h"

namespace hone::tool {
namespace {

// Of trees; the number of them is no note of theirs.
Result<Notes> card_of(std::string_view text, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trained, cost::parse_trained(text, name));
  trained.card["trees"] = std::to_string(trained.trees.size());
  return std::move(trained.card);
}

Result<Notes> find_notes(const std::string& cost) {
  for (const cost::FeatureSet set : cost::kTreeFeatures) {
    if (cost == cost::model_name(set)) return card_of(cost::pretrained_text(set), cost);
  }
  if (cost.ends_with(".onnx")) {
    HONE_ASSIGN_OR_RETURN(const NetFile net, read_net(cost));
    Notes notes = net.card.notes;
    notes["family"] = net.family;
    return notes;
  }
  if (!cost::is_model_file(cost)) return Notes();
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(cost));
  return card_of(text, cost);
}

}  // namespace

void TrainedOn::add(const MeasuredDevice& device, const cost::Dataset& part) {
  if (part.tasks.empty()) return;
  devices.push_back(device.text());
  models.merge(part.models());
  tasks.merge(part.keys());
  schedules += part.size();
}

Notes data_notes(const TrainedOn& data, const std::vector<std::string>& excluded) {
  return {{"devices", join_names(data.devices)},
          {"models", fmt::format("{}", fmt::join(data.models, ", "))},
          {"excluded_models", join_names(excluded)}};
}

Notes tree_notes(const TrainedOn& data, const std::vector<std::string>& excluded,
                 cost::TreeLibrary booster, uint64_t seed) {
  Notes notes = data_notes(data, excluded);
  notes["schedules"] = std::to_string(data.schedules);
  notes["tasks"] = std::to_string(data.tasks.size());
  notes["booster"] = cost::tree_library_names()[static_cast<size_t>(booster)];
  notes["seed"] = std::to_string(seed);
  return notes;
}

Notes from_notes(const std::string& path, std::string_view bytes, const Notes& card) {
  Notes notes = {{"from", fmt::format("{} {}", std::filesystem::path(path).filename().string(),
                                      hash_hex(hash_string(bytes)))}};
  for (const auto& [name, value] : card) notes["from." + name] = value;
  return notes;
}

Result<Json> read_card(const std::string& cost) {
  HONE_ASSIGN_OR_RETURN(const Notes notes, find_notes(cost));
  Json card;
  for (const auto& [name, value] : notes) {
    if (!value.empty()) card[name] = value;
  }
  return card;
}

std::string card_line(const Json& card) {
  std::vector<std::string> notes;
  for (const auto& [name, value] : card.items())
    notes.push_back(fmt::format("{} {}", name, value.get<std::string>()));
  return notes.empty() ? "" : fmt::format("trained: {}\n", fmt::join(notes, "; "));
}

}  // namespace hone::tool
