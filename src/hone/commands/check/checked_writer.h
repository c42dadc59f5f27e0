// checked_writer.h - writes a model's library once it is right: it runs beside the model as
// imported before it takes its place, and what makes it wrong is found and left out (internal to
// the facade).
#pragma once

#include "hone/commands/check/model_check.h"
#include "hone/session/fit_memory.h"

namespace hone {

// When a check is worth its time, on real_clock().
struct CheckPolicy {
  enum class When : uint8_t { kNever, kIfCheap, kAlways } when = When::kNever;
  double start = 0;         // of the command, for kIfCheap: at most kCheapShare of its time since
  double more_seconds = 0;  // of all checks, after which no more inputs are tried; 0: no bound
  double most_seconds = 0;  // predicted: beyond them there is no check; 0: no bound
  bool ends_early = false;  // Ctrl-C ends the check, and the library is written as it is
};
inline constexpr double kCheapShare = 0.1;

// A library is made of these parts. Leaving out a fault changes them.
struct LibraryParts {
  ModelTasks& model;
  std::vector<schedule::Steps>& schedules;
  Knowledge& knowledge;
};

class CheckedWriter {
 public:
  // Makes all parts anew, without the passes in options.skip_passes.
  using Remake = std::function<Status(const CompileOptions& options, LibraryParts& parts)>;

  // `imported`: the model before its passes.
  CheckedWriter(const graph::Graph& imported, const CheckPolicy& policy,
                const std::atomic<bool>* interrupted)
      : imported_(imported), policy_(policy), interrupted_(interrupted) {}

  // Like write_within(). A pass that is wrong is added to options.skip_passes; a library that stays
  // wrong is an error.
  [[nodiscard]] Result<Written> write(LibraryParts parts, const std::string& output,
                                      CompileOptions& options, const Remake& remake);
  // Of all checks so far.
  [[nodiscard]] const CheckSummary& summary() const { return summary_; }
  // Warns of what was left out since the last call.
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
  std::optional<WrongOutput> wrong_;  // of the library that was just made
  bool passes_are_right_ = false, left_out_all_ = false;
  size_t warned_ = 0;  // of summary_.healed
  CheckSummary summary_;
};

}  // namespace hone
