#include "hone/space/rules/gpu/attention.h"

#include <algorithm>
#include <cmath>

#include "hone/base/round_up.h"

namespace hone::space {
namespace {

constexpr int64_t kMostProducts = 64;    // results in registers of a thread
constexpr int64_t kSpareRegisters = 40;  // of a thread: addresses, counters, values loaded early
constexpr int64_t kUsualThreads = 128;
constexpr int64_t kFewRows = 16;  // queries of a block; of more, an SM wants several blocks

// Of a tile of keys, of one query of which a block has a thread for each key.
constexpr double kTileCycles = 1500;

}  // namespace

int64_t usual_parts(int64_t tiles) {
  return std::lround(std::sqrt(static_cast<double>(tiles) * kTileCycles / kJoinCycles));
}

bool can_work_ahead(const SharedCopy& copy) {
  const bool has_few = ceil_div(copy.elements, copy.threads * copy.vector) <= copy.most_unrolled;
  return copy.depth == 1 || copy.transport == schedule::Transport::kAsync ||
         (copy.depth == 2 && has_few);
}

bool GpuAttention::legal(const Choice& choice) const {
  const int64_t rows = choice[d_rows], lanes = choice[d_lanes];
  if (choice[d_queries] > rows || choice[d_sum_queries] > rows) return false;
  const int64_t scores = choice[d_queries] * choice[d_vector];
  const int64_t sums = choice[d_sum_queries] * lanes * choice[d_groups];
  const int64_t most = std::min<int64_t>(kMostProducts, gpu.registers_per_thread - kSpareRegisters);
  if (std::max(scores, sums) > most) return false;
  if (choice[d_groups] > 1 && (choice[d_groups] - 1) * channel_threads(choice) * lanes >= channels)
    return false;
  if ((choice[d_columns] - 1) * choice[d_vector] >= keys || !depth_is_legal(choice)) return false;
  return all_parts_have_tiles(choice) && threads(choice) <= gpu.threads_per_block &&
         threads(choice) > 1 && rows * choice[d_parts] <= gpu.threads_per_block &&
         shared_bytes(choice) <= gpu.shared_bytes_opt_in;
}

bool GpuAttention::all_parts_have_tiles(const Choice& choice) const {
  const int64_t parts = choice[d_splits];
  return ceil_div(tiles(), parts) * (parts - 1) < tiles();
}

// Copies work ahead of a loop of several tiles.
bool GpuAttention::depth_is_legal(const Choice& choice) const {
  const int64_t n = choice[d_depth];
  if (n == 1) return true;
  const int64_t turns = joined.empty() ? std::min(ceil_div(keys, keys_at_once(choice)),
                                                  ceil_div(keys, values_at_once(choice)))
                                       : ceil_div(tiles(), choice[d_splits]);
  return n <= turns && can_work_ahead(copy_of(copied_keys, key_dims().back(), n, choice)) &&
         can_work_ahead(copy_of(copied_values, lane, n, choice));
}

int64_t GpuAttention::tiles() const { return joined.empty() ? 1 : ceil_div(all_keys, keys); }

bool GpuAttention::has_few_blocks() const {
  return 2 * blocks_outside * ceil_div(queries, kFewRows) < gpu.sms;
}

// So many queries in a block that every SM has work, if that can be, and threads for register tiles
// of 4 x 4, or less where few queries have few threads. If all queries are not work enough, blocks
// have parts of the keys.
void GpuAttention::set_default(MutableChoice& choice) const {
  const auto rows = choice.options(d_rows);
  int64_t most = rows[0];
  if (d_splits.is_open()) most = std::min<int64_t>(rows.back(), kFewRows);
  for (const int64_t n : rows) {
    const int64_t blocks = blocks_outside * ceil_div(queries, n);
    if (blocks >= (n > kFewRows ? 2 : 1) * gpu.sms) most = n;
  }
  choice.set(d_rows, most);
  choice.set(d_splits, usual_parts(tiles()));
  while (!all_parts_have_tiles(choice)) choice.set_index(d_splits, choice.index(d_splits) - 1);
  while (!try_default(choice) && choice.index(d_rows) > 0)
    choice.set_index(d_rows, choice.index(d_rows) - 1);
  // Copies work ahead where that leaves an SM as many blocks as before.
  const int64_t blocks = choice[d_splits] * blocks_outside * ceil_div(queries, choice[d_rows]);
  const int64_t wanted = ceil_div<int64_t>(blocks, gpu.sms);
  const auto resident = [&] {
    return std::min(wanted, gpu.shared_bytes_per_sm / shared_bytes(choice));
  };
  const int64_t before = resident();
  choice.set(d_depth, 2);
  if (!legal(choice) || resident() < before) choice.set(d_depth, 1);
}

void GpuAttention::canonicalise(MutableChoice& choice) const {
  if (joined.empty()) choice.shorten(d_values, keys);
}

int64_t GpuAttention::channel_threads(const Choice& choice) const {
  return ceil_div(channels, choice[d_lanes] * choice[d_groups]);
}
int64_t GpuAttention::keys_at_once(const Choice& choice) const {
  return choice[d_columns] * choice[d_vector];
}
int64_t GpuAttention::copied_keys_at_once(const Choice& choice) const {
  return joined.empty() ? keys_at_once(choice) : keys;
}
int64_t GpuAttention::values_at_once(const Choice& choice) const {
  return joined.empty() ? std::min(choice[d_values], keys) : keys;
}
int64_t GpuAttention::threads(const Choice& choice) const {
  const int64_t rows = choice[d_rows];
  return std::max(ceil_div(rows, choice[d_queries]) * choice[d_columns],
                  ceil_div(rows, choice[d_sum_queries]) * channel_threads(choice));
}

// Rows of shared memory are longer by a vector, so that neighbouring ones begin in other banks.
int64_t GpuAttention::shared_bytes(const Choice& choice) const {
  const int64_t rows = choice[d_rows], at_once = keys_at_once(choice), slots = choice[d_depth];
  const auto array = [&](int64_t of_rows, int64_t columns, int64_t bytes) {
    return of_rows * (columns + padding(bytes)) * bytes;
  };
  const int64_t lanes = channel_threads(choice) * choice[d_lanes] * choice[d_groups];
  const int64_t copied = round_up(copied_keys_at_once(choice), at_once);
  const int64_t of_keys = keys_are_rows ? array(copied, depth, copied_keys.bytes)
                                        : array(depth, copied, copied_keys.bytes);
  return array(rows, depth, copied_queries.bytes) + slots * of_keys +
         slots * array(values_at_once(choice), lanes, copied_values.bytes) +
         2 * array(rows, round_up(keys, at_once), score_bytes) +
         2 * rows * (choice[d_parts] + 1) * score_bytes;
}

// Sets all but the number of queries and the parts of the keys, and returns whether that is legal.
bool GpuAttention::try_default(MutableChoice& choice) const {
  const int64_t rows = choice[d_rows];
  const int64_t wanted =
      std::min<int64_t>(rows > kFewRows ? 2 * kUsualThreads : kUsualThreads, gpu.threads_per_block);
  choice.set(d_depth, 1);
  choice.set(d_queries, std::clamp<int64_t>(rows / 4, 1, 4));
  choice.set_last(d_vector);
  choice.set_last(d_lanes);
  if (rows == 1 && !joined.empty()) {  // one query: a thread for each key of a tile, and channel
    choice.set(d_vector, 1);
    choice.set(d_lanes, 1);
  }
  const int64_t along_keys = rows == 1 ? kTileOfKeys : 32;
  choice.set(d_columns,
             std::clamp<int64_t>(wanted / ceil_div(rows, choice[d_queries]), 1, along_keys));
  choice.set(d_groups, 1);
  const int64_t along = std::max<int64_t>(1, wanted / channel_threads(choice));
  choice.set(d_sum_queries, at_least(ceil_div(rows, along)));
  choice.set(d_parts, std::clamp<int64_t>(wanted / rows, 1, 32));
  choice.set(d_values, kTileOfKeys);
  // What takes less memory, from what costs least on.
  for (const DecisionId d : {d_values, d_columns, d_parts, d_vector}) {
    while (!legal(choice) && choice.index(d) > 0) choice.set_index(d, choice.index(d) - 1);
  }
  return legal(choice);
}

}  // namespace hone::space
