#include "hone/machine/loaded_kernels.h"

#include "hone/artifact/elf_object.h"
#include "hone/backend/registry.h"
#include "hone/runtime/cpu_features.h"

namespace hone::machine {
namespace {

// Code of another instruction set would end this process.
Status check_machine(const backend::Executable& executable) {
  if (executable.kind == target::Kind::kGpu) return ok_status();  // the plan holds its code
  HONE_ASSIGN_OR_RETURN(const artifact::Machine machine,
                        artifact::object_machine(executable.code.str()));
  if (machine == artifact::host_machine()) return ok_status();
  return error(Code::kUnsupported, "this CPU lacks the instruction set {}, which the device has",
               artifact::machine_name(machine));
}

}  // namespace

Result<LoadedKernels> load_kernels(const artifact::ArtifactSpec& spec) {
  for (const backend::Executable& executable : spec.executables)
    HONE_RETURN_IF_ERROR(check_machine(executable));
  for (const std::string& feature : spec.features) {
    if (runtime::cpu_feature(feature.c_str()) != runtime::FeatureState::kPresent)
      return error(Code::kUnsupported, "this CPU lacks {}, which the device has", feature);
  }
  LoadedKernels kernels;
  for (const backend::Executable& executable : spec.executables) {
    if (executable.kind == target::Kind::kGpu) continue;
    HONE_ASSIGN_OR_RETURN(backend::LoadedPtr code, backend::load(executable));
    kernels.code.push_back(std::move(code));
  }
  const std::vector<artifact::KernelPlace> places = artifact::kernel_places(spec);
  for (size_t k = 0; k < places.size(); ++k) {
    const std::string& symbol = spec.kernel_symbols[k];
    hone_kernel found = nullptr;
    if (places[k].entry != nullptr) {
      kernels.functions.push_back(nullptr);
      continue;
    }
    for (size_t i = 0; i < kernels.code.size() && found == nullptr; ++i)
      found = kernels.code[i]->function(symbol);
    if (found == nullptr) return error(Code::kInternal, "compiled code has no symbol {}", symbol);
    kernels.functions.push_back(found);
  }
  return kernels;
}

}  // namespace hone::machine
