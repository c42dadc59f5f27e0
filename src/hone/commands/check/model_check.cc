#include "hone/commands/check/model_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "hone/base/clock.h"
#include "hone/base/hash.h"
#include "hone/base/log.h"
#include "hone/commands/check/output_difference.h"
#include "hone/commands/check/sized_values.h"
#include "hone/graph/op.h"
#include "hone/graph/size_values.h"

namespace hone {
namespace {

using graph::kNoValue;
using graph::ValueId;

constexpr double kInterpreted = 2e3;   // operations of a node: less time than machine code takes
constexpr int kNoiseRuns = 4;          // with changed results, to confirm a difference
constexpr double kNoiseFactor = 2.5;   // what they differ by is what rounding may do, times this
constexpr double kMostAllowed = 0.1;   // of an output's largest magnitude; more says nothing ...
constexpr double kMostWidened = 50;    // ... nor do more tolerances: elements change places
constexpr double kShareFactor = 4;     // likewise of the elements that rounding changes
constexpr double kMostShare = 0.5;     // changed by rounding: more says nothing
constexpr double kPackRate = 1e9;      // bytes of weights brought into a kernel's order in a second
constexpr double kNodeSeconds = 2e-4;  // of emitting and calling a node
constexpr double kFlopsPerSecond = 8e9;  // of one thread with default schedules, on a slow machine

template <typename Test>
bool any_element(const Tensor& tensor, const Test& test) {
  if (tensor.dtype() == DType::kF32) {
    const auto values = tensor.as<float>();
    return std::any_of(values.begin(), values.end(), test);
  }
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (test(tensor.at(i))) return true;
  }
  return false;
}
bool all_finite(const Tensor& tensor) {
  return !any_element(tensor, [](double x) { return !std::isfinite(x); });
}
bool has_nan(const Tensor& tensor) {
  return any_element(tensor, [](double x) { return std::isnan(x); });
}
bool any_finite(const Tensor& tensor) {
  return tensor.size() == 0 || any_element(tensor, [](double x) { return std::isfinite(x); });
}

// Why there is nothing to compare with: no fault of the library.
Status no_reference(const Status& why) {
  if (why.code() != Code::kInternal) return why;
  return error(Code::kUnsupported, "the model as imported cannot be run: {}", why.message());
}

// What the outputs must be with one set of inputs.
struct Reference {
  std::vector<Tensor> inputs, outputs;
  bool mixes = false;  // products of what is not finite: each algorithm spreads it differently
  bool empty = false;  // an output has no finite element
  Rounding rounding;   // of `noisy`
  std::vector<std::vector<Tensor>> noisy;
};

}  // namespace

Result<std::vector<Tensor>> naive_outputs(const NaiveModel& model, const graph::Graph& graph,
                                          const std::vector<Tensor>& inputs,
                                          const ChangeResult& change) {
  std::vector<Tensor> outputs(graph.outputs.size());
  const auto keep = [&](ValueId id, const NaiveValue& value) {
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      if (graph.outputs[i] == id) outputs[i] = value.tensor;
    }
  };
  HONE_RETURN_IF_ERROR(naive_values(model, graph, inputs, keep, change));
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = output_of_run(graph, i, outputs[i], inputs);
  return outputs;
}

namespace {

// A set of inputs is drawn by a kind of numbers and at a choice of sizes.
struct Drawn {
  Draw draw = Draw::kNormal;
  enum class Sizes : uint8_t { kLargest, kSmallest, kRandom } sizes = Sizes::kLargest;
};

// A model whose inputs vary is also run at sizes that are not the largest.
std::vector<Drawn> draws_of(const graph::Graph& graph) {
  std::vector<Drawn> draws;
  for (const Draw draw : kDraws) draws.push_back({draw});
  if (!graph.varying.any()) return draws;
  draws.insert(draws.begin() + 1,
               {{Draw::kNormal, Drawn::Sizes::kSmallest}, {Draw::kNormal, Drawn::Sizes::kRandom}});
  return draws;
}

std::vector<Tensor> draw_all(const graph::Graph& graph, const std::vector<IntegerRange>& ranges,
                             const Drawn& drawn, uint64_t seed) {
  std::vector<Tensor> inputs = draw_inputs(graph, ranges, drawn.draw, seed);
  if (!graph.varying.any()) return inputs;
  const graph::Varying& varying = graph.varying;
  inputs.back() = sizes_tensor(
      varying, drawn.sizes == Drawn::Sizes::kLargest    ? largest_symbols(varying)
               : drawn.sizes == Drawn::Sizes::kSmallest ? smallest_symbols(varying)
                                                        : random_symbols(varying, seed));
  return inputs;
}

}  // namespace

