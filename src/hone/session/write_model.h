// write_model.h - the library of a model: kernels of given schedules, linked with its weights.
#pragma once

#include <set>

#include "hone/base/file_roles.h"
#include "hone/base/thread_pool.h"
#include "hone/session/assemble.h"
#include "hone/session/model_tasks.h"

namespace hone {

// An error if the folder of `path` is missing or cannot be written, or the prefix cannot be used.
[[nodiscard]] Status check_output(const std::string& path, const CompileOptions& options);
// Adds what a model compiled to `output` is written to: that and, if wanted, the header beside it.
void add_outputs(const std::string& output, bool header, FileRoles& files);
// An error if one of these would overwrite a file that the model was read from, or the other.
[[nodiscard]] Status check_files(const std::set<std::string>& read, const std::string& output,
                                 const CompileOptions& options);
[[nodiscard]] bool is_static_library(const std::string& path, const CompileOptions& options);
// Kernels of these schedules, with those together that gain by it. A schedule whose code is too
// long gives way to another one (short_code.h).
[[nodiscard]] Result<Assembly> assemble_model(ModelTasks& model,
                                              std::vector<schedule::Steps>& schedules,
                                              const CompileOptions& options);

struct Written {
  int64_t bytes = 0;
  double seconds = 0;                   // to compile, pack, link and write
  double assembly = 0;                  // of them, to compile and pack
  int64_t arena_bytes = 0;              // while it runs
  int64_t memory_bytes = 0;             // ModelMemory
  int calls = 0, turns = 0, small = 0;  // of CompileSummary
};
[[nodiscard]] Result<Written> write_model(ModelTasks& model,
                                          std::vector<schedule::Steps>& schedules,
                                          const std::string& output, const CompileOptions& options);
// What was made of the model, whose task summaries move there; since `start`, on real_clock().
[[nodiscard]] CompileSummary summary_of(ModelTasks& model, const Written& written, double start);
// The second half of write_model; `start`: when the first began.
[[nodiscard]] Result<Written> link_model(const ModelTasks& model, Assembly assembly,
                                         const std::string& output, const CompileOptions& options,
                                         double start);

}  // namespace hone
