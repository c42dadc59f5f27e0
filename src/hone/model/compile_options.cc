#include "hone/model/compile_options.h"

#include "hone/space/space.h"
#include "hone/target/target.h"

namespace hone {

Status check_options(const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(target::find(options.device).status());
  if (!trial::parse_accuracy(options.accuracy))
    return invalid("accuracy '{}', expected strict, default or fast", options.accuracy);
  if (options.transfer != "pool" && options.transfer != "one" && options.transfer != "off")
    return invalid("transfer '{}', expected pool, one or off", options.transfer);
  return ok_status();
}

}  // namespace hone
