// tools/hone/tune_report.h - `tune --report` and `tune --live`: the file of the run, and the page
// that shows it while it goes on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "hone/base/output_file.h"

#include "limits.h"
#include "live_report.h"
#include "run_recorder.h"

namespace hone::tool {

class TuneReport {
 public:
  // `file` and `port` are the texts of the two options; empty: not wanted. It is an error if the
  // file cannot be written or the port is in use, so that this is known before anything is tuned.
  // `start` is when the budget began, in the seconds of the real clock.
  [[nodiscard]] static Result<TuneReport> start(const std::string& model, const std::string& file,
                                                const std::string& port,
                                                const CompileOptions& options, double start);
  // Asks for what a report needs, if one is wanted. This must outlive the job.
  void listen(TuneOptions& options) const;
  void add(const TuneProgress& progress) const;
  // Writes the file, and shows the whole run on the page.
  [[nodiscard]] Status finish(const TuneSummary& summary, const Limits& limits);

 private:
  TuneReport() = default;
  std::unique_ptr<RunRecorder> recorder_;  // null: no report is wanted
  std::string name_;                       // of the run
  std::optional<OutputFile> file_;
  std::unique_ptr<LiveReport> live_;
};

}  // namespace hone::tool
