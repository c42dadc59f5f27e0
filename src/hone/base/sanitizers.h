// base/sanitizers.h - HONE_SANITIZER is defined, and kSanitized true, where the compiler adds the
// address or the thread sanitizer. Both reserve terabytes of addresses, so a limit of those ends
// the program, both report crashes themselves, and both have an allocator of their own. gcc tells
// of them by macros, clang 14 by __has_feature alone.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HONE_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HONE_SANITIZER
#endif
#endif

namespace hone {

#ifdef HONE_SANITIZER
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace hone
