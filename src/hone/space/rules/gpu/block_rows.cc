#include "hone/space/rules/gpu/block_rows.h"

#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/ir/gpu/thread_nest.h"

namespace hone::space {

using schedule::Steps;

namespace {

constexpr int64_t kJoined = 16;             // parts that one thread joins
constexpr int64_t kUsualThreads = 256;      // of a block
constexpr int64_t kLeastThreads = 32;       // of a row, if it has as many vectors
constexpr int64_t kUsualVectors = 8;        // of a thread, if there are rows enough
constexpr int64_t kLaneVectors = 4;         // of a lane of a warp that has a row
constexpr int64_t kThreadsPerSm = 1024;     // so many hide the latency of memory
constexpr int64_t kApart = 32, kParts = 8;  // rows of a block and threads of each, if neighbours
constexpr int64_t kMostUnrolled = 16;       // passes of a thread in straight-line code
constexpr int64_t kUnrolled = 8;            // passes in straight-line code if there are more

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void unroll(const std::string& stage, const std::vector<std::string>& loops, Steps& steps) {
  for (const std::string& loop : loops) steps.emplace_back(schedule::Unroll{stage, loop});
}

// The loops are threads, or the first one warps and the second one their lanes.
void bind_threads(const std::string& stage, const std::vector<std::string>& loops, bool by_lanes,
                  Steps& steps) {
  using enum schedule::ThreadLevel;
  for (size_t i = 0; i < loops.size(); ++i)
    steps.emplace_back(schedule::Bind{stage, loops[i],
                                      !by_lanes ? kThread
                                      : i == 0  ? kWarp
                                                : kLane});
}

}  // namespace

bool GpuRows::is_contiguous() const {
  return std::any_of(sums.begin(), sums.end(), [](const Sum& sum) { return sum.is_contiguous; });
}

bool GpuRows::legal(const Choice& choice) const {
  if (choice[d_rows] * choice[d_threads] > most_threads ||
      (choice[d_vector] > 1 && choice[d_threads] * choice[d_vector] > length))
    return false;
  if (choice.or_zero(d_lanes) == 0) return true;
  // Each lane has a part of each row.
  return choice[d_threads] == ir::kWarpThreads &&
         std::all_of(sums.begin(), sums.end(), [&](const Sum& sum) {
           return sum.extent >= ir::kWarpThreads * choice[d_vector];
         });
}

// A thread has several vectors of a row, or fewer where there are few rows. Short rows, and rows
// whose elements are not neighbours, share blocks.
void GpuRows::set_default(MutableChoice& choice) const {
  choice.set_last(d_vector);
  if (!is_contiguous()) {
    choice.set(d_rows, kApart);
    const int64_t few = ceil_div(sms * kThreadsPerSm, rows);
    choice.set(d_threads, std::clamp<int64_t>(few, kParts, kApart));
  } else {
    const int64_t vectors = length / choice[d_vector];
    int64_t threads = std::max(std::min(kLeastThreads, vectors), vectors / kUsualVectors);
    while (threads < vectors && rows * threads < sms * kThreadsPerSm) threads *= 2;
    threads = std::min({threads, kUsualThreads, vectors});
    choice.set(d_threads, threads);
    // Threads that divide the row need no tests.
    const std::span<const int64_t> options = choice.options(d_threads);
    for (const int64_t option : options) {
      if (vectors % option == 0 && 2 * option >= threads && option <= 2 * threads &&
          option <= kUsualThreads)
        choice.set(d_threads, option);
    }
    if (d_lanes.is_open() && threads == ir::kWarpThreads && vectors % threads == 0 &&
        vectors <= kLaneVectors * threads) {
      choice.set(d_threads, threads);
      choice.set_last(d_lanes);
    }
    int64_t together = std::max<int64_t>(1, kUsualThreads / choice[d_threads]);
    while (together > 1 && rows / together < 2 * sms) together /= 2;
    choice.set(d_rows, together);
  }
  if (!legal(choice)) choice.set(d_lanes, 0);
  while (!legal(choice)) {
    const DecisionId fewer = choice.index(d_threads) > 0 ? d_threads
                             : choice.index(d_rows) > 0  ? d_rows
                                                         : d_vector;
    if (choice.index(fewer) == 0) return;
    choice.set_index(fewer, choice.index(fewer) - 1);
  }
}

GpuRows::Parts GpuRows::parts_of(const Sum& sum, const Choice& choice) const {
  const bool is_vector = sum.is_contiguous && choice[d_vector] > 1;
  const auto name = [&](int i) {
    i += sum.divided;
    return sum.stage + ".rf" + (i == 0 ? "" : "." + std::to_string(i));
  };
  const std::string first = name(0), second = name(1);
  Parts parts;
  parts.sum = is_vector ? first : first + ".acc";
  parts.sum_axis = sum.axis;
  parts.part = is_vector ? second : first;
  parts.part_axis = sum.axis + (is_vector ? "io" : "i");
  parts.left = parts.part_axis;
  const int64_t vectors = is_vector ? ceil_div(sum.extent, choice[d_vector]) : sum.extent;
  if (std::min(choice[d_threads], vectors) <= 2 * kJoined) return parts;
  parts.joined = is_vector ? name(2) : second;
  parts.join_axis = parts.part_axis;
  parts.left = parts.part_axis + "i";
  return parts;
}

void GpuRows::append_steps(const Choice& choice, Steps& steps) const {
  using enum schedule::Parts;
  const int64_t threads = choice[d_threads], vector = choice[d_vector];
  for (const Sum& sum : sums) {
    const Parts parts = parts_of(sum, choice);
    const bool is_vector = sum.is_contiguous && vector > 1;
    steps.emplace_back(
        schedule::RFactor{sum.stage, sum.axis, threads * (is_vector ? vector : 1), kStrided});
    if (is_vector)
      steps.emplace_back(schedule::RFactor{sum.stage, sum.axis + "i", vector, kBlocks});
    steps.emplace_back(schedule::CacheWrite{parts.part});
    if (!parts.joined.empty())
      steps.emplace_back(schedule::RFactor{sum.stage, parts.part_axis, kJoined, kStrided});
  }
  const std::string block = append_epilogue(choice, steps);
  for (size_t i = sums.size(); i-- > 0;) append_sum(sums[i], choice, block, steps);
}

std::string GpuRows::append_epilogue(const Choice& choice, Steps& steps) const {
  const int64_t threads = choice[d_threads];
  const int64_t vector = is_contiguous() ? choice[d_vector] : 1;
  steps.emplace_back(schedule::Split{epilogue, tiled, {choice[d_rows]}});
  const bool by_lanes = choice.or_zero(d_lanes) != 0;
  std::vector<std::string> grid = outer, bound = {tiled + ".1"}, loops, unrolled = inner;
  *std::find(grid.begin(), grid.end(), tiled) += ".0";
  loops = grid;
  std::string lanes;
  if (!row.empty()) {
    std::vector<int64_t> lengths = {threads};
    if (vector > 1) lengths.push_back(vector), lanes = row.back() + ".2";
    steps.emplace_back(schedule::Split{epilogue, row.back(), std::move(lengths)});
    bound.insert(rows_are_neighbours ? bound.begin() : bound.end(), row.back() + ".1");
    if (ceil_div(row_extent, threads * vector) <= kMostUnrolled)
      unrolled.push_back(row.back() + ".0");
  }
  loops = joined(joined(std::move(loops), bound), inner);
  if (!row.empty()) {
    loops.insert(loops.end(), row.begin(), row.end() - 1);
    loops.push_back(row.back() + ".0");
  }
  if (!lanes.empty()) loops.push_back(lanes);
  steps.emplace_back(schedule::Reorder{epilogue, std::move(loops)});
  std::string block = fuse_loops(epilogue, grid, steps);
  steps.emplace_back(schedule::Parallel{epilogue, block});
  bind_threads(epilogue, bound, by_lanes, steps);
  unroll(epilogue, unrolled, steps);
  if (!lanes.empty()) steps.emplace_back(schedule::Vectorize{epilogue, lanes});
  return block;
}

void GpuRows::append_sum(const Sum& sum, const Choice& choice, const std::string& block,
                         Steps& steps) const {
  if (choice.or_zero(d_lanes) != 0) return append_sum_of_lanes(sum, choice, block, steps);
  const Parts parts = parts_of(sum, choice);
  const auto place = [&](const std::string& stage, const std::vector<std::string>& bound,
                         const std::vector<std::string>& inside) {
    compute_in_block(stage, bound, inside, block, false, steps);
  };
  const auto along = [&](const std::string& axis) {
    return sum.is_contiguous ? std::vector<std::string>{tiled, axis}
                             : std::vector<std::string>{axis, tiled};
  };
  if (sum.is_private) {
    const bool ends_in_row = !row.empty() && !rows_are_neighbours;
    steps.emplace_back(
        schedule::ComputeAt{sum.stage, epilogue, ends_in_row ? row.back() + ".1" : tiled + ".1"});
    steps.emplace_back(schedule::SetScope{sum.stage, ir::Scope::kRegister});
    unroll(sum.stage, joined({parts.left}, inner), steps);
  } else {
    place(sum.stage, {tiled}, {parts.left});
  }
  if (!parts.joined.empty()) place(parts.joined, along(parts.left), {parts.join_axis});
  const std::vector<std::string> bound = along(parts.part_axis);
  place(parts.part, bound, {});
  append_terms(sum, parts, bound.back(), choice, steps);
}

void GpuRows::append_sum_of_lanes(const Sum& sum, const Choice& choice, const std::string& block,
                                  Steps& steps) const {
  const Parts parts = parts_of(sum, choice);
  compute_in_block(sum.stage, {tiled}, {parts.left}, block, true, steps);
  compute_in_block(parts.part, {tiled, parts.part_axis}, {}, block, true, steps);
  append_terms(sum, parts, parts.part_axis, choice, steps);
}

void GpuRows::compute_in_block(const std::string& stage, const std::vector<std::string>& bound,
                               const std::vector<std::string>& inside, const std::string& block,
                               bool by_lanes, Steps& steps) const {
  steps.emplace_back(schedule::ComputeAt{stage, epilogue, block});
  steps.emplace_back(
      schedule::SetScope{stage, by_lanes ? ir::Scope::kFragment : ir::Scope::kShared});
  std::vector<std::string> others;
  for (const std::string& axis : outer) {
    if (axis != tiled) others.push_back(axis);
  }
  if (by_lanes) steps.emplace_back(schedule::Layout{stage, joined(bound, others)});
  std::vector<std::string> loops = joined(joined(joined(std::move(others), bound), inner), inside);
  if (loops.size() > 1) steps.emplace_back(schedule::Reorder{stage, std::move(loops)});
  bind_threads(stage, bound, by_lanes, steps);
  unroll(stage, inner, steps);
}

// What a thread sums up, and its lanes.
void GpuRows::append_terms(const Sum& sum, const Parts& parts, const std::string& thread,
                           const Choice& choice, Steps& steps) const {
  const bool is_vector = sum.is_contiguous && choice[d_vector] > 1;
  const auto in_registers = [&](const std::string& stage) {
    steps.emplace_back(schedule::ComputeAt{stage, parts.part, thread});
    steps.emplace_back(schedule::SetScope{stage, ir::Scope::kRegister});
  };
  if (is_vector) {
    in_registers(parts.part + ".acc");
    unroll(parts.part + ".acc", joined({sum.axis + "i"}, inner), steps);
  }
  in_registers(parts.sum);
  const int64_t each = choice[d_threads] * (is_vector ? choice[d_vector] : 1);
  std::vector<std::string> loops = sum.rest, unrolled = inner;
  if (ceil_div(sum.extent, each) <= kMostUnrolled) {
    loops.push_back(sum.axis);
    unrolled.push_back(sum.axis);
  } else {
    steps.emplace_back(schedule::Split{parts.sum, sum.axis, {kUnrolled}, schedule::Tail::kPeel});
    loops.insert(loops.end(), {sum.axis + ".0", sum.axis + ".1"});
    unrolled.push_back(sum.axis + ".1");
  }
  loops = joined(std::move(loops), inner);
  if (is_vector) loops.push_back(sum.axis + "i");
  if (loops.size() > 1) steps.emplace_back(schedule::Reorder{parts.sum, std::move(loops)});
  unroll(parts.sum, unrolled, steps);
  if (is_vector) steps.emplace_back(schedule::Vectorize{parts.sum, sum.axis + "i"});
}

}  // namespace hone::space
