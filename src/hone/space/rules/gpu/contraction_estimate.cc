// The default point of GpuContraction: a closed form of the time that a tile takes, and the search
// for the tile of least time.
#include <algorithm>
#include <cmath>

#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/contraction.h"

namespace hone::space {

namespace {

// Cycles. What a load from L2 or memory takes until the data is in shared memory, and how long a
// warp does nothing at the begin of a chunk: it waits, meets the others and loads its first
// operands.
constexpr double kGlobalLatency = 800, kChunkLatency = 120;
constexpr double kVectorRead = 2;          // of 16 bytes of each lane from shared memory
constexpr double kOtherInstructions = 12;  // of a warp and chunk: addresses, the loop, the barrier
constexpr double kSecondPhase = 4500;      // another kernel: its start, and its end's slow blocks
constexpr double kJoinLatency = 300;       // two barriers, and sums from shared memory between them
constexpr double kWavefrontBytes = 128;    // of shared memory in a cycle
constexpr double kStore = 4;               // a warp's store of vectors
constexpr double kSmallShare = 0.2;        // of what another unit does at the same time
constexpr int64_t kAllocation = 8;         // registers of a thread are given out in such numbers
constexpr size_t kFewTiles = 32;  // of which chunks, depth and parts are looked at one by one
constexpr int64_t kUsualChunk = 16, kMostThreads = 512;
constexpr int64_t kFewBlocks = 4;  // of an SM, where groups of threads may share sums
constexpr int64_t kLeastChunk = 4, kTailChunk = 8;  // terms; the latter if none divides the sum
constexpr double kRolled = 1.1;  // what a chunk that is no straight-line code costs
constexpr double kTail = 1.3;    // what tests of an incomplete last chunk cost

int64_t vector_of(int64_t n) { return n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1; }

double cost_of(int64_t vector) { return vector == 4 ? kVectorRead : 1; }

}  // namespace

// What a warp reads from shared memory for one term: instructions, and cycles of that memory.
GpuContraction::Reads GpuContraction::reads(const Choice& choice) const {
  const int64_t of_rows = vector_of(rows.empty() ? 1 : choice[rows.back().d_registers]);
  const auto rows_read = static_cast<double>(row_registers(choice) / of_rows);
  const auto columns_read = static_cast<double>(choice[d_blocks]);
  return {rows_read + columns_read,
          rows_read * cost_of(of_rows) + columns_read * cost_of(choice[d_vector])};
}

// Cycles of the SM with most blocks. Blocks that reside on it together share its units, and each
// waits for its own chunks.
double GpuContraction::estimate(const Choice& choice) const {
  const int64_t in_block = threads(choice), depth = choice[d_depth];
  const auto warps = static_cast<double>(ceil_div(in_block, gpu.warp));
  const auto points = static_cast<double>(row_registers(choice) * column_registers(choice));
  const auto terms = static_cast<double>(terms_in_chunk(choice));
  const auto all = static_cast<double>(chunks(choice));
  double copies_of_thread = 0, bytes = 0;
  for (const OperandCopy& copy : copies) {
    const int64_t n = elements(copy, choice);
    bytes += static_cast<double>(n * copy.element_bytes);
    const bool row = points_in_chunk(copy.axes.back(), choice) % copy.vector == 0;
    copies_of_thread +=
        std::ceil(static_cast<double>(n) / static_cast<double>(in_block * (row ? copy.vector : 1)));
  }
  const double fma = warps * points * terms * gpu.warp / gpu.fma_per_cycle;
  const Reads of_term = reads(choice);
  const double shared = warps * (of_term.cycles * terms + copies_of_thread);
  const double per_warp = (points + of_term.instructions) * terms + 3 * copies_of_thread;
  const double issued = warps * (per_warp + kOtherInstructions) * gpu.warp / gpu.fma_per_cycle;
  const double l2 = bytes / gpu.l2_bytes_per_cycle;
  const double busy = std::max({fma, shared, issued, l2}) + kSmallShare * l2;

  const int64_t granted = round_up(registers(choice), kAllocation) * in_block;
  int64_t resident = std::min<int64_t>(
      gpu.blocks_per_sm, gpu.warps_per_sm / std::max<int64_t>(ceil_div(in_block, gpu.warp), 1));
  if (gpu.registers_per_sm > 0) resident = std::min(resident, gpu.registers_per_sm / granted);
  const int64_t of_block = shared_bytes(choice) + gpu.shared_bytes_reserved;
  if (of_block > 0) resident = std::min(resident, gpu.shared_bytes_per_sm / of_block);
  resident = std::max<int64_t>(resident, 1);

  const double ahead = depth == 1 ? 0 : static_cast<double>(depth - 1);
  double first = kGlobalLatency + kChunkLatency, join = 0;
  if (const int64_t slices = choice[d_slices]; slices > 1) {
    first += kJoinLatency;
    join = 2 * static_cast<double>(slices * tile_points(choice) * result_bytes) / kWavefrontBytes;
  }
  const auto together = [&](int64_t n) {
    const double own = per_warp + kChunkLatency + (depth == 1 ? kGlobalLatency : 0);
    double chunk = std::max(busy * static_cast<double>(n), own);
    if (depth > 1) chunk = std::max(chunk, kGlobalLatency / ahead);
    return first + static_cast<double>(n) * join + all * (chunk + 0.1 * own) +
           kStore * warps * points / static_cast<double>(choice[d_vector]) * static_cast<double>(n);
  };
  const int64_t per_sm = ceil_div(blocks(choice), gpu.sms);
  double cycles = static_cast<double>(per_sm / resident) * together(resident);
  if (per_sm % resident != 0) cycles += together(per_sm % resident);
  const int64_t parts = choice[d_parts];
  if (terms * points > static_cast<double>(kMostUnrolled)) cycles *= kRolled;
  if (terms_of_thread(choice) % chunk_of_thread(choice) != 0) cycles *= kTail;
  if (parts > 1) {
    const double moved = 2.0 * 4 * static_cast<double>(parts * this->points());
    cycles += kSecondPhase + moved / (gpu.l2_bytes_per_cycle * static_cast<double>(gpu.sms));
  }
  return cycles;
}

// Calls f with all sensible parts, chunks and depths.
void GpuContraction::for_chunks(MutableChoice& choice, const std::function<void()>& f) const {
  const auto options = [&](DecisionId d) { return static_cast<int>(choice.options(d).size()); };
  for (int part = 0; part < options(d_parts); ++part) {
    choice.set_index(d_parts, part);
    for (int inside = 0; inside < options(d_taps); ++inside) {
      choice.set_index(d_taps, inside);
      for (int chunk = 0; chunk < options(d_chunk); ++chunk) {
        choice.set_index(d_chunk, chunk);
        const int64_t length = choice[d_chunk], extent = terms_of_thread(choice);
        if (length < std::min(kLeastChunk, extent)) continue;
        if (extent % length != 0 && length != kTailChunk) continue;
        for (int depth = 0; depth < options(d_depth); ++depth) {
          choice.set_index(d_depth, depth);
          f();
        }
      }
    }
  }
}

void GpuContraction::find_usual(const std::vector<Decision>& decisions) {
  std::vector<int> indices(decisions.size(), 0);
  MutableChoice choice(decisions, indices);
  std::vector<DecisionId> tiles;
  for (const BlockAxis& axis : rows) tiles.insert(tiles.end(), {axis.d_threads, axis.d_registers});
  for (const DecisionId d : {column.d_threads, d_vector, d_blocks}) tiles.push_back(d);
  for (const OperandCopy& copy : copies) choice.set_index(copy.d_shared, 0);
  const auto options = [&](DecisionId d) { return static_cast<int>(choice.options(d).size()); };
  std::vector<std::pair<double, std::vector<int>>> found;
  const auto keep = [&] {
    if (legal(choice)) found.emplace_back(estimate(choice), indices);
  };
  const auto keep_with_chunk = [&](int64_t chunk) {
    choice.set(d_chunk, chunk);
    choice.set(d_depth, std::min<int64_t>(2, chunks(choice)));
    keep();
  };
  // Each tile by itself with usual chunks, and with parts enough for all SMs.
  for_all_options(choice, tiles, [&] {
    if (threads(choice) > std::min<int64_t>(kMostThreads, gpu.threads_per_block)) return;
    for (const DecisionId d : {d_parts, d_taps, d_slices}) choice.set_index(d, 0);
    keep_with_chunk(kUsualChunk);
    const int64_t few = blocks(choice);
    if (few >= kFewBlocks * gpu.sms) return;
    for (int slices = 1; slices < options(d_slices); ++slices) {
      choice.set_index(d_slices, slices);
      if (threads(choice) <= std::min<int64_t>(kMostThreads, gpu.threads_per_block))
        keep_with_chunk(std::min(kUsualChunk, terms_of_thread(choice)));
    }
    choice.set_index(d_slices, 0);
    if (few >= gpu.sms || options(d_parts) == 1) return;
    choice.set(d_parts, gpu.sms / few + 1);
    keep_with_chunk(std::min(kUsualChunk, sum.extent / choice[d_parts]));
  });
  const auto few = static_cast<std::ptrdiff_t>(std::min(found.size(), kFewTiles));
  std::partial_sort(found.begin(), found.begin() + few, found.end());
  found.resize(static_cast<size_t>(few));
  for (const auto& [cycles, tile] : std::vector(found)) {
    indices = tile;
    for_chunks(choice, keep);
  }
  if (!found.empty()) indices = std::min_element(found.begin(), found.end())->second;
  std::vector<DecisionId> order = {d_parts, d_slices, d_chunk, d_taps};
  order.insert(order.end(), tiles.begin(), tiles.end());
  for (const OperandCopy& copy : copies) order.push_back(copy.d_shared);
  order.push_back(d_depth);
  usual = UsualValues(order, choice);
}

}  // namespace hone::space
