#include "hone/search/transfer_source.h"

#include <algorithm>
#include <cmath>

namespace hone::search {

std::vector<SourceScore> rank_sources(const TransferPool& pool,
                                      const std::map<std::string, double>& class_seconds) {
  double total = 0;
  for (const auto& [name, seconds] : class_seconds) total += seconds;
  std::map<std::string, std::map<std::string, std::set<uint64_t>>> tasks;  // by model and class
  for (const trial::Record& record : pool.records()) {
    if (class_seconds.contains(record.kernel_class))
      tasks[record.model][record.kernel_class].insert(record.task);
  }
  std::vector<SourceScore> scores;
  for (const auto& [model, classes] : tasks) {
    SourceScore score{model, 0, 0};
    for (const auto& [name, keys] : classes) {
      const double share = total > 0 ? class_seconds.at(name) / total : 0;
      score.score += share * share * std::sqrt(static_cast<double>(keys.size()));
      score.tasks += static_cast<int>(keys.size());
    }
    scores.push_back(std::move(score));
  }
  std::stable_sort(scores.begin(), scores.end(),
                   [](const SourceScore& a, const SourceScore& b) { return a.score > b.score; });
  return scores;
}

}  // namespace hone::search
