// runtime/model_state.h - the parts of an instance of a model, for the files that run it: model.cc
// on the host, device_model.cc on a device.
#pragma once

#include <stdlib.h>
#include <sys/types.h>

#include <atomic>

#include "hone/runtime/device_model.h"
#include "hone/runtime/model.h"
#include "hone/runtime/run_sizes.h"

namespace hone::runtime {

class Model {
 public:
  ModelImage image;
  const PlanHeader* plan = nullptr;
  Pool* pool = nullptr;
  // One mapping: the arena, then staging for inputs and outputs that are unaligned or smaller than
  // the largest, then scratch. Where a
  // device is used, the arena and the staging hold copies for the steps of the host.
  char* memory = nullptr;
  int64_t memory_bytes = 0;
  char* arena = nullptr;
  char* scratch = nullptr;
  int64_t scratch_stride = 0;
  char** staging = nullptr;  // per input, then per output
  RunSizes sizes;
  PhaseCall* phases = nullptr;
  // The phases that have tiles at the sizes of the next run; null if sizes do not vary.
  PhaseCall* needed = nullptr;
  int64_t num_needed = 0;
  PhaseCall* chosen = nullptr;      // those that a run consists of; null for all
  int32_t* chosen_steps = nullptr;  // their steps
  int64_t num_chosen = 0;
  void** arguments = nullptr;  // arguments of all phases
  // The numbers of those that are in the caller's arrays. A plan may have thousands of others.
  uint32_t* given = nullptr;
  uint32_t num_given = 0;
  int64_t* step_ns = nullptr;
  int64_t* turn_ns = nullptr;  // times of a turn of a loop; null if there are no loops
  bool profile = false;
  ThreadSpan* spans = nullptr;  // one for each step and thread; null before the first trace
  bool trace = false;
  int64_t start_ns = 0;              // when the last traced run began
  bool is_in_use = false;            // by a device that hangs, and copies perhaps to or from memory
  DeviceModel* device = nullptr;     // null if all steps run on the host
  std::atomic<pid_t> running{0};     // the process of the run that is under way; 0: none is
  std::atomic<bool> refused{false};  // a run was, because another one was under way
  char error[kErrorBytes] = "";
};

// Writes a message of at most kErrorBytes.
__attribute__((format(printf, 2, 3))) void say(char* message, const char* format, ...);

template <typename T>
bool allocate(T*& pointer, uint64_t count) {
  pointer = static_cast<T*>(calloc(count == 0 ? 1 : count, sizeof(T)));
  return pointer != nullptr;
}

inline int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace hone::runtime
