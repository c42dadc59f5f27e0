// tools/hone/train_from.h - a training that starts from a trained net: few schedules of a new
// device adapt what others taught.
#pragma once

#include "hone/cost/net/train.h"
#include "hone/neural/net_file.h"

#include "model_card.h"
#include "train_net.h"

namespace hone::tool {

struct TrainStart {
  NetFile file;
  const cost::net::Family* family = nullptr;
  bool head = false;  // only the last layers are trained
};
// Reads texts.from, and gives `texts` the family and the options that the file has. An error where
// they contradict.
[[nodiscard]] Result<TrainStart> read_start(NetTrainTexts& texts);
// The weights and the normalisation of the file. Heads of devices that the file does not know,
// those beyond its own, begin as the mean of its own.
[[nodiscard]] Status take_weights(const TrainStart& start, const std::string& path,
                                  cost::net::Net& net);
// How it is trained unless one says otherwise.
[[nodiscard]] Result<cost::net::NetTraining> training_from(const TrainStart& start);
// What the card of the result says of it.
[[nodiscard]] Notes start_notes(const TrainStart& start, const NetTrainTexts& texts);

}  // namespace hone::tool
