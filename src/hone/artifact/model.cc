#include "hone/model.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "hone/artifact/elf_object.h"
#include "hone/base/allocation.h"
#include "hone/base/input_file.h"
#include "hone/base/memory_bound.h"
#include "hone/base/status.h"
#include "hone/runtime/hone_model.h"
#include "hone/tensor/dtype.h"

namespace hone {
namespace {

constexpr const char* kNoteOwner = "Hone";  // artifact.cc writes it
// The interface has only grown since this version, so libraries with it run as well.
constexpr int kOldestVersion = 2;
constexpr int kTimeLimits = 4;  // the first version with them

// The C interface, by the types of its header.
struct Interface {
  decltype(&hone_model_create_with) create_with;
  decltype(&hone_model_destroy) destroy;
  decltype(&hone_model_num_inputs) num_inputs;
  decltype(&hone_model_num_outputs) num_outputs;
  decltype(&hone_model_input_name) input_name;
  decltype(&hone_model_output_name) output_name;
  decltype(&hone_model_input_info) input_info;
  decltype(&hone_model_output_info) output_info;
  decltype(&hone_model_run) run;
  decltype(&hone_model_output_shape) output_shape;
  decltype(&hone_model_last_error) last_error;
  decltype(&hone_model_profile) profile;
  decltype(&hone_model_num_steps) num_steps;
  decltype(&hone_model_step_name) step_name;
  decltype(&hone_model_step_kernel) step_kernel;
  decltype(&hone_model_step_class) step_class;
  decltype(&hone_model_step_flops) step_flops;
  decltype(&hone_model_step_seconds) step_seconds;
  decltype(&hone_model_step_least_flops) step_least_flops;  // from here on: null in an older
  decltype(&hone_model_step_bytes) step_bytes;              // library
  decltype(&hone_model_device) device;
  decltype(&hone_model_device_bytes) device_bytes;
  decltype(&hone_model_set_input_shape) set_input_shape;
  decltype(&hone_model_input_shape) input_shape;
  decltype(&hone_model_input_least_shape) input_least_shape;
  decltype(&hone_model_input_dim) input_dim;
  decltype(&hone_model_output_dim) output_dim;
  decltype(&hone_model_num_threads) num_threads;
  decltype(&hone_model_trace) trace;
  decltype(&hone_model_step_thread) step_thread;
};

bool bind(void* library, const std::string& prefix, Interface& api) {
  bool complete = true;
  const auto find = [&](const char* suffix, auto& function) {
    void* symbol = dlsym(library, (prefix + suffix).c_str());
    complete = complete && symbol != nullptr;
    std::memcpy(&function, &symbol, sizeof function);
  };
  find("_create_with", api.create_with);
  find("_destroy", api.destroy);
  find("_num_inputs", api.num_inputs);
  find("_num_outputs", api.num_outputs);
  find("_input_name", api.input_name);
  find("_output_name", api.output_name);
  find("_input_info", api.input_info);
  find("_output_info", api.output_info);
  find("_run", api.run);
  find("_output_shape", api.output_shape);
  find("_last_error", api.last_error);
  find("_profile", api.profile);
  find("_num_steps", api.num_steps);
  find("_step_name", api.step_name);
  find("_step_kernel", api.step_kernel);
  find("_step_class", api.step_class);
  find("_step_flops", api.step_flops);
  find("_step_seconds", api.step_seconds);
  const bool usable = complete;
  find("_step_least_flops", api.step_least_flops);
  find("_step_bytes", api.step_bytes);
  find("_device", api.device);
  find("_device_bytes", api.device_bytes);
  find("_set_input_shape", api.set_input_shape);
  find("_input_shape", api.input_shape);
  find("_input_least_shape", api.input_least_shape);
  find("_input_dim", api.input_dim);
  find("_output_dim", api.output_dim);
  find("_num_threads", api.num_threads);
  find("_trace", api.trace);
  find("_step_thread", api.step_thread);
  return usable;
}

// The note of an artifact, "<abi version> <prefix>".
struct Note {
  int version = 0;
  std::string prefix;  // of its symbols
};

Result<Note> read_note(const Descriptor& file, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::optional<std::string> note,
                        artifact::read_shared_library_note(file.get(), path, kNoteOwner));
  if (!note) return invalid("{} is a shared library, but not a model that Hone compiled", path);
  const size_t space = note->find(' ');
  const int version = std::atoi(note->c_str());
  if (version < kOldestVersion || version > HONE_ABI_VERSION || space == std::string::npos)
    return invalid("{} has version {} of the model interface, expected {} to {}: compile it again",
                   path, version, kOldestVersion, HONE_ABI_VERSION);
  return Note{version, note->substr(space + 1)};
}

// The options as those of the library's version of the interface: a longer struct is one of a later
// version.
hone_model_options options_for(const LoadOptions& options, int version) {
  hone_model_options made = {};
  made.size = version < kTimeLimits ? offsetof(hone_model_options, device) : sizeof made;
  made.num_threads = options.num_threads;
  const double limit = std::clamp(std::ceil(options.time_limit * 1e3), 0.0, double{INT_MAX});
  if (version >= kTimeLimits) made.time_limit_ms = static_cast<int>(limit);
  return made;
}

// Returns a path of an open file that no call before has returned. The loader returns what it has
// loaded by the same name before, also if the file has been replaced since or the number of its
// descriptor is that of another one now; files it knows by their identity.
std::string new_name_of(const Descriptor& file) {
  static std::atomic<uint64_t> count = 0;
  std::string name = "/proc/self/fd";
  for (uint64_t rest = ++count; rest > 0; rest /= 2) name += rest % 2 == 1 ? "/." : "/";
  return fmt::format("{}/{}", name, file.get());
}

Status check_input(const ModelTensor& expected, const Tensor& found) {
  if (found.dtype() != expected.dtype)
    return invalid("input {} has type {}, expected {}", expected.name, dtype_name(found.dtype()),
                   dtype_name(expected.dtype));
  if (expected.dims.empty() && found.shape() != expected.shape)
    return invalid("input {} has shape {}, expected {}", expected.name, to_string(found.shape()),
                   to_string(expected.shape));
  return ok_status();
}

// Returns the names of what the dimensions of a tensor vary with. The list is empty if none varies,
// as in all older libraries.
template <typename DimOf>
std::vector<std::string> dims_of(const hone_model* model, int i, int rank, const DimOf& dim_of) {
  std::vector<std::string> dims;
  bool varies = false;
  for (int d = 0; dim_of != nullptr && d < rank; ++d) {
    const char* text = dim_of(model, i, d);
    varies |= text != nullptr;
    dims.emplace_back(text != nullptr ? text : "");
  }
  return varies ? dims : std::vector<std::string>();
}

}  // namespace

