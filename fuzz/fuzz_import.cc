// Any bytes as a model (check_import.h): real models, random ones of known operators, and what
// mutations make of them. With libFuzzer, models are changed as such.
#include <onnx/onnx_pb.h>

#include "check_import.h"
#include "fuzz.h"
#include "model_bytes.h"

std::string hone::fuzz::make_input(Rng& rng) {
  const bool real = rng.chance(0.6);
  onnx::ModelProto model = real ? real_model(rng) : random_model(rng);
  for (int64_t n = real ? rng.between(0, 3) : rng.below(2); n > 0; --n) mutate_model(model, rng);
  std::string bytes = model.SerializeAsString();
  if (rng.chance(0.05)) {
    for (int64_t n = rng.between(1, 3); n > 0; --n) mutate_bytes(bytes, rng);
  }
  return bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::fuzz::check_import(data, size);
  return 0;
}
