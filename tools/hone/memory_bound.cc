#include "memory_bound.h"

#include <sys/resource.h>

#include <algorithm>
#include <new>

#include "hone/base/allocation.h"
#include "hone/base/memory_bound.h"
#include "hone/base/sanitizers.h"

#include "command.h"
#include "interrupt.h"
#include "option_texts.h"

namespace hone::tool {
namespace {

[[noreturn]] void out_of_memory() { end_process(out_of_memory_message(), kExitBadInput); }

// Lowers the limit of all memory that is not mapped from a file; never raises it.
void lower_limit(MemoryBound bound) {
  rlimit limit = {};
  if (bound.bytes <= 0 || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  const auto bytes = static_cast<rlim_t>(bound.bytes);
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes) {
    bound = {static_cast<int64_t>(limit.rlim_cur), "the limit of ulimit -d"};
  } else if (!kSanitized) {  // its shadow memory is larger than any machine's
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_DATA, &limit);
  }
  set_memory_bound(bound);
}

}  // namespace

void bound_memory() {
  const MemoryHere here = memory_here();
  if (here.main > 0) lower_limit({here.main + here.swap, "the memory of this machine"});
  std::set_new_handler(out_of_memory);
}

Status bound_memory(const std::string& text) {
  HONE_ASSIGN_OR_RETURN(const int64_t bytes, parse_max_memory(text));
  const int64_t before = memory_bound().bytes;
  if (bytes > 0 && (before == 0 || bytes < before))
    lower_limit({bytes, "the bound of --max-memory"});
  return ok_status();
}

}  // namespace hone::tool
