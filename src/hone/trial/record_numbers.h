// trial/record_numbers.h - which numbers a record may have: what is read from a store or a file
// that somebody else has made is reckoned with.
#pragma once

#include "hone/trial/record.h"

namespace hone::trial {

// What a successful measurement can be, in seconds, and the most threads of one.
inline constexpr double kLeastSeconds = 1e-10, kMostSeconds = 1e7;
inline constexpr int kMostThreads = 1 << 16;

// Whether the threads are a number of threads, and all times finite and positive. check() asks for
// this and more; a record that is read from a store has been looked at so far.
[[nodiscard]] Status check_numbers(const Record& record);
// Whether the times of a successful record can have been measured. A store takes others, too.
[[nodiscard]] Status check_plausible(const Record& record);

}  // namespace hone::trial
