// sensitivity.h - measures how much each role of the decisions about schedules matters on a device,
// so that tune() can leave those alone that matter least (SearchOptions::movable).
//
//   hone::measure_sensitivity({"resnet18.onnx"}, {.tasks = 10, .budget_seconds = 120});
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/options.h"
#include "hone/status.h"

namespace hone {

struct SensitivityOptions {
  // How the models are read, the device, and the database that the results are stored in. It is
  // needed.
  CompileOptions compile;
  int tasks = 10;  // most kernels that are measured, of all models
  double budget_seconds = 120;
  int options = 6;  // of each decision that are measured, at most
  int rounds = 3;   // how often each schedule is measured; the least time counts
  // If it becomes true, the call ends early with Code::kCancelled. Kernels that were finished are
  // stored. It may be null.
  const std::atomic<bool>* interrupted = nullptr;
};

// Means over the kernels that have decisions of this role.
struct RoleSensitivity {
  std::string role;
  // By which factor, less 1, the default gets faster at most if decisions of this role alone
  // change, and the best known schedule slower if they are as the default has them.
  double gain = 0, loss = 0;
  double score = 0;  // mean over kernels of the larger one's logarithm, by which roles are ranked
  int tasks = 0;     // number of these kernels
};

struct SensitivityReport {
  std::string device;  // as the database names it
  int threads = 1;
  int found = 0;     // kernels of the models with decisions, each counted once
  int tasks = 0;     // number of these that were measured
  int measured = 0;  // schedules that were measured; for others, the database had times
  int left_out = 0;  // schedules for which there was no time
  double seconds = 0;
  std::vector<RoleSensitivity> roles;  // those that matter most first
};

// Measures kernels of the models at these paths that represent all of them, and stores what was
// found for the device and number of threads. It is an error if no model has a kernel with
// decisions, or nothing could be measured.
[[nodiscard]] HONE_API Result<SensitivityReport> measure_sensitivity(
    const std::vector<std::string>& models, const SensitivityOptions& options);

}  // namespace hone
