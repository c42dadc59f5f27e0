// model_check.h - does a finished library compute what the model as imported computes? It runs on
// random inputs beside a naive run of the graph: no pass, no layout, no fusion, strict accuracy.
//
// What differs by more than rounding usually makes is confirmed before it counts: the naive run is
// repeated with every result changed by as much as rounding may change it. How far the outputs move
// then is the model's own sensitivity. Where they move so much that nothing can be said of single
// elements (ties of a top-k, a suppression of boxes), sets are compared, or nothing.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "hone/commands/check/naive_values.h"
#include "hone/commands/check/random_inputs.h"
#include "hone/commands/check/rounding_noise.h"
#include "hone/session/summary.h"

namespace hone {

// Of a node, for naive runs in a check: beyond, plain loops take longer than making better code.
inline constexpr double kPlainFlops = 2e6;

// An output that is wrong.
struct WrongOutput {
  std::string name;
  size_t index = 0;  // of the graph's outputs
  size_t draw = 0;   // of kDraws: with which inputs
  double error = 0, allowed = 0;
};

class ModelCheck {
 public:
  struct Options {
    int threads = 1;
    uint64_t seed = 1;
    const std::atomic<bool>* interrupted = nullptr;
  };
  // `graph`: as imported.
  [[nodiscard]] static Result<std::unique_ptr<ModelCheck>> create(graph::Graph graph,
                                                                  const Options& options);
  ~ModelCheck();

  // Of what is new in a check with one set of inputs, on cores like this machine's; `kernel`: of
  // making one kernel; `weight_bytes`: of all weights.
  [[nodiscard]] double predicted_seconds(double kernel, int64_t weight_bytes) const;

  // Runs something with the inputs, giving the outputs.
  using Run = std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>;
  // On real_clock(); 0: none.
  struct Deadlines {
    double first = 0;   // of the first set of inputs: then the check ends with Code::kTimeout
    double others = 0;  // sets that would take longer are left out
  };
  // The first output that is wrong, or nullopt. Code::kUnsupported: no random inputs tell
  // anything. Says in the summary what was compared.
  [[nodiscard]] Result<std::optional<WrongOutput>> check(const Run& run, const Rounding& rounding,
                                                         const Deadlines& deadlines,
                                                         CheckSummary& summary);
  // Whether what this runs is as right as a library has to be: with the inputs of one draw only.
  [[nodiscard]] Result<bool> is_right(const Run& run, const Rounding& rounding, size_t draw);

  // Whether plain loops, another order of all sums, give what the naive run gave: else it is the
  // reference that is in doubt.
  [[nodiscard]] Result<bool> is_sure(size_t draw);

  [[nodiscard]] bool has_reference() const;  // of one set of inputs: comparing takes little then
  [[nodiscard]] const graph::Graph& graph() const;
  [[nodiscard]] const NaiveModel& naive() const;
  [[nodiscard]] const std::vector<Tensor>& inputs(size_t draw) const;

 private:
  struct State;
  explicit ModelCheck(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The outputs of a graph by a naive run; what data decides the shape of is cut to it.
[[nodiscard]] Result<std::vector<Tensor>> naive_outputs(const NaiveModel& model,
                                                        const graph::Graph& graph,
                                                        const std::vector<Tensor>& inputs,
                                                        const ChangeResult& change = {});

}  // namespace hone
