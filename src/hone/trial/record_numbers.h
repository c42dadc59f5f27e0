// trial/record_numbers.h - bounds of the numbers in a record. Records may come from a store or a
// file that somebody else has made, so they are checked.
#pragma once

#include "hone/trial/record.h"

namespace hone::trial {

// The range of a successful measurement in seconds, and the largest number of threads.
inline constexpr double kLeastSeconds = 1e-10, kMostSeconds = 1e7;
inline constexpr int kMostThreads = 1 << 16;
// Far beyond any code, and exact as a double, which JSON's numbers are to many readers.
inline constexpr int64_t kMostFigure = int64_t{1} << 40;

// Checks that the number of threads and the figures of code are in range and all times are finite
// and positive. check() requires this and more; records that are read from a store have passed only
// this.
[[nodiscard]] Status check_numbers(const Record& record);
// Checks that the times of a successful record are in the range of a measurement. A store accepts
// others, too.
[[nodiscard]] Status check_plausible(const Record& record);

}  // namespace hone::trial
