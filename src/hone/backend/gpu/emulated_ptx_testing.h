// backend/gpu/emulated_ptx_testing.h - for tests: the PTX instructions of printed CUDA C, written
// from the PTX ISA and not from Hone's own layouts of matrices. The function of an instruction has
// its name with '_' in place of '.', and takes its operands in their order, vectors one by one.
//
// Lanes are those of "Matrix Fragments for mma.m16n8k16 with floating point type", "... for
// mma.m16n8k8" and the figures of ldmatrix; the sections call lane / 4 groupID and lane % 4
// threadID_in_group.
#pragma once

#include <string.h>

#include "hone/backend/gpu/emulated_abi_testing.h"

namespace hone::backend::gpu::emulated {

extern __attribute__((visibility("hidden"))) Services* services;

inline unsigned bits_of(float x) {
  unsigned bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float float_of(unsigned bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

namespace ptx {

// The registers that the constraints of inline assembler ask for.
template <typename T>
constexpr bool kIsFloat = false;
template <>
constexpr bool kIsFloat<float> = true;
template <typename T>
constexpr bool kIsFloat<T&> = kIsFloat<T>;
template <typename T>
constexpr bool kIsFloat<const T> = kIsFloat<T>;
#define HONE_REGISTER(constraint, bytes, is_float)                                              \
  template <typename T>                                                                         \
  constexpr T&& constraint(T&& x) {                                                             \
    static_assert(sizeof(x) == bytes && kIsFloat<T> == is_float, "not a register of its kind"); \
    return static_cast<T&&>(x);                                                                 \
  }
HONE_REGISTER(f, 4, true)
HONE_REGISTER(h, 2, false)
HONE_REGISTER(r, 4, false)
HONE_REGISTER(l, 8, false)
HONE_REGISTER(n, 4, false)
#undef HONE_REGISTER

// ---- conversions ----

// Rounds to the nearest of floats whose last `dropped` bits are 0, ties to even.
inline unsigned to_even(unsigned bits, unsigned dropped) {
  const unsigned half = 1u << (dropped - 1), odd = bits >> dropped & 1;
  return (bits + half - 1 + odd) >> dropped << dropped;
}

// 1 sign, 5 bits of the exponent (bias 15), 10 of the fraction.
inline float float_of_f16(unsigned short h) {
  const unsigned sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31) return float_of(sign | 0x7f800000 | fraction << 13);
  if (exponent > 0) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) / 16777216.0f;  // in units of 2^-24
  return sign != 0 ? -magnitude : magnitude;
}
inline unsigned short f16_of_float(float x) {
  const unsigned bits = bits_of(x), magnitude = bits & 0x7fffffff;
  const auto sign = static_cast<unsigned short>(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude < 0x38800000) {  // below 2^-14, where numbers are multiples of 2^-24
    const float scaled = float_of(magnitude) * 16777216.0f;
    // Adding 2^23 rounds to an integer, ties to even.
    const volatile float shifted = scaled + 8388608.0f;
    return sign | static_cast<unsigned short>(bits_of(shifted) - bits_of(8388608.0f));
  }
  const unsigned rounded = to_even(magnitude, 13);
  if (rounded >= 0x47800000) return sign | 0x7c00;  // from 2^16 on
  return sign | static_cast<unsigned short>((rounded >> 13) - (112 << 10));
}
inline float float_of_bf16(unsigned short b) { return float_of(static_cast<unsigned>(b) << 16); }
inline unsigned short bf16_of_float(float x) {
  if (x != x) return 0x7fff;
  return static_cast<unsigned short>(to_even(bits_of(x), 16) >> 16);
}

inline void cvt_f32_f16(float& d, unsigned short a) { d = float_of_f16(a); }
inline void cvt_rn_f16_f32(unsigned short& d, float a) { d = f16_of_float(a); }
inline void cvt_rn_bf16_f32(unsigned short& d, float a) { d = bf16_of_float(a); }
// "For .f16x2 destination type, a is in the upper half and b in the lower half of d."
inline void cvt_rn_f16x2_f32(unsigned& d, float a, float b) {
  d = static_cast<unsigned>(f16_of_float(a)) << 16 | f16_of_float(b);
}
inline void cvt_rn_bf16x2_f32(unsigned& d, float a, float b) {
  d = static_cast<unsigned>(bf16_of_float(a)) << 16 | bf16_of_float(b);
}
// To the nearest of 10 bits of the fraction, ties away from zero. What is in the other 13 bits does
// not count, so they are not 0 here.
inline void cvt_rna_tf32_f32(unsigned& d, float a) {
  const unsigned bits = bits_of(a);
  d = a != a ? 0x7fffffff : (bits & 0x7f800000) == 0x7f800000 ? bits : ((bits + 0x1000) | 0x1fff);
}
inline float float_of_tf32(unsigned bits) { return float_of(bits & ~0x1fffu); }

// ---- matrices ----

struct Multiplied {
  unsigned a[4], b[2];
  float c[4], d[4];
};
enum class Element { kF16, kBf16, kTf32 };

// Sets the matrices A (16 x k) and B (k x 8) from the registers of a lane, for 16 bits: register r
// has the elements 2 r in its lower half and 2 r + 1.
template <Element kind>
void take_halves(const Multiplied& lane, unsigned id, float (&a)[16][16], float (&b)[16][8]) {
  const auto value = [](const unsigned* registers, int i) {
    const auto half = static_cast<unsigned short>(registers[i / 2] >> (i % 2 * 16));
    return kind == Element::kF16 ? float_of_f16(half) : float_of_bf16(half);
  };
  const unsigned group = id >> 2, in_group = id % 4;
  for (int i = 0; i < 8; ++i) {
    const unsigned row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
    const unsigned column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    a[row][column] = value(lane.a, i);
  }
  for (int i = 0; i < 4; ++i)
    b[in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group] = value(lane.b, i);
}
inline void take_tf32(const Multiplied& lane, unsigned id, float (&a)[16][16], float (&b)[16][8]) {
  const unsigned group = id >> 2, in_group = id % 4;
  for (int i = 0; i < 4; ++i) {
    const unsigned row = i == 0 || i == 2 ? group : group + 8;
    a[row][i < 2 ? in_group : in_group + 4] = float_of_tf32(lane.a[i]);
  }
  for (int i = 0; i < 2; ++i) b[i == 0 ? in_group : in_group + 4][group] = float_of_tf32(lane.b[i]);
}

template <Element kind>
void multiply(void* const* lanes) {
  constexpr unsigned kDepth = kind == Element::kTf32 ? 8 : 16;
  float a[16][16], b[16][8];
  for (unsigned id = 0; id < kWarp; ++id) {
    const auto& lane = *static_cast<const Multiplied*>(lanes[id]);
    if constexpr (kind == Element::kTf32) {
      take_tf32(lane, id, a, b);
    } else {
      take_halves<kind>(lane, id, a, b);
    }
  }
  for (unsigned id = 0; id < kWarp; ++id) {
    auto& lane = *static_cast<Multiplied*>(lanes[id]);
    for (int i = 0; i < 4; ++i) {
      const unsigned row = i < 2 ? id >> 2 : (id >> 2) + 8, column = id % 4 * 2 + (i & 1);
      double sum = lane.c[i];
      for (unsigned k = 0; k < kDepth; ++k) sum += static_cast<double>(a[row][k]) * b[k][column];
      lane.d[i] = static_cast<float>(sum);
    }
  }
}

#define HONE_MMA(name, kind)                                                               \
  inline void name(float& d0, float& d1, float& d2, float& d3, unsigned a0, unsigned a1,   \
                   unsigned a2, unsigned a3, unsigned b0, unsigned b1, float c0, float c1, \
                   float c2, float c3, int line = __builtin_LINE()) {                      \
    Multiplied own = {{a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3}, {}};                   \
    services->meet(kAllLanes, multiply<kind>, &own, false, line);                          \
    d0 = own.d[0], d1 = own.d[1], d2 = own.d[2], d3 = own.d[3];                            \
  }
HONE_MMA(mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32, Element::kF16)
HONE_MMA(mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32, Element::kBf16)
HONE_MMA(mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32, Element::kTf32)
#undef HONE_MMA

// ldmatrix: lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i, 8 elements each.
struct Loaded {
  const unsigned short* row;
  unsigned d[4];
};
template <int kMatrices, bool kTransposed>
void load(void* const* lanes) {
  for (unsigned id = 0; id < kWarp; ++id) {
    auto& lane = *static_cast<Loaded*>(lanes[id]);
    for (unsigned m = 0; m < kMatrices; ++m) {
      unsigned short two[2];
      for (unsigned e = 0; e < 2; ++e) {
        const unsigned next = id % 4 * 2 + e;
        const unsigned row = kTransposed ? next : id / 4, column = kTransposed ? id / 4 : next;
        two[e] = static_cast<const Loaded*>(lanes[m * 8 + row])->row[column];
      }
      lane.d[m] = two[0] | static_cast<unsigned>(two[1]) << 16;
    }
  }
}
template <int kMatrices, bool kTransposed>
void load_matrices(unsigned* const (&to)[kMatrices], unsigned address, int line) {
  Loaded own = {};
  // Lanes whose address does not count may give any.
  if (services->thread.x % kWarp < kMatrices * 8) {
    if (address % 16 != 0) services->fail("ldmatrix of an address that is no multiple of 16", line);
    own.row = reinterpret_cast<const unsigned short*>(services->shared_pointer(address, line));
    services->access(own.row, 16, false);
  }
  services->meet(kAllLanes, load<kMatrices, kTransposed>, &own, false, line);
  for (int m = 0; m < kMatrices; ++m) *to[m] = own.d[m];
}
inline void ldmatrix_sync_aligned_m8n8_x2_shared_b16(unsigned& d0, unsigned& d1, unsigned address,
                                                     int line = __builtin_LINE()) {
  load_matrices<2, false>({&d0, &d1}, address, line);
}
inline void ldmatrix_sync_aligned_m8n8_x2_trans_shared_b16(unsigned& d0, unsigned& d1,
                                                           unsigned address,
                                                           int line = __builtin_LINE()) {
  load_matrices<2, true>({&d0, &d1}, address, line);
}
inline void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned& d0, unsigned& d1, unsigned& d2,
                                                     unsigned& d3, unsigned address,
                                                     int line = __builtin_LINE()) {
  load_matrices<4, false>({&d0, &d1, &d2, &d3}, address, line);
}
inline void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned& d0, unsigned& d1, unsigned& d2,
                                                           unsigned& d3, unsigned address,
                                                           int line = __builtin_LINE()) {
  load_matrices<4, true>({&d0, &d1, &d2, &d3}, address, line);
}

