#include "check_import.h"

#include <cmath>
#include <optional>

#include "hone/graph/import_onnx.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/reference_testing.h"
#include "hone/graph/size_testing.h"
#include "hone/graph/size_values.h"

#include "fuzz.h"
#include "model_bytes.h"

namespace hone::fuzz {
namespace {

using graph::Graph, graph::ImportOptions;

ImportCounts counts;

void check_message(const Status& status) {
  const std::string& message = status.message();
  const bool clear = status.code() != Code::kInternal && !message.empty() &&
                     message.find('\n') == std::string::npos &&
                     message.find("fuzz.onnx") != std::string::npos;
  if (!clear) fmt::print(stderr, "error: {}\n", message);
  HONE_ASSERT(clear, "an error is one line that names the file");
}

// Returns whether the interpreter computes these tasks in a moment.
bool is_small(const graph::TaskList& tasks) {
  double bytes = 0;
  for (const graph::Buffer& buffer : tasks.buffers) bytes += static_cast<double>(buffer.bytes());
  for (const graph::TaskCall& call : tasks.calls) {
    double points = 0;
    for (const compute::Stage& stage : call.dag.stages) {
      double count = 1;
      for (const compute::Axis& axis : stage.axes) count *= static_cast<double>(axis.extent);
      for (const compute::Axis& axis : stage.reduce) count *= static_cast<double>(axis.extent);
      points += count;
    }
    bytes += points;
  }
  return bytes < 20'000 && total_flops(tasks) < 50'000;
}

std::vector<Tensor> random_inputs(const graph::TaskList& tasks, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const graph::TensorInfo& info : tasks.inputs) {
    Tensor& tensor = inputs.emplace_back(info.dtype, info.shape);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (info.dtype == DType::kI64)
        tensor.as<int64_t>()[static_cast<size_t>(i)] = interesting_integer(rng);
      else
        tensor.set(i, rng.chance(0.9) ? rng.uniform() * 6 - 2 : interesting_float(rng));
    }
  }
  return inputs;
}

