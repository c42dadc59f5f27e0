#include "hone/neural/net_worker.h"

#include <algorithm>
#include <cmath>

#include "hone/cost/net/head.h"

namespace hone {

using cost::kNumInputs;
using cost::net::Parameter;

Result<std::unique_ptr<NetWorker>> NetWorker::open(const std::string& library,
                                                   std::span<const Parameter> weights,
                                                   const std::vector<std::string>& heads) {
  HONE_ASSIGN_OR_RETURN(Model model, Model::load(library, 1));
  auto worker = std::unique_ptr<NetWorker>(new NetWorker(std::move(model)));
  HONE_RETURN_IF_ERROR(worker->bind(weights, heads));
  return worker;
}

Result<std::vector<NetWorker::Row>> NetWorker::run(std::span<const cost::Query> queries) {
  std::vector<Row> rows(queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    std::array<float*, kNumInputs> places{};
    for (size_t k = 0; k < kNumInputs; ++k) {
      if (!wanted_[k]) continue;
      const int64_t size = cost::input_shapes()[k].size();
      places[k] = values_[k].data() + static_cast<size_t>(size) * i;
    }
    HONE_RETURN_IF_ERROR(writer_->write(queries[i], places));
    rows[i].analytic_seconds = writer_->analytic_seconds();
  }
  HONE_RETURN_IF_ERROR(model_.run(inputs_, outputs_));
  for (size_t i = 0; i < queries.size(); ++i) {
    rows[i].score = scores_[i];
    if (!memory_bound_.empty() && !core_bound_.empty())
      rows[i].bounds = trial::BoundScores{memory_bound_[i], core_bound_[i]};
    if (!std::isfinite(rows[i].score))
      return error(Code::kInternal, "a score is {}, expected a finite number", rows[i].score);
  }
  return rows;
}

std::span<const float> NetWorker::head(size_t query) const {
  const size_t width = heads_.size() / static_cast<size_t>(kNetBatch);
  return heads_.subspan(query * width, width);
}

std::span<const float> NetWorker::input(cost::Input input, size_t query) const {
  const std::vector<float>& values = values_[static_cast<size_t>(input)];
  const size_t width = values.size() / static_cast<size_t>(kNetBatch);
  return std::span(values).subspan(query * width, width);
}

Status NetWorker::bind_input(const ModelTensor& input, std::span<const Parameter> weights) {
  if (const std::optional<cost::Input> found = cost::find_input(input.name)) {
    const auto k = static_cast<size_t>(*found);
    const Shape expected = cost::input_shapes()[k].of(kNetBatch);
    if (input.dtype != DType::kF32 || input.shape != expected)
      return invalid("the net reads {} of shape {}, expected {}", input.name,
                     to_string(input.shape), to_string(expected));
    wanted_[k] = true;
    values_[k].resize(static_cast<size_t>(num_elements(expected)));
    inputs_.push_back(values_[k].data());
    return ok_status();
  }
  const auto weight = std::find_if(weights.begin(), weights.end(), [&](const Parameter& parameter) {
    return parameter.name == input.name;
  });
  if (weight == weights.end()) return invalid("the net reads {}, which is not known", input.name);
  HONE_ASSERT(num_elements(input.shape) == std::ssize(weight->values), "weights of another net");
  inputs_.push_back(weight->values.data());
  return ok_status();
}

Status NetWorker::bind(std::span<const Parameter> weights, const std::vector<std::string>& heads) {
  for (const ModelTensor& input : model_.inputs()) HONE_RETURN_IF_ERROR(bind_input(input, weights));
  for (const ModelTensor& output : model_.outputs()) {
    std::vector<float>& values = others_.emplace_back(num_elements(output.shape));
    if (output.name == "score" && output.shape == Shape{kNetBatch, 1}) scores_ = values;
    if (output.name == cost::net::kHeadOutput) heads_ = values;
    if (output.name == "memory_bound" && output.shape == Shape{kNetBatch, 1})
      memory_bound_ = values;
    if (output.name == "core_bound" && output.shape == Shape{kNetBatch, 1}) core_bound_ = values;
    outputs_.push_back(values.data());
  }
  if (scores_.empty())
    return invalid("the net has no output score of shape {}", to_string({kNetBatch, 1}));
  writer_.emplace(wanted_, heads);
  return ok_status();
}

}  // namespace hone
