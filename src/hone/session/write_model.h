// write_model.h - writes the library of a model: kernels with given schedules, linked with its
// weights.
#pragma once

#include <set>

#include "hone/base/thread_pool.h"
#include "hone/session/assemble.h"
#include "hone/session/model_tasks.h"

namespace hone {

// Returns an error if the folder of `path` does not exist or cannot be written to, or if the prefix
// is not valid.
[[nodiscard]] Status check_output(const std::string& path, const CompileOptions& options);
// Returns an error if one of these files would overwrite a file that the model was read from, or if
// one would overwrite the other.
[[nodiscard]] Status check_files(const std::set<std::string>& read, const std::string& output,
                                 const CompileOptions& options);
[[nodiscard]] bool is_static_library(const std::string& path, const CompileOptions& options);
// Assembles the model with these schedules. Kernels run together where that is predicted to save
// time. A schedule whose code is too long is replaced (short_code.h).
[[nodiscard]] Result<Assembly> assemble_model(ModelTasks& model,
                                              std::vector<schedule::Steps>& schedules,
                                              const CompileOptions& options);

struct Written {
  int64_t bytes = 0;
  double seconds = 0;                   // seconds to compile, pack, link and write
  double assembly = 0;                  // the part of these to compile and pack
  int64_t arena_bytes = 0;              // as in CompileSummary
  int64_t memory_bytes = 0;             // total of ModelMemory
  int calls = 0, turns = 0, small = 0;  // as in CompileSummary
};
[[nodiscard]] Result<Written> write_model(ModelTasks& model,
                                          std::vector<schedule::Steps>& schedules,
                                          const std::string& output, const CompileOptions& options);
// Returns the summary of the model; the summaries of its tasks are moved there. `start` is when the
// job began, on real_clock().
[[nodiscard]] CompileSummary summary_of(ModelTasks& model, const Written& written, double start);
// Links and writes an assembled model. `start` is when its assembly began.
[[nodiscard]] Result<Written> link_model(const ModelTasks& model, Assembly assembly,
                                         const std::string& output, const CompileOptions& options,
                                         double start);

}  // namespace hone
