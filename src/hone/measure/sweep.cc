#include "hone/measure/sweep.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "hone/measure/flush.h"

namespace hone::measure {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kMostProbed = int64_t{1} << 30;
constexpr int64_t kReadInAll = int64_t{64} << 20;
constexpr int64_t kLeastProbed = int64_t{1} << 20;
// One core reads from a cache at 1.3 to 3 times the rate at which it reads from memory.
constexpr double kCached = 0.85;

// Keeps what is read from being optimized away.
void use(uint64_t value) { __asm__ volatile("" : : "r"(value)); }

uint64_t read_lines(const char* memory, int64_t bytes) {
  uint64_t sum = 0;
  for (int64_t i = 0; i + 8 <= bytes; i += kLine) {
    uint64_t word = 0;
    std::memcpy(&word, memory + i, sizeof(word));
    sum += word;
  }
  return sum;
}

struct Work {
  const char* memory;
  int64_t bytes;  // per thread
  int threads;
  std::span<const std::span<char>> warm;
};

int sweep_tiles(void* const* args, void*, int64_t first, int64_t last, int) {
  const Work& work = *static_cast<const Work*>(args[0]);
  for (int64_t tile = first; tile < last; ++tile) {
    uint64_t sum = read_lines(work.memory + tile * work.bytes, work.bytes);
    for (const std::span<char>& data : work.warm) {
      const auto size = static_cast<int64_t>(data.size());
      const int64_t share = (size / work.threads + kLine - 1) / kLine * kLine;
      const int64_t begin = std::min(size, tile * share);
      sum += read_lines(data.data() + begin, std::min(share, size - begin));
    }
    use(sum);
  }
  return 0;
}

double seconds_to_read(const std::vector<char>& memory) {
  const int64_t start = runtime::clock_ns();
  use(read_lines(memory.data(), static_cast<int64_t>(memory.size())));
  return static_cast<double>(runtime::clock_ns() - start);
}

}  // namespace

Status Sweep::prepare(int64_t wanted, int threads) {
  const int64_t bytes = (wanted + kLine - 1) / kLine * kLine;
  if (bytes == bytes_ && threads == threads_) return ok_status();
  HONE_RETURN_IF_ERROR(memory_.reserve({bytes * threads}));
  std::memset(memory_.piece(0), 0, static_cast<size_t>(bytes * threads));
  bytes_ = bytes;
  threads_ = threads;
  return ok_status();
}

void Sweep::run(runtime::Pool* pool, std::span<const std::span<char>> warm) const {
  Work work{static_cast<const char*>(memory_.piece(0)), bytes_, threads_, warm};
  void* args[] = {&work};
  const runtime::PhaseCall call{sweep_tiles, args, threads_, 0};
  (void)runtime::pool_run(pool, &call, 1, nullptr, 0);
}

bool stays_in_cache(int64_t bytes) {
  const std::vector<char> memory(static_cast<size_t>(std::clamp(bytes, kLeastProbed, kMostProbed)));
  // A neighbour may have the caches for a moment, so little memory is read for longer.
  const int64_t rounds = std::clamp<int64_t>(kReadInAll / std::ssize(memory), 3, 32);
  std::vector<double> again, flushed;
  for (int64_t round = 0; round < rounds; ++round) {
    flush_from_caches(memory);
    flushed.push_back(seconds_to_read(memory));
    again.push_back(seconds_to_read(memory));
  }
  return *std::min_element(again.begin(), again.end()) <
         kCached * *std::min_element(flushed.begin(), flushed.end());
}

}  // namespace hone::measure
