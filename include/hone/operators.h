// operators.h - the operators of ONNX that can be compiled.
#pragma once

#include <string>
#include <vector>

#include "hone/export.h"

namespace hone {

struct OpsetRange {
  int since = 0, until = 0;  // including both
};

struct OperatorInfo {
  std::string name;  // with its domain before it, unless that is ai.onnx: "com.microsoft.Gelu"
  // One for each meaning that the operator has had, oldest first; none for other domains.
  std::vector<OpsetRange> opsets;
  // A node with the newest meaning becomes this: "contraction", "reduction", "elementwise", "view",
  // "own kernel", "folded" (known when the model is compiled) or "other operators".
  std::string becomes;
  std::vector<std::string> attributes;  // of the newest meaning
  // Returns the part of the name before the last dot; "" for ai.onnx.
  [[nodiscard]] HONE_API std::string domain() const;
};

// Returns all operators by name.
[[nodiscard]] HONE_API std::vector<OperatorInfo> operators();
// Returns the opsets that models may have.
[[nodiscard]] HONE_API OpsetRange opsets();

}  // namespace hone
