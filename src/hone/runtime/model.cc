#include "hone/runtime/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <new>

#include "hone/runtime/cpu_budget.h"
#include "hone/runtime/cpu_features.h"
#include "hone/runtime/float_mode.h"
#include "hone/runtime/model_state.h"
#include "hone/runtime/run_steps.h"

namespace hone::runtime {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kHugePage = 2 << 20;

// Threads' scratch areas start one line further each, so that they do not all map to the same sets
// of a cache.
int64_t scratch_stride_of(const PlanHeader& plan) {
  if (plan.scratch_bytes == 0) return 0;
  return round_up(plan.scratch_bytes, kPage) + 2 * kBufferAlignment;
}

}  // namespace

void say(char* message, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(message, kErrorBytes, format, args);
  va_end(args);
}

namespace {

bool cpu_has_features(const PlanHeader& plan, char* message) {
  char missing[kErrorBytes / 2] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < plan.num_features; ++i) {
    const char* name = plan_string(plan, plan_table<uint64_t>(plan, plan.features)[i]);
    if (cpu_feature(name) == FeatureState::kPresent) continue;
    const char* separator = used == 0 ? "" : ", ";
    const int added = snprintf(missing + used, sizeof missing - used, "%s%s", separator, name);
    used += static_cast<size_t>(added);
    if (used >= sizeof missing) break;
  }
  if (used == 0) return true;
  say(message, "this model was compiled for a CPU with %s, which this machine does not have",
      missing);
  return false;
}

// Whether a step does the work of the one before at other sizes.
bool stands_in(const PlanHeader& plan, const PlanStep& step, const PlanStep& before) {
  return step.when.form >= 0 && before.when.form >= 0 &&
         strcmp(plan_string(plan, step.name), plan_string(plan, before.name)) == 0;
}

// More threads than CPUs hold each other up, and more than the tiles of the widest step, or of the
// widest that run together, never work.
int threads_for(const PlanHeader& plan, const ModelOptions& options) {
  int wanted = options.num_threads;
  if (options.parallel_for == nullptr || wanted == 0) {
    const int cpus = usable_cpus();
    if (wanted == 0 || wanted > cpus) wanted = cpus;
  }
  int64_t most = 1, width = 0, last = 0;
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    const PlanStep& step = plan_table<PlanStep>(plan, plan.steps)[i];
    if (runs_on_device(plan, step)) continue;
    int64_t own = step.num_tiles < kMaxThreads ? step.num_tiles : kMaxThreads;
    if (step.max_threads > 0 && step.max_threads < own) own = step.max_threads;
    // Of steps for different sizes, a run has one.
    const bool instead =
        i > 0 && stands_in(plan, step, plan_table<PlanStep>(plan, plan.steps)[i - 1]);
    const int64_t others = !instead ? (step.joins == 1 ? width : 0) : width - last;
    last = instead && last > own ? last : own;
    width = others + last;
    if (width > most) most = width;
  }
  return wanted > most ? static_cast<int>(most) : wanted;
}

// Where a device has the arena, the host needs a copy for its own steps and for shapes.
bool needs_arena(const PlanHeader& plan) {
  if (plan.device == DeviceKind::kNone) return true;
  for (uint32_t i = 0; i < plan.num_steps; ++i)
    if (!runs_on_device(plan, plan_table<PlanStep>(plan, plan.steps)[i])) return true;
  for (uint32_t i = 0; i < plan.num_outputs; ++i)
    if (plan_output(plan, static_cast<int>(i)).actual_shape >= 0) return true;
  return false;
}

