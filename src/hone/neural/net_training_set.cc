#include "hone/neural/net_training_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/rng.h"

namespace hone {

namespace net = cost::net;

void NetTrainingSet::add(const NetObservation& observation) {
  if (samples_.size() == kMaximum) samples_.pop_front();
  Sample sample{observation.task, observation.seconds, observation.default_seconds, {}};
  for (const std::span<const float> input : observation.inputs)
    sample.inputs.emplace_back(input.begin(), input.end());
  samples_.push_back(std::move(sample));
  double& best = best_.try_emplace(observation.task, observation.seconds).first->second;
  best = std::min(best, observation.seconds);
  fresh_ = std::min(fresh_ + 1, samples_.size());
}

net::NetRows NetTrainingSet::pick(const net::Net& net, size_t most, uint64_t seed) {
  std::vector<size_t> order(samples_.size());
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());  // the newest first
  std::vector<size_t> older(order.begin() + static_cast<std::ptrdiff_t>(fresh_), order.end());
  Rng rng(seed);
  rng.shuffle(older);
  std::copy(older.begin(), older.end(), order.begin() + static_cast<std::ptrdiff_t>(fresh_));
  order.resize(std::min(order.size(), most));
  fresh_ = 0;
  std::map<uint64_t, std::vector<size_t>> tasks;
  for (const size_t place : order) tasks[samples_[place].task].push_back(place);

  net::NetRows rows;
  rows.batch.inputs.resize(net.inputs.size());
  for (const auto& [task, places] : tasks) {
    if (places.size() < 2) continue;
    for (const size_t place : places) {
      const Sample& sample = samples_[place];
      for (size_t i = 0; i < net.inputs.size(); ++i)
        rows.batch.inputs[i].insert(rows.batch.inputs[i].end(), sample.inputs[i].begin(),
                                    sample.inputs[i].end());
      rows.speed.push_back(static_cast<float>(best_.at(task) / sample.seconds));
      rows.log_time.push_back(net::log_time(sample.seconds, sample.default_seconds));
    }
    rows.batch.rows += std::ssize(places);
    rows.group_begin.push_back(rows.batch.rows);
  }
  rows.memory_bound.assign(rows.speed.size(), NAN);
  rows.core_bound.assign(rows.speed.size(), NAN);
  return rows;
}

}  // namespace hone