struct ModelCheck::State {
  graph::Graph graph;
  Options options;
  std::vector<IntegerRange> ranges;
  std::vector<Drawn> draws;
  std::optional<NaiveModel> naive;
  bool compiled = false;
  std::map<size_t, Reference> references;  // by draw

  Result<Reference*> reference(size_t draw) {
    if (const auto known = references.find(draw); known != references.end()) return &known->second;
    if (!compiled) HONE_RETURN_IF_ERROR(naive->compile());
    compiled = true;
    Reference made;
    made.inputs = draw_all(graph, ranges, draws[draw], hash_combine(options.seed, draw));
    made.outputs.resize(graph.outputs.size());
    std::set<ValueId> unbounded, with_nan;  // values of which an element is not finite, or NaN
    const auto look = [&](ValueId id, const NaiveValue& value) {
      for (size_t i = 0; i < graph.outputs.size(); ++i) {
        if (graph.outputs[i] == id) made.outputs[i] = value.tensor;
      }
      if (!is_float(value.tensor.dtype()) || all_finite(value.tensor)) return;
      unbounded.insert(id);
      if (has_nan(value.tensor)) with_nan.insert(id);
    };
    HONE_RETURN_IF_ERROR(naive_values(*naive, graph, made.inputs, look));
    for (size_t i = 0; i < made.outputs.size(); ++i)
      made.outputs[i] = output_of_run(graph, i, made.outputs[i], made.inputs);
    for (const graph::Node& node : graph.nodes) {
      // The maximum of many elements depends on where among them a NaN is read.
      const bool chooses =
          node.op->kind == graph::Kind::kReduction || node.op->kind == graph::Kind::kOpaque;
      const bool adds = node.op->kind == graph::Kind::kContraction;
      for (const ValueId in : node.inputs)
        made.mixes |= (adds && unbounded.contains(in)) || (chooses && with_nan.contains(in));
    }
    made.empty = !std::all_of(made.outputs.begin(), made.outputs.end(), any_finite);
    return &references.emplace(draw, std::move(made)).first->second;
  }

  // Outputs of runs with what rounding may do.
  Status add_noise(Reference& reference, const Rounding& rounding) {
    if (rounding.products != reference.rounding.products ||
        rounding.others != reference.rounding.others)
      reference.noisy.clear();
    reference.rounding = rounding;
    while (std::ssize(reference.noisy) < kNoiseRuns) {
      HONE_ASSIGN_OR_RETURN(
          std::vector<Tensor> outputs,
          naive_outputs(
              *naive, graph, reference.inputs,
              rounding_noise(rounding, hash_combine(options.seed, reference.noisy.size()))));
      reference.noisy.push_back(std::move(outputs));
    }
    return ok_status();
  }

  struct Judged {
    bool right = true;
    double error = 0, allowed = 0;
    std::string left_out;  // why the elements were not compared one by one
  };

