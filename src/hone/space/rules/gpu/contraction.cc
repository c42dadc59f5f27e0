#include "hone/space/rules/gpu/contraction.h"

#include <algorithm>

#include "hone/base/round_up.h"

namespace hone::space {

using schedule::Steps;

namespace {

constexpr int64_t kSpareRegisters = 32;  // of a thread: addresses, counters, values loaded early
constexpr int64_t kMostParts = 1 << 24;  // elements of the parts of a sum in memory

// Threads along an axis whose points in registers are `registers`, if its tile covers the axis.
int64_t threads_along(int64_t extent, int64_t threads, int64_t registers) {
  return std::min(threads, ceil_div(extent, registers));
}

// The largest power of 2 that divides n, up to a limit that is one.
int64_t power_of_2_in(int64_t n, int64_t limit) { return std::min(n & -n, limit); }

}  // namespace

int64_t GpuContraction::tile(const BlockAxis& axis, const Choice& choice) const {
  const int64_t whole = &axis == &column
                            ? choice[column.d_threads] * choice[d_vector] * choice[d_blocks]
                            : choice[axis.d_threads] * choice[axis.d_registers];
  return std::min(whole, axis.extent);
}

int64_t GpuContraction::column_threads(const Choice& choice) const {
  return threads_along(column.extent, choice[column.d_threads], choice[d_vector]);
}

int64_t GpuContraction::row_threads(const BlockAxis& axis, const Choice& choice) const {
  return threads_along(axis.extent, choice[axis.d_threads], choice[axis.d_registers]);
}

int64_t GpuContraction::threads(const Choice& choice) const {
  int64_t threads = column_threads(choice) * choice[d_slices];
  for (const BlockAxis& axis : rows) threads *= row_threads(axis, choice);
  return threads;
}

// A warp reads 128 bytes of neighbouring columns, and as few elements of the rows as there are
// lanes left: both are then one or two accesses of shared memory.
GpuContraction::Lanes GpuContraction::lanes(const Choice& choice) const {
  if (rows.empty()) return {};
  const int64_t t = column_threads(choice);
  const int64_t along = power_of_2_in(t, std::max<int64_t>(gpu.warp / choice[d_vector], 1));
  const int64_t across = power_of_2_in(row_threads(rows.back(), choice), gpu.warp / along);
  return across > 1 && along < t ? Lanes{across, along} : Lanes{};
}

int64_t GpuContraction::row_registers(const Choice& choice) const {
  int64_t product = 1;
  for (const BlockAxis& axis : rows) product *= choice[axis.d_registers];
  return product;
}

int64_t GpuContraction::column_registers(const Choice& choice) const {
  return choice[d_vector] * choice[d_blocks];
}

int64_t GpuContraction::registers(const Choice& choice) const {
  const int64_t r = row_registers(choice), c = column_registers(choice);
  int64_t loaded_early = 0;  // with their addresses
  for (const OperandCopy& copy : copies) {
    if (choice[d_depth] > 1 && is_shared(copy, choice) && !copy.is_async)
      loaded_early += 2 * ceil_div(elements(copy, choice), threads(choice));
  }
  return r * c + r + c + loaded_early + kSpareRegisters;
}

int64_t GpuContraction::chunk_of_thread(const Choice& choice) const {
  return std::min(choice[d_chunk], terms_of_thread(choice));
}

int64_t GpuContraction::tile_points(const Choice& choice) const {
  int64_t points = tile(column, choice);
  for (const BlockAxis& axis : rows) points *= tile(axis, choice);
  return points;
}

int64_t GpuContraction::points_in_chunk(const std::string& axis, const Choice& choice) const {
  if (axis == sum.var->name) return chunk_of_thread(choice) * choice[d_slices];
  if (axis == column.in_sum) return tile(column, choice);
  for (const BlockAxis& row : rows) {
    if (row.in_sum == axis) return tile(row, choice);
  }
  const auto inside = static_cast<size_t>(choice.or_zero(d_taps));
  for (size_t i = taps.size() - inside; i < taps.size(); ++i) {
    if (taps[i].var->name == axis) return taps[i].extent;
  }
  return 1;
}

int64_t GpuContraction::elements(const OperandCopy& copy, const Choice& choice) const {
  int64_t elements = 1;
  for (const std::string& axis : copy.axes) elements *= points_in_chunk(axis, choice);
  return elements;
}

int64_t GpuContraction::terms_in_chunk(const Choice& choice) const {
  int64_t terms = chunk_of_thread(choice);
  const auto inside = static_cast<size_t>(choice.or_zero(d_taps));
  for (size_t i = taps.size() - inside; i < taps.size(); ++i) terms *= taps[i].extent;
  return terms;
}

int64_t GpuContraction::chunks(const Choice& choice) const {
  int64_t chunks = ceil_div(terms_of_thread(choice), chunk_of_thread(choice));
  const size_t outside = taps.size() - static_cast<size_t>(choice.or_zero(d_taps));
  for (size_t i = 0; i < outside; ++i) chunks *= taps[i].extent;
  return chunks;
}

int64_t GpuContraction::blocks(const Choice& choice) const {
  int64_t blocks = outer_points * choice[d_parts] * ceil_div(column.extent, tile(column, choice));
  for (const BlockAxis& axis : rows) blocks *= ceil_div(axis.extent, tile(axis, choice));
  return blocks;
}

int64_t GpuContraction::points() const {
  int64_t points = outer_points * column.extent;
  for (const BlockAxis& axis : rows) points *= axis.extent;
  return points;
}

bool GpuContraction::any_shared(const Choice& choice) const {
  return std::any_of(copies.begin(), copies.end(),
                     [&](const OperandCopy& copy) { return is_shared(copy, choice); });
}

int64_t GpuContraction::shared_bytes(const Choice& choice) const {
  int64_t bytes = 0;
  for (const OperandCopy& copy : copies) {
    if (!is_shared(copy, choice)) continue;
    const int64_t pad = copy.layout.back() == copy.axes.back() ? 0 : kBankBytes;
    int64_t rows_of_copy = 1;
    for (const std::string& axis : copy.axes) {
      if (axis != copy.layout.back()) rows_of_copy *= points_in_chunk(axis, choice);
    }
    bytes +=
        rows_of_copy * (points_in_chunk(copy.layout.back(), choice) * copy.element_bytes + pad);
  }
  bytes *= choice[d_depth];
  if (const int64_t slices = choice[d_slices]; slices > 1)
    bytes += slices * tile_points(choice) * result_bytes;
  return bytes;
}

// Only asynchronous copies are more than one chunk ahead, and no more than there are chunks.
bool GpuContraction::depth_is_legal(const Choice& choice) const {
  const int64_t depth = choice[d_depth];
  if (depth == 1) return true;
  const bool all_async = std::all_of(copies.begin(), copies.end(), [&](const OperandCopy& copy) {
    return copy.is_async || !is_shared(copy, choice);
  });
  return depth <= chunks(choice) && (depth == 2 || all_async);
}

bool GpuContraction::legal(const Choice& choice) const {
  for (const BlockAxis& axis : rows) {
    const int64_t t = choice[axis.d_threads], r = choice[axis.d_registers];
    if ((t - 1) * r >= axis.extent) return false;
  }
  const int64_t t = choice[column.d_threads], v = choice[d_vector], blocks = choice[d_blocks];
  if ((t - 1) * v >= column.extent) return false;
  if (blocks > 1 && t * v * (blocks - 1) >= column.extent) return false;
  const int64_t parts = choice[d_parts];
  if (parts > 1 && parts * points() > kMostParts) return false;
  // Parts of blocks or of groups of threads, and chunks that are not longer than these.
  const int64_t slices = choice[d_slices];
  if (parts * slices > 1 &&
      (choice[d_chunk] > terms_of_thread(choice) || (parts > 1 && slices > 1)))
    return false;
  if (!depth_is_legal(choice)) return false;
  const int64_t n = threads(choice), per_thread = registers(choice);
  const bool registers_fit = gpu.registers_per_sm == 0 || n * per_thread <= gpu.registers_per_sm;
  return n > 1 && n <= gpu.threads_per_block && per_thread <= gpu.registers_per_thread &&
         registers_fit && shared_bytes(choice) <= gpu.shared_bytes;
}

void GpuContraction::canonicalise(MutableChoice& choice) const {
  if (!any_shared(choice)) choice.set(d_depth, 1);
}

}  // namespace hone::space
