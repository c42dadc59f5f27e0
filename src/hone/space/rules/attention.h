// space/rules/attention.h - recognizes the stages of an attention (graph/ops/fused_attention.cc),
// for the rules that compute all of them in one nest (internal to space).
#pragma once

#include <optional>

#include "hone/space/sketch.h"

namespace hone::space {

// The stages in topological order: scores of queries and keys, what is left of them after scale and
// mask, the largest one of a query, powers relative to it, their sum, the sums of values that they
// weight, and these divided by the sum.
enum AttentionPart : uint8_t { kScores, kMasked, kMost, kWeights, kTotal, kSums, kResult, kParts };

struct Attention {
  std::string stage[kParts];
  std::vector<std::string> outer;  // the result's axes but the next two
  std::string query, lane;         // the queries, and what is contiguous in the result
  int64_t queries = 1, keys = 1;
  int64_t blocks_outside = 1;  // points of the outer axes
  // Each query sees keys up to one of its own, and the sums over keys end there.
  bool ends_early = false;
};

// Inlines chains of pointwise stages, and matches those that are left; nullopt if they are others.
[[nodiscard]] std::optional<Attention> find_attention(SketchBuilder& builder);

}  // namespace hone::space
