// artifact/varying_testing.h - a small model whose shapes vary, for tests. It adds 1 to `x` of
// [batch, seq], and to `mask` of [batch, past + seq] as one dimension of all its elements, and
// hands out what the kernels see of the sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hone/artifact/artifact.h"

namespace hone::artifact::testing {

inline constexpr int64_t kBatch = 4, kSeq = 6, kPast = 5;

// The kernels are test_add_rows (args: x, y; a tile is a row of `kSeq` floats), test_add_long_rows
// (a row of kPast + kSeq), and test_copy_sizes (args: sizes, three i64).
inline ArtifactSpec varying_spec(const std::string& kernels_object) {
  ArtifactSpec spec;
  spec.name = "varying";
  spec.symbols = {{"batch", 1, kBatch}, {"seq", 1, kSeq}, {"past", 0, kPast}};
  const ArtifactForm batch = {.terms = {{1, {0}}}}, seq = {.terms = {{1, {1}}}};
  const ArtifactForm sum = {.terms = {{1, {2}}, {1, {1}}}};
  spec.forms = {batch, seq, sum};
  const std::vector<ArtifactPart> b = {{0, kBatch}}, s = {{1, kSeq}}, all = {{2, kPast + kSeq}};
  const std::vector<ArtifactPart> both = {{0, kBatch}, {2, kPast + kSeq}};
  spec.inputs = {
      {.name = "x", .shape = {kBatch, kSeq}, .dims = {b, s}},
      {.name = "mask", .shape = {kBatch, kPast + kSeq}, .dims = {b, all}},
  };
  spec.outputs = {
      {.name = "y", .shape = {kBatch, kSeq}, .dims = {b, s}},
      {.name = "flat", .shape = {kBatch * (kPast + kSeq)}, .dims = {both}},
      {.name = "seen", .dtype = DType::kI64, .shape = {3}},
  };
  spec.sizes = 64;
  spec.arena_bytes = 64 + runtime::kMaxForms * 8;
  spec.executables = {{.code = kernels_object}};
  spec.kernel_symbols = {"test_add_rows", "test_add_long_rows", "test_copy_sizes"};
  const ArtifactTileLimit rows = {.form = 0};
  spec.steps = {
      {.name = "rows",
       .kernel = 0,
       .num_tiles = kBatch,
       .arguments = {{ArgumentKind::kInput, 0}, {ArgumentKind::kOutput, 0}},
       .limit = rows},
      {.name = "long rows",
       .kernel = 1,
       .num_tiles = kBatch,
       .arguments = {{ArgumentKind::kInput, 1}, {ArgumentKind::kOutput, 1}},
       .limit = rows},
      {.name = "sizes",
       .kernel = 2,
       .arguments = {{ArgumentKind::kArena, 0, spec.sizes}, {ArgumentKind::kOutput, 2}}},
  };
  return spec;
}

}  // namespace hone::artifact::testing
