#include "hone/artifact/loaded_model.h"

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
#include "hone/base/clock.h"
#include "hone/base/input_file.h"
#include "hone/base/memory_bound.h"
#include "hone/runtime/hone_model.h"
#include "hone/tensor/dtype.h"

namespace hone::artifact {
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

Result<Note> read_note(const Descriptor& file, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const std::optional<std::string> note,
                        read_shared_library_note(file.get(), name, kNoteOwner));
  if (!note) return invalid("{} is a shared library, but not a model that Hone compiled", name);
  const size_t space = note->find(' ');
  const int version = std::atoi(note->c_str());
  if (version < kOldestVersion || version > HONE_ABI_VERSION || space == std::string::npos)
    return invalid("{} has version {} of the model interface, expected {} to {}: compile it again",
                   name, version, kOldestVersion, HONE_ABI_VERSION);
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

class LoadedModel final : public ModelBody {
 public:
  LoadedModel() = default;
  ~LoadedModel() override {
    if (model_ != nullptr) api_.destroy(model_);
    if (library_ != nullptr) dlclose(library_);
  }
  [[nodiscard]] Status open(const std::string& path, const LoadOptions& options,
                            const std::string& name);

  [[nodiscard]] Status set_input_shape(int input, const Shape& shape) override;
  [[nodiscard]] Result<Shape> input_shape(int input) const override;
  [[nodiscard]] Result<Shape> output_shape(int output) const override;
  [[nodiscard]] Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
                           int most, std::vector<RunTime>* times) override;
  [[nodiscard]] std::string device() const override {
    return api_.device != nullptr ? api_.device(model_) : "";
  }
  [[nodiscard]] int64_t device_bytes() const override {
    return api_.device_bytes != nullptr ? api_.device_bytes(model_) : 0;
  }
  void profile(bool enable) override {
    api_.profile(model_, enable ? 1 : 0);
    profiles_ = enable;
  }
  [[nodiscard]] std::vector<StepTime> step_times() const override;
  [[nodiscard]] Status trace(bool enable) override;
  [[nodiscard]] std::vector<ThreadWork> thread_work() const override;

 private:
  template <typename NameOf, typename InfoOf, typename DimOf>
  [[nodiscard]] Status list(int count, NameOf name_of, InfoOf info_of, DimOf dim_of,
                            std::vector<ModelTensor>& tensors) const;

  std::string name_;  // of the library, for errors
  Descriptor file_;
  void* library_ = nullptr;
  Interface api_ = {};
  hone_model* model_ = nullptr;
  bool profiles_ = false;
};

template <typename NameOf, typename InfoOf, typename DimOf>
Status LoadedModel::list(int count, NameOf name_of, InfoOf info_of, DimOf dim_of,
                         std::vector<ModelTensor>& tensors) const {
  for (int i = 0; i < count; ++i) {
    int code = 0;
    int rank = 0;
    const int64_t* dims = nullptr;
    info_of(model_, i, &code, &rank, &dims);
    const std::optional<DType> dtype = dtype_from_onnx(code);
    if (!dtype) return invalid("{} has element type {}, which is not known", name_, code);
    tensors.push_back({.name = name_of(model_, i),
                       .dtype = *dtype,
                       .shape = Shape(dims, dims + rank),
                       .dims = dims_of(model_, i, rank, dim_of)});
  }
  return ok_status();
}

Status LoadedModel::open(const std::string& path, const LoadOptions& options,
                         const std::string& name) {
  if (std::isnan(options.time_limit)) return invalid("the time limit is not a number");
  name_ = name;
  HONE_ASSIGN_OR_RETURN(file_, open_input(path));
  HONE_ASSIGN_OR_RETURN(const Note note, read_note(file_, name));
  const std::string file = new_name_of(file_);
  library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    std::string_view why = dlerror();
    if (why.starts_with(file + ": ")) why.remove_prefix(file.size() + 2);
    const bool is_memory = why.find("failed to map segment") != std::string_view::npos ||
                           why.find("cannot allocate memory") != std::string_view::npos;
    const std::string bound = is_memory ? memory_bound_text() : "";
    return error(Code::kIo, "cannot load {}: {}{}{}", name, why, bound.empty() ? "" : ", ", bound);
  }
  if (!bind(library_, note.prefix, api_))
    return invalid("{} lacks a function of the model interface: compile it again", name);
  errno = 0;
  const hone_model_options how = options_for(options, note.version);
  if (api_.create_with(&model_, &how) != 0) {
    const std::string bound = errno == ENOMEM ? memory_bound_text() : "";
    return error(Code::kUnsupported, "cannot start {}: {}{}{}", name, api_.last_error(nullptr),
                 bound.empty() ? "" : ", ", bound);
  }
  HONE_RETURN_IF_ERROR(
      list(api_.num_inputs(model_), api_.input_name, api_.input_info, api_.input_dim, inputs_));
  HONE_RETURN_IF_ERROR(list(api_.num_outputs(model_), api_.output_name, api_.output_info,
                            api_.output_dim, outputs_));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    int rank = 0;
    const int64_t* dims = nullptr;
    if (inputs_[i].dims.empty()) continue;
    api_.input_least_shape(model_, static_cast<int>(i), &rank, &dims);
    inputs_[i].least = Shape(dims, dims + rank);
  }
  return ok_status();
}

