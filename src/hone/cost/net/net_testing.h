// cost/net/net_testing.h - small inputs for tests of nets.
#pragma once

#include "hone/base/rng.h"
#include "hone/cost/net/evaluate.h"
#include "hone/cost/net/family.h"

namespace hone::cost::net {

inline NetInputs small_inputs() {
  return {{"statements", {4, 9}}, {"tags", {4, 10}},  {"mask", {4}},    {"steps", {5, 7}},
          {"steps_mask", {5}},    {"task", {6}},      {"measure", {5}}, {"device", {3}},
          {"head", {4}},          {"decisions", {8}}, {"analytic", {1}}};
}

// Random values; masks have 1 to all ones, in front.
inline NetBatch random_batch(const Net& net, int64_t rows, uint64_t seed) {
  Rng rng(seed);
  NetBatch batch{.rows = rows};
  for (const NetInput& input : net.inputs) {
    std::vector<float> values(static_cast<size_t>(rows * element_count(input.dims)));
    for (float& value : values) value = static_cast<float>(rng.normal());
    if (input.name.ends_with("mask")) {
      const int64_t length = input.dims[0];
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t real = rng.between(1, length);
        for (int64_t i = 0; i < length; ++i)
          values[static_cast<size_t>(row * length + i)] = i < real ? 1.0F : 0.0F;
      }
    }
    batch.inputs.push_back(std::move(values));
  }
  return batch;
}

// Narrow nets, so that tests are fast.
inline GivenOptions narrow(const Family& family) {
  GivenOptions options;
  for (const FamilyOption& option : family.options) {
    if (option.name == "hidden") options["hidden"] = 16;
    if (option.name == "heads") options["heads"] = 2;
    if (option.name == "inner") options["inner"] = 16;
    if (option.name == "layers") options["layers"] = std::min(option.value, 2.0);
    for (const char* input : {"measure", "decisions", "analytic"}) {
      if (option.name == input) options[input] = 1;
    }
  }
  return options;
}

}  // namespace hone::cost::net
