// net_worker.h - a compiled net with the arrays of one batch, for one thread at a time (internal to
// neural_model.cc).
#pragma once

#include <optional>
#include <span>

#include "hone/cost/net/net.h"
#include "hone/model.h"
#include "hone/neural/compiled_net.h"
#include "hone/trial/bounds.h"

namespace hone {

class NetWorker {
 public:
  struct Row {
    double score = 0, analytic_seconds = 0;
    std::optional<trial::BoundScores> bounds = {};  // if the net has them as outputs
  };

  // Opens a compiled net. `weights` are the parameters that the net reads as inputs; each run reads
  // their current values, so they must outlive the worker. `heads` are those of NetCard.
  [[nodiscard]] static Result<std::unique_ptr<NetWorker>> open(
      const std::string& library, std::span<const cost::net::Parameter> weights,
      const std::vector<std::string>& heads);

  // Scores the queries, of which there may be at most kNetBatch.
  [[nodiscard]] Result<std::vector<Row>> run(std::span<const cost::Query> queries);
  // Return the output "head" of a query of the last run, which is empty if the net has no such
  // output, and the values of one of the inputs that the net read.
  [[nodiscard]] std::span<const float> head(size_t query) const;
  [[nodiscard]] std::span<const float> input(cost::Input input, size_t query) const;

 private:
  explicit NetWorker(Model model) : model_(std::move(model)) {}
  [[nodiscard]] Status bind(std::span<const cost::net::Parameter> weights,
                            const std::vector<std::string>& heads);
  [[nodiscard]] Status bind_input(const ModelTensor& input,
                                  std::span<const cost::net::Parameter> weights);

  Model model_;
  cost::InputSet wanted_;
  std::optional<cost::InputWriter> writer_;
  std::vector<float> values_[cost::kNumInputs];
  std::vector<const void*> inputs_;
  std::vector<std::vector<float>> others_;
  std::span<const float> scores_, heads_, memory_bound_, core_bound_;  // empty: no such output
  std::vector<void*> outputs_;
};

}  // namespace hone