Status LoadedModel::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                        int /*most*/, std::vector<RunTime>* times) {
  const double start = times != nullptr ? real_clock().now_seconds() : 0;
  const int result = api_.run(model_, inputs.data(), outputs.data());
  if (result == 0) {
    if (times == nullptr) return ok_status();
    times->push_back({real_clock().now_seconds() - start, {}});
    if (profiles_) times->back().steps = step_times();
    return ok_status();
  }
  const Code code = result == HONE_TIME_IS_OVER         ? Code::kTimeout
                    : result == HONE_INPUTS_ARE_REFUSED ? Code::kInvalid
                                                        : Code::kInternal;
  return error(code, "cannot run {}: {}", name_, api_.last_error(model_));
}

Status LoadedModel::set_input_shape(int input, const Shape& shape) {
  const ModelTensor& expected = inputs_[static_cast<size_t>(input)];
  if (api_.set_input_shape == nullptr)
    return invalid("input '{}' of {} has the shape {} in every run, found {}", expected.name, name_,
                   to_string(expected.shape), to_string(shape));
  if (api_.set_input_shape(model_, input, static_cast<int>(shape.size()), shape.data()) == 0)
    return ok_status();
  return invalid("{}", api_.last_error(model_));
}

Result<Shape> LoadedModel::input_shape(int input) const {
  if (api_.input_shape == nullptr) return inputs_[static_cast<size_t>(input)].shape;
  int rank = 0;
  const int64_t* dims = nullptr;
  if (api_.input_shape(model_, input, &rank, &dims) != 0)
    return invalid("{}", api_.last_error(model_));
  return Shape(dims, dims + rank);
}

Result<Shape> LoadedModel::output_shape(int output) const {
  int rank = 0;
  const int64_t* dims = nullptr;
  if (api_.output_shape(model_, output, &rank, &dims) != 0)
    return invalid("{}", api_.last_error(model_));
  return Shape(dims, dims + rank);
}

Status LoadedModel::trace(bool enable) {
  if (api_.trace == nullptr || api_.num_threads == nullptr) {
    if (!enable) return ok_status();
    return error(Code::kUnsupported,
                 "the library is of an older version of hone, which records no traces: compile it "
                 "again");
  }
  if (api_.trace(model_, enable ? 1 : 0) != 0) return invalid("{}", api_.last_error(model_));
  return ok_status();
}

std::vector<ThreadWork> LoadedModel::thread_work() const {
  std::vector<ThreadWork> work;
  if (api_.step_thread == nullptr || api_.num_threads == nullptr) return work;
  const int steps = api_.num_steps(model_), threads = api_.num_threads(model_);
  for (int step = 0; step < steps; ++step) {
    for (int thread = 0; thread < threads; ++thread) {
      int64_t begin = 0, end = 0;
      if (api_.step_thread(model_, step, thread, &begin, &end) == 0)
        work.push_back(
            {step, thread, 1e-9 * static_cast<double>(begin), 1e-9 * static_cast<double>(end)});
    }
  }
  return work;
}

std::vector<StepTime> LoadedModel::step_times() const {
  std::vector<StepTime> times;
  for (int i = 0; i < api_.num_steps(model_); ++i)
    times.push_back({api_.step_name(model_, i), api_.step_class(model_, i),
                     api_.step_kernel(model_, i), api_.step_seconds(model_, i),
                     api_.step_flops(model_, i),
                     api_.step_least_flops ? api_.step_least_flops(model_, i) : 0,
                     api_.step_bytes ? api_.step_bytes(model_, i) : 0});
  return times;
}

}  // namespace

Result<std::unique_ptr<ModelBody>> load_model(const std::string& path, const LoadOptions& options,
                                              const std::string& name) {
  auto model = std::make_unique<LoadedModel>();
  HONE_RETURN_IF_ERROR(model->open(path, options, name));
  return std::unique_ptr<ModelBody>(std::move(model));
}

}  // namespace hone::artifact
