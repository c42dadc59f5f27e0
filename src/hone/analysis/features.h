// analysis/features.h - statement features for learned cost models, in the spirit of Ansor's 164
// (its section 5.2 and feature.cc) with some defects repaired and machine features added: the
// positions of vectorized, unrolled and parallel loops are filled in, fused multiply-adds are
// counted, reuse distances use the loop that carries the reuse, and the device is part of the row.
// They are computed from State and Bounds alone. Counts are log2(1 + x); shares and flags are
// stored as they are.
#pragma once

#include <array>

#include "hone/analysis/nest.h"
#include "hone/target/cpu.h"

namespace hone::analysis {

inline constexpr int kFeatureVersion = 1;
inline constexpr int kNumAccessSlots = 5;  // the largest accesses by touched cache lines
inline constexpr int kOpFeatures = 8;
inline constexpr int kAnnotationFeatures =
    3 * 11;  // for vectorized, unrolled and parallel loops: count, product, innermost, 8 positions
inline constexpr int kAccessFeatures = 18;
inline constexpr int kIntensityFeatures = 10;
inline constexpr int kStorageFeatures = 4;
inline constexpr int kOuterFeatures = 4;
inline constexpr int kRegisterFeatures = 4;
inline constexpr int kMachineFeatures = 14;
inline constexpr int kNumFeatures =
    kOpFeatures + kAnnotationFeatures + kNumAccessSlots * kAccessFeatures + kIntensityFeatures +
    kStorageFeatures + kOuterFeatures + kRegisterFeatures + kMachineFeatures;

using FeatureRow = std::array<float, kNumFeatures>;
using MachineRow = std::array<float, kMachineFeatures>;

[[nodiscard]] FeatureRow features_of(const Nest& nest, const target::Cpu& target, int threads);
// Returns the last numbers of every row, which describe the machine.
[[nodiscard]] MachineRow machine_features(const target::Cpu& target, int threads);
[[nodiscard]] FeatureRow features_of(const Nest& nest, const target::Cpu& target,
                                     const MachineRow& machine);
// The vectors that a statement keeps in registers while its innermost loops run.
struct RegisterTile {
  double vectors = 1;
  double lanes_used = 0;  // share of lanes; 0 without a vector
  bool in_registers = false;
};
[[nodiscard]] RegisterTile register_tile(const Nest& nest, const target::Cpu& target);
// The loops of one kind: how many, the product of their extents, and the extent of the innermost; 0
// if there are none.
struct AnnotatedLoops {
  double number = 0, product = 0, innermost = 0;
};
[[nodiscard]] AnnotatedLoops annotated_loops(const Nest& nest, schedule::Annotation annotation);
// Returns the name of each number of a row: "ops.fma", "access0.bytes", ...
[[nodiscard]] const std::vector<std::string>& feature_names();

}  // namespace hone::analysis
