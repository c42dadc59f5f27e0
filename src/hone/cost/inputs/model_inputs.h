// cost/inputs/model_inputs.h - the inputs of a neural cost model for a candidate: float arrays of
// fixed shapes, padded with zeros and masked. Counts are log2(1 + x); there is no other
// normalisation.
#pragma once

#include <bitset>
#include <map>

#include "hone/analysis/nest.h"
#include "hone/cost/cost_model.h"

namespace hone::cost {

enum class Input : uint8_t {
  // [statement, feature]: analysis::features_of() the heaviest statements, in program order.
  kStatements,
  kTags,   // [statement, tag]: the kind of operator that it belongs to, one-hot (operator_tag.h)
  kMask,   // [statement]: 1 if there is one; at least the first
  kSteps,  // [token, number]: steps of the schedule (step_inputs.cc)
  kStepsMask,  // [token]: 1 if there is one; at least the first
  kTask,       // [number]: the task, whatever the schedule (task_inputs.cc)
  kMeasure,    // [number]: candidate_features() of kMeasure
  kDevice,     // [number]: the machine and the number of threads (device_inputs.cc)
  kHead,       // [head]: the weight of each head of a net that has one per device
  // [number]: the decisions, which are what candidate_features() of kCombined has beyond kMeasure.
  kDecisions,
  kAnalytic,  // [1]: natural logarithm of the analytic model's time in seconds
  // The loops as a graph (program_graph.h), as it is: [node, feature], [node, node] and [node].
  kGraphNodes,
  kGraphEdges,
  kGraphMask,
  // The graph in a template for all tasks: [place, feature], [place]. A larger one is an error.
  kTemplateNodes,
  kTemplateMask,
};
inline constexpr size_t kNumInputs = 16;
inline constexpr int64_t kMaxStatements = 12, kMaxStepTokens = 48;
inline constexpr int64_t kMaxHeads = 8;
// Returns the name of the device that a head is for: "KEY/THREADS".
[[nodiscard]] std::string head_name(const std::string& device_key, int threads);

// This version changes if a number changes its meaning or place. A net that was trained with
// another version is refused.
inline constexpr int kInputVersion = 2;

struct InputShape {
  std::string name;           // such as "statements", "tags", "mask", "steps"
  std::vector<int64_t> dims;  // shape for one candidate
  [[nodiscard]] int64_t size() const;
  // Shape for this many candidates.
  [[nodiscard]] std::vector<int64_t> of(int64_t candidates) const;
};
[[nodiscard]] std::span<const InputShape> input_shapes();  // in the order of Input
[[nodiscard]] std::optional<Input> find_input(std::string_view name);
// Returns the names of the numbers along the last dimension: "ops.fma", "kind.split", "flops", ...
[[nodiscard]] const std::vector<std::string>& input_names(Input input);

using InputSet = std::bitset<kNumInputs>;  // indexed by Input

// Writes the inputs of candidates, one after the other, and caches what many have in common. It
// must not be used by several threads at the same time.
class InputWriter {
 public:
  // The parameter `heads` has the head_name of each head, in order, at most kMaxHeads. For a device
  // without a head all heads have the same weight.
  explicit InputWriter(InputSet wanted, std::vector<std::string> heads = {});
  // Writes the wanted inputs of a candidate. `rows` has, by Input, the place of each one, whose
  // size() numbers are all written. It is an error if a number is not finite, or, with
  // Code::kUnsupported, if the template of graphs is wanted and too small.
  [[nodiscard]] Status write(const Query& query, std::span<float* const, kNumInputs> rows);
  // Returns the analytic model's time of the candidate that was written last.
  [[nodiscard]] double analytic_seconds() const { return analytic_seconds_; }

 private:
  [[nodiscard]] std::vector<float> head_row(const Query& query) const;

  InputSet wanted_;
  std::vector<std::string> heads_;
  double analytic_seconds_ = 0;
  std::map<uint64_t, std::vector<float>> tasks_;  // cached by task key
  // Cached by target and number of threads.
  std::map<std::pair<const void*, int>, std::vector<float>> devices_, head_rows_;
};

// Returns the input "task" alone.
[[nodiscard]] std::vector<float> task_features(const compute::Dag& dag);

// Inputs of one candidate.
struct ModelInputs {
  std::vector<float> values[kNumInputs];  // indexed by Input; empty for those that are not wanted
};
[[nodiscard]] Result<ModelInputs> model_inputs(const Query& query,
                                               InputSet wanted = InputSet().set());

}  // namespace hone::cost