bool map_memory(Model& model) {
  const PlanHeader& plan = *model.plan;
  const int64_t arena = needs_arena(plan) ? round_up(plan.arena_bytes, kPage) : 0;
  int64_t staging = 0;
  for (int i = 0; i < num_tensors(plan); ++i)
    staging += round_up(tensor_at(plan, i).bytes, kBufferAlignment);
  staging = round_up(staging, kPage);
  model.scratch_stride = scratch_stride_of(plan);
  const int64_t total = arena + staging + model.scratch_stride * pool_num_threads(model.pool);
  // Room to start on a huge page. Staging that no run needs costs address space only.
  model.memory_bytes = round_up(total, kPage) + kHugePage;
  void* mapped = mmap(nullptr, static_cast<size_t>(model.memory_bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  model.memory = static_cast<char*>(mapped);
  const int64_t address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(mapped));
  char* start = model.memory + (round_up(address, kHugePage) - address);
  model.arena = start;
  // With a device, only what steps of the host touch is ever used.
  if (plan.device == DeviceKind::kNone) {
    if (arena >= kHugePage) madvise(start, static_cast<size_t>(arena), MADV_HUGEPAGE);
    for (uint32_t i = 0; i < plan.num_zeroed; ++i) {
      const PlanRegion& region = plan_table<PlanRegion>(plan, plan.zeroed)[i];
      memset(start + region.offset, 0, static_cast<size_t>(region.bytes));
    }
    // Page faults belong here, not into the first run.
    for (int64_t i = 0; i < plan.arena_bytes; i += kPage)
      *static_cast<volatile char*>(start + i) = 0;
  }
  char* next = start + arena;
  for (int i = 0; i < num_tensors(plan); ++i) {
    model.staging[i] = next;
    next += round_up(tensor_at(plan, i).bytes, kBufferAlignment);
  }
  model.scratch = start + arena + staging;
  // The arena's base is that of argument kind kArena.
  for (uint32_t i = 0; i < plan.num_arguments; ++i) {
    const PlanArgument& argument = plan_table<PlanArgument>(plan, plan.arguments)[i];
    if (argument.kind == ArgumentKind::kArena) model.arguments[i] = start + argument.offset;
  }
  return true;
}

// Lists the phases that have tiles. Of phases that join, the first one that is left begins.
void list_needed(Model& model) {
  if (model.needed == nullptr) return;
  model.num_needed = 0;
  bool begun = false;
  for (uint32_t i = 0; i < model.plan->num_steps; ++i) {
    const PhaseCall& phase = model.phases[i];
    begun = begun && phase.joins;
    if (phase.num_tiles == 0) continue;
    model.needed[model.num_needed] = phase;
    model.needed[model.num_needed++].joins = begun;
    begun = true;
  }
}

bool fill(Model& model, const ModelOptions& options, char* message) {
  const PlanHeader& plan = *model.plan;
  if (!allocate(model.staging, static_cast<uint64_t>(num_tensors(plan))) ||
      !allocate(model.phases, plan.num_steps) || !allocate(model.arguments, plan.num_arguments) ||
      !allocate(model.given, plan.num_arguments) || !allocate(model.step_ns, plan.num_steps) ||
      (plan.num_loops > 0 && !allocate(model.turn_ns, plan.num_steps)) ||
      (varies(plan) && !allocate(model.needed, plan.num_steps))) {
    say(message, "out of memory");
    return false;
  }
  model.pool = pool_create({.num_threads = threads_for(plan, options),
                            .spin_ns = options.spin_ns,
                            .parallel_for = options.parallel_for,
                            .owner = options.owner});
  if (model.pool == nullptr) {
    say(message, "cannot start the threads");
    return false;
  }
  if (!map_memory(model)) {
    say(message, "cannot get %lld bytes of memory", static_cast<long long>(model.memory_bytes));
    return false;
  }
  if (!sizes_create(model.sizes, plan)) {
    say(message, "out of memory");
    return false;
  }
  const char* weights = static_cast<const char*>(model.image.weights);
  for (uint32_t i = 0; i < plan.num_arguments; ++i) {
    const PlanArgument& argument = plan_table<PlanArgument>(plan, plan.arguments)[i];
    if (argument.kind == ArgumentKind::kWeight)
      model.arguments[i] = const_cast<char*>(weights + argument.offset);
    if (argument.kind == ArgumentKind::kInput || argument.kind == ArgumentKind::kOutput)
      model.given[model.num_given++] = i;
  }
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    const PlanStep& step = plan_table<PlanStep>(plan, plan.steps)[i];
    if (!runs_on_device(plan, step) && model.image.kernels[step.kernel] == nullptr) {
      say(message, "damaged model: a kernel has no code");
      return false;
    }
    model.phases[i] = {model.image.kernels[step.kernel],
                       model.arguments + step.first_argument,
                       tiles_of(step, model.sizes.forms),
                       step.max_threads,
                       step.joins == 1,
                       step.units};
  }
  list_needed(model);
  return true;
}

