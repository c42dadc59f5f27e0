// Bodies of statements that one thread would run from end to end: scatters, whose updates threads
// share, and selections (top-k, sort) and scans, which blocks do together.
#include <algorithm>
#include <bit>

#include "hone/base/round_up.h"
#include "hone/schedule/block_scan.h"
#include "hone/schedule/block_selection.h"
#include "hone/schedule/lift_loops.h"
#include "hone/schedule/split_updates.h"
#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

using schedule::Steps;

// Cycles of a thread that goes through rows, for each element: it waits for most loads.
constexpr double kSerialCycles = 150;
// Cycles that a warp takes to compare the places of two updates, whose loads find a cache.
constexpr double kCompareCycles = 8;
constexpr double kThreadsPerSm = 1024;
constexpr double kLaunchCycles = 4000;
constexpr int64_t kLeastThreads = 32;
constexpr int64_t kUsualElements = 8;   // of a row, for each thread
constexpr int64_t kUsualThreads = 512;  // of a long row: more have too few registers
constexpr int64_t kFewElements = 16;    // of a row that a thread alone sorts as well
constexpr int64_t kManyRows = 1024;     // for each SM, of such ones
constexpr int64_t kLeastScanned = 64;   // elements of a row that a block scans
constexpr int64_t kScanned = 1 << 14;   // of a row for which two launches take longer
constexpr int64_t kFewBlocks = 4;       // a scan by this part of the SMs reads at half of the speed

// Whether the updates by themselves take less time than points that go through all of them.
bool is_worth_division(const schedule::DividedUpdates& divided, const compute::Stage& whole,
                       int64_t sms) {
  const auto elements = static_cast<double>(divided.copy.outputs[0].buffer->num_elements());
  double points = 1;
  for (const compute::Axis& axis : whole.axes) points *= static_cast<double>(axis.extent);
  for (const schedule::LiftableLoop& loop : schedule::liftable_loops(whole))
    points *= static_cast<double>(loop.extent);
  const auto searched = static_cast<double>(divided.searched);
  const double threads = static_cast<double>(sms) * kThreadsPerSm;
  const auto rounds = [&](double all) { return std::max(1.0, all / threads); };
  const double serial = rounds(points) * (elements / points + searched) * kSerialCycles;
  const double apart = kLaunchCycles + rounds(elements) * kSerialCycles +
                       rounds(static_cast<double>(divided.points)) * searched * kCompareCycles;
  return apart < serial;
}

// for points, in parallel:  the body, by the threads of the block
class BlockBodies : public Group {
 public:
  std::string stage;
  std::vector<std::string> axes;
  int64_t row = 1;  // elements
  DecisionId d_threads;

  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  void set_default(MutableChoice& choice) const override {
    choice.set(d_threads, std::bit_ceil(static_cast<uint64_t>(
                              std::min(kUsualThreads, ceil_div(row, kUsualElements)))));
  }
  void append_steps(const Choice& choice, Steps& steps) const override {
    steps.emplace_back(schedule::BlockBody{stage, choice[d_threads]});
    if (!axes.empty())
      steps.emplace_back(schedule::Parallel{stage, fuse_loops(stage, axes, steps)});
  }
};

// How blocks share the body of a stage.
struct Shared {
  int64_t row = 0;   // elements of the longest row; 0 if no body is shared
  int64_t rows = 1;  // of that stage
  bool sorts = false;
};

// Adds a selection or a scan by blocks; returns false if there is none or it does not fit a block.
bool add_block_body(SketchBuilder& builder, const std::string& stage, Shared& shared) {
  const compute::Stage& what = builder.info(stage)->stage;
  if (!what.is_extern()) return false;
  const int64_t selected = schedule::selection_row(what);
  const int64_t row = selected > 0 ? selected : schedule::scanned_row(what);
  if (row == 0) return false;
  const target::Gpu& gpu = builder.target.gpu();
  std::vector<int64_t> threads = powers_of_2(kLeastThreads, gpu.threads_per_block);
  std::erase_if(threads, [&](int64_t n) {
    return schedule::selection_bytes(what, n) > gpu.shared_bytes_opt_in ||
           (n > kLeastThreads && n >= 2 * row);
  });
  if (threads.empty()) return false;
  auto group = std::make_shared<BlockBodies>();
  group->stage = stage;
  group->axes = names_of(what.axes);
  group->row = row;
  group->d_threads =
      builder.add_decision(stage, "threads", DecisionKind::kParallel, std::move(threads));
  shared = {row, 1, selected > 0};
  for (const compute::Axis& axis : what.axes) shared.rows *= axis.extent;
  builder.groups.push_back(std::move(group));
  return true;
}

// A thread alone takes short rows as fast, if there are many, and several blocks a scan of few.
Fit fit_of(const Shared& shared, int64_t sms) {
  if (shared.row == 0) return Fit::kNone;
  if (shared.sorts)
    return shared.row <= kFewElements && shared.rows >= sms * kManyRows ? Fit::kPossible
                                                                        : Fit::kBest;
  const bool fills = shared.rows * kFewBlocks >= sms || shared.row <= kScanned;
  return shared.row >= kLeastScanned && fills ? Fit::kBest : Fit::kPossible;
}

}  // namespace

Fit add_updates(SketchBuilder& builder, const Task&) {
  if (builder.state.stages.size() != 1) return Fit::kNone;
  const compute::Stage whole = builder.state.stages[0].info->stage;
  if (!whole.is_extern()) return Fit::kNone;
  const std::string copy = whole.name + ".copy";
  const auto divided = schedule::split_updates(whole, copy);
  if (!divided.ok() || !builder.add_step(schedule::SplitUpdates{whole.name}).ok())
    return Fit::kNone;
  add_stage_points(builder, copy, "");
  add_stage_points(builder, whole.name, "");
  return is_worth_division(*divided, whole, builder.target.gpu().sms) ? Fit::kBest : Fit::kPossible;
}

Fit add_block_bodies(SketchBuilder& builder, const Task&) {
  Shared shared;
  for (const auto& [stage, reduction] : roots_of(builder.state)) {
    if (!add_block_body(builder, stage, shared)) add_stage_points(builder, stage, reduction);
  }
  return fit_of(shared, builder.target.gpu().sms);
}

}  // namespace hone::space
