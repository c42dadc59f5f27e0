// tools/hone/train_net.h - trains a neural cost model and writes it as ONNX.
#pragma once

#include "cost_data.h"

namespace hone::tool {

struct NetTrainTexts {
  std::string family, output, options;
  std::string loss, epochs, rate, batch, decay;  // empty: as the family's papers say
  std::string validation = "0.1", patience = "0", seed = "1", threads = "0";
  std::vector<std::string> held_out;  // networks whose tasks are the validation, instead of a share
  std::string curve;                  // an HTML file; empty: none
  bool resume = false;
  int tasks = 0;  // so many are trained on; 0: all
};
// `excluded`: networks that the data leave out, for the file's card.
[[nodiscard]] Status train_net(const std::vector<CostData>& data, const NetTrainTexts& texts,
                               const std::vector<std::string>& excluded);

}  // namespace hone::tool
