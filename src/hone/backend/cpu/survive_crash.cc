#include "hone/backend/survive_crash.h"

#include <llvm/Support/CrashRecoveryContext.h>

#include <cstring>

#include "hone/base/sanitizers.h"

namespace hone::backend {

Status survive_crash(const std::function<Status()>& work) {
#ifdef HONE_SANITIZER  // it reports crashes itself
  return work();
#else
  static const bool enabled = [] {
    llvm::CrashRecoveryContext::Enable();
    return true;
  }();
  (void)enabled;
  Status status;
  llvm::CrashRecoveryContext context;
  if (context.RunSafely([&] { status = work(); })) return status;
  constexpr int kSignalBase = 128;  // RetCode is this plus the signal
  return error(Code::kInternal, "the compiler crashed: {}",
               strsignal(context.RetCode - kSignalBase));
#endif
}

}  // namespace hone::backend
