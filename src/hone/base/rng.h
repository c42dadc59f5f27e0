// base/rng.h - a small seeded random number generator (xoshiro256**, Blackman and Vigna 2018).
// The same seed gives the same sequence on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "hone/base/assert.h"
#include "hone/base/hash.h"

namespace hone {

class Rng {
 public:
  explicit Rng(uint64_t seed) {
    for (auto& word : state_) word = hash_mix(seed += 0x9e3779b97f4a7c15ULL);
  }
  uint64_t next() {
    const uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0], state_[3] ^= state_[1], state_[1] ^= state_[2], state_[0] ^= state_[3];
    state_[2] ^= t, state_[3] = rotl(state_[3], 45);
    return result;
  }
  // Returns a number that is uniform in [0, n); n > 0.
  int64_t below(int64_t n) {
    HONE_ASSERT(n > 0, "an empty range has no element");
    return static_cast<int64_t>(
        (static_cast<unsigned __int128>(next()) * static_cast<uint64_t>(n)) >> 64);
  }
  // Returns a number that is uniform in [low, high], both ends included.
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // uniform in [0, 1)
  bool chance(double p) { return uniform() < p; }
  double normal();  // normal with mean 0 and variance 1
  template <typename T>
  const T& choice(const std::vector<T>& from) {
    return from[below(static_cast<int64_t>(from.size()))];
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[below(static_cast<int64_t>(i))]);
  }

 private:
  static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  uint64_t state_[4];
};

}  // namespace hone
