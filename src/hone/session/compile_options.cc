#include "hone/session/compile_options.h"

#include "hone/base/options.h"
#include "hone/remote/remote_machine.h"
#include "hone/search/nearest.h"
#include "hone/trial/accuracy.h"

namespace hone {

const JobHooks& hooks_of(const CompileOptions& options) {
  static const JobHooks kNone;
  return options.advanced.hooks != nullptr ? *options.advanced.hooks : kNone;
}

Result<const machine::Machine*> machine_of(const JobHooks* hooks, const std::string& name) {
  if (hooks != nullptr && hooks->machine != nullptr) return hooks->machine;
  return remote::machine_named(name);
}

Result<const machine::Machine*> machine_of(const CompileOptions& options) {
  return machine_of(options.advanced.hooks, options.target.machine);
}

Status check_measurable(const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const machine::Machine* const machine, machine_of(options));
  return machine->find_measurable(options.target.device).status();
}

Status check_options(const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const machine::Machine* const machine, machine_of(options));
  HONE_RETURN_IF_ERROR(machine->find(options.target.device).status());
  if (!trial::parse_accuracy(options.target.accuracy))
    return invalid("accuracy '{}', expected strict, default or fast", options.target.accuracy);
  if (options.records.transfer != "pool" && options.records.transfer != "one" &&
      options.records.transfer != "off")
    return invalid("transfer '{}', expected pool, one or off", options.records.transfer);
  return of_option("--nearest", search::parse_nearest(options.records.nearest)).status();
}

}  // namespace hone
