#include "hone/graph/run_order.h"

#include <algorithm>
#include <map>
#include <queue>

#include "hone/compute/regions.h"

namespace hone::graph {
namespace {

// A call joins a group if it saves at least this share of its own time, or of the group's if that
// is less. Saving only forks and joins gained nothing: mixed kernels share the caches
// (docs/studies/models.md).
constexpr double kLeastGain = 0.1;
constexpr size_t kMostTogether = 32;
// More tiles than this per thread count as so many larger ones: the rest changes little.
constexpr int64_t kTilesPerThread = 32;

double tile_seconds(const CallCost& cost) {
  return cost.seconds / static_cast<double>(std::max<int64_t>(cost.tiles, 1));
}

// The places of the first and the last element of a box in its array.
struct ElementRange {
  int64_t elements = 1;         // of the array
  int64_t first = 0, last = 0;  // the last is before the first if the box has no elements
  explicit ElementRange(const compute::Region& region) {
    for (size_t d = 0; d < region.shape.size(); ++d) {
      elements *= region.shape[d];
      first = first * region.shape[d] + region.low[d];
      last = last * region.shape[d] + region.high[d] - 1;
    }
    if (region.empty()) first = 0, last = -1;
  }
  // Returns whether no element is in both, which these numbers may not tell.
  [[nodiscard]] bool is_apart_from(const ElementRange& other) const {
    return elements == other.elements && (last < other.first || other.last < first);
  }
};

// An input or output of a call.
struct Use {
  Use(int of, compute::Touched elements)
      : call(of), touched(std::move(elements)), reads(touched.reads), writes(touched.writes) {}
  int call;
  compute::Touched touched;
  ElementRange reads, writes;
};
struct BufferUses {
  std::vector<Use> all;
  std::vector<Use> writers;  // those that write some of it: readers do not need each other
};

compute::Touched everything(const Shape& shape) {
  return {compute::Region::whole(shape), compute::Region::whole(shape)};
}

// A result may have thousands of parts, which most often lie one behind the other.
bool conflict(const Use& a, const Use& b) {
  const auto meet = [](const ElementRange& x, const ElementRange& y, const compute::Region& of,
                       const compute::Region& with) {
    return !x.is_apart_from(y) && !compute::disjoint(of, with);
  };
  return meet(a.writes, b.writes, a.touched.writes, b.touched.writes) ||
         meet(a.writes, b.reads, a.touched.writes, b.touched.reads) ||
         meet(a.reads, b.writes, a.touched.reads, b.touched.writes);
}

class Planner {
 public:
  Planner(const TaskList& tasks, std::span<const CallCost> costs, const RunOrderOptions& options)
      : costs_(costs), options_(options), before_(dependences(tasks)), group_(costs.size(), -1) {
    for (int call = 0; call < std::ssize(costs); ++call)
      segment_.push_back(tasks.boundaries_before(call));
  }

  RunOrder run() {
    RunOrder order;
    for (int head = 0; head < std::ssize(costs_); ++head) {
      if (group_[index(head)] >= 0) continue;
      std::vector<int> group = {head};
      const auto number = static_cast<int>(order.size());
      group_[index(head)] = number;
      if (!costs_[index(head)].alone) find_partners(group, number);
      std::stable_sort(group.begin(), group.end(), [&](int a, int b) {
        return tile_seconds(costs_[index(a)]) > tile_seconds(costs_[index(b)]);
      });
      order.push_back(std::move(group));
    }
    return order;
  }

 private:
  static size_t index(int call) { return static_cast<size_t>(call); }

  void find_partners(std::vector<int>& group, int number) {
    std::vector<CallCost> kernels = {costs_[index(group[0])]};
    double seconds = seconds_together(kernels, options_);
    int looked_at = 0;
    for (int call = group[0] + 1; call < std::ssize(costs_); ++call) {
      if (group_[index(call)] >= 0) continue;
      // Calls of a loop run with others of its turn only, and none is moved into it or out of it.
      if (segment_[index(call)] != segment_[index(group[0])]) return;
      if (++looked_at > options_.window || group.size() == kMostTogether) return;
      const CallCost& cost = costs_[index(call)];
      if (cost.alone || !can_run(call, number)) continue;
      kernels.push_back(cost);
      const double own = seconds_together({&cost, 1}, options_);
      const double together = seconds_together(kernels, options_);
      if (seconds + own - together < kLeastGain * std::min(seconds, own) || own <= 0) {
        kernels.pop_back();
        continue;
      }
      seconds = together;
      group_[index(call)] = number;
      group.push_back(call);
    }
  }

  // Returns whether everything that the call depends on is done before group `number`.
  [[nodiscard]] bool can_run(int call, int number) const {
    const std::vector<int>& before = before_[index(call)];
    return std::all_of(before.begin(), before.end(), [&](int other) {
      return group_[index(other)] >= 0 && group_[index(other)] < number;
    });
  }

