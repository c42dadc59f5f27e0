#include "hone/learn/torch/meta_tasks.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "hone/base/rng.h"

namespace hone::learn::torch_module {
namespace {

// The tuning tasks that have enough schedules, in any order.
std::vector<int64_t> usable(const HoneTorchRows& rows, const HoneTorchMetaOptions& meta, Rng& rng) {
  std::vector<int64_t> groups;
  for (int64_t g = 0; g < rows.num_groups; ++g) {
    if (rows.group_begin[g + 1] - rows.group_begin[g] >= meta.shots + meta.queries)
      groups.push_back(g);
  }
  rng.shuffle(groups);
  return groups;
}

void add(std::span<const int64_t> rows, Batch& batch) {
  batch.rows.insert(batch.rows.end(), rows.begin(), rows.end());
  batch.group_sizes.push_back(std::ssize(rows));
}

MetaTask make_task(const HoneTorchRows& rows, const HoneTorchMetaOptions& meta,
                   std::span<const int64_t> groups, Rng& rng) {
  MetaTask task;
  for (const int64_t g : groups) {
    std::vector<int64_t> all(static_cast<size_t>(rows.group_begin[g + 1] - rows.group_begin[g]));
    std::iota(all.begin(), all.end(), rows.group_begin[g]);
    rng.shuffle(all);
    const std::span<const int64_t> drawn(all);
    const auto shots = static_cast<size_t>(meta.shots);
    add(drawn.first(shots), task.support);
    add(drawn.subspan(shots, static_cast<size_t>(meta.queries)), task.query);
  }
  return task;
}

}  // namespace

std::vector<MetaTask> draw_tasks(const HoneTorchRows& rows, const HoneTorchMetaOptions& meta,
                                 uint64_t seed) {
  Rng rng(seed);
  std::vector<int64_t> groups = usable(rows, meta, rng);
  TORCH_CHECK(std::ssize(groups) >= meta.ways, "too few tasks have ", meta.shots, " and ",
              meta.queries, " schedules for meta-learning");
  std::vector<MetaTask> tasks;
  int64_t next = 0;
  while (std::ssize(tasks) < meta.tasks) {
    if (std::ssize(groups) - next < meta.ways) rng.shuffle(groups), next = 0;
    const std::span<const int64_t> ways(groups.data() + next, static_cast<size_t>(meta.ways));
    tasks.push_back(make_task(rows, meta, ways, rng));
    next += meta.ways;
  }
  return tasks;
}

std::vector<MetaTask> judged_tasks(const HoneTorchRows& rows, const HoneTorchMetaOptions& meta,
                                   uint64_t seed) {
  Rng rng(seed);
  const std::vector<int64_t> groups = usable(rows, meta, rng);
  const int64_t count = std::ssize(groups) / meta.ways;
  std::vector<MetaTask> tasks;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = std::ssize(groups) * i / count,
                  end = std::ssize(groups) * (i + 1) / count;
    const std::span<const int64_t> ways(groups.data() + begin, static_cast<size_t>(end - begin));
    tasks.push_back(make_task(rows, meta, ways, rng));
  }
  return tasks;
}

}  // namespace hone::learn::torch_module