// A value of bfloat16 between two operators may be rounded in one graph and not in the other, which
// is as much as the last bit of what is computed of it.
bool is_same(double found, double expected, DType dtype) {
  if (std::isnan(expected) || std::isinf(expected)) return true;  // what rounds may overflow
  const double tolerance = dtype == DType::kBF16 ? 0x1p-7 : 1e-3;
  return std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// Returns whether a run ended as data chose a branch that is not valid, as the importer had warned,
// the begin of a Slice behind which there is too little, lengths of parts or of a cache, or numbers
// of elements that do not go together.
bool ended_by_data(const Status& status) {
  const auto says = [&](const char* text) {
    return status.message().find(text) != std::string::npos;
  };
  return says("which was left out when the model was compiled") ||
         says("which the run computed, does not leave") ||
         says("the lengths of its parts are negative, or do not add up") ||
         says("in this run, and none has one element") || says("terms to sum in this run") ||
         says("of a sequence does not lie between");
}

// The bytes of a model.
struct ModelFile {
  const uint8_t* data = nullptr;
  size_t size = 0;

  [[nodiscard]] Result<Graph> import(const ImportOptions& options = {}) const {
    return graph::import_onnx_bytes(data, size, "fuzz.onnx", "", options);
  }
};

// Runs a graph of ranges at some sizes, and the model imported for these sizes alone. Both are run
// without passes, and have to give the same.
class SizesCheck {
 public:
  SizesCheck(const ModelFile& file, const Graph& graph, const std::vector<int64_t>& symbols)
      : graph_(graph), sizes_(sizes_of(graph.varying, symbols)) {
    Rng rng(file.size);
    for (size_t i = 0; i < graph.varying.inputs.size(); ++i) {
      const graph::Value& input = graph.value(graph.inputs[i]);
      Tensor tensor(input.dtype, shape_of(graph.varying.inputs[i], input.shape, sizes_));
      // Finite numbers: which of a NaN and another one is the largest depends on their order.
      for (int64_t k = 0; k < tensor.size(); ++k)
        tensor.set(
            k, is_float(input.dtype) ? rng.uniform() * 6 - 2 : static_cast<double>(rng.below(4)));
      whole_.push_back(graph::enlarged(tensor, input.shape));
      options_.shapes[input.name] = tensor.shape();
      given_.push_back(std::move(tensor));
    }
    whole_.push_back(graph::sizes_at(graph, symbols));
  }

  void run(const ModelFile& file) const {
    const Result<Graph> alone = file.import(options_);
    HONE_ASSERT(alone.ok(), alone.status().message().c_str());
    const auto expected = run_reference(*alone, given_), found = run_reference(graph_, whole_);
    if (ended_by_data(expected.status()) && ended_by_data(found.status())) return;
    HONE_ASSERT(expected.ok(), expected.status().message().c_str());
    HONE_ASSERT(found.ok(), found.status().message().c_str());
    ++counts.compared;
    for (size_t o = 0; o < found->size(); ++o) compare(*alone, o, (*expected)[o], (*found)[o]);
  }

 private:
  void compare(const Graph& alone, size_t o, const Tensor& one, const Tensor& all) const {
    const auto check = [&](int64_t from, int64_t to) {
      if (is_same(all.at(to), one.at(from), one.dtype())) return;
      fmt::print(stderr, "output {}: {} at {}, expected {}\n{}", o, all.at(to), from, one.at(from),
                 describe(graph_));
      HONE_ASSERT(false, "a range gives what its sizes give");
    };
    const bool by_data = one.shape() != alone.value(alone.outputs[o]).shape ||
                         all.shape() != graph_.value(graph_.outputs[o]).shape;
    if (by_data) {  // what the data leave is all that there is
      HONE_ASSERT(all.shape() == one.shape(), "data decide the same shape in a range");
      for (int64_t i = 0; i < one.size(); ++i) check(i, i);
      return;
    }
    const graph::Boxes boxes = boxes_of(graph_.varying.outputs[o], all.shape(), sizes_);
    HONE_ASSERT(num_elements(boxes.box) == one.size(), "a result has the shape of its size");
    graph::visit_box(boxes.box, boxes.whole, check);
  }

  const Graph& graph_;
  const std::vector<int64_t> sizes_;
  ImportOptions options_;
  std::vector<Tensor> given_, whole_;
};

// Gives the first extent of inputs a range, where it is the same.
void check_range(const ModelFile& file, const Graph& fixed) {
  ImportOptions range;
  int64_t most = 0;
  for (const graph::ValueId id : fixed.inputs) {
    const graph::Value& input = fixed.value(id);
    if (input.shape.empty() || (most != 0 && input.shape[0] != most)) continue;
    most = input.shape[0];
    for (const int64_t extent : input.shape)
      range.ranges[input.name].push_back({extent, extent, {}});
    range.ranges[input.name][0] = {1, most, "fuzz"};
  }
  if (most < 2) return;
  const Result<Graph> graph = file.import(range);
  if (!graph.ok()) return check_message(graph.status());
  SizesCheck(file, *graph, {most - 1}).run(file);
}

struct Planned {
  graph::TaskList tasks;
  graph::MemoryPlan plan;
};

// The tasks of a graph and their memory, or nothing if one error says why not.
std::optional<Planned> planned(Graph graph) {
  const Status optimized = graph::optimize(graph);
  if (!optimized.ok()) return check_message(optimized), std::nullopt;
  Result<graph::TaskList> tasks = graph::extract_tasks(graph);
  if (!tasks.ok()) return check_message(tasks.status()), std::nullopt;
  graph::MemoryPlan plan = graph::plan_memory(*tasks);
  const Status valid = verify(plan, *tasks);
  HONE_ASSERT(valid.ok(), valid.message().c_str());
  ++counts.planned;
  return Planned{std::move(tasks).value(), std::move(plan)};
}

// Gives open dimensions ranges by the rule.
void check_symbols(const ModelFile& file) {
  const ImportOptions options = {.open_ranges = true, .most_batch = 3, .most_sequence = 6};
  const Result<Graph> graph = file.import(options);
  if (!graph.ok()) return check_message(graph.status());
  const std::optional<Planned> made = planned(*graph);
  if (!made || !is_small(made->tasks) || graph->varying.symbols.empty()) return;
  std::vector<int64_t> symbols;
  for (const graph::SizeSymbol& symbol : graph->varying.symbols)
    symbols.push_back(std::max(symbol.min, symbol.max - 1));
  SizesCheck(file, *graph, symbols).run(file);
}

}  // namespace

const ImportCounts& import_counts() { return counts; }

void check_import(const uint8_t* data, size_t size) {
  const ModelFile file = {data, size};
  const Result<Graph> graph = file.import();
  if (!graph.ok()) {
    check_message(graph.status());
    if (graph.status().message().find("open shape") != std::string::npos) check_symbols(file);
    return;
  }
  const std::optional<Planned> made = planned(*graph);
  if (!made || !is_small(made->tasks)) return;
  const Status ran =
      run_reference(made->tasks, made->plan, random_inputs(made->tasks, size)).status();
  if (ended_by_data(ran)) return;
  if (!ran.ok()) fmt::print(stderr, "{}\n{}", ran.message(), describe(*graph));
  HONE_ASSERT(ran.ok(), "an imported model runs within its buffers");
  check_range(file, *graph);
}

}  // namespace hone::fuzz
