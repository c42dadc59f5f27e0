#include "hone/graph/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

#include "hone/base/round_up.h"

namespace hone::graph {
namespace {

// Bordered buffers that take turns in one place.
struct Block {
  int64_t bytes = 0;
  std::vector<int> buffers;
};

bool overlap(const std::pair<int, int>& a, const std::pair<int, int>& b) {
  return a.first <= b.second && b.first <= a.second;
}

bool alike(const Buffer& a, const Buffer& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.border == b.border;
}

// Tells whether `a` may share the memory of `b` although a call needs both: in place, whichever is
// the result.
class InPlaceTable {
 public:
  InPlaceTable(const MemoryPlan& plan, const TaskList& tasks, std::span<const InPlace> in_place) {
    // An argument that occurs twice in one step may be read elsewhere too.
    std::map<std::pair<int, int>, int> uses;  // uses of a buffer in a time step
    for (size_t c = 0; c < tasks.calls.size(); ++c) {
      for (const Argument& a : tasks.calls[c].arguments) {
        if (a.kind == Argument::Kind::kArena) ++uses[{plan.time_steps[c], a.index}];
      }
      for (const int buffer : tasks.calls[c].sizes) ++uses[{plan.time_steps[c], buffer}];
    }
    for (const InPlace& pair : in_place) {
      const auto in = static_cast<size_t>(pair.input), out = static_cast<size_t>(pair.output);
      const Buffer& buffer = tasks.buffers[in];
      const int step = plan.time_steps[static_cast<size_t>(pair.call)];
      const auto once = [&](int index) { return uses[{step, index}] == 1; };
      if (plan.lives[in].second == step && plan.lives[out].first == step &&
          alike(buffer, tasks.buffers[out]) && once(pair.input) && once(pair.output))
        pairs_.insert({std::min(pair.input, pair.output), std::max(pair.input, pair.output)});
    }
  }
  [[nodiscard]] bool contains(int a, int b) const {
    return pairs_.contains({std::min(a, b), std::max(a, b)});
  }

