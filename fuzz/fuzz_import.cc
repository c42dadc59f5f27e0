// Any bytes: they become tasks with a memory plan, or one error that names the file; small models
// then run within the bounds of their buffers. With libFuzzer, models are changed as such.
#include <onnx/onnx_pb.h>

#include "hone/graph/import_onnx.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/reference_testing.h"

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

}  // namespace
}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  Result<graph::Graph> graph = graph::import_onnx_bytes(data, size, "fuzz.onnx", "");
  if (!graph.ok()) return fuzz::check_message(graph.status()), 0;
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
