#include "hone/commands/training/model_card.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "hone/base/hash.h"

namespace hone {

void TrainedOn::add(const MeasuredDevice& device, const learn::Dataset& part) {
  if (part.tasks.empty()) return;
  devices.push_back(device.text());
  models.merge(part.models());
  tasks.merge(part.keys());
  schedules += part.size();
}

Notes data_notes(const TrainedOn& data, const std::vector<std::string>& excluded) {
  return {{"devices", fmt::format("{}", fmt::join(data.devices, ", "))},
          {"models", fmt::format("{}", fmt::join(data.models, ", "))},
          {"excluded_models", fmt::format("{}", fmt::join(excluded, ", "))}};
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

Result<cost::TrainedTrees> start_trees(std::string_view text, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(cost::TrainedTrees known, cost::parse_trained(text, path));
  auto loss = known.card.extract(std::string(cost::kLossNote));  // of most of its trees still
  known.card = from_notes(path, text, known.card);
  known.card.insert(std::move(loss));
  return known;
}

Notes from_notes(const std::string& path, std::string_view bytes, const Notes& card) {
  Notes notes = {{"from", fmt::format("{} {}", std::filesystem::path(path).filename().string(),
                                      hash_hex(hash_string(bytes)))}};
  for (const auto& [name, value] : card) notes["from." + name] = value;
  return notes;
}

}  // namespace hone