// ---- asynchronous copies ----

inline void copy_async(unsigned to, const void* from, unsigned bytes, unsigned there, int line) {
  if (to % bytes != 0 || (there > 0 && reinterpret_cast<unsigned long>(from) % bytes != 0))
    services->fail("cp.async of addresses that are no multiples of its size", line);
  if (there > bytes) services->fail("cp.async of more bytes than its size", line);
  services->copy(to, from, bytes, there, line);
}
inline void cp_async_ca_shared_global(unsigned to, const void* from, unsigned bytes, unsigned there,
                                      int line = __builtin_LINE()) {
  if (bytes != 4 && bytes != 8 && bytes != 16) services->fail("cp.async.ca of another size", line);
  copy_async(to, from, bytes, there, line);
}
inline void cp_async_cg_shared_global(unsigned to, const void* from, unsigned bytes, unsigned there,
                                      int line = __builtin_LINE()) {
  if (bytes != 16) services->fail("cp.async.cg of another size than 16", line);
  copy_async(to, from, bytes, there, line);
}
inline void cp_async_commit_group() { services->commit_copies(); }
inline void cp_async_wait_group(int newest) {
  services->wait_copies(static_cast<unsigned>(newest));
}

}  // namespace ptx
}  // namespace hone::backend::gpu::emulated
