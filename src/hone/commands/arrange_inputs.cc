#include <fmt/ranges.h>

#include "hone/base/allocation.h"
#include "hone/base/closest_name.h"
#include "hone/base/status.h"
#include "hone/commands/check/random_inputs.h"
#include "hone/open_model.h"
#include "hone/tensor/small_types.h"

namespace hone {

Result<std::vector<Tensor>> arrange_inputs(const std::vector<ModelTensor>& inputs,
                                           std::map<std::string, Tensor> given, uint64_t seed) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ModelTensor& input = inputs[i];
    const auto it = given.find(input.name);
    if (it == given.end()) {
      const AllocatesFor purpose(fmt::format("input '{}'", input.name));
      tensors.push_back(random_input(input.dtype, input.shape, seed + i));
      continue;
    }
    const Tensor& tensor = it->second;
    const std::optional<Tensor> fitting = as_type(tensor, input.dtype);
    if (!fitting || tensor.shape() != input.shape) {
      return invalid("input '{}': found {} {}, expected {} {}", input.name,
                     dtype_name(tensor.dtype()), to_string(tensor.shape()), dtype_name(input.dtype),
                     to_string(input.shape));
    }
    tensors.push_back(*fitting);
    given.erase(it);
  }
  if (given.empty()) return tensors;
  std::vector<std::string> names;
  for (const ModelTensor& input : inputs) names.push_back(input.name);
  return invalid("the model has no input '{}', expected one of: {}{}", given.begin()->first,
                 fmt::join(names, ", "), did_you_mean(given.begin()->first, names));
}

}  // namespace hone
