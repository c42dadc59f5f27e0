#include "model_card.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "hone/base/hash.h"

#include "option_texts.h"

namespace hone::tool {

void TrainedOn::add(const MeasuredDevice& device, const learn::Dataset& part) {
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

Json card_json(const Notes& card) {
  Json json;
  for (const auto& [name, value] : card) {
    if (!value.empty()) json[name] = value;
  }
  return json;
}

std::string card_line(const Json& card) {
  std::vector<std::string> notes;
  for (const auto& [name, value] : card.items())
    notes.push_back(fmt::format("{} {}", name, value.get<std::string>()));
  return notes.empty() ? "" : fmt::format("trained: {}\n", fmt::join(notes, "; "));
}

}  // namespace hone::tool
