#include "hone/commands/find_limits.h"

#include "hone/base/log.h"
#include "hone/db/roofline_store.h"

namespace hone {
namespace {

constexpr double kQuiet = 0.1;  // share of the cores that others and the host may have meanwhile

}  // namespace

void find_limits(const machine::Machine& machine, const TuneOptions& options,
                 const std::function<void()>& before) {
  const CompileOptions& compile = options.compile;
  if (!compile.records.use_db || compile.target.device != "host" ||
      !compile.target.machine.empty() || options.search.budget_seconds < kLimitsBudget)
    return;
  const std::string device = target::device_key(machine.target());
  const auto known = db::load_roofline(compile.records.db, device);
  const bool is_new = known.status().code() == Code::kNotFound;  // the database is not made yet
  if (!is_new && (!known.ok() || *known)) return;
  before();
  measure::HostMonitor host(machine.conditions().load());
  (void)host.sample();
  const Result<trial::Roofline> found =
      machine.conditions().roofline(machine.target(), {.interrupted = options.interrupted});
  const measure::HostLoad load = host.sample();
  if (found.ok() && load.others + load.steal > kQuiet) {
    log_warning("the machine has other work: its limits stay unknown");
    return;
  }
  const Status status =
      found.ok() ? db::save_roofline(compile.records.db, device, *found) : found.status();
  if (!status.ok() && status.code() != Code::kCancelled)
    log_warning("the machine's limits stay unknown: {}", status.message());
}

}  // namespace hone
