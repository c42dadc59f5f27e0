#include "hone/search/sample_lanes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "hone/db/copy.h"
#include "hone/space/portable_point.h"

namespace hone::search {

SampleLanes::SampleLanes(std::span<const SampledTask> tasks, const SampleOptions& options)
    : tasks_(tasks), options_(options) {
  for (size_t t = 0; t < tasks_.size(); ++t) {
    for (size_t d = 0; d < options_.devices.size(); ++d) {
      Lane lane;
      lane.task = t, lane.device = d;
      lane.slots.resize(options_.threads.size());
      lanes_.push_back(std::move(lane));
    }
  }
}

Status SampleLanes::count_stored() {
  std::unordered_map<uint64_t, size_t> place;
  for (size_t i = 0; i < tasks_.size(); ++i) place[tasks_[i].key] = i;
  for (size_t d = 0; d < options_.devices.size(); ++d) {
    db::Filter filter;
    filter.device = options_.devices[d].key;
    filter.version = options_.version;
    HONE_RETURN_IF_ERROR(
        db::for_each_record(*options_.store, filter, [&](trial::Record&& record) -> Status {
          const auto task = place.find(record.task);
          const auto threads =
              std::find(options_.threads.begin(), options_.threads.end(), record.threads);
          if (task == place.end() || threads == options_.threads.end()) return ok_status();
          Lane& lane = lanes_[task->second * options_.devices.size() + d];
          Slot& slot = lane.slots[static_cast<size_t>(threads - options_.threads.begin())];
          slot.stored.insert(hash_string(record.steps));
          ++lane.named[record.model];
          slot.spent += kOverhead + kRunsOfRecord * record.centre;
          return ok_status();
        }));
  }
  for (Lane& lane : lanes_) {
    for (const Slot& slot : lane.slots)
      lane.rounds = std::max(lane.rounds, std::ssize(slot.stored) / options_.round);
  }
  return ok_status();
}

Status SampleLanes::load(Lane& lane, const space::Space& space) {
  lane.loaded = true;
  if (std::all_of(lane.slots.begin(), lane.slots.end(),
                  [](const Slot& slot) { return slot.stored.empty(); }))
    return ok_status();
  db::Filter filter;
  filter.task = tasks_[lane.task].key;
  filter.device = options_.devices[lane.device].key;
  filter.version = options_.version;
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> records, options_.store->query(filter));
  const uint64_t start = schedule::hash(space.steps(space.default_point()));
  std::map<uint64_t, std::pair<schedule::Steps, size_t>> measured;  // with so many of the threads
  for (const trial::Record& record : records) {
    const auto threads =
        std::find(options_.threads.begin(), options_.threads.end(), record.threads);
    Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
    if (threads == options_.threads.end() || !steps.ok()) continue;
    Slot& slot = lane.slots[static_cast<size_t>(threads - options_.threads.begin())];
    const uint64_t hash = schedule::hash(*steps);
    const bool ok = record.outcome == trial::Outcome::kOk;
    if (hash == start && ok && slot.scale == 0)
      slot.scale = *std::min_element(record.times.begin(), record.times.end()) / record.drift;
    if (lane.taken.insert(hash).second) measured[hash].first = *steps;
    ++measured[hash].second;
    const std::optional<space::PortablePoint> portable = space::known_point(record.decisions);
    if (!ok || !portable) continue;
    const std::optional<space::Point> point = space::exact_point(portable, *steps, space);
    if (point) slot.fastest.add(*point, record.centre);
  }
  for (const auto& [hash, entry] : measured) {
    if (entry.second < lane.slots.size()) {
      lane.pending.push_back(entry.first);
    } else {
      Candidate candidate{.point = std::nullopt, .steps = entry.first};
      lower(candidate, *tasks_[lane.task].dag, *options_.devices[lane.device].target);
      if (candidate.runs()) lane.programs.insert(candidate.program_hash);
    }
  }
  return ok_status();
}

int64_t SampleLanes::unnamed(const Lane& lane) const {
  const std::vector<std::string>& models = tasks_[lane.task].models;
  return std::count_if(models.begin(), models.end(),
                       [&](const std::string& model) { return !lane.named.contains(model); });
}

std::string SampleLanes::next_name(const Lane& lane) const {
  const std::vector<std::string>& models = tasks_[lane.task].models;
  if (models.empty()) return "";
  const auto records = [&](const std::string& model) {
    const auto found = lane.named.find(model);
    return found == lane.named.end() ? 0 : found->second;
  };
  return *std::min_element(
      models.begin(), models.end(),
      [&](const std::string& a, const std::string& b) { return records(a) < records(b); });
}

bool SampleLanes::open(const Lane& lane) const {
  return std::any_of(lane.slots.begin(), lane.slots.end(),
                     [&](const Slot& slot) { return open(lane, slot); });
}

bool SampleLanes::complete() const {
  return std::none_of(lanes_.begin(), lanes_.end(),
                      [&](const Lane& lane) { return lane.left_out || open(lane); });
}

Lane* SampleLanes::next() {
  Lane* least = nullptr;
  std::pair<bool, int64_t> least_key;  // networks without a record first
  for (Lane& lane : lanes_) {
    if (!has_more(lane) || !open(lane)) continue;
    const std::pair key(unnamed(lane) == 0, lane.rounds);
    if (least == nullptr || key < least_key) least = &lane, least_key = key;
  }
  if (least != nullptr) ++least->rounds;
  return least;
}

int SampleLanes::wanted_now(const Lane& lane) const {
  int wanted = 0;
  for (const Slot& slot : lane.slots) {
    if (!wants(lane, slot)) continue;
    // A slot whose time is spent may be open for a name alone.
    const bool has_time = slot.spent < options_.task_seconds;
    double n = has_time
                   ? std::min<double>(options_.round, options_.schedules - std::ssize(slot.stored))
                   : 0;
    if (has_time && slot.timed > 0) {
      const double each = slot.timed_seconds / static_cast<double>(slot.timed);
      const double left = options_.task_seconds - slot.spent;
      n = std::min(n, std::ceil(std::min(left, kTurnShare * options_.task_seconds) / each));
    }
    wanted = std::max(wanted, static_cast<int>(std::max<double>(n, unnamed(lane))));
  }
  return wanted;
}

int64_t SampleLanes::count(DatasetProgress& progress) const {
  progress.stored = progress.wanted = progress.open = 0;
  int64_t missing = 0;
  for (const Lane& lane : lanes_) {
    for (const Slot& slot : lane.slots) {
      const int64_t stored = std::min<int64_t>(std::ssize(slot.stored), options_.schedules);
      progress.stored += stored;
      progress.wanted += options_.schedules;
      if (!open(lane, slot)) continue;
      ++progress.open;
      missing += options_.schedules - stored;
    }
  }
  return missing;
}

}  // namespace hone::search