 private:
  std::set<std::pair<int, int>> pairs_;
};

// Gives the begins and ends of loops time steps of their own, between those of the calls around
// them, and returns them.
std::vector<int> add_boundary_steps(const TaskList& tasks, std::vector<int>& time_steps) {
  std::vector<int> steps;
  size_t call = 0;
  int before = 0;  // the number of time steps of calls before the boundary
  for (const int boundary : tasks.boundaries) {
    for (; call < static_cast<size_t>(boundary); ++call)
      before = std::max(before, time_steps[call] + 1);
    steps.push_back(before + static_cast<int>(steps.size()));
  }
  for (size_t c = 0; c < time_steps.size(); ++c)
    time_steps[c] += tasks.boundaries_before(static_cast<int>(c));
  return steps;
}

// Values that a loop keeps live from its begin to its end, and those that its turns copy live to
// its end.
void keep_through_loops(const TaskList& tasks, std::span<const int> boundary_steps,
                        MemoryPlan& plan) {
  const auto keep = [&](int buffer, int from, int to) {
    if (buffer < 0) return;
    auto& [first, last] = plan.lives[static_cast<size_t>(buffer)];
    if (first < 0 || from < first) first = from;
    last = std::max(last, to);
  };
  for (const TaskLoop& loop : tasks.loops) {
    const int begin = boundary_steps[static_cast<size_t>(loop.begin)];
    const int end = boundary_steps[static_cast<size_t>(loop.end)];
    for (const int buffer : loop.kept) keep(buffer, begin, end);
    for (int c = loop.first_call; c < loop.end_call; ++c)
      for (const int buffer : tasks.calls[static_cast<size_t>(c)].sizes) keep(buffer, begin, end);
    for (const LoopCopy& copy : loop.copies) keep(copy.from, end, end);
    keep(loop.turns, end, end);
  }
}

// Lives of all buffers; nothing is placed.
MemoryPlan plan_lives(const TaskList& tasks, std::span<const int> time_steps) {
  MemoryPlan plan;
  plan.time_steps.assign(time_steps.begin(), time_steps.end());
  plan.time_steps.resize(tasks.calls.size());
  if (time_steps.empty()) std::iota(plan.time_steps.begin(), plan.time_steps.end(), 0);
  const std::vector<int> boundary_steps = add_boundary_steps(tasks, plan.time_steps);
  const int after = static_cast<int>(tasks.calls.size() + tasks.boundaries.size());
  plan.offsets.assign(tasks.buffers.size(), -1);
  plan.lives.assign(tasks.buffers.size(), {-1, -1});
  for (size_t i = 0; i < tasks.calls.size(); ++i) {
    const auto keep = [&](int buffer) {
      auto& [first, last] = plan.lives[static_cast<size_t>(buffer)];
      const int step = plan.time_steps[i];
      if (first < 0 || step < first) first = step;
      last = std::max(last, step);
    };
    for (const Argument& argument : tasks.calls[i].arguments) {
      if (argument.kind == Argument::Kind::kArena) keep(argument.index);
    }
    for (const int buffer : tasks.calls[i].sizes) keep(buffer);
  }
  // Written before a run, and kept for the runs behind it.
  if (tasks.sizes >= 0) plan.lives[static_cast<size_t>(tasks.sizes)] = {0, after};
  for (const TensorInfo& output : tasks.outputs) {  // read after the last call
    if (output.extents >= 0) plan.lives[static_cast<size_t>(output.extents)].second = after;
  }
  keep_through_loops(tasks, boundary_steps, plan);
  return plan;
}

// Like buffers with a border take turns in one block; all blocks lie at the start.
void place_bordered(MemoryPlan& plan, const TaskList& tasks, const InPlaceTable& in_place) {
  std::vector<Block> blocks;
  for (int i = 0; i < std::ssize(tasks.buffers); ++i) {
    const Buffer& buffer = tasks.buffers[static_cast<size_t>(i)];
    if (plan.lives[static_cast<size_t>(i)].first < 0 || !buffer.has_border()) continue;
    const auto meets = [&](int other) {
      return overlap(plan.lives[static_cast<size_t>(other)], plan.lives[static_cast<size_t>(i)]) &&
             !in_place.contains(i, other);
    };
    const auto fits = [&](const Block& block) {
      return alike(tasks.buffers[static_cast<size_t>(block.buffers.front())], buffer) &&
             std::none_of(block.buffers.begin(), block.buffers.end(), meets);
    };
    const auto block = std::find_if(blocks.begin(), blocks.end(), fits);
    if (block != blocks.end()) {
      block->buffers.push_back(i);
    } else {
      blocks.push_back({round_up(buffer.bytes(), MemoryPlan::kAlignment), {i}});
    }
  }
  for (const Block& block : blocks) {
    for (const int buffer : block.buffers)
      plan.offsets[static_cast<size_t>(buffer)] = plan.arena_bytes;
    plan.zeroed.push_back({plan.arena_bytes, block.bytes});
    plan.arena_bytes += block.bytes;
  }
}

// The others behind them, the largest first, each where it works in place, or else in the tightest
// gap between those that live then.
void place_others(MemoryPlan& plan, const TaskList& tasks, const InPlaceTable& in_place) {
  const auto bytes_of = [&](int i) {
    return round_up(tasks.buffers[static_cast<size_t>(i)].bytes(), MemoryPlan::kAlignment);
  };
  std::vector<int> order;
  for (int i = 0; i < std::ssize(tasks.buffers); ++i) {
    const auto at = static_cast<size_t>(i);
    if (plan.lives[at].first >= 0 && !tasks.buffers[at].has_border()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return bytes_of(a) > bytes_of(b); });
  const int64_t base = plan.arena_bytes;
  std::vector<int> placed;
  for (const int buffer : order) {
    const int64_t bytes = bytes_of(buffer);
    std::vector<std::pair<int64_t, int64_t>> taken;  // offset, end
    std::vector<int64_t> partners;                   // offsets
    for (const int other : placed) {
      const int64_t at = plan.offsets[static_cast<size_t>(other)];
      if (!overlap(plan.lives[static_cast<size_t>(other)], plan.lives[static_cast<size_t>(buffer)]))
        continue;
      if (in_place.contains(buffer, other)) partners.push_back(at);
      taken.push_back({at, at + bytes_of(other)});
    }
    std::sort(taken.begin(), taken.end());
    const auto meets_one = [&](int64_t at) {
      return std::count_if(taken.begin(), taken.end(), [&](const auto& range) {
               return range.first < at + bytes && at < range.second;
             }) == 1;
    };
    int64_t& offset = plan.offsets[static_cast<size_t>(buffer)];
    const auto partner = std::find_if(partners.begin(), partners.end(), meets_one);
    if (partner != partners.end()) {
      offset = *partner;
    } else {
      int64_t at = base, best = -1, best_gap = 0;
      for (const auto& [start, stop] : taken) {
        const int64_t gap = start - at;
        if (gap >= bytes && (best < 0 || gap < best_gap)) best = at, best_gap = gap;
        at = std::max(at, stop);
      }
      offset = best < 0 ? at : best;
    }
    plan.arena_bytes = std::max(plan.arena_bytes, offset + bytes);
    placed.push_back(buffer);
  }
}

// The searches above look at all pairs of buffers. With more than this they take seconds, and a
// plan in the order of time, which looks at each buffer once, has to do.
constexpr size_t kManyBuffers = 8192;

// Places that lie free, by size and by offset.
class FreePlaces {
 public:
  // A place for so many bytes: the tightest free one, or at the end.
  int64_t take(int64_t bytes, int64_t& end) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best != by_size_.end()) {
      const auto [size, offset] = *best;
      remove(offset, size);
      if (size > bytes) insert(offset + bytes, size - bytes);
      return offset;
    }
    int64_t offset = end;
    if (!by_offset_.empty()) {
      const auto [last, size] = *by_offset_.rbegin();
      if (last + size == end) {
        remove(last, size);
        offset = last;
      }
    }
    end = offset + bytes;
    return offset;
  }

