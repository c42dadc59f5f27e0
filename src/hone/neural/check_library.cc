#include "hone/neural/check_library.h"

#include <algorithm>
#include <cmath>

#include "hone/cost/net/evaluate.h"
#include "hone/model.h"
#include "hone/neural/compiled_net.h"

namespace hone {
namespace {

namespace net = cost::net;

constexpr int64_t kChecked = 2;      // candidates: plain evaluation is slow
constexpr float kTolerance = 1e-4F;  // of the largest value

net::NetBatch first_rows(const net::NetBatch& batch, int64_t rows) {
  net::NetBatch first{.rows = rows, .inputs = batch.inputs};
  for (std::vector<float>& values : first.inputs)
    values.resize(values.size() / static_cast<size_t>(batch.rows) * static_cast<size_t>(rows));
  return first;
}

Status compare(const std::string& name, const std::vector<float>& expected,
               const std::vector<float>& found) {
  float largest = 0, error = 0;
  for (const float value : found) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(expected[i]))
      return invalid("the net's {} is {}, expected a finite number", name, expected[i]);
    const float difference = std::abs(found[i] - expected[i]);
    error = std::isfinite(difference) ? std::max(error, difference) : INFINITY;
  }
  if (error <= kTolerance * std::max(largest, 1e-3F)) return ok_status();
  return hone::error(Code::kInternal,
                     "compiled, the net's {} differs by {:.2g} of {:.2g} from what it computes: a "
                     "bug of Hone's compiler; use another cost model",
                     name, error, largest);
}

}  // namespace

Status check_library(const std::string& library, const net::Net& computed) {
  HONE_ASSIGN_OR_RETURN(Model model, Model::load(library, 1));
  const net::NetBatch batch = net::random_batch(computed, kNetBatch, 1);
  std::vector<const void*> inputs;
  for (const ModelTensor& input : model.inputs()) {
    const auto place =
        std::find_if(computed.inputs.begin(), computed.inputs.end(),
                     [&](const net::NetInput& known) { return known.name == input.name; });
    if (place == computed.inputs.end())
      return invalid("the net reads {}, which is not known", input.name);
    inputs.push_back(batch.inputs[static_cast<size_t>(place - computed.inputs.begin())].data());
  }
  std::vector<std::vector<float>> found;
  for (const ModelTensor& output : model.outputs())
    found.emplace_back(static_cast<size_t>(num_elements(output.shape)));
  std::vector<void*> outputs;
  for (std::vector<float>& values : found) outputs.push_back(values.data());
  HONE_RETURN_IF_ERROR(model.run(inputs, outputs));

  const std::vector<std::vector<float>> expected = evaluate(computed, first_rows(batch, kChecked));
  for (size_t i = 0; i < computed.outputs.size(); ++i) {
    const std::string& name = computed.outputs[i].name;
    size_t k = 0;
    while (k < found.size() && model.outputs()[k].name != name) ++k;
    if (k == found.size()) return error(Code::kInternal, "compiled, the net has no {}", name);
    HONE_RETURN_IF_ERROR(compare(name, expected[i], found[k]));
  }
  return ok_status();
}

}  // namespace hone
