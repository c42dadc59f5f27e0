// commands/training/train_from.h - a training that starts from a trained net, so that few schedules
// of a new device adapt what others taught.
#pragma once

#include "hone/commands/training/model_card.h"
#include "hone/cost/net/train.h"
#include "hone/neural/net_file.h"

namespace hone {

// Returns the names that NetTrainOptions::adapt has.
[[nodiscard]] std::vector<std::string> adapt_names();

struct TrainStart {
  NetFile file;
  const cost::net::Family* family = nullptr;
  bool head = false;  // only the last layers are trained
};
// Reads the file `options.from`, and gives `options` its family and options. It is an error if they
// contradict it.
[[nodiscard]] Result<TrainStart> read_start(TrainOptions& options);
// Takes the weights and the normalisation of the file at `path`. Heads of devices that the file
// does not know, those beyond its own, begin as the mean of its own.
[[nodiscard]] Status take_weights(const TrainStart& start, const std::string& path,
                                  cost::net::Net& net);
// Returns how it is trained by default.
[[nodiscard]] Result<cost::net::NetTraining> training_from(const TrainStart& start);
// Returns the notes about it for the result's card.
[[nodiscard]] Notes start_notes(const TrainStart& start, const std::string& path);

}  // namespace hone
