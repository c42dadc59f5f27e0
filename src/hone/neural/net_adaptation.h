// net_adaptation.h - how a net learns from what is measured while tuning (--adapt). A model of
// neural_model.cc has one of these or none.
//
//   head      the last linear layer is fitted (cost/net/head_fit.h); needs no libtorch
//   full      the whole net is trained on (cost/torch)
//   momentum  Pruner's MoA (ASPLOS 2025): each time the net starts from a twin, which then moves a
//             little towards the trained one
#pragma once

#include <memory>

#include "hone/neural/net_file.h"

namespace hone {

// A measured schedule as the net has read it; the arrays are looked at during the call only.
struct NetObservation {
  uint64_t task = 0;  // within which times are compared
  double seconds = 0;
  double default_seconds = 0;                  // analytic, of the default schedule; 0: not known
  double score = 0;                            // by the weights of the file
  std::span<const float> head;                 // the output "head"
  std::vector<std::span<const float>> inputs;  // as NetFile::inputs
};

class NetAdaptation {
 public:
  virtual ~NetAdaptation() = default;
  // What is to be compiled instead of the file.
  [[nodiscard]] virtual const NetFile& compiled() const = 0;
  // What that reads as inputs: the same vectors as long as this lives.
  [[nodiscard]] virtual std::span<const cost::net::Parameter> weights() const { return {}; }
  virtual void add(const NetObservation& observation) = 0;
  // Learns if enough was added since the last time; whether predictions have changed.
  [[nodiscard]] virtual Result<bool> learn() = 0;
  // What to add to the net's score.
  [[nodiscard]] virtual double change(std::span<const float> /*head*/) const { return 0; }
};

[[nodiscard]] std::vector<std::string> adaptation_names();  // "none" first
// An error if the name is unknown, or needs what this build is without. `torch`: as
// cost::net::NetTraining::library.
[[nodiscard]] Status check_adaptation(const std::string& adapt, const std::string& torch = "");
// Null for "none". `name`: of the file, for messages.
[[nodiscard]] Result<std::unique_ptr<NetAdaptation>> make_adaptation(const std::string& adapt,
                                                                     const NetFile& file,
                                                                     const std::string& name,
                                                                     const std::string& torch = "");

}  // namespace hone
