// cost/inputs/model_inputs.h - what a neural cost model reads of a candidate: float arrays of fixed
// shapes, padded with zeros and masked. Counts are log2(1 + x); nothing is normalised further.
#pragma once

#include <bitset>
#include <map>

#include "hone/analysis/nest.h"
#include "hone/cost/cost_model.h"

namespace hone::cost {

enum class Input : uint8_t {
  kStatements,  // [statement, feature] analysis::features_of() the heaviest, in program order
  kTags,        // [statement, tag] which operator it belongs to, one-hot (operator_tag.h)
  kMask,        // [statement] 1: there is one; at least the first
  kSteps,       // [token, number] the schedule's steps (step_inputs.cc)
  kStepsMask,   // [token] 1: there is one; at least the first
  kTask,        // [number] the task, whatever the schedule (task_inputs.cc)
  kMeasure,     // [number] candidate_features() of kMeasure
  kDevice,      // [number] the machine and the number of threads (device_inputs.cc)
  kHead,        // [head] how much each head of a net counts that has one for each device
  kDecisions,   // [number] what was decided: what candidate_features() of kCombined has beyond that
  kAnalytic,    // [1] the natural logarithm of the analytic model's time in seconds
};
inline constexpr size_t kNumInputs = 11;
inline constexpr int64_t kMaxStatements = 12, kMaxStepTokens = 48;
inline constexpr int64_t kMaxHeads = 8;
// What a head is for: "KEY/THREADS".
[[nodiscard]] std::string head_name(const std::string& device_key, int threads);

// Changes when a number changes its meaning or place: a net that was trained on others is refused.
inline constexpr int kInputVersion = 1;

struct InputShape {
  std::string name;           // "statements", "tags", "mask", "steps", ...
  std::vector<int64_t> dims;  // of one candidate
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] std::vector<int64_t> of(int64_t candidates) const;  // of so many
};
[[nodiscard]] std::span<const InputShape> input_shapes();  // in the order of Input
[[nodiscard]] std::optional<Input> find_input(std::string_view name);
// What the numbers along the last dimension are: "ops.fma", "kind.split", "flops", ...
[[nodiscard]] const std::vector<std::string>& input_names(Input input);

using InputSet = std::bitset<kNumInputs>;  // by Input

// Writes candidates' inputs, one after the other, and remembers what many have in common. Not for
// several threads at a time.
class InputWriter {
 public:
  // `heads`: which head is whose (head_name), in order, at most kMaxHeads. A device that has none
  // gets the mean of all.
  explicit InputWriter(InputSet wanted, std::vector<std::string> heads = {});
  // `rows`: by Input, where the wanted ones go: size() numbers each, all of them written. An error
  // if a number is not finite.
  [[nodiscard]] Status write(const Query& query, std::span<float* const, kNumInputs> rows);
  // The analytic model's time of the candidate that was written last.
  [[nodiscard]] double analytic_seconds() const { return analytic_seconds_; }

 private:
  [[nodiscard]] std::vector<float> head_row(const Query& query) const;

  InputSet wanted_;
  std::vector<std::string> heads_;
  double analytic_seconds_ = 0;
  std::map<uint64_t, std::vector<float>> tasks_;  // by task key
  // By target, threads.
  std::map<std::pair<const void*, int>, std::vector<float>> devices_, head_rows_;
};

// The input "task" alone.
[[nodiscard]] std::vector<float> task_features(const compute::Dag& dag);

// All inputs of one candidate.
struct ModelInputs {
  std::vector<float> values[kNumInputs];  // by Input
};
[[nodiscard]] Result<ModelInputs> model_inputs(const Query& query);

}  // namespace hone::cost