struct Model::State {
  std::string path;
  Descriptor file;
  void* library = nullptr;
  Interface api = {};
  hone_model* model = nullptr;
  std::vector<ModelTensor> inputs;
  std::vector<ModelTensor> outputs;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (model != nullptr) api.destroy(model);
    if (library != nullptr) dlclose(library);
  }
};

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<Model> Model::load(const std::string& path, int num_threads) {
  return load(path, LoadOptions{.num_threads = num_threads});
}

Result<Model> Model::load(const std::string& path, const LoadOptions& options) {
  if (std::isnan(options.time_limit)) return invalid("the time limit is not a number");
  auto state = std::make_unique<State>();
  state->path = path;
  HONE_ASSIGN_OR_RETURN(state->file, open_input(path));
  HONE_ASSIGN_OR_RETURN(const Note note, read_note(state->file, path));
  const std::string file = new_name_of(state->file);
  state->library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (state->library == nullptr) {
    std::string_view why = dlerror();
    if (why.starts_with(file + ": ")) why.remove_prefix(file.size() + 2);
    const bool is_memory = why.find("failed to map segment") != std::string_view::npos ||
                           why.find("cannot allocate memory") != std::string_view::npos;
    const std::string bound = is_memory ? memory_bound_text() : "";
    return error(Code::kIo, "cannot load {}: {}{}{}", path, why, bound.empty() ? "" : ", ", bound);
  }
  Interface& api = state->api;
  if (!bind(state->library, note.prefix, api))
    return invalid("{} lacks a function of the model interface: compile it again", path);
  errno = 0;
  const hone_model_options how = options_for(options, note.version);
  if (api.create_with(&state->model, &how) != 0) {
    const std::string bound = errno == ENOMEM ? memory_bound_text() : "";
    return error(Code::kUnsupported, "cannot start {}: {}{}{}", path, api.last_error(nullptr),
                 bound.empty() ? "" : ", ", bound);
  }
  const auto list = [&](int count, auto name_of, auto info_of, auto dim_of,
                        std::vector<ModelTensor>& out) {
    for (int i = 0; i < count; ++i) {
      int code = 0;
      int rank = 0;
      const int64_t* dims = nullptr;
      info_of(state->model, i, &code, &rank, &dims);
      const std::optional<DType> dtype = dtype_from_onnx(code);
      if (!dtype) return invalid("{} has element type {}, which is not known", path, code);
      out.push_back({.name = name_of(state->model, i),
                     .dtype = *dtype,
                     .shape = Shape(dims, dims + rank),
                     .dims = dims_of(state->model, i, rank, dim_of)});
    }
    return ok_status();
  };
  HONE_RETURN_IF_ERROR(list(api.num_inputs(state->model), api.input_name, api.input_info,
                            api.input_dim, state->inputs));
  HONE_RETURN_IF_ERROR(list(api.num_outputs(state->model), api.output_name, api.output_info,
                            api.output_dim, state->outputs));
  for (size_t i = 0; i < state->inputs.size(); ++i) {
    int rank = 0;
    const int64_t* dims = nullptr;
    if (state->inputs[i].dims.empty()) continue;
    api.input_least_shape(state->model, static_cast<int>(i), &rank, &dims);
    state->inputs[i].least = Shape(dims, dims + rank);
  }
  return Model(std::move(state));
}

