// The C interface of the artifact that this object is linked into. Its plan, kernels and weights
// are the three symbols below, which the generated object defines.
#include "hone/runtime/hone_model.h"
#include "hone/runtime/model.h"
#include "hone/runtime/plan_sizes.h"

using hone::runtime::kErrorBytes;
using hone::runtime::Model;
using hone::runtime::plan_string;
using hone::runtime::PlanHeader;
using hone::runtime::PlanStep;
using hone::runtime::PlanTensor;

extern "C" {
extern const PlanHeader hone_artifact_plan;
extern const hone_kernel hone_artifact_kernels[];
extern const char* const hone_artifact_weights;  // a pointer: they may be far away
// Null in a model for CPUs, which is then linked without what it is in others.
extern const hone::runtime::DeviceRunner* const hone_artifact_devices;
}

namespace {

constexpr size_t kOldestOptions = offsetof(hone_model_options, device);  // those of version 2

// No padding at the end: fields of later versions follow at once.
static_assert(sizeof(hone_model_options) == offsetof(hone_model_options, time_limit_ms) +
                                                sizeof hone_model_options::time_limit_ms);

thread_local char create_error[kErrorBytes];

Model* unwrap(const hone_model* model) {
  return reinterpret_cast<Model*>(const_cast<hone_model*>(model));
}
const PlanHeader& plan_of(const hone_model* model) {
  return hone::runtime::model_plan(*unwrap(model));
}
const PlanTensor* input_of(const hone_model* model, int i) {
  if (model == nullptr || i < 0 || i >= hone_model_num_inputs(model)) return nullptr;
  return &hone::runtime::plan_input(plan_of(model), i);
}
const PlanTensor* output_of(const hone_model* model, int i) {
  if (model == nullptr || i < 0 || i >= hone_model_num_outputs(model)) return nullptr;
  return &hone::runtime::plan_output(plan_of(model), i);
}
const PlanStep* step_of(const hone_model* model, int i) {
  if (model == nullptr || i < 0 || i >= hone_model_num_steps(model)) return nullptr;
  return &hone::runtime::plan_table<PlanStep>(plan_of(model), plan_of(model).steps)[i];
}
int fail(const hone_model* model, const char* message) {
  return model == nullptr ? 1 : hone::runtime::model_fail(*unwrap(model), message);
}
int describe(const hone_model* model, const PlanTensor& tensor, int* dtype, int* rank,
             const int64_t** shape) {
  if (dtype != nullptr) *dtype = tensor.dtype;
  if (rank != nullptr) *rank = tensor.rank;
  if (shape != nullptr) *shape = hone::runtime::plan_table<int64_t>(plan_of(model), tensor.shape);
  return 0;
}

// Hands out a shape that is null if the shapes that the caller set do not agree.
int give_shape(const hone_model* model, const PlanTensor& tensor, const int64_t* found, int* rank,
               const int64_t** shape) {
  if (found == nullptr) return fail(model, hone::runtime::model_shape_conflict(*unwrap(model)));
  if (rank != nullptr) *rank = tensor.rank;
  if (shape != nullptr) *shape = found;
  return 0;
}
const char* dim_name(const hone_model* model, const PlanTensor* tensor, int d) {
  if (tensor == nullptr || tensor->dims == 0 || d < 0 || d >= tensor->rank) return nullptr;
  const PlanHeader& plan = plan_of(model);
  const char* text = plan_string(plan, hone::runtime::plan_dim(plan, *tensor, d).text);
  return text[0] == '\0' ? nullptr : text;
}

int fail_to_create(const char* message) {
  __builtin_memcpy(create_error, message, __builtin_strlen(message) + 1);
  return 1;
}

int create(hone_model** out, const hone::runtime::ModelOptions& options) {
  if (out == nullptr) return fail_to_create("the place for the model is a null pointer");
  const hone::runtime::ModelImage image = {&hone_artifact_plan, hone_artifact_plan.total_bytes,
                                           hone_artifact_kernels, hone_artifact_weights,
                                           hone_artifact_devices};
  Model* model = hone::runtime::model_create(image, options, create_error);
  *out = reinterpret_cast<hone_model*>(model);
  return model == nullptr ? 1 : 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int hone_model_create(hone_model** out, int num_threads) {
  return create(out, {.num_threads = num_threads});
}

int hone_model_create_with(hone_model** out, const hone_model_options* given) {
  if (out != nullptr) *out = nullptr;
  if (given == nullptr) return fail_to_create("the options are a null pointer");
  if (given->size < kOldestOptions)
    return fail_to_create("the options are smaller than hone_model_options: is their size set?");
  // Options of a later version do if they ask for nothing that this one does not know.
  const char* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = sizeof *given; i < given->size; ++i)
    if (bytes[i] != 0) return fail_to_create("the options are those of a later version");
  // A program of an earlier version has a shorter struct.
  hone_model_options known = {};
  __builtin_memcpy(&known, given, given->size < sizeof known ? given->size : sizeof known);
  if (known.time_limit_ms < 0) return fail_to_create("the time limit is less than 0");
  return create(out, {.num_threads = known.num_threads,
                      .spin_ns = known.spin_ns == 0  ? -1
                                 : known.spin_ns < 0 ? 0
                                                     : known.spin_ns,
                      .parallel_for = known.parallel_for,
                      .owner = known.pool,
                      .device = known.device,
                      .time_limit_ns = int64_t{1'000'000} * known.time_limit_ms});
}

void hone_model_destroy(hone_model* model) { hone::runtime::model_destroy(unwrap(model)); }

int hone_model_num_threads(const hone_model* model) {
  return model == nullptr ? 0 : hone::runtime::model_num_threads(*unwrap(model));
}

int hone_model_num_inputs(const hone_model* model) {
  return model == nullptr ? 0 : static_cast<int>(plan_of(model).num_inputs);
}

int hone_model_num_outputs(const hone_model* model) {
  return model == nullptr ? 0 : static_cast<int>(plan_of(model).num_outputs);
}

const char* hone_model_input_name(const hone_model* model, int i) {
  const PlanTensor* tensor = input_of(model, i);
  return tensor == nullptr ? nullptr : plan_string(plan_of(model), tensor->name);
}

const char* hone_model_output_name(const hone_model* model, int i) {
  const PlanTensor* tensor = output_of(model, i);
  return tensor == nullptr ? nullptr : plan_string(plan_of(model), tensor->name);
}

int hone_model_input_info(const hone_model* model, int i, int* dtype, int* rank,
                          const int64_t** shape) {
  const PlanTensor* tensor = input_of(model, i);
  if (tensor == nullptr) return fail(model, "there is no input with this number");
  return describe(model, *tensor, dtype, rank, shape);
}

int hone_model_output_info(const hone_model* model, int i, int* dtype, int* rank,
                           const int64_t** shape) {
  const PlanTensor* tensor = output_of(model, i);
  if (tensor == nullptr) return fail(model, "there is no output with this number");
  return describe(model, *tensor, dtype, rank, shape);
}

int hone_model_run(hone_model* model, const void* const* inputs, void* const* outputs) {
  return model == nullptr ? 1 : hone::runtime::model_run(*unwrap(model), inputs, outputs);
}

int hone_model_run_device(hone_model* model, const void* const* inputs, void* const* outputs,
                          void* stream) {
  return model == nullptr
             ? 1
             : hone::runtime::model_run_device(*unwrap(model), inputs, outputs, stream);
}

const char* hone_model_device(const hone_model* model) {
  return model == nullptr ? "" : hone::runtime::model_device(*unwrap(model));
}

int64_t hone_model_device_bytes(const hone_model* model) {
  return model == nullptr ? 0 : hone::runtime::model_device_bytes(*unwrap(model));
}

int hone_model_output_shape(const hone_model* model, int i, int* rank, const int64_t** shape) {
  const PlanTensor* tensor = output_of(model, i);
  if (tensor == nullptr) return fail(model, "there is no output with this number");
  return give_shape(model, *tensor, hone::runtime::model_output_shape(*unwrap(model), i), rank,
                    shape);
}

int hone_model_set_input_shape(hone_model* model, int i, int rank, const int64_t* shape) {
  if (input_of(model, i) == nullptr) return fail(model, "there is no input with this number");
  return hone::runtime::model_set_input_shape(*unwrap(model), i, rank, shape);
}

int hone_model_input_shape(const hone_model* model, int i, int* rank, const int64_t** shape) {
  const PlanTensor* tensor = input_of(model, i);
  if (tensor == nullptr) return fail(model, "there is no input with this number");
  return give_shape(model, *tensor, hone::runtime::model_input_shape(*unwrap(model), i), rank,
                    shape);
}

int hone_model_input_least_shape(const hone_model* model, int i, int* rank, const int64_t** shape) {
  const PlanTensor* tensor = input_of(model, i);
  if (tensor == nullptr) return fail(model, "there is no input with this number");
  return give_shape(model, *tensor, hone::runtime::model_least_input_shape(*unwrap(model), i), rank,
                    shape);
}

const char* hone_model_input_dim(const hone_model* model, int i, int d) {
  return dim_name(model, input_of(model, i), d);
}

const char* hone_model_output_dim(const hone_model* model, int i, int d) {
  return dim_name(model, output_of(model, i), d);
}

const char* hone_model_last_error(const hone_model* model) {
  return model == nullptr ? create_error : hone::runtime::model_last_error(*unwrap(model));
}

int hone_model_profile(hone_model* model, int enable) {
  if (model == nullptr) return 1;
  hone::runtime::model_profile(*unwrap(model), enable != 0);
  return 0;
}

int hone_model_num_steps(const hone_model* model) {
  return model == nullptr ? 0 : static_cast<int>(plan_of(model).num_steps);
}

const char* hone_model_step_name(const hone_model* model, int i) {
  const PlanStep* step = step_of(model, i);
  return step == nullptr ? nullptr : plan_string(plan_of(model), step->name);
}

int hone_model_step_kernel(const hone_model* model, int i) {
  const PlanStep* step = step_of(model, i);
  return step == nullptr ? -1 : static_cast<int>(step->kernel);
}

const char* hone_model_step_class(const hone_model* model, int i) {
  const PlanStep* step = step_of(model, i);
  return step == nullptr ? nullptr : plan_string(plan_of(model), step->kernel_class);
}

double hone_model_step_flops(const hone_model* model, int i) {
  const PlanStep* step = step_of(model, i);
  return step == nullptr ? 0 : step->flops;
}

double hone_model_step_least_flops(const hone_model* model, int i) {
  const PlanStep* step = step_of(model, i);
  return step == nullptr ? 0 : step->least_flops;
}

double hone_model_step_bytes(const hone_model* model, int i) {
  const PlanStep* step = step_of(model, i);
  return step == nullptr ? 0 : step->bytes;
}

double hone_model_step_seconds(const hone_model* model, int i) {
  return step_of(model, i) == nullptr ? 0 : hone::runtime::model_step_seconds(*unwrap(model), i);
}

int hone_model_trace(hone_model* model, int enable) {
  if (model == nullptr) return 1;
  if (hone::runtime::model_trace(*unwrap(model), enable != 0)) return 0;
  return fail(model, "out of memory");
}

int hone_model_step_thread(const hone_model* model, int i, int thread, int64_t* begin_ns,
                           int64_t* end_ns) {
  if (step_of(model, i) == nullptr || thread < 0 || thread >= hone_model_num_threads(model))
    return 1;
  return hone::runtime::model_step_span(*unwrap(model), i, thread, begin_ns, end_ns) ? 0 : 1;
}

int hone_abi_version(void) { return HONE_ABI_VERSION; }

}  // extern "C"
#pragma GCC visibility pop