  void give_back(int64_t offset, int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
        bytes += size;
      }
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + bytes == next->first) {
      const auto [behind, size] = *next;
      remove(behind, size);
      bytes += size;
    }
    insert(offset, bytes);
  }

 private:
  void insert(int64_t offset, int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(int64_t offset, int64_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
};

// Each buffer, in the order in which they begin to live, where one lies that does not live any
// more: those with a border in the place of one like it, at the start, the others behind them.
void place_in_time_order(MemoryPlan& plan, const TaskList& tasks) {
  std::vector<int> order;
  for (int i = 0; i < std::ssize(tasks.buffers); ++i) {
    if (plan.lives[static_cast<size_t>(i)].first >= 0) order.push_back(i);
  }
  const auto life = [&](int i) { return plan.lives[static_cast<size_t>(i)]; };
  const auto buffer = [&](int i) -> const Buffer& { return tasks.buffers[static_cast<size_t>(i)]; };
  const auto bytes_of = [&](int i) { return round_up(buffer(i).bytes(), MemoryPlan::kAlignment); };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return life(a).first < life(b).first; });
  // For equal buffers: the time step from which on a place is free, and the place.
  std::map<std::tuple<DType, Shape, Shape>, std::set<std::pair<int, int64_t>>> places;
  for (const int i : order) {
    if (!buffer(i).has_border()) continue;
    auto& alike = places[{buffer(i).dtype, buffer(i).shape, buffer(i).border}];
    int64_t offset = plan.arena_bytes;
    if (!alike.empty() && alike.begin()->first < life(i).first) {
      offset = alike.begin()->second;
      alike.erase(alike.begin());
    } else {
      plan.zeroed.push_back({offset, bytes_of(i)});
      plan.arena_bytes += bytes_of(i);
    }
    plan.offsets[static_cast<size_t>(i)] = offset;
    alike.emplace(life(i).second, offset);
  }
  FreePlaces free;
  using Last = std::pair<int, int>;  // the step in which a buffer is used last, and the buffer
  std::priority_queue<Last, std::vector<Last>, std::greater<>> living;
  for (const int i : order) {
    if (buffer(i).has_border()) continue;
    for (; !living.empty() && living.top().first < life(i).first; living.pop()) {
      const int gone = living.top().second;
      free.give_back(plan.offsets[static_cast<size_t>(gone)], bytes_of(gone));
    }
    plan.offsets[static_cast<size_t>(i)] = free.take(bytes_of(i), plan.arena_bytes);
    living.emplace(life(i).second, i);
  }
}

}  // namespace

MemoryPlan plan_memory(const TaskList& tasks, std::span<const InPlace> in_place,
                       std::span<const int> time_steps) {
  const MemoryPlan lives = plan_lives(tasks, time_steps);
  if (tasks.buffers.size() > kManyBuffers) {
    MemoryPlan plan = lives;
    place_in_time_order(plan, tasks);
    return plan;
  }
  const auto place = [&](std::span<const InPlace> pairs) {
    MemoryPlan plan = lives;
    const InPlaceTable table(lives, tasks, pairs);
    place_bordered(plan, tasks, table);
    place_others(plan, tasks, table);
    return plan;
  };
  MemoryPlan plan = place(in_place);
  if (in_place.empty()) return plan;
  // Buffers that are placed early may leave worse gaps for the others.
  MemoryPlan apart = place({});
  return apart.arena_bytes < plan.arena_bytes ? apart : plan;
}

Status verify(const MemoryPlan& plan, const TaskList& tasks, std::span<const InPlace> in_place) {
  const size_t count = tasks.buffers.size();
  const InPlaceTable table(plan, tasks, in_place);
  std::vector<int64_t> ends;  // there may be tens of thousands, each of which is compared with all
  for (size_t i = 0; i < count; ++i) ends.push_back(plan.offsets[i] + tasks.buffers[i].bytes());
  for (size_t i = 0; i < count; ++i) {
    if (plan.offsets[i] < 0) continue;
    const Buffer& a = tasks.buffers[i];
    const int64_t a_end = ends[i];
    if (plan.offsets[i] % MemoryPlan::kAlignment != 0)
      return error(Code::kInternal, "buffer {} is not aligned", i);
    if (a_end > plan.arena_bytes) return error(Code::kInternal, "buffer {} leaves the arena", i);
    for (size_t k = i + 1; k < count; ++k) {
      const bool shares = plan.offsets[i] < ends[k] && plan.offsets[k] < a_end;
      if (!shares || plan.offsets[k] < 0) continue;
      const Buffer& b = tasks.buffers[k];
      const bool works_in_place = plan.offsets[i] == plan.offsets[k] &&
                                  table.contains(static_cast<int>(i), static_cast<int>(k));
      if (overlap(plan.lives[i], plan.lives[k]) && !works_in_place) {
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
