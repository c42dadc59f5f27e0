#include "hone/search/lower_schedule.h"

#include "hone/backend/registry.h"
#include "hone/backend/survive_crash.h"
#include "hone/schedule/lower.h"

namespace hone::search {

Result<ProgramPtr> lower_schedule(const compute::Dag& dag, const schedule::Steps& steps,
                                  const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const backend::Backend> backend, backend::of(target));
  ProgramPtr lowered;
  HONE_RETURN_IF_ERROR(backend::survive_crash([&]() -> Status {
    HONE_ASSIGN_OR_RETURN(ir::Program program, schedule::lower(dag, steps, backend->passes(),
                                                               {.parameters = target.passes}));
    lowered = std::make_shared<const ir::Program>(std::move(program));
    return ok_status();
  }));
  return lowered;
}

}  // namespace hone::search
