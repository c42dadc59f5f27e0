// Models of kinds that are rare among those of fuzz_import.cc: open dimensions with symbols,
// sequences, optional values, functions of several nodes, branches, types of 8 bits and fewer.
#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "check_import.h"
#include "fuzz.h"
#include "model_bytes.h"

std::string hone::fuzz::make_input(Rng& rng) {
  onnx::ModelProto model = kinds_model(rng);
  for (int64_t n = rng.chance(0.3) ? rng.between(1, 2) : 0; n > 0; --n) mutate_model(model, rng);
  return model.SerializeAsString();
}

std::string hone::fuzz::verdict(uint64_t runs) {
  constexpr uint64_t kEnough = 1000;
  const auto [planned, compared] = import_counts();
  if (runs < kEnough || (planned > runs / 10 && compared > runs / 40)) return "";
  return fmt::format("{} models became tasks, {} were compared, expected more\n", planned,
                     compared);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::fuzz::check_import(data, size);
  return 0;
}
