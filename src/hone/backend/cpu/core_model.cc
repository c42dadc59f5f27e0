#include "hone/backend/cpu/core_model.h"

#include <algorithm>

namespace hone::backend::cpu {
namespace {

// Ports of a table are bits, whose numbers are its own. Loads have the latency of a vector in L1.
// Sources: uops.info; A. Fog, "The microarchitecture of Intel, AMD and VIA CPUs"; AMD, "Software
// optimization guide" for families 19h and 1Ah; Intel, "Optimization reference manual"; Arm,
// "Neoverse N1 software optimization guide". Vector units: 0-3, scalar: 4-9, memory: 10-15.
// The numbers are written from memory of these sources and are not compared with measurements, so
// they rank code and do not predict its time. Vector operations other than multiply-adds and
// shuffles have one latency.
constexpr uint32_t bits(int first, int last) { return ((2u << last) - 1) & ~((1u << first) - 1); }

// The uses of a table are in this order: none, fma, vector, shuffle, scalar, multiply, branch,
// load, store. Zen 4 has the ports of Zen 3; more instructions are in flight.
constexpr std::array<CoreModel::Use, kNumUnits> kZen3 = {{{0, 0},
                                                          {bits(0, 1), 4},
                                                          {bits(0, 3), 3},
                                                          {bits(1, 2), 1},
                                                          {bits(4, 7), 1},
                                                          {1u << 5, 3},
                                                          {bits(7, 8), 1},
                                                          {bits(10, 12), 7},
                                                          {bits(13, 14), 1}}};

constexpr CoreModel kModels[] = {
    {"znver3", 6, 256, 256, kZen3, bits(10, 11), 1u << 13},
    {"znver4", 6, 320, 256, kZen3, bits(10, 11), 1u << 13},
    {"znver5",
     8,
     448,
     512,
     {{{0, 0},
       {bits(0, 1), 4},
       {bits(0, 3), 2},
       {bits(1, 2), 1},
       {bits(4, 9), 1},
       {bits(4, 6), 3},
       {bits(7, 9), 1},
       {bits(10, 13), 7},
       {bits(14, 15), 1}}},
     bits(10, 11),
     1u << 14},
    // The units 0 and 1 are one for vectors of 512 bits, so these have 0 and 3.
    {"sapphirerapids",
     6,
     512,
     512,
     {{{0, 0},
       {1u | 1u << 3, 4},
       {1u | 1u << 3, 2},
       {1u << 3, 1},
       {bits(4, 8), 1},
       {1u << 5, 3},
       {1u << 4 | 1u << 8, 1},
       {bits(10, 12), 7},
       {bits(13, 14), 1}}},
     bits(10, 11),
     1u << 13},
    {"x86-64-v3",
     4,
     224,
     256,
     {{{0, 0},
       {bits(0, 1), 4},
       {bits(0, 2), 3},
       {1u << 2, 1},
       {bits(4, 7), 1},
       {1u << 5, 3},
       {bits(6, 7), 1},
       {bits(10, 11), 7},
       {1u << 13, 1}}},
     bits(10, 11),
     1u << 13},
    {"neoverse-n1",
     4,
     128,
     128,
     {{{0, 0},
       {bits(0, 1), 4},
       {bits(0, 1), 2},
       {bits(0, 1), 2},
       {bits(4, 6), 1},
       {1u << 6, 3},
       {1u << 7, 1},
       {bits(10, 11), 5},
       {bits(10, 11), 1}}},
     bits(10, 11),
     bits(10, 11)},
};

const CoreModel& named(std::string_view name) {
  return *std::find_if(std::begin(kModels), std::end(kModels) - 1,
                       [&](const CoreModel& model) { return model.name == name; });
}

}  // namespace

const CoreModel& core_model(const target::Cpu& target) {
  for (const CoreModel& model : kModels) {
    if (model.name == target.model) return model;
  }
  if (!target.triple.starts_with("x86_64")) return named("neoverse-n1");
  return named(target.vector_bytes == 64 ? "sapphirerapids" : "x86-64-v3");
}

}  // namespace hone::backend::cpu
