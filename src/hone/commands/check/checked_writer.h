// checked_writer.h - writes a model's library once it is right. The library runs beside the model
// as imported before it is put at its path; a pass or schedule that makes it wrong is found and
// left out (internal).
#pragma once

#include "hone/commands/check/model_check.h"
#include "hone/session/fit_memory.h"

namespace hone {

// The policy that decides when a check is worth its time. Times are on real_clock().
struct CheckPolicy {
  enum class When : uint8_t { kNever, kIfCheap, kAlways } when = When::kNever;
  // The start of the command. With kIfCheap, the check may take kCheapShare of the time since then.
  double start = 0;
  // The limit of all checks together, after which no more inputs are tried; 0: none.
  double more_seconds = 0;
  // A check that is predicted to take longer than this is left out; 0: none.
  double most_seconds = 0;
  bool ends_early = false;  // Ctrl-C ends the check, and the library is written as it is
};
inline constexpr double kCheapShare = 0.1;

// The parts of which a library is made. Leaving out a fault changes them.
struct LibraryParts {
  ModelTasks& model;
  std::vector<schedule::Steps>& schedules;
  ScheduleSources& sources;
};

class CheckedWriter {
 public:
  // Makes all parts again, without the passes in options.skip_passes.
  using Remake = std::function<Status(const CompileOptions& options, LibraryParts& parts)>;

  // Creates a writer. `imported` is the model before its passes.
  CheckedWriter(const graph::Graph& imported, const CheckPolicy& policy,
                const std::atomic<bool>* interrupted)
      : imported_(imported), policy_(policy), interrupted_(interrupted) {}

  // Checks and writes a library, else like write_within(). A wrong pass is added to
  // options.skip_passes. A library that stays wrong is an error.
  [[nodiscard]] Result<Written> write(LibraryParts parts, const std::string& output,
                                      CompileOptions& options, const Remake& remake);
  // Returns the summary of all checks so far.
  [[nodiscard]] const CheckSummary& summary() const { return summary_; }
  // Logs a warning about the faults that were left out since the last call.
  void warn();

 private:
  [[nodiscard]] Status inspect(const FinishedLibrary& library, const LibraryParts& parts,
                               const CompileOptions& options);
  [[nodiscard]] Status check(const FinishedLibrary& library, const LibraryParts& parts,
                             const ModelCheck::Deadlines& deadlines);
  [[nodiscard]] Status still_wrong() const;
  [[nodiscard]] Status heal(LibraryParts& parts, CompileOptions& options, const Remake& remake);
  [[nodiscard]] Result<bool> leave_out_pass(LibraryParts& parts, CompileOptions& options,
                                            const Remake& remake);
  [[nodiscard]] Result<bool> replace_schedule(LibraryParts& parts, CompileOptions& options);
  [[nodiscard]] Status leave_out_all(LibraryParts& parts, CompileOptions& options,
                                     const Remake& remake);
  void add_fault(const std::string& pass, const std::string& node, const std::string& what);

  const graph::Graph& imported_;
  CheckPolicy policy_;
  const std::atomic<bool>* interrupted_;
  std::unique_ptr<ModelCheck> check_;
  std::optional<WrongOutput> wrong_;  // wrong output of the library that was made last
  bool passes_are_right_ = false, left_out_all_ = false;
  size_t warned_ = 0;  // number of elements of summary_.healed that warn() has reported
  CheckSummary summary_;
};

}  // namespace hone
