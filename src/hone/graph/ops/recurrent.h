// graph/ops/recurrent.h - the parts that RNN, GRU and LSTM share: operands by direction, the
// input's part of all gates as one product over all time steps, the loop over the steps, and the
// results.
//
// A step takes its input by a Gather with a constant index, so the tasks of all steps are equal.
// Where activations are the usual ones, all that follows a step's product are one or two kernels
// (hone.LstmCell, hone.LstmState, hone.GruState); other ones are operators of their own.
//
// Steps behind the last one of a row change none of its results: forward, a state of the last step
// is chosen from those of all steps (hone.LastStep), and reversed, each step that a row does not
// have hands on the state that the row begins with. Where shapes vary, a reversed direction runs
// forward over the data with the steps of each row in the opposite order (hone.ReverseSteps), and
// its results are put back in order. So no direction needs the steps that a run does not have.
#pragma once

#include <algorithm>
#include <functional>
#include <map>

#include "hone/graph/expand.h"

namespace hone::graph {

// In a model whose shapes vary, RNN, GRU and LSTM become nodes with the same operands and one more:
// the number of steps of a run, i64[1] (graph/widen_nodes.h).
inline constexpr size_t kStepsOfRun = 12;

// An activation function with its parameters.
struct Activation {
  std::string name;
  float alpha = 0, beta = 0;
};

class Recurrent {
 public:
  // The parameter `gates` is the number of gates of a step; `activations` are the default functions
  // of one direction; `states` is the number of values that a step passes to the next one, from
  // operand 5 on.
  Recurrent(ExpandContext& c, int64_t gates, std::vector<std::string> activations, size_t states)
      : c_(c), gates_(gates), defaults_(std::move(activations)), states_(states) {}

  // Returns the new states for the input's part of the gates [batch, gates * hidden] and the old
  // states [batch, hidden] each. It is called for each step of each direction.
  using Step = std::function<std::vector<ValueId>(ValueId gates, const std::vector<ValueId>& old)>;
  // Prepares a direction and returns the function of its steps.
  using Direction = std::function<Step(int64_t direction)>;
  [[nodiscard]] Status run(const Direction& make);

  // For the directions: returns element `direction` of an operand that has one per direction;
  // kNoValue if the operand is missing.
  ValueId of_direction(size_t i, int64_t direction);
  // Returns the elements begin .. end, in units of the hidden size, along a dimension.
  ValueId part(ValueId x, int64_t axis, int64_t begin, int64_t end);
  // Returns R of the gates begin .. end, transposed: [hidden, gates * hidden].
  ValueId recurrence(int64_t direction, int64_t begin, int64_t end);
  // Returns the bias of the recurrence, which some gates of a GRU need separately from the input's.
  ValueId recurrent_bias(int64_t direction, int64_t begin, int64_t end);
  // Returns the k-th activation of a direction for a clipped argument.
  ValueId activate(int64_t direction, size_t k, ValueId x);
  // Returns whether a direction has the default activations, and clips nothing.
  [[nodiscard]] bool is_usual(int64_t direction) const;
  // Computes x W (operand 1) or h R (operand 2) of a direction, as [rows, gates * hidden].
  using Product = std::function<ValueId(ValueId x, size_t operand, int64_t direction)>;
  // Lets `product` multiply. W and R are then laid out as [directions, inputs, gates * hidden], of
  // any type, and the operands behind the peepholes are the caller's.
  void multiply_by(Product product) { product_ = std::move(product); }
  // Returns what multiplies the state by R of all gates.
  [[nodiscard]] std::function<ValueId(ValueId)> recurrent_product(int64_t direction);
  // Returns whether a state is the zeros that a net without initial states begins with, whose
  // products with R are zeros, too: those with an infinite weight would be none.
  [[nodiscard]] bool vanishes(ValueId state) const {
    return weights_are_finite_ && std::count(zeros_.begin(), zeros_.end(), state) > 0;
  }
  // Leaves the recurrent bias out of the input's part from this gate on.
  void keep_bias_apart(int64_t gate) { apart_ = gate; }
  [[nodiscard]] int64_t hidden() const { return hidden_; }

 private:
  Status read_attributes();
  Status read_activations(size_t directions);
  Status check_shapes();
  Status check_weights();
  ValueId input_part(ValueId x, int64_t direction);
  ValueId at_step(ValueId of_all, int64_t step);
  // Constants that all steps share: a list of one number, and the shape of what a step keeps.
  ValueId integer(int64_t number);
  ValueId shape_of_step();
  ValueId start(size_t state, int64_t direction);
  ValueId valid_steps();
  // The values that are kept of the steps of a direction.
  struct Steps {
    bool reversed = false;
    std::vector<ValueId> starts, states;  // before the first step, and behind the last one so far
    ValueId valid = kNoValue;
    // By state and step: [1, 1, batch, hidden]. The first one is the output of the step; others are
    // kept where they are needed.
    std::vector<std::vector<ValueId>> history;
    ValueId output = kNoValue;  // the outputs of all steps: [steps, 1, batch, hidden]
  };
  // Returns whether a state behind the last step of each row is chosen from those of all steps.
  [[nodiscard]] bool chooses_last(const Steps& steps, size_t state) const;
  void keep_step(Steps& steps, int64_t t, std::vector<ValueId> next);
  ValueId final_state(const Steps& steps, size_t state);
  [[nodiscard]] bool is_reversed(int64_t direction) const {
    return first_reversed_ || direction == 1;
  }
  // Returns whether the data of a direction is reversed in place of the order of its steps.
  [[nodiscard]] bool reverses_data(int64_t direction) const {
    return is_reversed(direction) && c_.has(kStepsOfRun);
  }
  std::vector<ValueId> with_lengths(ValueId x);
  ValueId in_order(ValueId x, int64_t direction);
  Status run_direction(int64_t direction, const Step& step, ValueId gates, ValueId valid);
  ValueId joined(const std::vector<ValueId>& parts, int64_t axis);
  ExpandContext& c_;
  int64_t gates_;
  std::vector<std::string> defaults_;
  size_t states_;
  int64_t hidden_ = 0, directions_ = 1, steps_ = 0, batch_ = 0, apart_ = 1 << 20;
  bool first_reversed_ = false, batch_first_ = false;
  float clip_ = 0;
  Product product_;                  // null: of the operands as ONNX lays them out
  bool weights_are_finite_ = false;  // it is known that those of the recurrence are
  std::map<int64_t, ValueId> integers_;
  std::vector<ValueId> step_numbers_;
  ValueId shape_of_step_ = kNoValue;
  std::vector<ValueId> zeros_;           // states that are zero
  std::vector<Activation> activations_;  // for all directions, in order
  // Results by direction: [steps, 1, batch, hidden], and of each state [1, batch, hidden].
  std::vector<ValueId> sequences_;
  std::vector<std::vector<ValueId>> finals_;
};

// Computes an LSTM, whatever its products are.
[[nodiscard]] Status expand_lstm(ExpandContext& c, Recurrent& r);
// The number of gates, activations and states of an LSTM.
[[nodiscard]] Recurrent make_lstm(ExpandContext& c);

}  // namespace hone::graph
