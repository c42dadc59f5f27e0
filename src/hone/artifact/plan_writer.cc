// Encodes an ArtifactSpec as the binary plan that the runtime reads.
#include <cstring>
#include <map>

#include "hone/artifact/artifact.h"
#include "hone/base/round_up.h"
#include "hone/runtime/cpu_features.h"
#include "hone/runtime/device/code.h"
#include "hone/runtime/device/device.h"

namespace hone::artifact {
namespace {

using runtime::PlanArgument;
using runtime::PlanDim;
using runtime::PlanForm;
using runtime::PlanHeader;
using runtime::PlanKernel;
using runtime::PlanLoop;
using runtime::PlanModule;
using runtime::PlanPart;
using runtime::PlanRegion;
using runtime::PlanStep;
using runtime::PlanSymbol;
using runtime::PlanTensor;
using runtime::PlanTerm;

// A block of bytes that grows at its end; everything starts on 8 bytes.
class Block {
 public:
  uint64_t reserve(size_t size) {
    const uint64_t place = bytes_.size();
    bytes_.resize(place + (size + 7) / 8 * 8);
    return place;
  }
  uint64_t add(const void* data, size_t size) {
    const uint64_t place = reserve(size);
    if (size > 0) std::memcpy(bytes_.data() + place, data, size);
    return place;
  }
  uint64_t add(const std::string& text) { return add(text.c_str(), text.size() + 1); }
  template <typename T>
  uint64_t add(const std::vector<T>& table) {
    return add(table.data(), table.size() * sizeof(T));
  }
  void put(uint64_t place, const void* data, size_t size) {
    std::memcpy(bytes_.data() + place, data, size);
  }
  [[nodiscard]] uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

PlanTensor encode_tensor(const ArtifactTensor& tensor, Block& block) {
  PlanTensor entry = {};
  entry.name = block.add(tensor.name);
  entry.shape = block.add(tensor.shape);
  entry.dtype = static_cast<int32_t>(tensor.dtype);
  entry.rank = static_cast<int32_t>(tensor.shape.size());
  entry.bytes = dtype_bytes(tensor.dtype);
  for (const int64_t dim : tensor.shape) entry.bytes *= dim;
  entry.actual_shape = tensor.actual_shape;
  return entry;
}

// The tables about sizes that the shapes of the inputs decide.
struct SizePart {
  std::vector<PlanSymbol> symbols;
  std::vector<PlanForm> forms;
  std::vector<PlanTerm> terms;
  std::vector<uint32_t> factors;
  std::vector<PlanPart> parts;
};

SizePart encode_sizes(const ArtifactSpec& spec, Block& block) {
  SizePart sizes;
  for (const ArtifactSymbol& symbol : spec.symbols)
    sizes.symbols.push_back({block.add(symbol.name), symbol.min, symbol.max});
  for (const ArtifactForm& form : spec.forms) {
    sizes.forms.push_back({form.offset, form.divisor, form.least, form.most,
                           static_cast<uint32_t>(sizes.terms.size()),
                           static_cast<uint32_t>(form.terms.size())});
    for (const ArtifactTerm& term : form.terms) {
      sizes.terms.push_back({term.factor, static_cast<uint32_t>(sizes.factors.size()),
                             static_cast<uint32_t>(term.symbols.size())});
      for (const int symbol : term.symbols) sizes.factors.push_back(static_cast<uint32_t>(symbol));
    }
  }
  return sizes;
}

// Returns the place of the table of a tensor's dimensions; 0 if none varies.
uint64_t encode_dims(const ArtifactSpec& spec, const ArtifactTensor& tensor, SizePart& sizes,
                     Block& block) {
  if (tensor.dims.empty()) return 0;
  std::vector<PlanDim> dims;
  for (const std::vector<ArtifactPart>& dim : tensor.dims) {
    dims.push_back({block.add(dim_text(spec, dim)), static_cast<uint32_t>(sizes.parts.size()),
                    static_cast<uint32_t>(dim.size())});
    for (const ArtifactPart& part : dim) sizes.parts.push_back({part.form, 0, part.most});
  }
  return block.add(dims);
}

void put_sizes(const ArtifactSpec& spec, const SizePart& sizes, Block& block, PlanHeader& header) {
  header.symbols = block.add(sizes.symbols);
  header.forms = block.add(sizes.forms);
  header.terms = block.add(sizes.terms);
  header.factors = block.add(sizes.factors);
  header.parts = block.add(sizes.parts);
  header.num_symbols = static_cast<uint32_t>(sizes.symbols.size());
  header.num_forms = static_cast<uint32_t>(sizes.forms.size());
  header.num_terms = static_cast<uint32_t>(sizes.terms.size());
  header.num_factors = static_cast<uint32_t>(sizes.factors.size());
  header.num_parts = static_cast<uint32_t>(sizes.parts.size());
  header.sizes = spec.sizes;
}

void put_loops(const ArtifactSpec& spec, Block& block, PlanHeader& header) {
  std::vector<PlanLoop> loops = plan_loops(spec);
  for (size_t i = 0; i < loops.size(); ++i) {
    loops[i].name = block.add(spec.loops[i].name);
    loops[i].beyond = block.add(spec.loops[i].beyond);
  }
  header.loops = block.add(loops);
  header.copies = block.add(spec.copies);
  header.num_loops = static_cast<uint32_t>(loops.size());
  header.num_copies = static_cast<uint32_t>(spec.copies.size());
}

// Says in words what plan_check() would refuse with few.
Status check_dims(const ArtifactSpec& spec, const ArtifactTensor& tensor) {
  if (tensor.dims.empty()) return ok_status();
  if (tensor.dims.size() != tensor.shape.size())
    return invalid("'{}' has {} dimensions, {} of them with parts", tensor.name,
                   tensor.shape.size(), tensor.dims.size());
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    for (const ArtifactPart& part : tensor.dims[d]) {
      if (part.form >= std::ssize(spec.forms))
        return invalid("'{}' has form {}, but there are {}", tensor.name, part.form,
                       spec.forms.size());
    }
  }
  return ok_status();
}

// Returns whether the kernel runs on the host beside a device. Only then what it touches is of
// interest.
bool works_on_copies(const ArtifactSpec& spec, const ArtifactStep& step,
                     const std::vector<KernelPlace>& places) {
  return spec.device != runtime::DeviceKind::kNone &&
         places[static_cast<size_t>(step.kernel)].entry == nullptr;
}

Status check_step(const ArtifactSpec& spec, const ArtifactStep& step,
                  const std::vector<KernelPlace>& places) {
  if (step.kernel < 0 || static_cast<size_t>(step.kernel) >= spec.kernel_symbols.size())
    return invalid("step {} has kernel {}, but there are {}", step.name, step.kernel,
                   spec.kernel_symbols.size());
  if (places[static_cast<size_t>(step.kernel)].entry != nullptr &&
      step.arguments.size() > static_cast<size_t>(runtime::kMaxDeviceArguments))
    return invalid("step {} has {} arguments, on a device at most {} are possible", step.name,
                   step.arguments.size(), runtime::kMaxDeviceArguments);
  const bool needs_bytes = works_on_copies(spec, step, places);
  for (const ArtifactArgument& argument : step.arguments) {
    if (needs_bytes && argument.bytes < 0)
      return invalid(
          "step {} runs on the host, beside a device, and does not say how many bytes "
          "of an argument it touches",
          step.name);
    if (argument.kind != ArgumentKind::kWeight) continue;
    if (argument.index < 0 || static_cast<size_t>(argument.index) >= spec.weights.size())
      return invalid("step {} reads weight {}, but there are {}", step.name, argument.index,
                     spec.weights.size());
  }
  return ok_status();
}

// The inputs, then the outputs.
Result<std::vector<PlanTensor>> encode_tensors(const ArtifactSpec& spec, SizePart& sizes,
                                               Block& block) {
  std::vector<PlanTensor> tensors;
  for (const auto* list : {&spec.inputs, &spec.outputs}) {
    for (const ArtifactTensor& tensor : *list) {
      HONE_RETURN_IF_ERROR(check_dims(spec, tensor));
      tensors.push_back(encode_tensor(tensor, block));
      tensors.back().dims = encode_dims(spec, tensor, sizes, block);
    }
  }
  return tensors;
}

PlanStep encode_step(const ArtifactStep& step, size_t arguments_before, Block& block) {
  PlanStep entry = {};
  entry.name = block.add(step.name);
  entry.kernel_class = block.add(step.kernel_class);
  entry.flops = step.flops;
  entry.bytes = step.bytes;
  entry.least_flops = step.least_flops;
  entry.num_tiles = step.num_tiles;
  entry.kernel = static_cast<uint32_t>(step.kernel);
  entry.first_argument = static_cast<uint32_t>(arguments_before);
  entry.num_arguments = static_cast<uint32_t>(step.arguments.size());
  entry.max_threads = step.max_threads;
  entry.joins = step.joins ? 1 : 0;
  entry.units = step.units;
  entry.limit = {step.limit.form, 0, step.limit.divisor, step.limit.multiplier};
  entry.when = {step.when.form, 0, step.when.from, step.when.most};
  entry.run = {step.run.form, 0, step.run.least};
  return entry;
}

Result<std::vector<uint64_t>> encode_features(const ArtifactSpec& spec, Block& block) {
  std::vector<uint64_t> features;
  for (const std::string& feature : spec.features) {
    if (runtime::cpu_feature(feature.c_str()) == runtime::FeatureState::kUnknown)
      return invalid("CPU feature {} cannot be checked when the model is loaded", feature);
    features.push_back(block.add(feature));
  }
  return features;
}

// Returns the container alone: back ends may add something of their own behind it. What is none is
// returned whole, for plan_check() to refuse.
std::string_view container_of(const std::string& code) {
  const bool valid = runtime::code_check(code.data(), code.size()) == nullptr;
  const auto* header = reinterpret_cast<const runtime::CodeHeader*>(code.data());
  return std::string_view(code).substr(0, valid ? header->total_bytes : code.size());
}

struct DevicePart {
  std::vector<PlanKernel> kernels;
  std::vector<PlanModule> modules;
};

// The code of an executable is written once, for all of its kernels.
DevicePart encode_device_part(const ArtifactSpec& spec, const std::vector<KernelPlace>& places,
                              Block& block) {
  DevicePart part;
  std::map<int, int32_t> modules;  // by executable
  const uint64_t no_name = block.add(std::string());
  for (const KernelPlace& place : places) {
    if (place.entry == nullptr) {
      part.kernels.push_back({no_name, -1, 1, 0});
      continue;
    }
    const auto next = static_cast<int32_t>(part.modules.size());
    const auto [module, fresh] = modules.emplace(place.executable, next);
    if (fresh) {
      const std::string_view code =
          container_of(spec.executables[static_cast<size_t>(place.executable)].code.str());
      part.modules.push_back({block.add(code.data(), code.size()), code.size()});
    }
    part.kernels.push_back({block.add(place.entry->symbol), module->second, place.entry->threads,
                            place.entry->shared_bytes});
  }
  return part;
}

}  // namespace

std::vector<KernelPlace> kernel_places(const ArtifactSpec& spec) {
  std::map<std::string, KernelPlace> known;
  for (size_t i = 0; i < spec.executables.size(); ++i) {
    if (spec.executables[i].kind != target::Kind::kGpu) continue;
    for (const backend::EntryPoint& entry : spec.executables[i].entries)
      known.emplace(entry.symbol, KernelPlace{static_cast<int>(i), &entry});
  }
  std::vector<KernelPlace> places;
  for (const std::string& symbol : spec.kernel_symbols) {
    const auto found = known.find(symbol);
    places.push_back(found == known.end() ? KernelPlace{} : found->second);
  }
  return places;
}

std::vector<PlanLoop> plan_loops(const ArtifactSpec& spec) {
  std::vector<PlanLoop> loops;
  for (const ArtifactLoop& loop : spec.loops) {
    loops.push_back(loop.plan);
    loops.back().may_want_more = loop.beyond.empty() ? 0 : 1;
  }
  return loops;
}

std::vector<int64_t> weight_offsets(const ArtifactSpec& spec) {
  std::vector<int64_t> offsets;
  int64_t next = 0;
  for (const ArtifactWeight& weight : spec.weights) {
    offsets.push_back(next);
    next += round_up(weight.bytes, runtime::kBufferAlignment);
  }
  offsets.push_back(next);
  return offsets;
}

Result<std::string> encode_plan(const ArtifactSpec& spec) {
  const std::vector<int64_t> weights = weight_offsets(spec);
  Block block;
  block.reserve(sizeof(PlanHeader));
  PlanHeader header = {};
  std::memcpy(header.magic, runtime::kPlanMagic, sizeof header.magic);
  header.version = runtime::kPlanVersion;
  header.num_kernels = static_cast<uint32_t>(spec.kernel_symbols.size());
  header.arena_bytes = spec.arena_bytes;
  header.scratch_bytes = spec.scratch_bytes;
  header.weight_bytes = weights.back();
  header.num_inputs = static_cast<uint32_t>(spec.inputs.size());
  header.num_outputs = static_cast<uint32_t>(spec.outputs.size());
  header.num_steps = static_cast<uint32_t>(spec.steps.size());
  header.num_zeroed = static_cast<uint32_t>(spec.zeroed.size());
  header.num_features = static_cast<uint32_t>(spec.features.size());

  SizePart sizes = encode_sizes(spec, block);
  HONE_ASSIGN_OR_RETURN(const std::vector<PlanTensor> tensors, encode_tensors(spec, sizes, block));
  const std::vector<KernelPlace> places = kernel_places(spec);
  DevicePart device = encode_device_part(spec, places, block);
  std::vector<PlanStep> steps;
  std::vector<PlanArgument> arguments;
  for (const ArtifactStep& step : spec.steps) {
    HONE_RETURN_IF_ERROR(check_step(spec, step, places));
    steps.push_back(encode_step(step, arguments.size(), block));
    const bool tells_bytes = works_on_copies(spec, step, places) || spec.sizes >= 0;
    for (const ArtifactArgument& argument : step.arguments) {
      const bool weight = argument.kind == ArgumentKind::kWeight;
      const int64_t base = weight ? weights[static_cast<size_t>(argument.index)] : 0;
      arguments.push_back({argument.kind, weight ? 0 : argument.index, base + argument.offset,
                           tells_bytes ? std::max<int64_t>(argument.bytes, 0) : 0,
                           tells_bytes && argument.written ? 1 : 0});
    }
  }
  std::vector<PlanRegion> zeroed;
  for (const auto& [offset, bytes] : spec.zeroed) zeroed.push_back({offset, bytes});
  HONE_ASSIGN_OR_RETURN(const std::vector<uint64_t> features, encode_features(spec, block));
  header.num_arguments = static_cast<uint32_t>(arguments.size());
  header.tensors = block.add(tensors);
  header.steps = block.add(steps);
  header.arguments = block.add(arguments);
  header.zeroed = block.add(zeroed);
  header.features = block.add(features);
  header.kernels = block.add(device.kernels);
  header.modules = block.add(device.modules);
  header.num_modules = static_cast<uint32_t>(device.modules.size());
  put_sizes(spec, sizes, block, header);
  put_loops(spec, block, header);
  header.device = spec.device;
  header.device_name = block.add(spec.device_name);
  header.total_bytes = block.size();
  block.put(0, &header, sizeof header);
  std::string bytes = block.take();
  if (const char* wrong = runtime::plan_check(bytes.data(), bytes.size()))
    return invalid("the model cannot be written: {}", wrong);
  return bytes;
}

}  // namespace hone::artifact
