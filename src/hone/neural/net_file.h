// net_file.h - a trained net as a file: an ONNX model with one dynamic dimension, the batch. Its
// metadata name the net's family, the versions of the inputs that it reads, and what its scores
// mean.
#pragma once

#include <map>
#include <string>

#include "hone/base/status.h"
#include "hone/cost/inputs/model_inputs.h"
#include "hone/cost/net/family.h"

namespace hone {

// The properties of a net that its nodes do not show.
struct NetCard {
  // The increase of the logarithm of a schedule's time for a score that is lower by one
  // (cost::log_seconds_per_score).
  double log_seconds_per_score = 1;
  // If true, the negated score is log(the schedule's time / the analytic model's time of the task's
  // default schedule). If false, scores say nothing about how long a task takes.
  bool tells_time = false;
  // The device of each head (cost::head_name), if the net has one head per device.
  std::vector<std::string> heads;
  // Notes about the training by name: records, tasks, devices, loss, seed and so on.
  std::map<std::string, std::string> notes;
};

// The place of a net's weights. kInside: the file has them as constants. kInputs: they are inputs
// of the model, which the caller provides by name.
enum class NetWeights : uint8_t { kInside, kInputs };
// Returns the bytes of the net's file. Every parameter must have its values.
[[nodiscard]] std::string format_net(const cost::net::Net& net, const NetCard& card,
                                     NetWeights weights = NetWeights::kInside);
[[nodiscard]] Status write_net(const std::string& path, const cost::net::Net& net,
                               const NetCard& card);

struct NetFile {
  std::string family;
  std::vector<cost::Input> inputs;  // inputs that the net reads
  NetCard card;
  std::string bytes;
};
// Reads the file of a net. Returns an error, which says what was found and what was expected, if
// the file is no net, if it was trained for another version of the inputs, features or space, or if
// it was trained on other numbers than this program computes (cost/fingerprint.h).
[[nodiscard]] Result<NetFile> read_net(const std::string& path);
// Returns the note `key` of the file's card, or "" if there is none.
[[nodiscard]] std::string note_of(const NetFile& file, const std::string& key);
// Returns the options with which `family` makes the file's net. An older file does not name options
// that were added later. Such an option that is named like an input is 1 if the net reads that
// input, else 0.
[[nodiscard]] std::string options_of(const NetFile& file, const cost::net::Family& family);
// Gives the parameters and constants of a net of the same family and options the values that the
// file has. `path` is the path of the file in messages.
[[nodiscard]] Status load_weights(const NetFile& file, const std::string& path,
                                  cost::net::Net& net);

}  // namespace hone
