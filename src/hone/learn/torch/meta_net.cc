#include "hone/learn/torch/meta_net.h"

#include <c10/core/GradMode.h>

#include <optional>

#include "hone/base/hash.h"
#include "hone/learn/torch/labels.h"

namespace hone::learn::torch_module {
namespace {

// Losses are computed where labels are.
at::Tensor here(const at::Tensor& output) {
  return output.defined() ? output.to(at::kCPU) : output;
}

// Both sets, for what makes no difference between them.
Batch together(const MetaTask& task) {
  Batch all;
  auto support = task.support.rows.begin(), query = task.query.rows.begin();
  for (size_t i = 0; i < task.support.group_sizes.size(); ++i) {
    const int64_t shots = task.support.group_sizes[i], queries = task.query.group_sizes[i];
    all.rows.insert(all.rows.end(), support, support + shots);
    all.rows.insert(all.rows.end(), query, query + queries);
    all.group_sizes.push_back(shots + queries);
    support += shots, query += queries;
  }
  return all;
}

}  // namespace

InnerLoop inner_loop_of(const HoneTorchMetaOptions& meta) {
  return {meta.steps, meta.rate, meta.kind == kHoneTorchMaml};
}

std::vector<at::Tensor> twins_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> twins;
  for (const at::Tensor& parameter : parameters)
    twins.push_back(parameter.detach().requires_grad_(parameter.requires_grad()));
  return twins;
}

LossOf MetaNet::loss_on(const RowReader& reader, const HoneTorchRows& rows, const Batch& batch,
                        const uint64_t* seed) const {
  return [this, seed, inputs = reader.read(batch.rows), labels = labels_of(rows, batch)](
             const std::vector<at::Tensor>& parameters, int pass) {
    std::optional<Rng> dropped;
    if (seed != nullptr) dropped.emplace(hash_combine(*seed, static_cast<uint64_t>(pass)));
    const Outputs said = interpreter_.run(inputs, parameters, dropped ? &*dropped : nullptr);
    return loss_of(
        {here(said.score), here(said.time), here(said.memory_bound), here(said.core_bound)}, labels,
        options_);
  };
}

MetaGradient MetaNet::gradient_of(const RowReader& reader, const HoneTorchRows& rows,
                                  const MetaTask& task, const std::vector<at::Tensor>& parameters,
                                  uint64_t seed) const {
  const InnerLoop loop = inner_loop_of(options_.meta);
  if (options_.meta.kind == kHoneTorchReptile)
    return reptile_gradient(parameters, loss_on(reader, rows, together(task), &seed), loop);
  return maml_gradient(parameters, loss_on(reader, rows, task.support, &seed),
                       loss_on(reader, rows, task.query, &seed), loop);
}

double MetaNet::compute_gradients(const RowReader& reader, const HoneTorchRows& rows,
                                  std::span<const MetaTask> tasks,
                                  const std::vector<at::Tensor>& parameters, uint64_t seed) const {
  std::vector<MetaGradient> found(tasks.size());
  workers_.for_each(std::ssize(tasks), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    found[place] = gradient_of(reader, rows, tasks[place], twins_of(parameters),
                               hash_combine(seed, static_cast<uint64_t>(i)));
  });
  const auto count = static_cast<double>(tasks.size());
  workers_.for_each(std::ssize(parameters), [&](int64_t i) {
    const c10::NoGradGuard no_gradients;
    const auto place = static_cast<size_t>(i);
    at::Tensor sum;
    for (MetaGradient& one : found) {
      at::Tensor& gradient = one.parameters[place];
      if (!gradient.defined()) continue;
      sum = sum.defined() ? sum.add_(gradient) : gradient.clone();
      gradient.reset();
    }
    if (!parameters[place].requires_grad()) return;
    parameters[place].mutable_grad() = sum.defined() ? sum.div_(count) : sum;
  });
  double loss = 0;
  for (const MetaGradient& one : found) loss += one.loss / count;
  return loss;
}

AdaptedLoss MetaNet::judge(const RowReader& reader, const HoneTorchRows& rows,
                           std::span<const MetaTask> tasks,
                           const std::vector<at::Tensor>& parameters) const {
  std::vector<AdaptedLoss> losses(tasks.size());
  const InnerLoop loop = inner_loop_of(options_.meta);
  workers_.for_each(std::ssize(tasks), [&](int64_t i) {
    const MetaTask& task = tasks[static_cast<size_t>(i)];
    const LossOf query = loss_on(reader, rows, task.query, nullptr);
    const std::vector<at::Tensor> adapted =
        adapt(twins_of(parameters), loss_on(reader, rows, task.support, nullptr),
              {loop.steps, loop.rate, false});
    const c10::NoGradGuard no_gradients;
    losses[static_cast<size_t>(i)] = {query(parameters, 0).item<double>(),
                                      query(adapted, 0).item<double>()};
  });
  AdaptedLoss mean;
  for (const AdaptedLoss& loss : losses) {
    mean.plain += loss.plain / static_cast<double>(losses.size());
    mean.adapted += loss.adapted / static_cast<double>(losses.size());
  }
  return mean;
}

}  // namespace hone::learn::torch_module
