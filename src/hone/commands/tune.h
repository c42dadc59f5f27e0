// tune.h - the public interface: makes a native library of an ONNX model, tuned by measuring or
// compiled with the best schedules that are known or predicted.
//
//   hone::tune("resnet18.onnx", "resnet18.so", {.budget_seconds = 60});
//   auto model = hone::load("resnet18.so");
//   auto outputs = model->run(inputs);
#pragma once

#include <string>

#include "hone/artifact/loaded_model.h"
#include "hone/commands/tune_options.h"

namespace hone {

// Compiles or tunes a model and writes its library. Bad input is Code::kInvalid, kNotFound or
// kUnsupported, and nothing is written then.
[[nodiscard]] Result<CompileSummary> compile(const std::string& model, const std::string& output,
                                             const CompileOptions& options = {});
[[nodiscard]] Result<CompileSummary> compile(graph::Graph graph, const std::string& output,
                                             const CompileOptions& options = {});
[[nodiscard]] Result<TuneSummary> tune(const std::string& model, const std::string& output,
                                       const TuneOptions& options = {});
[[nodiscard]] Result<TuneSummary> tune(graph::Graph graph, const std::string& output,
                                       const TuneOptions& options = {});
// Loads a library. With `num_threads` of 0 it runs on all cores that this process may use.
[[nodiscard]] Result<artifact::LoadedModel> load(const std::string& library, int num_threads = 0);

}  // namespace hone
