#include "hone/cost/pretrained.h"

// HONE_GBDT_MODEL and HONE_COMBINED_MODEL are paths, set by the build.
__asm__(
    ".pushsection .rodata\n"
    "hone_gbdt_model:\n"
    ".incbin \"" HONE_GBDT_MODEL
    "\"\n"
    "hone_gbdt_model_end:\n"
    "hone_combined_model:\n"
    ".incbin \"" HONE_COMBINED_MODEL
    "\"\n"
    "hone_combined_model_end:\n"
    ".globl hone_gbdt_model, hone_gbdt_model_end, hone_combined_model, hone_combined_model_end\n"
    ".hidden hone_gbdt_model, hone_gbdt_model_end, hone_combined_model, hone_combined_model_end\n"
    ".popsection\n");

extern "C" {
__attribute__((visibility("hidden"))) extern const char hone_gbdt_model[];
__attribute__((visibility("hidden"))) extern const char hone_gbdt_model_end[];
__attribute__((visibility("hidden"))) extern const char hone_combined_model[];
__attribute__((visibility("hidden"))) extern const char hone_combined_model_end[];
}

namespace hone::cost {

std::string_view pretrained_text(FeatureSet features) {
  if (features == FeatureSet::kStatements)
    return {hone_gbdt_model, static_cast<size_t>(hone_gbdt_model_end - hone_gbdt_model)};
  return {hone_combined_model, static_cast<size_t>(hone_combined_model_end - hone_combined_model)};
}

}  // namespace hone::cost
