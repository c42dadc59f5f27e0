#include "hone/space/rules/gpu/windows.h"

#include <algorithm>
#include <cmath>

#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/copies.h"

namespace hone::space {

using schedule::Steps;

namespace {

constexpr int64_t kMostUnrolled = 1024;  // operations of a thread in straight-line code
constexpr int64_t kMostPoints = 64;      // of a thread
constexpr int64_t kSpareRegisters = 24;  // of a thread: addresses and temporaries
constexpr int64_t kUsualThreads = 128;   // of a block without copies
constexpr int64_t kMostThreads = 256;
constexpr int64_t kMostBoxCopies = 64;  // vectors of windows that a thread copies
// Cycles. What a load from L2 or memory takes, a load from shared memory with the barrier before
// it, and a kernel's last blocks.
constexpr double kGlobalLatency = 800, kSharedLatency = 120;
constexpr double kOtherInstructions = 40;  // of a thread: indices, guards, its end
constexpr double kIssued = 4;              // instructions of warps in a cycle of an SM
constexpr double kTail = 1.3;              // what tests of incomplete tiles cost
constexpr double kRolled = 1.5;            // what taps that are no straight-line code cost
constexpr double kHidden = 0.8;            // part of the shorter time that the longer one hides
constexpr double kCacheShare = 0.7;        // of L2 that results of the kernel before are found in
constexpr double kRowsTogether = 4;        // rows of a window whose loads a thread starts together
constexpr double kWavefrontBytes = 128;    // of the first cache and of shared memory in a cycle

}  // namespace

int64_t Windows::num_taps() const {
  int64_t all = 1;
  for (const compute::Axis& tap : taps) all *= tap.extent;
  return all;
}

int64_t Windows::results() const {
  int64_t all = 1;
  for (const WindowAxis& axis : axes) all *= axis.extent;
  return all;
}

int64_t Windows::points(const Choice& choice) const {
  int64_t all = 1;
  for (const WindowAxis& axis : axes) all *= choice[axis.d_registers];
  return all;
}

int64_t Windows::tiles(const Choice& choice) const {
  int64_t all = 1;
  for (const WindowAxis& axis : axes) all *= ceil_div(axis.extent, choice[axis.d_registers]);
  return all;
}

int64_t Windows::block_points(const WindowAxis& axis, const Choice& choice) const {
  return std::min(axis.extent, choice[axis.d_threads] * choice[axis.d_registers]);
}

int64_t Windows::threads(const Choice& choice) const {
  if (!shares) return choice[d_threads];
  int64_t all = 1;
  for (const WindowAxis& axis : axes)
    all *= ceil_div(block_points(axis, choice), choice[axis.d_registers]);
  return all;
}

int64_t Windows::elements(const WindowRead& read, const Points& points) const {
  int64_t all = 1;
  for (const WindowRead::Dim& dim : read.dims) {
    int64_t width = 1 + dim.reach;
    for (const auto& [axis, step] : dim.steps) width += step * (points(axes[axis]) - 1);
    all *= width;
  }
  return all;
}

int64_t Windows::box_elements(const WindowRead& read, const Choice& choice) const {
  return elements(read, [&](const WindowAxis& axis) { return block_points(axis, choice); });
}

int64_t Windows::box_vector(const WindowRead& read, const Choice& choice) const {
  if (!read.is_row) return 1;
  int64_t vector = kVectorBytes / read.element_bytes;
  const int64_t row = block_points(axes.back(), choice);
  while (vector > 1 && (row % vector != 0 || read.row % vector != 0)) vector /= 2;
  return vector;
}

int64_t Windows::shared_bytes(const Choice& choice) const {
  int64_t bytes = 0;
  for (const WindowRead& read : reads)
    bytes += read.copy.empty() ? 0 : box_elements(read, choice) * read.element_bytes;
  return bytes;
}

bool Windows::is_vector(int64_t lanes) const {
  return lanes > 1 && (lanes & (lanes - 1)) == 0 && axes.back().extent % lanes == 0 &&
         lanes * result_bytes <= kVectorBytes;
}

int64_t Windows::row_elements(const WindowRead& read, const Choice& choice) const {
  WindowRead row = read;
  const auto reaches = [](const WindowRead::Dim& dim) { return dim.reach > 0; };
  const auto last = std::find_if(row.dims.rbegin(), row.dims.rend(), reaches);
  for (auto dim = row.dims.rbegin(); dim != row.dims.rend(); ++dim) {
    if (dim != last && reaches(*dim)) *dim = {};
  }
  return elements(row, [&](const WindowAxis& axis) { return choice[axis.d_registers]; });
}

// Results, and one row of windows with its factors: a compiler loads the next row when it has used
// this one.
int64_t Windows::registers(const Choice& choice) const {
  int64_t all = points(choice) + kSpareRegisters;
  for (const WindowRead& read : reads) all += row_elements(read, choice);
  return all;
}

// The cycles of an SM in which L2 or memory gives and takes what all of them touch.
double Windows::traffic_cycles() const {
  double bytes = static_cast<double>(results() * result_bytes);
  for (const WindowRead& read : reads) {
    const int64_t all = elements(read, [](const WindowAxis& axis) { return axis.extent; });
    bytes += static_cast<double>(all * read.element_bytes);
  }
  const double l2 = bytes / (static_cast<double>(gpu.l2_bytes_per_cycle) * gpu.sms);
  if (bytes < kCacheShare * static_cast<double>(gpu.l2_bytes) || gpu.memory_bandwidth == 0)
    return l2;
  return std::max(l2, bytes / gpu.memory_bandwidth * gpu.ghz * 1e9);
}

bool Windows::legal(const Choice& choice) const {
  const int64_t in_block = threads(choice), per_thread = registers(choice);
  const bool fits = points(choice) <= kMostPoints && in_block <= gpu.threads_per_block &&
                    per_thread <= gpu.registers_per_thread &&
                    (gpu.registers_per_sm == 0 || in_block * per_thread <= gpu.registers_per_sm);
  if (!fits || !shares) return fits;
  for (const WindowAxis& axis : axes) {
    if ((choice[axis.d_threads] - 1) * choice[axis.d_registers] >= axis.extent) return false;
  }
  return shared_bytes(choice) <= gpu.shared_bytes &&
         box_elements(reads[0], choice) <= kMostBoxCopies * in_block * box_vector(reads[0], choice);
}

// Cycles of an SM: what its warps issue and what they load, and what each waits for.
double Windows::estimate(const Choice& choice) const {
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const int64_t lanes = choice[axes.back().d_registers], in_block = threads(choice);
  const int64_t warps_of_block = ceil_div(in_block, gpu.warp);
  int64_t blocks = 1;
  for (const WindowAxis& axis : axes)
    blocks *= shares ? ceil_div(axis.extent, block_points(axis, choice)) : 1;
  if (!shares) blocks = ceil_div(tiles(choice), in_block);
  const int64_t warps = ceil_div(blocks, gpu.sms) * warps_of_block;

  const auto of_thread = [&](const WindowAxis& axis) { return choice[axis.d_registers]; };
  double requests = 0, wavefronts = 0;
  const auto load = [&](double count, int64_t bytes) {  // bytes between the first and the last lane
    requests += count;
    wavefronts += count * std::clamp(number(gpu.warp * bytes) / kWavefrontBytes, 1.0, 32.0);
  };
  for (const WindowRead& read : reads) {
    const double all = number(elements(read, of_thread));
    if (read.is_row && is_vector(lanes))
      load(all / number(lanes), lanes * read.element_bytes);
    else
      load(all, read.apart * lanes * read.element_bytes);
  }
  const bool is_stored_whole = is_vector(lanes);
  load(number(points(choice)) / (is_stored_whole ? number(lanes) : 1), lanes * result_bytes);
  double latency = kGlobalLatency;
  for (const WindowRead& read : reads) {
    if (read.copy.empty()) continue;
    const int64_t vector = box_vector(read, choice);
    load(2 * number(ceil_div(box_elements(read, choice), in_block * vector)),
         vector * read.element_bytes);
  }
  if (shares) latency += kSharedLatency;
  const double work = number(num_taps() * points(choice));
  const double instructions = work + requests + kOtherInstructions;
  double busy = number(warps) * std::max(instructions / kIssued, wavefronts);
  if (num_taps() * points(choice) > kMostUnrolled) busy *= kRolled;
  for (const WindowAxis& axis : axes) {
    if (axis.extent % choice[axis.d_registers] != 0) busy *= kTail;
  }
  int64_t resident = std::min<int64_t>(gpu.blocks_per_sm, gpu.warps_per_sm / warps_of_block);
  if (gpu.registers_per_sm > 0)
    resident = std::min(resident, gpu.registers_per_sm / (round_up(registers(choice), int64_t{8}) *
                                                          warps_of_block * gpu.warp));
  if (shares) {
    const int64_t bytes = shared_bytes(choice) + gpu.shared_bytes_reserved;
    resident = std::min(resident, gpu.shared_bytes_per_sm / bytes);
  }
  resident = std::max<int64_t>(resident, 1);
  const double waves = std::ceil(number(warps) / number(resident * warps_of_block));
  const double rows =
      number(elements(reads[0], of_thread)) / number(row_elements(reads[0], choice));
  const double each = shares ? kSharedLatency : kGlobalLatency;
  const double waiting =
      waves * (latency + (std::ceil(rows / kRowsTogether) - 1) * each + instructions);
  busy = std::max(busy, traffic_cycles());
  return std::max(busy, waiting) + (1 - kHidden) * std::min(busy, waiting);
}

void Windows::find_usual(const std::vector<Decision>& decisions) {
  std::vector<int> indices(decisions.size(), 0);
  MutableChoice choice(decisions, indices);
  std::vector<DecisionId> registers, of_block = {d_threads};
  for (const WindowAxis& axis : axes) {
    registers.push_back(axis.d_registers);
    of_block.push_back(axis.d_threads);
  }
  // The tile of a thread for usual blocks, then, with copies, the block for that tile.
  if (shares) {
    for (WindowAxis& axis : axes) choice.set(axis.d_threads, &axis == &axes.back() ? 8 : 4);
  }
  Cheapest cheapest(choice);
  const auto consider = [&] {
    // Blocks as small as they must be for each SM to have one.
    if (!shares) {
      choice.set(d_threads, kUsualThreads);
      while (choice.index(d_threads) > 0 && tiles(choice) < choice[d_threads] * gpu.sms)
        choice.set_index(d_threads, choice.index(d_threads) - 1);
    } else if (threads(choice) > kMostThreads) {
      return;
    }
    if (legal(choice)) cheapest.consider(estimate(choice));
  };
  for_all_options(choice, registers, consider);
  cheapest.choose();
  if (shares) for_all_options(choice, of_block, consider);
  cheapest.choose();
  std::vector<DecisionId> all = std::move(registers);
  all.insert(all.end(), of_block.begin(), of_block.end());
  usual = UsualValues(all, choice);
}

void Windows::append_steps(const Choice& choice, Steps& steps) const {
  const auto [block, thread] = append_epilogue(choice, steps);
  append_reduction(thread, choice, steps);
  for (const WindowRead& read : reads) {
    if (read.copy.empty()) continue;
    append_copy({.stage = read.copy,
                 .reader = epilogue,
                 .loop = block,
                 .dims = read.copy_axes,
                 .axes = read.copy_axes,
                 .elements = box_elements(read, choice),
                 .vector = box_vector(read, choice),
                 .threads = threads(choice)},
                steps);
  }
}

Windows::Loops Windows::append_epilogue(const Choice& choice, Steps& steps) const {
  const std::string& e = epilogue;
  std::vector<std::string> grid, threads_of_block, tile;
  for (const WindowAxis& axis : axes) {
    std::vector<int64_t> lengths;
    if (axis.d_threads.is_open()) lengths.push_back(choice[axis.d_threads]);
    if (!lengths.empty() || choice[axis.d_registers] > 1)
      lengths.push_back(choice[axis.d_registers]);
    grid.push_back(axis.name + (lengths.empty() ? "" : ".0"));
    if (lengths.empty()) continue;
    if (lengths.size() == 2) threads_of_block.push_back(axis.name + ".1");
    tile.push_back(fmt::format("{}.{}", axis.name, lengths.size()));
    // A copy has what windows beyond the results cover; what is not copied ends.
    const bool pads = shares && axis.slides;
    steps.emplace_back(schedule::Split{e, axis.name, std::move(lengths),
                                       pads ? schedule::Tail::kPad : schedule::Tail::kMask});
  }
  std::vector<std::string> loops = grid;
  loops.insert(loops.end(), threads_of_block.begin(), threads_of_block.end());
  loops.insert(loops.end(), tile.begin(), tile.end());
  if (loops.size() > 1) steps.emplace_back(schedule::Reorder{e, std::move(loops)});
  std::string block = fuse_loops(e, grid, steps);
  if (!shares) {
    steps.emplace_back(schedule::Split{e, block, {choice[d_threads]}});
    threads_of_block = {block + ".1"};
    block += ".0";
  }
  steps.emplace_back(schedule::Parallel{e, block});
  for (const std::string& loop : threads_of_block) steps.emplace_back(schedule::Bind{e, loop});
  append_tile(e, tile, choice, steps);
  return {block, threads_of_block.back()};
}

void Windows::append_tile(const std::string& stage, const std::vector<std::string>& tile,
                          const Choice& choice, Steps& steps) const {
  const bool has_vectors = is_vector(choice[axes.back().d_registers]);
  for (const std::string& loop : tile) {
    if (has_vectors && &loop == &tile.back())
      steps.emplace_back(schedule::Vectorize{stage, loop});
    else
      steps.emplace_back(schedule::Unroll{stage, loop});
  }
}

void Windows::append_reduction(const std::string& thread, const Choice& choice,
                               Steps& steps) const {
  const std::string& r = reduction;
  steps.emplace_back(schedule::ComputeAt{r, epilogue, thread});
  steps.emplace_back(schedule::SetScope{r, ir::Scope::kRegister});
  std::vector<std::string> loops, tile;
  for (const WindowAxis& axis : axes)
    (choice[axis.d_registers] == 1 && &axis != &axes.back() ? loops : tile).push_back(axis.in_sum);
  for (const compute::Axis& tap : taps) loops.push_back(tap.var->name);
  loops.insert(loops.end(), tile.begin(), tile.end());
  steps.emplace_back(schedule::Reorder{r, std::move(loops)});
  int64_t work = points(choice);
  for (size_t i = taps.size(); i-- > 0;) {
    work *= taps[i].extent;
    if (work <= kMostUnrolled) steps.emplace_back(schedule::Unroll{r, taps[i].var->name});
  }
  append_tile(r, tile, choice, steps);
}

}  // namespace hone::space
