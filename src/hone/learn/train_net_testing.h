// learn/train_net_testing.h - a problem that nets can learn, for tests of training.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/cost/net/net_testing.h"
#include "hone/cost/net/train.h"

namespace hone::learn {

using namespace cost::net;

using namespace cost::net;

inline constexpr const char* kLibrary = HONE_TORCH_LIBRARY;

inline Net narrow_net(const Family& family, const GivenOptions& more = {}) {
  GivenOptions options = narrow(family);
  for (const auto& [name, value] : more) options[name] = value;
  Result<Net> net = make_net(family, small_inputs(), options);
  EXPECT_TRUE(net.ok()) << net.status().message();
  initialise(*net, 3);
  return std::move(net).value();
}

// Makes tasks whose times follow from some of the inputs, so that every family can learn them: the
// log time is a sum over real statements and steps, and of the measure.
inline NetRows toy_rows(const Net& net, int tasks, int each, uint64_t seed) {
  NetRows rows;
  rows.batch = random_batch(net, static_cast<int64_t>(tasks) * each, seed);
  std::vector<double> cost(static_cast<size_t>(rows.batch.rows));
  const auto add = [&](std::string_view name, std::string_view mask_name) {
    const std::vector<float>*values = nullptr, *mask = nullptr;
    int64_t width = 1;
    for (size_t i = 0; i < net.inputs.size(); ++i) {
      if (net.inputs[i].name == name)
        values = &rows.batch.inputs[i], width = net.inputs[i].dims.back();
      if (net.inputs[i].name == mask_name) mask = &rows.batch.inputs[i];
    }
    if (values == nullptr) return;
    const size_t length = values->size() / cost.size() / static_cast<size_t>(width);
    for (size_t row = 0; row < cost.size(); ++row) {
      for (size_t i = 0; i < length; ++i) {
        const size_t place = row * length + i;
        if (mask == nullptr || (*mask)[place] != 0)
          cost[row] += 0.5 * (*values)[place * static_cast<size_t>(width)];
      }
    }
  };
  add("statements", "mask");
  add("steps", "steps_mask");
  add("graph_nodes", "graph_mask");
  for (int t = 0; t < tasks; ++t) {
    const auto begin = cost.begin() + static_cast<std::ptrdiff_t>(t) * each;
    const double best = *std::min_element(begin, begin + each);
    for (auto c = begin; c != begin + each; ++c) {
      rows.speed.push_back(static_cast<float>(std::exp(best - *c)));
      rows.log_time.push_back(static_cast<float>(*c));
      rows.memory_bound.push_back(*c > 0 ? 0.8F : 0.2F);
      rows.core_bound.push_back(*c > 0 ? NAN : 0.5F);
    }
    rows.group_begin.push_back((t + 1) * each);
  }
  return rows;
}

inline NetTraining quick(Loss loss) {
  NetTraining training;
  training.loss = loss;
  training.epochs = 12;
  training.batch = 60;
  training.rate = 1e-2;
  training.library = kLibrary;
  return training;
}

}  // namespace hone::learn
