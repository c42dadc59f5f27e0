#include "hone/learn/torch/parallel_net.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "hone/base/hash.h"
#include "hone/base/round_up.h"

namespace hone::learn::torch_module {
namespace {

constexpr int64_t kPartRows = 64;     // fewer make the products narrow, more differ in length
constexpr int64_t kMostParts = 8;     // unless there are more threads: each has its own gradients
constexpr int64_t kLeastRows = 8;     // rows per part; fewer are not worth a thread
constexpr int64_t kScoredRows = 256;  // at a time, without gradients
constexpr int64_t kGenericScoredRows = 4096;

std::vector<int64_t> pick(std::span<const int64_t> rows, const std::vector<int64_t>& places) {
  std::vector<int64_t> picked;
  for (const int64_t place : places) picked.push_back(rows[static_cast<size_t>(place)]);
  return picked;
}

void scatter(const at::Tensor& values, const std::vector<int64_t>& places, float* to) {
  const at::Tensor plain = values.to(at::kCPU).contiguous();
  const float* from = plain.data_ptr<float>();
  for (const int64_t place : places) to[place] = *from++;
}

at::Tensor gather(const at::Tensor& from, const std::vector<int64_t>& places) {
  at::Tensor values = at::empty({std::ssize(places)}, at::kFloat);
  float* to = values.data_ptr<float>();
  for (const int64_t place : places) *to++ = from.data_ptr<float>()[place];
  return values;
}

}  // namespace

ParallelNet::ParallelNet(const HoneTorchNet& net, const Place& place,
                         std::vector<at::Tensor> parameters, Workers& workers)
    : place_(place),
      interpreter_(net, place),
      parameters_(std::move(parameters)),
      workers_(workers) {}

int64_t ParallelNet::count_parts(int64_t rows) const {
  if (place_.generic) return 1;
  const int64_t parts = std::clamp<int64_t>(rows / kPartRows, 1, kMostParts);
  const int64_t even = round_up<int64_t>(parts, workers_.threads());
  return std::min(even, std::max<int64_t>(1, rows / kLeastRows));
}

void ParallelNet::add_replicas(size_t count) {
  while (replicas_.size() < count) {
    Replica& replica = replicas_.emplace_back();
    for (const at::Tensor& parameter : parameters_)
      replica.push_back(parameter.detach().requires_grad_(parameter.requires_grad()));
  }
}

double ParallelNet::compute_gradients(const RowReader& reader, std::span<const int64_t> rows,
                                      const Labels& labels, const HoneTorchOptions& options,
                                      uint64_t seed) {
  const auto parts = reader.split(rows, count_parts(std::ssize(rows)));
  add_replicas(parts.size());
  std::vector<Outputs> said(parts.size());
  workers_.for_each(std::ssize(parts), [&](int64_t i) {
    const auto part = static_cast<size_t>(i);
    Rng rng(hash_combine(seed, static_cast<uint64_t>(i)));
    said[part] = interpreter_.run(reader.read(pick(rows, parts[part])), replicas_[part], &rng);
  });
  Outputs whole;
  for (const auto output : kOutputs) {
    if (!(said[0].*output).defined()) continue;
    at::Tensor values = at::empty({std::ssize(rows)}, at::kFloat);
    for (size_t i = 0; i < parts.size(); ++i)
      scatter((said[i].*output).detach(), parts[i], values.data_ptr<float>());
    whole.*output = values.requires_grad_(true);
  }
  const at::Tensor loss = loss_of(whole, labels, options);
  loss.backward();
  workers_.for_each(std::ssize(parts), [&](int64_t i) {
    const auto part = static_cast<size_t>(i);
    torch::autograd::variable_list roots, gradients;
    for (const auto output : kOutputs) {
      const at::Tensor& all = whole.*output;
      if (!all.defined() || !all.grad().defined() || !(said[part].*output).requires_grad())
        continue;
      roots.push_back(said[part].*output);
      gradients.push_back(gather(all.grad().contiguous(), parts[part]).to(place_.device));
    }
    torch::autograd::backward(roots, gradients);
    said[part] = {};
  });
  sum_gradients(parts.size());
  return loss.item<double>();
}

void ParallelNet::sum_gradients(size_t parts) {
  workers_.for_each(std::ssize(parameters_), [&](int64_t i) {
    const c10::NoGradGuard no_gradients;
    const auto place = static_cast<size_t>(i);
    at::Tensor& sum = parameters_[place].mutable_grad();
    sum.reset();
    for (size_t part = 0; part < parts; ++part) {
      at::Tensor& gradient = replicas_[part][place].mutable_grad();
      if (sum.defined() && gradient.defined())
        sum.add_(gradient);
      else if (gradient.defined())
        sum = gradient;
      gradient.reset();
    }
  });
}

void ParallelNet::evaluate(const RowReader& reader, const std::vector<at::Tensor>& parameters,
                           float* const* outputs) const {
  const std::vector<int64_t> rows = all_rows(reader.num_rows());
  if (rows.empty()) return;
  const int64_t each = place_.generic ? kGenericScoredRows : kScoredRows;
  const auto parts = reader.split(rows, (std::ssize(rows) + each - 1) / each);
  workers_.for_each(std::ssize(parts), [&](int64_t i) {
    const c10::NoGradGuard no_gradients;
    const std::vector<int64_t>& part = parts[static_cast<size_t>(i)];
    const Outputs said = interpreter_.run(reader.read(part), parameters, nullptr);
    for (size_t output = 0; output < std::size(kOutputs); ++output) {
      const at::Tensor& values = said.*kOutputs[output];
      if (outputs[output] != nullptr && values.defined()) scatter(values, part, outputs[output]);
    }
  });
}

}  // namespace hone::learn::torch_module