// The weights are mapped from the artifact's file: read them in now (Linux 5.14; an older kernel
// refuses, and the first run does it).
void populate_weights(const Model& model) {
#ifdef MADV_POPULATE_READ
  const uintptr_t first = reinterpret_cast<uintptr_t>(model.image.weights) & ~uintptr_t{kPage - 1};
  const uintptr_t last = reinterpret_cast<uintptr_t>(model.image.weights) +
                         static_cast<uintptr_t>(model.plan->weight_bytes);
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_READ);
#endif
}

bool aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % kBufferAlignment == 0;
}

// Checks that the caller gave all arrays.
bool arrays_given(Model& model, const void* const* inputs, void* const* outputs) {
  const PlanHeader& plan = *model.plan;
  if ((plan.num_inputs > 0 && inputs == nullptr) || (plan.num_outputs > 0 && outputs == nullptr)) {
    say(model.error, "the list of %s is a null pointer",
        plan.num_inputs > 0 && inputs == nullptr ? "inputs" : "outputs");
    return false;
  }
  const int num_inputs = static_cast<int>(plan.num_inputs);
  for (int i = 0; i < num_tensors(plan); ++i) {
    const bool is_input = i < num_inputs;
    const PlanTensor& tensor = tensor_at(plan, i);
    if ((is_input ? inputs[i] : outputs[i - num_inputs]) != nullptr || model.sizes.bytes[i] == 0)
      continue;
    say(model.error, "%s '%s' is a null pointer", is_input ? "input" : "output",
        plan_string(plan, tensor.name));
    return false;
  }
  return true;
}

// Returns whether kernels use a caller's array, which then has all elements that they may touch.
bool in_place(const Model& model, int tensor, const void* array) {
  return aligned(array) && model.sizes.is_whole[tensor];
}

// Points the arguments at this run's arrays.
void bind_arrays(Model& model, const void* const* inputs, void* const* outputs) {
  const PlanHeader& plan = *model.plan;
  const int num_inputs = static_cast<int>(plan.num_inputs);
  for (int i = 0; i < num_inputs; ++i) {
    const PlanTensor& tensor = tensor_at(plan, i);
    if (!model.sizes.is_whole[i])
      copy_from_dense(model.sizes, i, inputs[i], model.staging[i]);
    else if (!aligned(inputs[i]) && tensor.bytes > 0)
      memcpy(model.staging[i], inputs[i], static_cast<size_t>(tensor.bytes));
  }
  for (uint32_t k = 0; k < model.num_given; ++k) {
    const uint32_t i = model.given[k];
    const PlanArgument& argument = plan_table<PlanArgument>(plan, plan.arguments)[i];
    const bool is_input = argument.kind == ArgumentKind::kInput;
    const int tensor = is_input ? argument.index : num_inputs + argument.index;
    const void* given = is_input ? inputs[argument.index] : outputs[argument.index];
    char* base = in_place(model, tensor, given) ? static_cast<char*>(const_cast<void*>(given))
                                                : model.staging[tensor];
    model.arguments[i] = base + argument.offset;
  }
}

void copy_out(Model& model, void* const* outputs) {
  const PlanHeader& plan = *model.plan;
  for (uint32_t i = 0; i < plan.num_outputs; ++i) {
    const PlanTensor& tensor = plan_output(plan, static_cast<int>(i));
    const auto index = static_cast<int>(plan.num_inputs + i);
    if (!model.sizes.is_whole[index])
      copy_to_dense(model.sizes, index, model.staging[index], outputs[i]);
    else if (!aligned(outputs[i]) && tensor.bytes > 0)
      memcpy(outputs[i], model.staging[index], static_cast<size_t>(tensor.bytes));
  }
}

int run_on_host(Model& model, const void* const* inputs, void* const* outputs) {
  bind_arrays(model, inputs, outputs);
  if (model.plan->sizes >= 0)
    memcpy(model.arena + model.plan->sizes, model.sizes.forms, sizeof model.sizes.forms);
  if (const int result = run_steps(model)) return result;
  copy_out(model, outputs);
  return 0;
}

}  // namespace