Result<Model> load(const std::string& library, int num_threads) {
  return Model::load(library, num_threads);
}

const std::vector<ModelTensor>& Model::inputs() const { return state_->inputs; }
const std::vector<ModelTensor>& Model::outputs() const { return state_->outputs; }

Status Model::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  if (inputs.size() != state_->inputs.size() || outputs.size() != state_->outputs.size())
    return invalid("found {} inputs and {} outputs, expected {} and {}", inputs.size(),
                   outputs.size(), state_->inputs.size(), state_->outputs.size());
  const int result = state_->api.run(state_->model, inputs.data(), outputs.data());
  if (result == 0) return ok_status();
  const Code code = result == HONE_TIME_IS_OVER         ? Code::kTimeout
                    : result == HONE_INPUTS_ARE_REFUSED ? Code::kInvalid
                                                        : Code::kInternal;
  return error(code, "cannot run {}: {}", state_->path, state_->api.last_error(state_->model));
}

Result<std::vector<Tensor>> Model::run(std::span<const Tensor> inputs) {
  if (inputs.size() != state_->inputs.size())
    return invalid("found {} inputs, expected {}", inputs.size(), state_->inputs.size());
  std::vector<const void*> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(check_input(state_->inputs[i], inputs[i]));
    if (!state_->inputs[i].dims.empty())
      HONE_RETURN_IF_ERROR(set_input_shape(static_cast<int>(i), inputs[i].shape()));
    in.push_back(inputs[i].data());
  }
  std::vector<Tensor> results;
  std::vector<void*> out;
  for (size_t i = 0; i < state_->outputs.size(); ++i) {
    const ModelTensor& output = state_->outputs[i];
    Shape shape = output.shape;
    if (!output.dims.empty()) {
      HONE_ASSIGN_OR_RETURN(shape, output_shape(static_cast<int>(i)));
    }
    const AllocatesFor purpose(fmt::format("output '{}'", output.name));
    results.emplace_back(output.dtype, shape);
    out.push_back(results.back().data());
  }
  HONE_RETURN_IF_ERROR(run(in, out));
  for (size_t i = 0; i < results.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const Shape actual, output_shape(static_cast<int>(i)));
    if (actual == results[i].shape()) continue;
    // The elements are dense from the start of the array.
    Tensor smaller(results[i].dtype(), actual);
    if (smaller.bytes() > results[i].bytes())
      return error(Code::kInternal, "output {} has shape {}, which exceeds {}",
                   state_->outputs[i].name, to_string(actual), to_string(results[i].shape()));
    std::memcpy(smaller.data(), results[i].data(), static_cast<size_t>(smaller.bytes()));
    results[i] = smaller;
  }
  return results;
}

