#include "hone/session/network_choices.h"

#include <algorithm>

#include "hone/base/hash.h"

namespace hone {

uint64_t network_key(const ModelTasks& model) {
  uint64_t key = hash_combine(hash_string("network"), static_cast<uint64_t>(model.accuracy()));
  for (const graph::TaskCall& call : model.tasks.calls) key = hash_combine(key, call.key);
  return key;
}

Result<NetworkChoices> stored_choices(const ModelTasks& model, db::ChoiceStore& store) {
  HONE_ASSIGN_OR_RETURN(std::vector<db::Chosen> stored, store.chosen(network_key(model)));
  NetworkChoices choices;
  for (db::Chosen& chosen : stored) {
    trial::Record& record = chosen.record;
    if (record.device != model.device() || record.threads != model.threads()) continue;
    if (model.excluded.contains(record.task)) continue;
    const uint64_t task = record.task;
    choices[{task, std::move(chosen.best)}] = std::move(record);
  }
  return choices;
}

Status remember_choices(const ModelTasks& model, std::span<const schedule::Steps> schedules,
                        db::Store& store) {
  std::vector<db::Choice> choices;
  for (size_t g = 0; g < schedules.size(); ++g) {
    const uint64_t key = model.tasks.groups[g].key;
    HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> best, best_stored(model, store, key));
    if (best.empty()) continue;
    const std::string steps = schedule::to_string(schedules[g]);
    if (steps == best[0].steps) {
      choices.push_back({best[0].id, best[0].id});
      continue;
    }
    HONE_ASSIGN_OR_RETURN(std::vector<trial::Record> same, store.query({.task = key,
                                                                        .device = model.device(),
                                                                        .threads = model.threads(),
                                                                        .verified_only = true}));
    std::erase_if(same, [&](const trial::Record& record) { return record.steps != steps; });
    const auto fastest = std::min_element(
        same.begin(), same.end(),
        [](const trial::Record& a, const trial::Record& b) { return a.centre < b.centre; });
    const bool measured = fastest != same.end();
    choices.push_back({best[0].id, measured ? fastest->id : best[0].id});
  }
  return store.choose(network_key(model), choices);
}

}  // namespace hone
