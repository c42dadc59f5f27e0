#include "hone/base/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <system_error>
#include <utility>

#include "hone/base/memory_bound.h"
#include "hone/base/printable.h"
#include "hone/base/round_up.h"

namespace hone {
namespace {

constexpr size_t kLongestPurpose = 200;  // names of nodes may have any length

thread_local const AllocatesFor* innermost = nullptr;
thread_local int64_t wanted = 0;  // bytes that the failed allocation asked for; 0: unknown
thread_local char message[1200];  // a byte of a purpose is at most four when it is printable

}  // namespace

AllocatesFor::AllocatesFor(std::string_view purpose)
    : purpose_(printable(whole_characters(purpose, kLongestPurpose))), outer_(innermost) {
  innermost = this;
}

AllocatesFor::~AllocatesFor() { innermost = outer_; }

void fail_allocation(int64_t bytes) {
  wanted = bytes;
  if (const std::new_handler handler = std::get_new_handler()) handler();
  wanted = 0;
  throw std::bad_alloc();
}

std::string_view out_of_memory_message() {
  char* end = message;
  const auto add = [&end]<typename... Args>(fmt::format_string<Args...> text, Args&&... args) {
    end = fmt::format_to_n(end, message + sizeof message - end, text, std::forward<Args>(args)...)
              .out;
  };
  add("out of memory");
  if (innermost != nullptr) add(" for {}", innermost->purpose_);
  const MemoryBound bound = memory_bound();
  if (wanted > 0) add(": {} bytes more", wanted);
  if (bound.bytes > 0)
    add("{} expected at most {} bytes in all, {}", wanted > 0 ? "," : ":", bound.bytes, bound.name);
  return {message, static_cast<size_t>(end - message)};
}

void* allocate_aligned(int64_t bytes) {
  const int64_t rounded = round_up(std::max<int64_t>(bytes, 1), kDataAlignment);
  const int64_t most = memory_bound().bytes;
  void* const memory = most > 0 && rounded > most
                           ? nullptr
                           : std::aligned_alloc(kDataAlignment, static_cast<size_t>(rounded));
  if (memory == nullptr) fail_allocation(bytes);
  return memory;
}

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    const AllocatesFor purpose("the stack of a thread");
    fail_allocation(0);
  }
}

}  // namespace hone
