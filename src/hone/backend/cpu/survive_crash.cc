#include "hone/backend/survive_crash.h"

#include <llvm/Support/CrashRecoveryContext.h>

#include <cstring>

namespace hone::backend {

Status survive_crash(const std::function<Status()>& work) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // they report crashes themselves
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
