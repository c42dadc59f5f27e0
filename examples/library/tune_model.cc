// Compiles an ONNX model, tunes it for some seconds, and runs both libraries on the same inputs:
//   tune_model MODEL.onnx LIBRARY.so SECONDS [MEASUREMENTS]
// The inputs are random. They and the outputs are written beside the library, as input_0.npy,
// output_0.npy and so on.
#include <hone/compile.h>
#include <hone/model.h>
#include <hone/npy.h>
#include <hone/open_model.h>
#include <hone/tune.h>
#include <hone/version.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Tensors = std::vector<hone::Tensor>;

constexpr double kTolerance =
    1e-4;  // relative to the largest magnitude; schedules round differently

int failed(const char* what, const hone::Status& status) {
  std::fprintf(stderr, "tune_model: %s: %s\n", what, status.message().c_str());
  return 1;
}

// Returns the largest difference, relative to the largest expected magnitude.
double difference(const hone::Tensor& found, const hone::Tensor& expected) {
  double largest = 0, scale = 1e-30;
  for (int64_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(found.at(i) - expected.at(i)));
    scale = std::max(scale, std::abs(expected.at(i)));
  }
  return largest / scale;
}

hone::Status write_arrays(const std::string& folder, const char* what, const Tensors& arrays) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string file = folder + what + "_" + std::to_string(i) + ".npy";
    if (hone::Status status = hone::write_npy(file, arrays[i]); !status.ok()) return status;
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: tune_model MODEL.onnx LIBRARY.so SECONDS [MEASUREMENTS]\n");
    return 2;
  }
  const std::string model = argv[1], library = argv[2];
  const std::string folder = library.substr(0, library.rfind('/') + 1);

  // Without measuring: the schedules that are known, or that a cost model predicts.
  const std::string untuned = folder + "untuned.so";
  const auto compiled = hone::compile(model, untuned);
  if (!compiled.ok()) return failed("cannot compile the model", compiled.status());

  hone::TuneOptions options;
  options.search.budget_seconds = std::atof(argv[3]);
  options.search.max_trials = argc == 5 ? std::atoi(argv[4]) : 0;
  const auto tuned = hone::tune(model, library, options);
  if (!tuned.ok()) return failed("cannot tune the model", tuned.status());
  std::printf("hone %s: %zu tasks, %d trials\n", std::string(hone::version()).c_str(),
              tuned->compile.tasks.size(), tuned->trials);

  auto before = hone::load(untuned), after = hone::load(library);
  if (!before.ok()) return failed("cannot load the compiled model", before.status());
  if (!after.ok()) return failed("cannot load the tuned model", after.status());
  const auto inputs = hone::arrange_inputs(after->inputs(), {}, /*seed=*/1);
  if (!inputs.ok()) return failed("cannot make inputs", inputs.status());
  const auto expected = before->run(*inputs), outputs = after->run(*inputs);
  if (!expected.ok()) return failed("cannot run the compiled model", expected.status());
  if (!outputs.ok()) return failed("cannot run the tuned model", outputs.status());

  for (size_t i = 0; i < outputs->size(); ++i) {
    const double error = difference((*outputs)[i], (*expected)[i]);
    std::printf("output %s: difference %.2g\n", after->outputs()[i].name.c_str(), error);
    if (!(error <= kTolerance)) return 1;
  }
  for (const auto& status :
       {write_arrays(folder, "input", *inputs), write_arrays(folder, "output", *outputs)})
    if (!status.ok()) return failed("cannot write the arrays", status);
  return 0;
}
