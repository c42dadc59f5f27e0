#include "hone/base/hash.h"

#include <fmt/format.h>

#include <cstring>

namespace hone {

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  // Four independent lanes, so that gigabytes of weights hash at memory speed.
  uint64_t lane[4] = {seed ^ size, seed + 0x9e3779b97f4a7c15ULL, seed ^ 0xc2b2ae3d27d4eb4fULL,
                      seed + 0x165667b19e3779f9ULL};
  size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    for (int k = 0; k < 4; ++k) {
      uint64_t word;
      std::memcpy(&word, p + i + 8 * k, 8);
      lane[k] = (lane[k] ^ word) * 0x9fb21c651e98df25ULL;
      lane[k] ^= lane[k] >> 29;
    }
  }
  uint64_t h = hash_combine(hash_combine(lane[0], lane[1]), hash_combine(lane[2], lane[3]));
  for (; i < size; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, p + i, size - i < 8 ? size - i : 8);
    h = hash_combine(h, word);
  }
  return h;
}

std::string hash_hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace hone