  // One output that is not within the tolerance.
  static Judged judge(const Tensor& found, size_t output, const Reference& reference,
                      const Difference& seen, double tolerance) {
    const Tensor& expected = reference.outputs[output];
    Difference noise;
    double set_noise = 0;
    for (const std::vector<Tensor>& outputs : reference.noisy) {
      const Difference moved = difference(outputs[output], expected, tolerance);
      noise.error = std::max(noise.error, moved.error);
      noise.share = std::max(noise.share, moved.share);
    }
    log_info("differs by {:.3g} in {:.3g} % of its elements; rounding moves {:.3g} % by {:.3g}",
             seen.error, 100 * seen.share, 100 * noise.share, noise.error);
    Judged judged{.error = seen.error, .allowed = tolerance};
    if (is_float(expected.dtype()) && std::isfinite(noise.error))
      judged.allowed =
          std::clamp(kNoiseFactor * noise.error, tolerance,
                     std::max(tolerance, std::min(kMostWidened * tolerance, kMostAllowed)));
    if (is_float(expected.dtype()) && seen.error <= judged.allowed) return judged;
    judged.right = false;
    if (noise.share == 0) return judged;
    const auto within = [&](double share, double by_noise, int64_t elements) {
      const double slack = 2 / static_cast<double>(std::max<int64_t>(elements, 1));
      return by_noise <= kMostShare &&
             share <= std::min(kShareFactor * by_noise + slack, 0.5 + kMostShare / 2);
    };
    judged.right = true;
    if (seen.same_shape && within(seen.share, noise.share, seen.elements)) {
      judged.left_out = fmt::format("{:.2g} % of its elements differ, rounding changes {:.2g} %",
                                    100 * seen.share, 100 * noise.share);
      return judged;
    }
    for (const std::vector<Tensor>& outputs : reference.noisy)
      set_noise = std::max(set_noise, set_difference(outputs[output], expected, tolerance));
    const double share = set_difference(found, expected, tolerance);
    log_info("as a set it differs in {:.3g} %, by rounding in {:.3g} %", 100 * share,
             100 * set_noise);
    if (within(share, set_noise, seen.elements)) {
      judged.left_out = "compared as a set, as rounding decides its order";
      return judged;
    }
    judged.left_out = "not compared, as rounding decides what it is";
    judged.right = noise.share > kMostShare && set_noise > kMostShare;
    return judged;
  }

  Result<std::optional<WrongOutput>> compare(const std::vector<Tensor>& found, size_t draw,
                                             Reference& reference, const Rounding& rounding,
                                             CheckSummary& summary) {
    for (size_t i = 0; i < reference.outputs.size(); ++i) {
      const Tensor& expected = reference.outputs[i];
      const Difference seen = difference(found[i], expected, rounding.tolerance);
      Judged judged{.error = seen.error, .allowed = rounding.tolerance};
      if (seen.share > 0) {
        log_info("output '{}', inputs {}, tolerance {:.3g}", graph.output_names[i], draw,
                 rounding.tolerance);
        HONE_RETURN_IF_ERROR(add_noise(reference, rounding));
        judged = judge(found[i], i, reference, seen, rounding.tolerance);
      }
      if (!judged.right)
        return std::optional(
            WrongOutput{graph.output_names[i], i, draw, judged.error, judged.allowed});
      if (judged.left_out.empty()) {
        summary.worst_error = std::max(summary.worst_error, judged.error);
        summary.tolerance = std::max(summary.tolerance, judged.allowed);
        continue;
      }
      const std::string text = graph.output_names[i] + ": " + judged.left_out;
      const bool told = std::any_of(
          summary.left_out.begin(), summary.left_out.end(),
          [&](const std::string& line) { return line.starts_with(graph.output_names[i] + ": "); });
      if (!told) summary.left_out.push_back(text);
    }
    return std::optional<WrongOutput>();
  }
};

ModelCheck::ModelCheck(std::unique_ptr<State> state) : state_(std::move(state)) {}
ModelCheck::~ModelCheck() = default;

Result<std::unique_ptr<ModelCheck>> ModelCheck::create(graph::Graph graph, const Options& options) {
  auto state = std::make_unique<State>();
  state->graph = std::move(graph);
  state->options = options;
  state->ranges = integer_ranges(state->graph);
  state->draws = draws_of(state->graph);
  const NaiveOptions naive = {.threads = options.threads,
                              .max_plain_flops = kPlainFlops,
                              .max_interpreted = kInterpreted,
                              .interrupted = options.interrupted};
  HONE_ASSIGN_OR_RETURN(state->naive, NaiveModel::create(state->graph, naive));
  return std::unique_ptr<ModelCheck>(new ModelCheck(std::move(state)));
}

