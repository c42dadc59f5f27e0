// net_adaptation.h - how a net learns from what is measured while tuning (--adapt). A model of
// neural_model.cc has one of these or none.
//
//   head      the last linear layer is fitted (cost/net/head_fit.h); needs no libtorch
//   full      the whole net is trained on (learn/torch)
//   momentum  Pruner's MoA (ASPLOS 2025): each time the net starts from a twin, which then moves a
//             little towards the trained one
//   scratch   the whole net from random weights: of the file only the family, its options and the
//             scale of its inputs are used
#pragma once

#include <memory>

#include "hone/neural/net_file.h"

namespace hone {

// A measured schedule as the net has read it. NetAdaptation::add() reads the arrays only during the
// call.
struct NetObservation {
  uint64_t task = 0;  // times are compared only within a task
  double seconds = 0;
  double default_seconds = 0;   // the analytic model's time of the default schedule; 0: unknown
  double score = 0;             // the net's score with the weights of the file
  std::span<const float> head;  // the net's output "head"
  // Values of each input, in the order of NetFile::inputs.
  std::vector<std::span<const float>> inputs;
};

class NetAdaptation {
 public:
  virtual ~NetAdaptation() = default;
  // Returns the net that must be compiled instead of the file.
  [[nodiscard]] virtual const NetFile& compiled() const = 0;
  // Returns the same with the output "head" (cost/net/head.h); an error if there can be none.
  [[nodiscard]] virtual Result<NetFile> compiled_with_head() const = 0;
  // Returns the parameters that the compiled net reads as inputs. Their values stay in the same
  // vectors as long as this object lives.
  [[nodiscard]] virtual std::span<const cost::net::Parameter> weights() const { return {}; }
  virtual void add(const NetObservation& observation) = 0;
  // Learns if enough observations were added since the last time. Returns whether predictions have
  // changed.
  [[nodiscard]] virtual Result<bool> learn() = 0;
  // Returns the number to add to the net's score.
  [[nodiscard]] virtual double change(std::span<const float> /*head*/) const { return 0; }
};

[[nodiscard]] std::vector<std::string> adaptation_names();  // "none" first
// Returns an error if the name is unknown, or if the adaptation needs libtorch and it cannot be
// loaded. `torch` is that of cost::net::NetTraining::library.
[[nodiscard]] Status check_adaptation(const std::string& adapt, const std::string& torch = "");
// Makes an adaptation; null for "none". `name` is the name of the file in messages.
[[nodiscard]] Result<std::unique_ptr<NetAdaptation>> make_adaptation(const std::string& adapt,
                                                                     const NetFile& file,
                                                                     const std::string& name,
                                                                     const std::string& torch = "");

}  // namespace hone
