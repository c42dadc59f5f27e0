#include "hone/machine/model_run.h"

#include <cstring>

#include "hone/runtime/device/device.h"
#include "hone/runtime/device_model.h"

namespace hone::machine {

Result<std::unique_ptr<TimedModel>> ModelRun::create(const artifact::ArtifactSpec& spec,
                                                     int threads) {
  std::unique_ptr<ModelRun> made(new ModelRun());
  ModelRun& run = *made;
  HONE_ASSIGN_OR_RETURN(run.kernels_, load_kernels(spec));
  HONE_ASSIGN_OR_RETURN(const std::string plan, artifact::encode_plan(spec));
  run.plan_.resize((plan.size() + 7) / 8);
  std::memcpy(run.plan_.data(), plan.data(), plan.size());
  const std::vector<int64_t> offsets = artifact::weight_offsets(spec);
  run.weights_ = Tensor(DType::kU8, {offsets.back()});
  for (size_t i = 0; i < spec.weights.size(); ++i) {
    if (spec.weights[i].bytes > 0)
      std::memcpy(static_cast<char*>(run.weights_.data()) + offsets[i], spec.weights[i].data,
                  static_cast<size_t>(spec.weights[i].bytes));
  }
  for (const artifact::ArtifactTensor& input : spec.inputs)
    run.from_.push_back(run.inputs_.emplace_back(input.dtype, input.shape).data());
  for (const artifact::ArtifactTensor& output : spec.outputs)
    run.to_.push_back(run.outputs_.emplace_back(output.dtype, output.shape).data());
  const runtime::ModelImage image = {run.plan_.data(), plan.size(), run.kernels_.functions.data(),
                                     run.weights_.data(), &runtime::hone_device_runner};
  char message[runtime::kErrorBytes];
  run.model_.reset(runtime::model_create(
      image, {.num_threads = threads, .time_limit_ns = runtime::kAmpleNs}, message));
  if (!run.model_) return error(Code::kUnsupported, "cannot start the model: {}", message);
  runtime::model_profile(*run.model_, true);
  return std::unique_ptr<TimedModel>(std::move(made));
}

Result<std::vector<double>> ModelRun::run(std::span<const int32_t> steps) {
  if (!runtime::model_choose(*model_, steps.data(), static_cast<int32_t>(steps.size())))
    return error(Code::kInternal, "the steps chosen are not the model's");
  if (runtime::model_run(*model_, from_.data(), to_.data()) != 0) {
    return error(Code::kInternal, "cannot run the model: {}", runtime::model_last_error(*model_));
  }
  std::vector<double> seconds;
  for (int i = 0; i < std::ssize(steps); ++i)
    seconds.push_back(runtime::model_step_seconds(*model_, i));
  return seconds;
}

}  // namespace hone::machine