Model* model_create(const ModelImage& image, const ModelOptions& options, char* message) {
  message[0] = '\0';
  const int num_threads = options.num_threads;
  if (num_threads < 0 || num_threads > kMaxThreads) {
    say(message, "%d threads wanted, expected 0 (all cores) to %d", num_threads, kMaxThreads);
    return nullptr;
  }
  if (const char* wrong = plan_check(image.plan, image.plan_bytes)) {
    say(message, "damaged model: %s", wrong);
    return nullptr;
  }
  const PlanHeader& plan = *static_cast<const PlanHeader*>(image.plan);
  if (!cpu_has_features(plan, message)) return nullptr;
  if (plan.device != DeviceKind::kNone && image.devices == nullptr) {
    say(message, "the model is for a device, but was linked without the part that runs it");
    return nullptr;
  }
  void* memory = malloc(sizeof(Model));
  if (memory == nullptr) {
    say(message, "out of memory");
    return nullptr;
  }
  Model* model = new (memory) Model;
  model->image = image;
  model->plan = &plan;
  if (!fill(*model, options, message)) {
    model_destroy(model);
    return nullptr;
  }
  populate_weights(*model);
  if (plan.device == DeviceKind::kNone) return model;
  model->device = image.devices->create(*model, options, message);
  if (model->device == nullptr) {
    model_destroy(model);
    return nullptr;
  }
  return model;
}

void model_destroy(Model* model) {
  if (model == nullptr) return;
  if (model->device != nullptr) model->image.devices->destroy(model->device);
  pool_destroy(model->pool);
  if (model->memory != nullptr && !model->is_in_use)
    munmap(model->memory, static_cast<size_t>(model->memory_bytes));
  free(model->staging);
  free(model->phases);
  free(model->needed);
  free(model->chosen);
  free(model->chosen_steps);
  sizes_destroy(model->sizes);
  free(model->arguments);
  free(model->given);
  free(model->step_ns);
  free(model->spans);
  free(model->turn_ns);
  free(model);
}

const PlanHeader& model_plan(const Model& model) { return *model.plan; }

int model_num_threads(const Model& model) { return pool_num_threads(model.pool); }

namespace {

// A run that was under way when this process was forked is its parent's and ends there.
bool take(Model& model) {
  const pid_t self = pool_process(model.pool);
  pid_t other = 0;
  while (!model.running.compare_exchange_strong(other, self, std::memory_order_acquire)) {
    if (other == self) return false;
  }
  return true;
}

}  // namespace

namespace {

// Calls run(), unless a run of the model is under way.
template <typename Run>
int alone(Model& model, const Run& run) {
  if (!take(model)) {
    model.refused.store(true, std::memory_order_relaxed);
    return 1;
  }
  model.refused.store(false, std::memory_order_relaxed);
  model.error[0] = '\0';
  const int result = run();
  model.running.store(0, std::memory_order_release);
  return result;
}

// Likewise, if the arrays are there and their shapes agree.
template <typename Run>
int run_alone(Model& model, const void* const* inputs, void* const* outputs, const Run& run) {
  return alone(model, [&] {
    if (model.sizes.conflict[0] != '\0') return model_fail(model, model.sizes.conflict);
    return arrays_given(model, inputs, outputs) ? run() : 1;
  });
}

}  // namespace

int model_run(Model& model, const void* const* inputs, void* const* outputs) {
  return run_alone(model, inputs, outputs, [&] {
    return model.device == nullptr ? run_on_host(model, inputs, outputs)
                                   : model.image.devices->run(*model.device, inputs, outputs);
  });
}

int model_run_device(Model& model, const void* const* inputs, void* const* outputs, void* stream) {
  return run_alone(model, inputs, outputs, [&] {
    if (model.device != nullptr)
      return model.image.devices->run_there(*model.device, inputs, outputs, stream);
    return model_fail(model, "the model runs on the CPU and has no memory of a device: call run");
  });
}

const char* model_device(const Model& model) {
  return model.device == nullptr ? "" : model.image.devices->name(*model.device);
}

int64_t model_device_bytes(const Model& model) {
  return model.device == nullptr ? 0 : model.image.devices->bytes(*model.device);
}