double ModelCheck::predicted_seconds(double kernel, int64_t data_bytes) const {
  const int threads = state_->options.threads;
  const double code = state_->compiled ? 0 : kernel * state_->naive->kernels() / threads;
  if (!state_->references.empty()) return code;
  return code + kNodeSeconds * static_cast<double>(state_->graph.nodes.size()) +
         state_->naive->flops() / (kFlopsPerSecond * threads) +
         static_cast<double>(data_bytes) / kPackRate;
}

Result<std::optional<WrongOutput>> ModelCheck::check(const Run& run, const Rounding& rounding,
                                                     const Deadlines& deadlines,
                                                     CheckSummary& summary) {
  Clock& clock = real_clock();
  summary.left_out.clear();
  summary.worst_error = 0;
  summary.tolerance = rounding.tolerance;
  summary.inputs = 0;
  double longest = 0;
  for (size_t draw = 0; draw < state_->draws.size(); ++draw) {
    const double start = clock.now_seconds();
    const bool known = state_->references.contains(draw);
    const bool late = deadlines.others > 0 && start + longest > deadlines.others;
    if (!known && late && summary.inputs > 0) break;
    state_->naive->set_deadline(summary.inputs == 0 ? deadlines.first : 0);
    const Result<Reference*> reference = state_->reference(draw);
    state_->naive->set_deadline(0);
    if (!reference.ok()) return no_reference(reference.status());
    // Inputs without numbers for a result count only where there are no better ones.
    const bool last = draw + 1 == state_->draws.size() && summary.inputs == 0;
    if (!(*reference)->mixes && (!(*reference)->empty || last)) {
      HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> found, run((*reference)->inputs));
      HONE_ASSIGN_OR_RETURN(const std::optional<WrongOutput> wrong,
                            state_->compare(found, draw, **reference, rounding, summary));
      ++summary.inputs;
      if (wrong) return wrong;
    }
    longest = std::max(longest, clock.now_seconds() - start);
  }
  if (summary.inputs == 0)
    return error(Code::kUnsupported, "no random inputs give results that are numbers");
  return std::optional<WrongOutput>();
}

Result<bool> ModelCheck::is_right(const Run& run, const Rounding& rounding, size_t draw) {
  HONE_ASSIGN_OR_RETURN(Reference * reference, state_->reference(draw));
  HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> found, run(reference->inputs));
  CheckSummary ignored;
  HONE_ASSIGN_OR_RETURN(const std::optional<WrongOutput> wrong,
                        state_->compare(found, draw, *reference, rounding, ignored));
  return !wrong.has_value();
}

Result<bool> ModelCheck::is_sure(size_t draw) {
  const auto run = [&](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    const Options& options = state_->options;
    HONE_ASSIGN_OR_RETURN(NaiveModel plain,
                          NaiveModel::create(state_->graph, {.threads = options.threads,
                                                             .max_plain_flops = HUGE_VAL,
                                                             .interrupted = options.interrupted}));
    HONE_RETURN_IF_ERROR(plain.compile());
    return naive_outputs(plain, state_->graph, {inputs.begin(), inputs.end()});
  };
  return is_right(run, rounding_of(state_->graph, {}), draw);
}

bool ModelCheck::has_reference() const { return !state_->references.empty(); }

int64_t ModelCheck::input_bytes() const {
  int64_t bytes = 0;
  for (const ValueId id : state_->graph.inputs) {
    const graph::Value& input = state_->graph.value(id);
    bytes += num_elements(input.shape) * dtype_bytes(input.dtype);
  }
  return bytes * std::ssize(state_->draws);
}

const graph::Graph& ModelCheck::graph() const { return state_->graph; }

const NaiveModel& ModelCheck::naive() const { return *state_->naive; }

const std::vector<Tensor>& ModelCheck::inputs(size_t draw) const {
  return state_->references.at(draw).inputs;
}

}  // namespace hone
