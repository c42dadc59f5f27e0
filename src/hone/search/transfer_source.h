// search/transfer_source.h - which model's schedules to transfer from (Transfer-Tuning, section
// 4.4.1, equation 1): many schedules of the kernel classes that cost most.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hone/search/transfer.h"

namespace hone::search {

struct SourceScore {
  std::string model;
  double score = 0;  // sum over classes of P_c^2 sqrt(|W_c|)
  int tasks = 0;     // of those classes
};

// Models of the pool, the best first, equal ones by name; without those that share no class.
// `class_seconds`: what each kernel class of the target costs untuned; P_c is its share.
[[nodiscard]] std::vector<SourceScore> rank_sources(
    const TransferPool& pool, const std::map<std::string, double>& class_seconds);

}  // namespace hone::search
