#include "hone/cost/pretrained.h"

// HONE_PRETRAINED is the folder of the files, set by the build.
#define HONE_EMBED(symbol, file)                                          \
  __asm__(".pushsection .rodata\n" #symbol                                \
          ":\n"                                                           \
          ".incbin \"" HONE_PRETRAINED "/" file "\"\n" #symbol            \
          "_end:\n"                                                       \
          ".globl " #symbol ", " #symbol                                  \
          "_end\n"                                                        \
          ".hidden " #symbol ", " #symbol                                 \
          "_end\n"                                                        \
          ".popsection\n");                                               \
  extern "C" {                                                            \
  __attribute__((visibility("hidden"))) extern const char symbol[];       \
  __attribute__((visibility("hidden"))) extern const char symbol##_end[]; \
  }

HONE_EMBED(hone_gbdt_model, "gbdt.model")
HONE_EMBED(hone_combined_model, "combined.model")
HONE_EMBED(hone_combined_znver5_model, "combined-znver5.model")

namespace hone::cost {
namespace {

std::string_view text(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::span<const Pretrained> pretrained_models() {
  static const Pretrained all[] = {
      {"gbdt", FeatureSet::kStatements, text(hone_gbdt_model, hone_gbdt_model_end)},
      {"combined", FeatureSet::kCombined, text(hone_combined_model, hone_combined_model_end)},
      {"combined-znver5", FeatureSet::kCombined,
       text(hone_combined_znver5_model, hone_combined_znver5_model_end)},
  };
  return all;
}

}  // namespace hone::cost
