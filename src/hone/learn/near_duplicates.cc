// Near duplicates among the schedules of a task, by union of equal and of similar ones.
#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "hone/base/hash.h"
#include "hone/cost/candidate_features.h"
#include "hone/learn/data_split.h"

namespace hone::learn {
namespace {

constexpr double kSmall = 1.25;  // numbers no further apart are a small difference

class Groups {
 public:
  explicit Groups(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  int find(int i) {
    while (parent_[static_cast<size_t>(i)] != i)
      i = parent_[static_cast<size_t>(i)] =
          parent_[static_cast<size_t>(parent_[static_cast<size_t>(i)])];
    return i;
  }
  void join(int a, int b) { parent_[static_cast<size_t>(find(a))] = find(b); }

 private:
  std::vector<int> parent_;
};

// A text with its numbers taken out.
struct Skeleton {
  uint64_t hash = 0;
  std::vector<int64_t> numbers;
};

Skeleton skeleton_of(const std::string& text) {
  Skeleton skeleton;
  std::string rest;
  for (size_t i = 0; i < text.size();) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    const bool inside =
        i > 0 && (std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0 || text[i - 1] == '_');
    int64_t number = 0;
    if (digit && !inside) {
      const auto end = std::from_chars(text.data() + i, text.data() + text.size(), number).ptr;
      i = static_cast<size_t>(end - text.data());
      rest += '#';
      skeleton.numbers.push_back(number);
    } else {
      rest += text[i++];
    }
  }
  skeleton.hash = hash_string(rest);
  return skeleton;
}

}  // namespace

std::vector<int> near_duplicates(std::span<const schedule::Steps> schedules,
                                 std::span<const std::vector<float>> features) {
  Groups groups(schedules.size());
  std::unordered_map<uint64_t, int> seen;
  for (size_t i = 0; i < features.size(); ++i) {
    const std::vector<float>& row = features[i];
    if (row.empty()) continue;
    const auto [place, added] =
        seen.emplace(hash_bytes(row.data(), row.size() * sizeof(float)), static_cast<int>(i));
    if (!added) groups.join(static_cast<int>(i), place->second);
  }
  // Those that agree in all but one number, for each number in turn.
  std::map<uint64_t, std::vector<std::pair<int64_t, int>>> alike;
  for (size_t i = 0; i < schedules.size(); ++i) {
    const Skeleton skeleton = skeleton_of(schedule::to_string(schedules[i]));
    uint64_t all = skeleton.hash;  // a sum: each number may be taken out of it again
    std::vector<uint64_t> terms;
    for (size_t k = 0; k < skeleton.numbers.size(); ++k) {
      terms.push_back(hash_combine(k, static_cast<uint64_t>(skeleton.numbers[k])));
      all += terms.back();
    }
    for (size_t k = 0; k < terms.size(); ++k)
      alike[hash_combine(all - terms[k], k)].emplace_back(skeleton.numbers[k], static_cast<int>(i));
  }
  for (auto& [key, members] : alike) {
    std::sort(members.begin(), members.end());
    for (size_t i = 1; i < members.size(); ++i) {
      const auto [low, a] = members[i - 1];
      const auto [high, b] = members[i];
      if (static_cast<double>(high) <= kSmall * static_cast<double>(low)) groups.join(a, b);
    }
  }
  std::vector<int> result;
  std::map<int, int> numbers;
  for (size_t i = 0; i < schedules.size(); ++i) {
    const int root = groups.find(static_cast<int>(i));
    result.push_back(numbers.emplace(root, static_cast<int>(numbers.size())).first->second);
  }
  return result;
}

// Returns whether a schedule is for GPUs.
static bool has_threads(const schedule::Steps& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const schedule::Step& step) {
    return std::holds_alternative<schedule::Bind>(step);
  });
}

std::map<uint64_t, uint64_t> duplicate_groups(std::span<const TaskTrials* const> tasks) {
  std::vector<schedule::Steps> schedules;
  std::vector<uint64_t> hashes;
  std::vector<std::vector<float>> features;
  std::set<uint64_t> seen;
  // Any devices: only equality counts.
  const target::Target cpu, gpu = {.name = "", .part = target::Gpu()};
  for (const TaskTrials* task : tasks) {
    for (const MeasuredSteps& trial : task->trials) {
      const uint64_t hash = schedule::hash(trial.steps);
      if (!seen.insert(hash).second) continue;
      schedules.push_back(trial.steps);
      hashes.push_back(hash);
      features.emplace_back();
      const Result<space::Candidate> candidate = space::make_candidate(*task->dag, trial.steps);
      if (!candidate.ok()) continue;
      const auto append = [&](const target::Target& target, cost::FeatureSet set) {
        const std::vector<float> row =
            cost::candidate_features({&*candidate, &target, 1, task->key}, set).row;
        features.back().insert(features.back().end(), row.begin(), row.end());
      };
      if (has_threads(trial.steps)) {
        append(gpu, cost::FeatureSet::kGpu);
        continue;
      }
      append(cpu, cost::FeatureSet::kStatements);
      append(cpu, cost::FeatureSet::kMeasure);
    }
  }
  const std::vector<int> groups = near_duplicates(schedules, features);
  std::map<int, uint64_t> names;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const auto [place, added] = names.emplace(groups[i], hashes[i]);
    if (!added) place->second = std::min(place->second, hashes[i]);
  }
  std::map<uint64_t, uint64_t> result;
  for (size_t i = 0; i < hashes.size(); ++i) result[hashes[i]] = names[groups[i]];
  return result;
}

}  // namespace hone::learn
