// The same interface from C++: owns the model by a unique_ptr, and prints what each kernel took.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "model.h"  // generated beside the library

namespace {

using Model = std::unique_ptr<hone_model, void (*)(hone_model*)>;
using InfoFunction = int(const hone_model*, int, int*, int*, const int64_t**);

// Values of any type, as 8-byte words; the model copies arrays that are not aligned to 64 bytes.
std::vector<std::vector<uint64_t>> make_arrays(const hone_model* model, int count,
                                               InfoFunction* info) {
  std::vector<std::vector<uint64_t>> arrays;
  for (int i = 0; i < count; ++i) {
    int rank = 0;
    const int64_t* shape = nullptr;
    info(model, i, nullptr, &rank, &shape);
    size_t elements = 1;
    for (int d = 0; d < rank; ++d) elements *= static_cast<size_t>(shape[d]);
    arrays.emplace_back(elements + 1);  // no type is wider than a word
  }
  return arrays;
}

}  // namespace

int main(int argc, char** argv) {
  hone_model* created = nullptr;
  if (hone_model_create(&created, argc > 1 ? std::atoi(argv[1]) : 0) != 0) {
    std::fprintf(stderr, "cannot start the model: %s\n", hone_model_last_error(nullptr));
    return 1;
  }
  const Model model(created, hone_model_destroy);
  auto inputs = make_arrays(created, hone_model_num_inputs(created), hone_model_input_info);
  auto outputs = make_arrays(created, hone_model_num_outputs(created), hone_model_output_info);
  std::vector<const void*> in;
  std::vector<void*> out;
  for (auto& array : inputs) in.push_back(array.data());
  for (auto& array : outputs) out.push_back(array.data());

  hone_model_profile(created, 1);
  for (int run = 0; run < 3; ++run) {
    if (hone_model_run(created, in.data(), out.data()) == 0) continue;
    std::fprintf(stderr, "run failed: %s\n", hone_model_last_error(created));
    return 1;
  }
  for (int i = 0; i < hone_model_num_steps(created); ++i) {
    const double seconds = hone_model_step_seconds(created, i);
    const double rate = seconds > 0 ? hone_model_step_flops(created, i) / seconds * 1e-9 : 0;
    std::printf("%-40s %-24s %9.3f ms %9.2f GFLOP/s\n", hone_model_step_name(created, i),
                hone_model_step_class(created, i), seconds * 1e3, rate);
  }
  return 0;
}
