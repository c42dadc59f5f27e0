#include "hone/machine/loaded_kernels.h"

#include "hone/runtime/cpu_features.h"

namespace hone::machine {

Result<LoadedKernels> load_kernels(const artifact::ArtifactSpec& spec) {
  for (const std::string& feature : spec.features) {
    if (runtime::cpu_feature(feature.c_str()) != runtime::FeatureState::kPresent)
      return error(Code::kUnsupported, "this CPU lacks {}, which the device has", feature);
  }
  LoadedKernels kernels;
  for (const std::string& object : spec.objects) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<backend::cpu::LoadedCode> code,
                          backend::cpu::LoadedCode::load(object));
    kernels.code.push_back(std::move(code));
  }
  for (const std::string& symbol : spec.kernel_symbols) {
    void* found = nullptr;
    for (size_t i = 0; i < kernels.code.size() && found == nullptr; ++i)
      found = kernels.code[i]->symbol(symbol);
    if (found == nullptr) return error(Code::kInternal, "compiled code has no symbol {}", symbol);
    kernels.functions.push_back(reinterpret_cast<hone_kernel>(found));
  }
  return kernels;
}

}  // namespace hone::machine