  const std::span<const CallCost> costs_;
  const RunOrderOptions& options_;
  const std::vector<std::vector<int>> before_;
  std::vector<int> group_;    // per call; -1: not yet
  std::vector<int> segment_;  // per call: the number of begins and ends of loops before it
};

}  // namespace

RunOrder plan_run_order(const TaskList& tasks, std::span<const CallCost> costs,
                        const RunOrderOptions& options) {
  HONE_ASSERT(costs.size() == tasks.calls.size(), "one cost per call");
  return Planner(tasks, costs, options).run();
}

std::vector<int> in_order(const RunOrder& order) {
  std::vector<int> calls;
  for (const std::vector<int>& group : order) calls.insert(calls.end(), group.begin(), group.end());
  return calls;
}

std::vector<int> time_steps(const RunOrder& order, size_t num_calls) {
  std::vector<int> result(num_calls, -1);
  for (size_t g = 0; g < order.size(); ++g) {
    for (const int call : order[g]) result[static_cast<size_t>(call)] = static_cast<int>(g);
  }
  return result;
}

std::vector<std::vector<int>> dependences(const TaskList& tasks) {
  std::vector<std::vector<int>> result(tasks.calls.size());
  std::map<std::pair<Argument::Kind, int>, BufferUses> uses;
  for (int c = 0; c < std::ssize(tasks.calls); ++c) {
    const TaskCall& call = tasks.calls[static_cast<size_t>(c)];
    const bool has_dag = call.dag.params.size() == call.arguments.size();
    const std::vector<compute::Touched> touched = compute::touched_regions(call.dag);
    std::vector<int>& before = result[static_cast<size_t>(c)];
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const Argument& argument = call.arguments[i];
      if (argument.kind == Argument::Kind::kConstant) continue;
      BufferUses& others = uses[{argument.kind, argument.index}];
      const Use own(c, has_dag ? touched[i] : everything({1}));
      const bool writes = !own.touched.writes.empty();
      for (const Use& other : writes ? others.all : others.writers) {
        if (other.call != c && conflict(other, own)) before.push_back(other.call);
      }
      others.all.push_back(own);
      if (writes) others.writers.push_back(own);
    }
    for (const int buffer : call.sizes) {
      const Shape& shape = tasks.buffers[static_cast<size_t>(buffer)].shape;
      BufferUses& others = uses[{Argument::Kind::kArena, buffer}];
      const Use own(c, {compute::Region::whole(shape), compute::Region::none(shape)});
      for (const Use& other : others.writers) {
        if (other.call != c && conflict(other, own)) before.push_back(other.call);
      }
      others.all.push_back(own);
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
  }
  return result;
}

Status verify(const RunOrder& order, const TaskList& tasks) {
  size_t count = 0;
  for (const std::vector<int>& group : order) count += group.size();
  const std::vector<int> step = time_steps(order, tasks.calls.size());
  if (count != tasks.calls.size() || std::count(step.begin(), step.end(), -1) > 0)
    return error(Code::kInternal, "{} calls run, expected each of {} once", count, step.size());
  int segment = 0;
  for (const int call : in_order(order)) {
    const int own = tasks.boundaries_before(call);
    if (own < segment)
      return error(Code::kInternal, "call {} runs in another loop than its own", call);
    segment = own;
  }
  const std::vector<std::vector<int>> before = dependences(tasks);
  for (size_t c = 0; c < before.size(); ++c) {
    for (const int other : before[c]) {
      if (step[static_cast<size_t>(other)] >= step[c])
        return error(Code::kInternal, "call {} does not run behind call {}", c, other);
    }
  }
  return ok_status();
}

RunPlan plan_run(const TaskList& tasks, std::span<const CallCost> costs,
                 std::span<const InPlace> in_place, RunOrderOptions options,
                 const ArenaBound& bound) {
  RunPlan plain;
  plain.memory = plan_memory(tasks, in_place);
  const double most = std::max(static_cast<double>(plain.memory.arena_bytes) * bound.growth,
                               static_cast<double>(bound.bytes));
  for (; options.window > 0; options.window /= 4) {
    RunPlan plan;
    plan.order = plan_run_order(tasks, costs, options);
    if (plan.order.size() == tasks.calls.size()) break;
    plan.memory = plan_memory(tasks, in_place, time_steps(plan.order, tasks.calls.size()));
    if (static_cast<double>(plan.memory.arena_bytes) <= most) return plan;
  }
  for (int call = 0; call < std::ssize(tasks.calls); ++call) plain.order.push_back({call});
  return plain;
}

double seconds_together(std::span<const CallCost> kernels, const RunOrderOptions& options) {
  const auto threads = static_cast<int64_t>(std::max(options.threads, 1));
  std::vector<CallCost> sorted(kernels.begin(), kernels.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const CallCost& a, const CallCost& b) {
    return tile_seconds(a) > tile_seconds(b);
  });
  // Each tile goes to the thread that is free first.
  std::priority_queue<double, std::vector<double>, std::greater<>> free(
      std::greater<>(), std::vector<double>(static_cast<size_t>(threads), 0.0));
  int64_t tiles = 0;
  double end = 0;
  for (const CallCost& kernel : sorted) {
    tiles += kernel.tiles;
    const int64_t pieces = std::min(kernel.tiles, kTilesPerThread * threads);
    for (int64_t i = 0; i < pieces; ++i) {
      const double done = free.top() + kernel.seconds / static_cast<double>(pieces);
      free.pop();
      free.push(done);
      end = std::max(end, done);
    }
  }
  return end + (tiles > 1 && threads > 1 ? options.fork_join_seconds : 0);
}

}  // namespace hone::graph
