// backend/gpu/emulated_abi_testing.h - for tests: the functions of the emulation of a block
// (emulated_block_testing.h) that CUDA C calls which this machine's compiler has compiled. A
// library of kernels gets them before a launch.
#pragma once

namespace hone::backend::gpu::emulated {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffff;

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

// Does what a warp does together when all lanes have come: `lanes` has what each lane brought, null
// for lanes that do not take part.
using Together = void (*)(void* const* lanes);

struct Services {
  Index thread, block;           // those of the thread that runs
  const char* stacks = nullptr;  // memory of the stacks of all threads: theirs alone
  unsigned long stacks_bytes = 0;
  char* dynamic_shared = nullptr;
  // Checks an access to memory before it is made.
  void (*access)(const void* address, unsigned bytes, bool write);
  // Ends the launch with an error. It does not return.
  void (*fail)(const char* what, unsigned line);
  void (*block_barrier)(int line);
  // The lanes of the mask wait for each other; the last one calls `together`. If `barrier`, it also
  // orders their accesses to memory.
  void (*meet)(unsigned mask, Together together, void* own, bool barrier, int line);
  // Returns the address of shared memory in its own space, and the other way round.
  unsigned (*shared_address)(const void* pointer, int line);
  char* (*shared_pointer)(unsigned address, int line);
  // Asynchronous copies: `there` of `bytes` bytes come from global memory, the rest is zero.
  void (*copy)(unsigned to, const void* from, unsigned bytes, unsigned there, int line);
  void (*commit_copies)();
  void (*wait_copies)(unsigned newest);
};

// The place of all arrays in shared memory that a library of kernels has.
struct SharedArrays {
  char *begin = nullptr, *end = nullptr;
};

}  // namespace hone::backend::gpu::emulated
