// space/rules/gpu/copies.h - steps that rules for GPUs share: loops that the threads of a block
// divide, and copies of operands to shared memory (internal to space).
#pragma once

#include "hone/schedule/step.h"

namespace hone::space {

inline constexpr int64_t kVectorBytes = 16;  // the longest load and store of a thread
inline constexpr int64_t kLeastAsync = 4;    // bytes of an asynchronous copy, at least
inline constexpr int64_t kMostCopies = 16;   // vectors of a thread in straight-line code

// Lets threads share the points of these loops, neighbours first. Each has ceil(points / threads)
// of them, in straight-line code if that is at most `most_unrolled`. Returns the loop over these.
std::string append_threads(const std::string& stage, const std::vector<std::string>& loops,
                           int64_t points, int64_t threads, int64_t most_unrolled,
                           schedule::Steps& steps);

// A stage that copies what a block needs of an operand to shared memory.
struct SharedCopy {
  std::string stage;
  std::string reader, loop;       // it is computed inside of this loop of that stage
  std::vector<std::string> dims;  // the order in shared memory
  std::vector<std::string> axes;  // its axes, that of neighbours in the source last
  int64_t elements = 1;
  int64_t pad = 0;      // unused elements behind each row in shared memory
  int64_t vector = 1;   // neighbours that a thread copies at once
  int64_t threads = 1;  // the threads of the block
  int64_t most_unrolled = kMostCopies;
  int64_t depth = 1;  // slots; with several the copy works ahead
  schedule::Transport transport = schedule::Transport::kAsync;
};
void append_copy(const SharedCopy& copy, schedule::Steps& steps);

}  // namespace hone::space
