// stored_kernels.h - shows kernels of a database without compiling them: what they compute, and the
// loop programs of their schedules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/options.h"
#include "hone/status.h"
#include "hone/summary.h"

namespace hone {

struct StoredKernelQuery {
  uint64_t task = 0;  // its key
  std::string steps;  // the schedule, one step a line; empty: none, and no programs
};

struct StoredKernel {
  TaskSummary task;       // what the task computes; it has no times and no schedule
  TaskPrograms programs;  // "untuned" is the default schedule, which a rule of thumb chooses
  std::string problem;    // why the task or its programs are not known; empty if they are
};

// Returns the kernels in the order of the queries. `options` gives the database and the device, for
// which the schedules are lowered. Programs are made of the first kernels, until their texts have
// `most_bytes`. A kernel that the database has no readable text of is no error.
[[nodiscard]] HONE_API Result<std::vector<StoredKernel>> stored_kernels(
    std::span<const StoredKernelQuery> queries, const CompileOptions& options, int64_t most_bytes);

}  // namespace hone
