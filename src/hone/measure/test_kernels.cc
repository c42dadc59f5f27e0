// Kernels as codegen makes them, good and bad ones, for the tests of the worker. Compiled to an
// object file that the tests load; args: input, output, then what each kernel says.
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KERNEL(name) \
  extern "C" int name(void* const* args, void* scratch, int64_t first, int64_t last, int thread)
#define UNUSED (void)args, (void)scratch, (void)first, (void)last, (void)thread

namespace {
constexpr int64_t kTile = 256;  // floats
const float* input(void* const* args) { return static_cast<const float*>(args[0]); }
float* output(void* const* args) { return static_cast<float*>(args[1]); }
void wait_ns(long ns) {
  timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < ns);
}
}  // namespace

KERNEL(twice) {
  UNUSED;
  for (int64_t i = first * kTile; i < last * kTile; ++i) output(args)[i] = 2 * input(args)[i];
  return 0;
}
KERNEL(twice_through_scratch) {
  UNUSED;
  auto* mine = static_cast<float*>(scratch);
  for (int64_t t = first; t < last; ++t) {
    for (int64_t i = 0; i < kTile; ++i) mine[i] = 2 * input(args)[t * kTile + i];
    memcpy(output(args) + t * kTile, mine, kTile * sizeof(float));
  }
  return 0;
}
// args[2]: a constant, args[3]: packed. twice = in * (constant + 1) where the constant is 1.
KERNEL(pack) {
  UNUSED;
  for (int64_t i = 0; i < kTile; ++i)
    static_cast<float*>(args[3])[i] = static_cast<const float*>(args[2])[i] + 1;
  return 0;
}
KERNEL(times_packed) {
  UNUSED;
  for (int64_t t = first; t < last; ++t) {
    for (int64_t i = 0; i < kTile; ++i) {
      output(args)[t * kTile + i] =
          input(args)[t * kTile + i] * static_cast<const float*>(args[3])[i];
    }
  }
  return 0;
}
KERNEL(thrice) {
  UNUSED;
  for (int64_t i = first * kTile; i < last * kTile; ++i) output(args)[i] = 3 * input(args)[i];
  return 0;
}
KERNEL(forgets_the_last) {
  UNUSED;
  for (int64_t i = first * kTile; i < last * kTile - 1; ++i) output(args)[i] = 2 * input(args)[i];
  return 0;
}
KERNEL(right_only_once) {
  UNUSED;
  static int calls = 0;
  const float factor = calls++ < 1 ? 2 : 2.5F;
  for (int64_t i = first * kTile; i < last * kTile; ++i) output(args)[i] = factor * input(args)[i];
  return 0;
}
KERNEL(writes_behind) {
  twice(args, scratch, first, last, thread);
  output(args)[4 * kTile] = 0;
  return 0;
}
KERNEL(writes_before) {
  twice(args, scratch, first, last, thread);
  output(args)[-1] = 0;
  return 0;
}
KERNEL(writes_far_behind) {
  twice(args, scratch, first, last, thread);
  *static_cast<volatile float*>(output(args) + (int64_t{1} << 44)) = 0;
  return 0;
}
KERNEL(writes_its_input) {
  UNUSED;
  *static_cast<volatile float*>(args[0]) = 1;
  return 0;
}
KERNEL(returns_seven) {
  UNUSED;
  return 7;
}
KERNEL(reads_null) {
  UNUSED;
  return *static_cast<volatile int*>(nullptr);
}
KERNEL(aborts) {
  UNUSED;
  abort();
}
KERNEL(kills_itself) {
  UNUSED;
  kill(getpid(), SIGKILL);
  return 0;
}
KERNEL(hangs) {
  UNUSED;
  for (volatile int forever = 1; forever != 0;) {
  }
  return 0;
}
KERNEL(eats_memory) {
  UNUSED;
  for (;;) {
    const size_t bytes = size_t{64} << 20;
    memset(malloc(bytes), 1, 4096);
  }
}
KERNEL(sees_open_files) {
  UNUSED;
  for (int fd = 4; fd < 256; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) return fd;
  }
  return 0;
}
KERNEL(takes_1_ms) {
  wait_ns(1'000'000);
  return twice(args, scratch, first, last, thread);
}
KERNEL(takes_5_ms) {
  wait_ns(5'000'000);
  return twice(args, scratch, first, last, thread);
}
KERNEL(sums_constants) {  // args[2]: 256 KiB of constants
  UNUSED;
  double sum = 0;
  for (int64_t i = 0; i < (1 << 16); i += 16) sum += static_cast<const float*>(args[2])[i];
  output(args)[0] = static_cast<float>(sum);
  return 0;
}
