#include "hone/session/compile_options.h"

#include "hone/machine/local.h"
#include "hone/trial/accuracy.h"

namespace hone {

const machine::Machine& machine_of(const CompileOptions& options) {
  return options.machine != nullptr ? *options.machine : machine::local();
}

Status check_options(const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(machine_of(options).find(options.device).status());
  if (!trial::parse_accuracy(options.accuracy))
    return invalid("accuracy '{}', expected strict, default or fast", options.accuracy);
  if (options.transfer != "pool" && options.transfer != "one" && options.transfer != "off")
    return invalid("transfer '{}', expected pool, one or off", options.transfer);
  return ok_status();
}

}  // namespace hone
