// search/transfer_source.h - chooses the model from which schedules are transferred
// (Transfer-Tuning, section 4.4.1, equation 1): many schedules of the kernel classes that cost
// most.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hone/search/transfer.h"

namespace hone::search {

struct SourceScore {
  std::string model;
  double score = 0;  // sum over classes of P_c^2 sqrt(|W_c|)
  int tasks = 0;     // tasks of those classes
};

// Ranks the models of the pool that share a class with the target, the best first and equal ones by
// name. `class_seconds` is the untuned time of each kernel class of the target; P_c is its share.
[[nodiscard]] std::vector<SourceScore> rank_sources(
    const TransferPool& pool, const std::map<std::string, double>& class_seconds);

}  // namespace hone::search
