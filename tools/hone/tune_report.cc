#include "tune_report.h"

#include <filesystem>

#include "option_texts.h"
#include "progress.h"

namespace hone::tool {

Result<TuneReport> TuneReport::start(const std::string& model, const std::string& file,
                                     const std::string& port, const CompileOptions& options,
                                     double start) {
  TuneReport report;
  if (file.empty() && port.empty()) return report;
  const std::filesystem::path path = model;
  report.name_ = std::filesystem::path(file.empty() ? model : file).filename().string();
  report.recorder_ = std::make_unique<RunRecorder>(path.stem().string(), options, start);
  if (!file.empty()) {
    Result<OutputFile> output = OutputFile::create(file);
    if (!output.ok())
      return error(output.status().code(), "--report: {}", output.status().message());
    report.file_.emplace(*std::move(output));
  }
  if (!port.empty()) {
    HONE_ASSIGN_OR_RETURN(const int number, parse_count("--live", port, 0, 65535));
    HONE_ASSIGN_OR_RETURN(report.live_, LiveReport::start(number, *report.recorder_));
    write_stderr(fmt::format("live: {}\n", report.live_->url()));
  }
  return report;
}

void TuneReport::listen(TuneOptions& options) const {
  if (recorder_ == nullptr) return;
  options.programs = true;
  options.on_trial = [recorder = recorder_.get()](const TrialInfo& trial) { recorder->add(trial); };
}

void TuneReport::add(const TuneProgress& progress) const {
  if (recorder_ != nullptr) recorder_->add(progress);
}

Status TuneReport::finish(const TuneSummary& summary, const Limits& limits) {
  if (recorder_ == nullptr) return ok_status();
  TuningRun run = recorder_->finished(summary, name_);
  run.roofline = limits.roofline();
  const Json json = to_json(run, limits);
  if (file_) {
    HONE_RETURN_IF_ERROR(
        file_->write(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"));
    HONE_RETURN_IF_ERROR(file_->finish());
  }
  if (live_ != nullptr) live_->finish(json);
  return ok_status();
}

}  // namespace hone::tool
