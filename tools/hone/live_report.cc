#include "live_report.h"

#include <chrono>
#include <thread>

#include "hone/base/clock.h"

#include "report_page.h"

namespace hone::tool {
namespace {

// Making the state takes milliseconds of a core, which measurements may want.
constexpr double kLeastAge = 1;
// Pages ask every other second.
constexpr double kFollowing = 6, kLastWait = 8;

constexpr std::string_view kData = "data.json";
constexpr std::string_view kKnown = "data.json?known=";

}  // namespace

Result<std::unique_ptr<LiveReport>> LiveReport::start(int port, const RunRecorder& recorder) {
  std::unique_ptr<LiveReport> report(new LiveReport(recorder));
  HONE_ASSIGN_OR_RETURN(report->server_,
                        LiveServer::start(port, [self = report.get()](std::string_view target) {
                          return self->answer(target);
                        }));
  return report;
}

const Json& LiveReport::state() {
  const double now = real_clock().now_seconds();
  if (finished_ || (made_ >= 0 && now < made_ + kLeastAge)) return state_;
  const int64_t changes = recorder_.changes();
  if (made_ < 0 || state_["changes"] != changes)
    state_ = {{"live", true}, {"changes", changes}, {"runs", {to_json(recorder_.so_far(), {})}}};
  made_ = now;
  return state_;
}

LiveAnswer LiveReport::answer(std::string_view target) {
  const std::lock_guard lock(mutex_);
  const Json& data = state();
  if (!target.empty() && target != kData && !target.starts_with(kKnown)) return {};
  final_was_seen_ = finished_;
  if (target.empty()) return {"text/html", report_page(data, PageKind::kLive)};
  const bool known =
      target.starts_with(kKnown) && target.substr(kKnown.size()) == data["changes"].dump();
  if (known) return {"application/json", page_json({{"changes", data["changes"]}})};
  return {"application/json", page_json(data)};
}

void LiveReport::finish(const Json& run) {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    state_ = {{"live", true}, {"changes", recorder_.changes() + 1}, {"runs", {run}}};
  }
  if (server_->seconds_since_request() > kFollowing) return;
  const double end = real_clock().now_seconds() + kLastWait;
  while (real_clock().now_seconds() < end) {
    {
      const std::lock_guard lock(mutex_);
      if (final_was_seen_) break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace hone::tool
