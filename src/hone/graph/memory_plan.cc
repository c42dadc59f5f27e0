#include "hone/graph/memory_plan.h"

#include <algorithm>

namespace hone::graph {
namespace {

// What shares one place: an unbordered buffer alone, or all bordered buffers that take turns.
struct Block {
  int64_t bytes = 0;
  std::vector<int> buffers;
  bool pinned = false;  // its memory may not be used by others at any time
};

int64_t rounded(int64_t bytes) {
  return (bytes + MemoryPlan::kAlignment - 1) / MemoryPlan::kAlignment * MemoryPlan::kAlignment;
}

bool overlap(const std::pair<int, int>& a, const std::pair<int, int>& b) {
  return a.first <= b.second && b.first <= a.second;
}

bool alike(const Buffer& a, const Buffer& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.border == b.border;
}

}  // namespace

MemoryPlan plan_memory(const TaskList& tasks) {
  MemoryPlan plan;
  const size_t count = tasks.buffers.size();
  plan.offsets.assign(count, -1);
  plan.lives.assign(count, {-1, -1});
  for (size_t i = 0; i < tasks.calls.size(); ++i) {
    for (const Argument& argument : tasks.calls[i].arguments) {
      if (argument.kind != Argument::Kind::kArena) continue;
      auto& [first, last] = plan.lives[static_cast<size_t>(argument.index)];
      if (first < 0) first = static_cast<int>(i);
      last = static_cast<int>(i);
    }
  }

  for (const TensorInfo& output : tasks.outputs) {  // read after the last call
    if (output.extents >= 0)
      plan.lives[static_cast<size_t>(output.extents)].second = static_cast<int>(tasks.calls.size());
  }

  // Bordered buffers first: like ones take turns in one block.
  std::vector<Block> blocks;
  std::vector<int> free_buffers;
  for (size_t i = 0; i < count; ++i) {
    const Buffer& buffer = tasks.buffers[i];
    if (plan.lives[i].first < 0) continue;
    if (!buffer.has_border()) {
      free_buffers.push_back(static_cast<int>(i));
      continue;
    }
    const auto fits = [&](const Block& block) {
      return alike(tasks.buffers[static_cast<size_t>(block.buffers.front())], buffer) &&
             std::none_of(block.buffers.begin(), block.buffers.end(), [&](int other) {
               return overlap(plan.lives[static_cast<size_t>(other)], plan.lives[i]);
             });
    };
    const auto block = std::find_if(blocks.begin(), blocks.end(), fits);
    if (block != blocks.end()) {
      block->buffers.push_back(static_cast<int>(i));
    } else {
      blocks.push_back({rounded(buffer.bytes()), {static_cast<int>(i)}, true});
    }
  }
  int64_t end = 0;
  for (const Block& block : blocks) {
    for (const int buffer : block.buffers) plan.offsets[static_cast<size_t>(buffer)] = end;
    plan.zeroed.push_back({end, block.bytes});
    end += block.bytes;
  }

  // The others behind them, the largest first, each in the tightest gap between those that live
  // then.
  const int64_t base = end;
  std::stable_sort(free_buffers.begin(), free_buffers.end(), [&](int a, int b) {
    return tasks.buffers[static_cast<size_t>(a)].bytes() >
           tasks.buffers[static_cast<size_t>(b)].bytes();
  });
  std::vector<int> placed;
  for (const int buffer : free_buffers) {
    const int64_t bytes = rounded(tasks.buffers[static_cast<size_t>(buffer)].bytes());
    std::vector<std::pair<int64_t, int64_t>> taken;  // offset, end
    for (const int other : placed) {
      if (!overlap(plan.lives[static_cast<size_t>(other)], plan.lives[static_cast<size_t>(buffer)]))
        continue;
      const int64_t at = plan.offsets[static_cast<size_t>(other)];
      taken.push_back({at, at + rounded(tasks.buffers[static_cast<size_t>(other)].bytes())});
    }
    std::sort(taken.begin(), taken.end());
    int64_t at = base, best = -1, best_gap = 0;
    for (const auto& [start, stop] : taken) {
      const int64_t gap = start - at;
      if (gap >= bytes && (best < 0 || gap < best_gap)) best = at, best_gap = gap;
      at = std::max(at, stop);
    }
    if (best < 0) best = at;
    plan.offsets[static_cast<size_t>(buffer)] = best;
    end = std::max(end, best + bytes);
    placed.push_back(buffer);
  }
  plan.arena_bytes = end;
  return plan;
}

Status verify(const MemoryPlan& plan, const TaskList& tasks) {
  const size_t count = tasks.buffers.size();
  for (size_t i = 0; i < count; ++i) {
    if (plan.offsets[i] < 0) continue;
    const Buffer& a = tasks.buffers[i];
    const int64_t a_end = plan.offsets[i] + a.bytes();
    if (plan.offsets[i] % MemoryPlan::kAlignment != 0)
      return error(Code::kInternal, "buffer {} is not aligned", i);
    if (a_end > plan.arena_bytes) return error(Code::kInternal, "buffer {} leaves the arena", i);
    for (size_t k = i + 1; k < count; ++k) {
      if (plan.offsets[k] < 0) continue;
      const Buffer& b = tasks.buffers[k];
      const bool shares = plan.offsets[i] < plan.offsets[k] + b.bytes() && plan.offsets[k] < a_end;
      if (!shares) continue;
      if (overlap(plan.lives[i], plan.lives[k])) {
        return error(Code::kInternal, "buffers {} and {} live at the same time and overlap", i, k);
      }
      const bool same = plan.offsets[i] == plan.offsets[k] && alike(a, b);
      if ((a.has_border() || b.has_border()) && !same) {
        return error(Code::kInternal, "buffers {} and {} overlap, and one has a border", i, k);
      }
    }
    if (!a.has_border()) continue;
    const bool zeroed = std::any_of(plan.zeroed.begin(), plan.zeroed.end(), [&](const auto& range) {
      return range.first <= plan.offsets[i] && a_end <= range.first + range.second;
    });
    if (!zeroed) return error(Code::kInternal, "buffer {} has a border that is not zeroed", i);
  }
  return ok_status();
}

}  // namespace hone::graph
