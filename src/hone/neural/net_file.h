// net_file.h - a trained net as a file: an ONNX model of one open extent, the batch, that carries
// what the net is and what it may be asked.
#pragma once

#include <map>
#include <string>

#include "hone/base/status.h"
#include "hone/cost/inputs/model_inputs.h"
#include "hone/cost/net/family.h"

namespace hone {

// What is known of a net beside its nodes.
struct NetCard {
  // How much longer the logarithm of a schedule's time is for a score less by one
  // (cost::log_seconds_per_score).
  double log_seconds_per_score = 1;
  // Minus the score is the logarithm of the schedule's time / the analytic model's time of the
  // task's default schedule. Otherwise scores say nothing of how long a task takes.
  bool tells_time = false;
  // Whose each head is (cost::head_name), of a net that has one for each device.
  std::vector<std::string> heads;
  // For people: records, tasks, devices, loss, seed, ... by name.
  std::map<std::string, std::string> notes;
};

// kInside: as constants; kInputs: whoever runs the net hands them in, by their names.
enum class NetWeights : uint8_t { kInside, kInputs };
// The file's bytes. Every parameter must have its values.
[[nodiscard]] std::string format_net(const cost::net::Net& net, const NetCard& card,
                                     NetWeights weights = NetWeights::kInside);
[[nodiscard]] Status write_net(const std::string& path, const cost::net::Net& net,
                               const NetCard& card);

struct NetFile {
  std::string family;
  std::vector<cost::Input> inputs;  // that it reads
  NetCard card;
  std::string bytes;
};
// Refuses what is no net of this version of inputs, features and space, or what reads other numbers
// than this program computes (cost/fingerprint.h), with what was found and what is expected.
[[nodiscard]] Result<NetFile> read_net(const std::string& path);
// What its card says of that; "" if nothing.
[[nodiscard]] std::string note_of(const NetFile& file, const std::string& key);
// The options that make its net. An older file does not name those that came later: it has an
// option that is called like an input if it reads that.
[[nodiscard]] std::string options_of(const NetFile& file, const cost::net::Family& family);
// Gives the parameters and constants of a net of the same family and options the values that the
// file has. `path` is the file's, for messages.
[[nodiscard]] Status load_weights(const NetFile& file, const std::string& path,
                                  cost::net::Net& net);

}  // namespace hone
