// base/hash.h - stable 64-bit hashes: the same on every machine and in every run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hone {

[[nodiscard]] uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);
[[nodiscard]] inline uint64_t hash_string(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}
[[nodiscard]] inline uint64_t hash_mix(uint64_t x) {  // the finaliser of splitmix64
  x ^= x >> 30, x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27, x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
[[nodiscard]] inline uint64_t hash_combine(uint64_t a, uint64_t b) {
  return hash_mix(a * 0x9e3779b97f4a7c15ULL + b + 0x632be59bd9b4e019ULL);
}
// Returns 16 lower-case hexadecimal digits.
[[nodiscard]] std::string hash_hex(uint64_t hash);

}  // namespace hone