Status Model::set_input_shape(int input, const Shape& shape) {
  if (input < 0 || input >= std::ssize(state_->inputs))
    return invalid("there is no input {}, but {}", input, state_->inputs.size());
  const ModelTensor& expected = state_->inputs[static_cast<size_t>(input)];
  if (expected.dims.empty() && shape == expected.shape) return ok_status();
  if (state_->api.set_input_shape == nullptr)
    return invalid("input '{}' of {} has the shape {} in every run, found {}", expected.name,
                   state_->path, to_string(expected.shape), to_string(shape));
  if (state_->api.set_input_shape(state_->model, input, static_cast<int>(shape.size()),
                                  shape.data()) == 0)
    return ok_status();
  return invalid("{}", state_->api.last_error(state_->model));
}

Result<Shape> Model::input_shape(int input) const {
  if (input < 0 || input >= std::ssize(state_->inputs))
    return invalid("there is no input {}, but {}", input, state_->inputs.size());
  if (state_->api.input_shape == nullptr) return state_->inputs[static_cast<size_t>(input)].shape;
  int rank = 0;
  const int64_t* dims = nullptr;
  if (state_->api.input_shape(state_->model, input, &rank, &dims) != 0)
    return invalid("{}", state_->api.last_error(state_->model));
  return Shape(dims, dims + rank);
}

Result<Shape> Model::output_shape(int output) const {
  int rank = 0;
  const int64_t* dims = nullptr;
  if (state_->api.output_shape(state_->model, output, &rank, &dims) != 0)
    return invalid("{}", state_->api.last_error(state_->model));
  return Shape(dims, dims + rank);
}

std::string Model::device() const {
  return state_->api.device != nullptr ? state_->api.device(state_->model) : "";
}

int64_t Model::device_bytes() const {
  return state_->api.device_bytes != nullptr ? state_->api.device_bytes(state_->model) : 0;
}

void Model::profile(bool enable) { state_->api.profile(state_->model, enable ? 1 : 0); }

Status Model::trace(bool enable) {
  const Interface& api = state_->api;
  if (api.trace == nullptr || api.num_threads == nullptr) {
    if (!enable) return ok_status();
    return error(Code::kUnsupported,
                 "the library is of an older version of hone, which records no traces: compile it "
                 "again");
  }
  if (api.trace(state_->model, enable ? 1 : 0) != 0)
    return invalid("{}", api.last_error(state_->model));
  return ok_status();
}

std::vector<ThreadWork> Model::thread_work() const {
  std::vector<ThreadWork> work;
  const Interface& api = state_->api;
  if (api.step_thread == nullptr || api.num_threads == nullptr) return work;
  const int steps = api.num_steps(state_->model), threads = api.num_threads(state_->model);
  for (int step = 0; step < steps; ++step) {
    for (int thread = 0; thread < threads; ++thread) {
      int64_t begin = 0, end = 0;
      if (api.step_thread(state_->model, step, thread, &begin, &end) == 0)
        work.push_back(
            {step, thread, 1e-9 * static_cast<double>(begin), 1e-9 * static_cast<double>(end)});
    }
  }
  return work;
}

std::vector<StepTime> Model::step_times() const {
  std::vector<StepTime> times;
  const Interface& api = state_->api;
  for (int i = 0; i < api.num_steps(state_->model); ++i)
    times.push_back({api.step_name(state_->model, i), api.step_class(state_->model, i),
                     api.step_kernel(state_->model, i), api.step_seconds(state_->model, i),
                     api.step_flops(state_->model, i),
                     api.step_least_flops ? api.step_least_flops(state_->model, i) : 0,
                     api.step_bytes ? api.step_bytes(state_->model, i) : 0});
  return times;
}

}  // namespace hone
