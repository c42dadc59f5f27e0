// ir/passes/prefetch_rows.h - prefetches rows that lie at places in data, some rows ahead.
//
// The hardware's prefetchers cannot know where the next row of a Gather begins, so each row would
// be waited for: 4,096 rows of 768 numbers of a table that no cache holds take 1.18 times as long
// (docs/studies/models.md). With what hoist_places made,
//   parallel n in 0..4096 {
//     alloc stack place: i64[] {
//       place[] = max(min(ids[n], 30521), 0)
//       alloc stack ahead: i64[] {
//         ahead[] = max(min(ids[min(n + 1, 4095)], 30521), 0)
//         for i.0 in 0..12 {
//           prefetch table[ahead[], i.0 * 64]          // the lines of a block of the row
//           ..
//           vectorized i.1 in 0..64 { y[n, i.0 * 64 + i.1] = table[place[], i.0 * 64 + i.1] }
// No hints are added if the table is small or the place follows from anything but the kernel's
// operands.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct PrefetchRowsOptions {
  int64_t min_table = int64_t{1} << 20;  // bytes; caches keep smaller ones
  // The next row is prefetched, or so many as have these bytes together: short rows are read before
  // one row's hints are back from memory.
  int64_t ahead = 2048;
  int64_t most_rows = 8;
  int64_t most_lines = 8;  // a loop over vectors that reads more gets no hints
};

// Adds the hints to every phase except those that prepare constants.
[[nodiscard]] Program prefetch_rows(Program program, const PrefetchRowsOptions& options = {});

}  // namespace hone::ir
