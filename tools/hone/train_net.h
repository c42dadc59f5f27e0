// tools/hone/train_net.h - trains a neural cost model and writes it as ONNX.
#pragma once

#include "cost_data.h"

namespace hone::tool {

struct NetTrainTexts {
  std::string family;  // empty: that of `from`
  std::string output, options;
  std::string from, adapt;  // a trained net to start from, and what of it to train
  std::string loss, epochs, rate, batch, decay;  // empty: as the family's papers say
  std::string validation, patience = "0", seed = "1", threads = "0", place = "cpu";
  std::vector<std::string> held_out;  // networks whose tasks are the validation, instead of a share
  bool few = false;                   // the data are a few chosen tasks: all are trained on
  std::string curve;                  // an HTML file; empty: none
  std::string budget;                 // empty: any time
  bool resume = false;
  int tasks = 0;  // so many are trained on; 0: all
};
// The ways to --adapt.
[[nodiscard]] std::vector<std::string> adapt_names();
// What an unfinished training of the file is kept in.
[[nodiscard]] std::string net_state_file(const std::string& output);
// `excluded`: networks that the data leave out, for the file's card.
[[nodiscard]] Status train_net(const std::vector<CostData>& data, NetTrainTexts texts,
                               const std::vector<std::string>& excluded);

}  // namespace hone::tool
