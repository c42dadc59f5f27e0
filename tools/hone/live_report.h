// tools/hone/live_report.h - `hone tune --live`: the report of a run while it goes on, as a page
// that asks for news every other second.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "live_server.h"
#include "run_recorder.h"

namespace hone::tool {

class LiveReport {
 public:
  // The recorder must outlive this.
  [[nodiscard]] static Result<std::unique_ptr<LiveReport>> start(int port,
                                                                 const RunRecorder& recorder);
  [[nodiscard]] std::string url() const { return server_->url(); }
  // Shows the whole run from now on. If a page follows it, this waits until the page has asked once
  // more, for a few seconds at most.
  void finish(const Json& run);

 private:
  explicit LiveReport(const RunRecorder& recorder) : recorder_(recorder) {}
  [[nodiscard]] LiveAnswer answer(std::string_view target);
  // Returns `runs` and `changes`; called under mutex_.
  [[nodiscard]] const Json& state();

  const RunRecorder& recorder_;
  std::mutex mutex_;
  Json state_;  // the last answer, which serves all pages until there is news
  double made_ = -1;
  bool finished_ = false, final_was_seen_ = false;
  std::unique_ptr<LiveServer> server_;  // last: its thread uses the others
};

}  // namespace hone::tool
