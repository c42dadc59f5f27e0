// learn/torch/inner_loop_testing.h - small nets in double precision, with the loss after adaptation
// and its derivatives by differences, for tests of gradients.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hone/cost/net/torch_library.h"
#include "hone/learn/torch/inner_loop.h"
#include "hone/learn/torch/losses.h"
#include "hone/learn/torch/row_reader.h"

namespace hone::learn::torch_module {

// A net with eight schedules to adapt to and eight others, of two tasks each. Some labels are not
// known.
class Problem {
 public:
  static constexpr int64_t kTask = 4, kPart = 8;  // schedules

  Problem(cost::net::Net net, int32_t loss, bool generic)
      : net_(std::move(net)),
        plain_(net_, {}),
        batch_(cost::net::random_batch(net_, 2 * kPart, 7)),
        pointers_(pointers(batch_)),
        place_{at::kCPU, generic, at::kDouble},
        interpreter_(plain_.get(), place_),
        reader_(plain_.get(), pointers_.data(), batch_.rows) {
    options_.loss = loss;
    options_.least_ratio = 1.04;
    options_.bound_weight = 0.5;
    options_.rank_weight = 1;
  }

  [[nodiscard]] std::vector<at::Tensor> parameters() const {
    return make_parameters(plain_.get(), place_);
  }
  [[nodiscard]] LossOf support() const { return loss_of_part(0); }
  [[nodiscard]] LossOf query() const { return loss_of_part(kPart); }

 private:
  static std::vector<const float*> pointers(const cost::net::NetBatch& batch) {
    std::vector<const float*> all;
    for (const std::vector<float>& input : batch.inputs) all.push_back(input.data());
    return all;
  }

  static Labels labels_of_part(int64_t begin) {
    const at::Tensor place = at::arange(begin, begin + kPart, at::kDouble);
    Labels labels{1 / (1 + (5 * place).remainder(7)),
                  at::sin(3 * place),
                  at::cos(2 * place),
                  at::sin(place),
                  {kTask, kTask}};
    labels.log_time[1] = NAN, labels.core_bound[2] = NAN;
    return labels;
  }

  [[nodiscard]] LossOf loss_of_part(int64_t begin) const {
    std::vector<int64_t> rows = all_rows(kPart);
    for (int64_t& row : rows) row += begin;
    return [this, rows, begin](const std::vector<at::Tensor>& parameters, int pass) {
      Rng dropped(static_cast<uint64_t>(100 * begin + pass));
      const Outputs said = interpreter_.run(reader_.read(rows), parameters, &dropped);
      return loss_of(said, labels_of_part(begin), options_);
    };
  }

  cost::net::Net net_;
  cost::net::PlainNet plain_;
  cost::net::NetBatch batch_;
  std::vector<const float*> pointers_;
  Place place_;
  Interpreter interpreter_;
  RowReader reader_;
  HoneTorchOptions options_{};
};

// How the loss after adaptation changes along some directions, and how far gradients are from that:
// the norm of the differences relative to the norm of the changes.
struct Comparison {
  double size = 0;  // norm of the changes
  double second_order = 0, first_order = 0;
};

inline Comparison compare(const std::vector<at::Tensor>& parameters, const LossOf& support,
                          const LossOf& query, const InnerLoop& loop) {
  constexpr int kDirections = 4;
  constexpr double kStep = 1e-7;  // deep nets of rectifiers have many kinks
  const auto loss = [&](const std::vector<at::Tensor>& direction, double step) {
    std::vector<at::Tensor> moved;
    for (size_t i = 0; i < parameters.size(); ++i)
      moved.push_back((parameters[i].detach() + step * direction[i]).requires_grad_(true));
    return query(adapt(moved, support, {loop.steps, loop.rate, false}), loop.steps).item<double>();
  };
  const MetaGradient second = maml_gradient(parameters, support, query, loop);
  const MetaGradient first =
      maml_gradient(parameters, support, query, {loop.steps, loop.rate, false});
  at::manual_seed(5);
  Comparison sums;
  for (int i = 0; i < kDirections; ++i) {
    std::vector<at::Tensor> direction;
    for (const at::Tensor& parameter : parameters) direction.push_back(at::randn_like(parameter));
    const double change = (loss(direction, kStep) - loss(direction, -kStep)) / (2 * kStep);
    const auto error = [&](const MetaGradient& gradient) {
      double slope = 0;
      for (size_t p = 0; p < direction.size(); ++p) {
        if (gradient.parameters[p].defined())
          slope += (gradient.parameters[p] * direction[p]).sum().item<double>();
      }
      return (slope - change) * (slope - change);
    };
    sums.size += change * change;
    sums.second_order += error(second), sums.first_order += error(first);
  }
  return {std::sqrt(sums.size), std::sqrt(sums.second_order / sums.size),
          std::sqrt(sums.first_order / sums.size)};
}

}  // namespace hone::learn::torch_module