bool model_choose(Model& model, const int32_t* steps, int32_t count) {
  const auto available = static_cast<int32_t>(model.plan->num_steps);
  if (count < 0 || count > available) return false;  // profiles have room for so many
  for (int32_t i = 0; i < count; ++i) {
    if (steps[i] < 0 || steps[i] >= available) return false;
  }
  if (model.device != nullptr) return model.image.devices->choose(*model.device, steps, count);
  if (model.chosen == nullptr) {
    // Runs read `chosen`: it is there only if both are.
    PhaseCall* chosen = nullptr;
    if (model.chosen_steps == nullptr && !allocate(model.chosen_steps, model.plan->num_steps))
      return false;
    if (!allocate(chosen, model.plan->num_steps)) return false;
    model.chosen = chosen;
  }
  for (int32_t i = 0; i < count; ++i) {
    model.chosen_steps[i] = steps[i];
    model.chosen[i] = model.phases[steps[i]];
    model.chosen[i].joins = false;  // the steps before may be others
  }
  model.num_chosen = count;
  pool_expect_other_work(model.pool);
  return true;
}

namespace {

// Makes the steps run as many tiles as the sizes need.
void set_tiles(Model& model) {
  const PlanHeader& plan = *model.plan;
  for (uint32_t i = 0; i < plan.num_steps; ++i)
    model.phases[i].num_tiles =
        tiles_of(plan_table<PlanStep>(plan, plan.steps)[i], model.sizes.forms);
  for (int64_t i = 0; i < model.num_chosen; ++i)
    model.chosen[i].num_tiles = model.phases[model.chosen_steps[i]].num_tiles;
  list_needed(model);
  pool_expect_other_work(model.pool);
}

}  // namespace

int model_set_input_shape(Model& model, int input, int rank, const int64_t* dims) {
  return alone(model, [&] {
    if (!sizes_set(model.sizes, input, rank, dims, model.error)) return 1;
    set_tiles(model);
    return 0;
  });
}

const int64_t* model_input_shape(const Model& model, int input) {
  if (model.sizes.conflict[0] != '\0') return nullptr;
  return model.sizes.shapes + int64_t{input} * kMaxRank;
}

const int64_t* model_least_input_shape(const Model& model, int input) {
  return model.sizes.least + int64_t{input} * kMaxRank;
}

const int64_t* model_output_shape(const Model& model, int output) {
  const PlanTensor& tensor = plan_output(*model.plan, output);
  if (tensor.actual_shape >= 0)
    return reinterpret_cast<const int64_t*>(model.arena + tensor.actual_shape);
  if (model.sizes.conflict[0] != '\0') return nullptr;
  return model.sizes.shapes + int64_t{output + static_cast<int>(model.plan->num_inputs)} * kMaxRank;
}

const char* model_shape_conflict(const Model& model) { return model.sizes.conflict; }

const char* model_last_error(const Model& model) {
  const bool refused = model.refused.load(std::memory_order_relaxed);
  return refused ? "the model is running in another thread" : model.error;
}

int model_fail(Model& model, const char* message) {
  say(model.error, "%s", message);
  return 1;
}

void model_profile(Model& model, bool enable) {
  model.profile = enable;
  if (enable) memset(model.step_ns, 0, model.plan->num_steps * sizeof(int64_t));
}

bool model_trace(Model& model, bool enable) {
  const uint64_t count =
      uint64_t{model.plan->num_steps} * static_cast<uint64_t>(pool_num_threads(model.pool));
  if (enable && model.spans == nullptr && !allocate(model.spans, count)) return false;
  if (enable) memset(model.spans, 0, count * sizeof(ThreadSpan));
  model.trace = enable;
  if (enable) model_profile(model, true);
  return true;
}

bool model_step_span(const Model& model, int step, int thread, int64_t* begin_ns, int64_t* end_ns) {
  if (!model.trace) return false;
  const ThreadSpan& span = model.spans[int64_t{step} * pool_num_threads(model.pool) + thread];
  if (span.end_ns == 0) return false;
  *begin_ns = span.begin_ns - model.start_ns;
  *end_ns = span.end_ns - model.start_ns;
  return true;
}

double model_step_seconds(const Model& model, int step) {
  const FloatMode mode;  // the product is not exact, which the caller may have made a trap
  // Volatile: computed between the changes of the mode.
  const volatile int64_t ns = model.step_ns[step];
  const volatile double seconds = static_cast<double>(ns) * 1e-9;
  return seconds;
}

}  // namespace hone::runtime
