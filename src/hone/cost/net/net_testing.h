// cost/net/net_testing.h - small inputs for tests of nets.
#pragma once

#include "hone/cost/inputs/program_graph.h"
#include "hone/cost/net/evaluate.h"
#include "hone/cost/net/family.h"

namespace hone::cost::net {

inline NetInputs small_inputs() {
  return {{"statements", {4, 9}},
          {"tags", {4, 10}},
          {"mask", {4}},
          {"steps", {5, 7}},
          {"steps_mask", {5}},
          {"task", {6}},
          {"measure", {5}},
          {"device", {3}},
          {"head", {4}},
          {"decisions", {8}},
          {"analytic", {1}},
          {"graph_nodes", {6, 8}},
          {"graph_edges", {6, 6}},
          {"graph_mask", {6}},
          {"template_nodes", {1 + template_loops(), 8}},
          {"template_mask", {1 + template_loops()}}};
}

// Returns options of narrow nets, which make tests fast.
inline GivenOptions narrow(const Family& family) {
  GivenOptions options;
  for (const FamilyOption& option : family.options) {
    if (option.name == "hidden") options["hidden"] = 16;
    if (option.name == "width") options["width"] = 16;
    if (option.name == "heads") options["heads"] = 2;
    if (option.name == "inner") options["inner"] = 16;
    if (option.name == "layers") options["layers"] = 2;
    for (const char* input : {"measure", "decisions", "analytic"}) {
      if (option.name == input) options[input] = 1;
    }
  }
  return options;
}

}  // namespace hone::cost::net
