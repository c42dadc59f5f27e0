// model_check.h - checks whether a finished library computes what the model as imported computes.
// The library runs on random inputs beside a naive run of the graph: without passes, layouts or
// fusion, and with strict accuracy.
//
// A difference that is larger than rounding usually causes must be confirmed: the naive run is
// repeated with every result changed by as much as rounding may change it. The differences of its
// outputs then are the model's own sensitivity. If they are so large that single elements tell
// nothing (equal values in a top-k, a suppression of boxes), outputs are compared as sets, or not
// at all.
//
// If the shapes of the model's inputs vary, some of the runs are at other sizes than the largest.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "hone/commands/check/naive_values.h"
#include "hone/commands/check/random_inputs.h"
#include "hone/commands/check/rounding_noise.h"
#include "hone/summary.h"

namespace hone {

// NaiveOptions::max_plain_flops for naive runs in a check: for a node with more FLOPs, plain loops
// take longer than compiling better code.
inline constexpr double kPlainFlops = 2e6;

// An output that is wrong.
struct WrongOutput {
  std::string name;
  size_t index = 0;  // index into the outputs of the graph
  size_t draw = 0;   // number of the set of inputs with which it is wrong
  double error = 0, allowed = 0;
};

class ModelCheck {
 public:
  struct Options {
    int threads = 1;
    uint64_t seed = 1;
    const std::atomic<bool>* interrupted = nullptr;
  };
  // Creates a check of a graph as imported.
  [[nodiscard]] static Result<std::unique_ptr<ModelCheck>> create(graph::Graph graph,
                                                                  const Options& options);
  ~ModelCheck();

  // Predicts the seconds that a check with one set of inputs takes on cores like this machine's,
  // without the work that was done before. `kernel` is the seconds for compiling one kernel,
  // `data_bytes` the size of all weights and sets of inputs.
  [[nodiscard]] double predicted_seconds(double kernel, int64_t data_bytes) const;

  // Runs the library, or something in its place, on the inputs of a naive run of the graph
  // (sized_values.h) and returns the outputs.
  using Run = std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>;
  // Times on real_clock(); 0 means none.
  struct Deadlines {
    // The latest end of the naive run of the first set of inputs. If it takes longer, the check
    // ends with Code::kTimeout.
    double first = 0;
    double others = 0;  // further sets that are expected to take longer are left out
  };
  // Returns the first output that is wrong, or nothing. Code::kUnsupported means that no random
  // inputs tell anything. The summary receives what was compared.
  [[nodiscard]] Result<std::optional<WrongOutput>> check(const Run& run, const Rounding& rounding,
                                                         const Deadlines& deadlines,
                                                         CheckSummary& summary);
  // Returns whether the outputs of `run` are as right as those of a library have to be, with the
  // inputs of one draw only.
  [[nodiscard]] Result<bool> is_right(const Run& run, const Rounding& rounding, size_t draw);

  // Returns whether plain loops, which add in another order, compute what the naive run computed.
  // If they do not, the reference itself is in doubt.
  [[nodiscard]] Result<bool> is_sure(size_t draw);

  // Returns whether the expected outputs for a set of inputs are known; comparing takes little time
  // then.
  [[nodiscard]] bool has_reference() const;
  // Returns the bytes of all sets of inputs that a check draws, and keeps.
  [[nodiscard]] int64_t input_bytes() const;
  [[nodiscard]] const graph::Graph& graph() const;
  [[nodiscard]] const NaiveModel& naive() const;
  [[nodiscard]] const std::vector<Tensor>& inputs(size_t draw) const;

 private:
  struct State;
  explicit ModelCheck(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Returns the outputs of a graph by a naive run. If the shape of an output depends on data or on
// the sizes of the run, it is cut to that shape.
[[nodiscard]] Result<std::vector<Tensor>> naive_outputs(const NaiveModel& model,
                                                        const graph::Graph& graph,
                                                        const std::vector<Tensor>& inputs,
                                                        const ChangeResult& change = {});

}  // namespace hone
