#include "hone/session/compile_options.h"

#include "hone/base/options.h"
#include "hone/machine/local.h"
#include "hone/search/nearest.h"
#include "hone/trial/accuracy.h"

namespace hone {

const JobHooks& hooks_of(const CompileOptions& options) {
  static const JobHooks kNone;
  return options.advanced.hooks != nullptr ? *options.advanced.hooks : kNone;
}

const machine::Machine& machine_of(const CompileOptions& options) {
  return machine::or_local(hooks_of(options).machine);
}

Status check_options(const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(machine_of(options).find(options.target.device).status());
  if (!trial::parse_accuracy(options.target.accuracy))
    return invalid("accuracy '{}', expected strict, default or fast", options.target.accuracy);
  if (options.records.transfer != "pool" && options.records.transfer != "one" &&
      options.records.transfer != "off")
    return invalid("transfer '{}', expected pool, one or off", options.records.transfer);
  return of_option("nearest", search::parse_nearest(options.records.nearest)).status();
}

}  // namespace hone
