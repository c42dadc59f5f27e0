// Any bytes: they become tasks with a memory plan, or one error that names the file; small models
// then run within the bounds of their buffers. With libFuzzer, models are changed as such.
#include <onnx/onnx_pb.h>

#include <cmath>

#include "hone/graph/import_onnx.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/reference_testing.h"
#include "hone/graph/size_testing.h"
#include "hone/graph/size_values.h"

#include "fuzz.h"
#include "model_bytes.h"

namespace hone::fuzz {

std::string make_input(Rng& rng) {
  const bool real = rng.chance(0.6);
  onnx::ModelProto model = real ? real_model(rng) : random_model(rng);
  for (int64_t n = real ? rng.between(0, 3) : rng.below(2); n > 0; --n) mutate_model(model, rng);
  std::string bytes = model.SerializeAsString();
  if (rng.chance(0.05)) {
    for (int64_t n = rng.between(1, 3); n > 0; --n) mutate_bytes(bytes, rng);
  }
  return bytes;
}

namespace {

void check_message(const Status& status) {
  const std::string& message = status.message();
  const bool clear = status.code() != Code::kInternal && !message.empty() &&
                     message.find('\n') == std::string::npos &&
                     message.find("fuzz.onnx") != std::string::npos;
  if (!clear) fmt::print(stderr, "error: {}\n", message);
  HONE_ASSERT(clear, "an error is one line that names the file");
}

// What the interpreter does in a moment.
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

bool is_same(double found, double expected) {
  if (std::isnan(expected) || std::isinf(expected)) return true;  // what rounds may overflow
  return std::abs(found - expected) <= 1e-3 * std::max(1.0, std::abs(expected));
}

// Compares a model that was imported for a range of the first extent of its inputs with the one
// that was imported for a single size. Both are run without passes, and have to give the same.
void check_range(const uint8_t* data, size_t size, const graph::Graph& fixed) {
  graph::ImportOptions range, alone;
  int64_t most = 0;
  for (const graph::ValueId id : fixed.inputs) {
    const graph::Value& input = fixed.value(id);
    if (input.shape.empty() || (most != 0 && input.shape[0] != most)) continue;
    most = input.shape[0];
    for (const int64_t extent : input.shape)
      range.ranges[input.name].push_back({extent, extent, {}});
    range.ranges[input.name][0] = {1, most, "fuzz"};
    alone.shapes[input.name] = input.shape;
    alone.shapes[input.name][0] = most - 1;
  }
  if (most < 2) return;
  const auto graph = graph::import_onnx_bytes(data, size, "fuzz.onnx", "", range);
  if (!graph.ok()) return check_message(graph.status());
  const auto small = graph::import_onnx_bytes(data, size, "fuzz.onnx", "", alone);
  HONE_ASSERT(small.ok(), small.status().message().c_str());
  Rng rng(size);
  std::vector<Tensor> given, whole;
  for (size_t i = 0; i < graph->varying.inputs.size(); ++i) {
    const graph::Value& input = graph->value(graph->inputs[i]);
    const auto at = alone.shapes.find(input.name);
    // Finite numbers: which of a NaN and another one is the largest depends on their order.
    Tensor& tensor =
        given.emplace_back(input.dtype, at == alone.shapes.end() ? input.shape : at->second);
    for (int64_t k = 0; k < tensor.size(); ++k)
      tensor.set(k,
                 is_float(input.dtype) ? rng.uniform() * 6 - 2 : static_cast<double>(rng.below(4)));
    whole.push_back(graph::enlarged(given.back(), input.shape));
  }
  whole.push_back(graph::sizes_at(*graph, {most - 1}));
  const auto expected = run_reference(*small, given), found = run_reference(*graph, whole);
  HONE_ASSERT(expected.ok(), expected.status().message().c_str());
  HONE_ASSERT(found.ok(), found.status().message().c_str());
  for (size_t o = 0; o < found->size(); ++o) {
    const Tensor &one = (*expected)[o], &all = (*found)[o];
    const auto compare = [&](int64_t from, int64_t to) {
      if (is_same(all.at(to), one.at(from))) return;
      fmt::print(stderr, "output {}: {} at {}, expected {}\n{}", o, all.at(to), from, one.at(from),
                 describe(*graph));
      HONE_ASSERT(false, "a range gives what its sizes give");
    };
    const bool by_data = one.shape() != small->value(small->outputs[o]).shape ||
                         all.shape() != graph->value(graph->outputs[o]).shape;
    if (by_data) {  // what the data leave is all that there is
      HONE_ASSERT(all.shape() == one.shape(), "data decide the same shape in a range");
      for (int64_t i = 0; i < one.size(); ++i) compare(i, i);
      continue;
    }
    const graph::Boxes boxes = graph::boxes_of(graph->varying.outputs[o], all.shape(),
                                               sizes_of(graph->varying, {most - 1}));
    HONE_ASSERT(num_elements(boxes.box) == one.size(), "a result has the shape of its size");
    graph::visit_box(boxes.box, boxes.whole, compare);
  }
}

}  // namespace
}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  Result<graph::Graph> graph = graph::import_onnx_bytes(data, size, "fuzz.onnx", "");
  if (!graph.ok()) return fuzz::check_message(graph.status()), 0;
  const graph::Graph imported = *graph;
  const Status optimized = graph::optimize(*graph);
  if (!optimized.ok()) return fuzz::check_message(optimized), 0;
  const Result<graph::TaskList> tasks = graph::extract_tasks(*graph);
  if (!tasks.ok()) return fuzz::check_message(tasks.status()), 0;
  const graph::MemoryPlan plan = graph::plan_memory(*tasks);
  const Status valid = verify(plan, *tasks);
  HONE_ASSERT(valid.ok(), valid.message().c_str());
  if (!fuzz::is_small(*tasks)) return 0;
  const Status ran = run_reference(*tasks, plan, fuzz::random_inputs(*tasks, size)).status();
  if (!ran.ok()) fmt::print(stderr, "{}\n{}", ran.message(), describe(*graph));
  HONE_ASSERT(ran.ok(), "an imported model runs within its buffers");
  fuzz::check_range(data, size, imported);
  return 0;
}

#ifdef HONE_LIBFUZZER
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  hone::Rng rng(seed);
  onnx::ModelProto model;
  if (rng.chance(0.1) || !model.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, max_size);
  hone::fuzz::mutate_model(model, rng);
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() > max_size) return size;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
#endif
