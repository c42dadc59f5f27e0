// tools/hone/model_file.h - MODEL of `run` and `bench`: an artifact, or an ONNX model that is
// compiled first into a folder that goes away with this object.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "hone/artifact/loaded_model.h"
#include "hone/base/file.h"
#include "hone/session/compile_options.h"

namespace hone::tool {

struct ModelFileOptions {
  int threads = 0;
  std::string db;                       // for an ONNX model: where best schedules are looked up
  std::map<std::string, Shape> shapes;  // of inputs that an ONNX model leaves open
  bool linked_data = false;             // this and the next two: CompileOptions
  std::string accuracy = CompileOptions().accuracy;
  int64_t max_memory = 0;
  std::map<std::string, Tensor> bind;       // inputs of an ONNX model that become constants
  std::map<std::string, Tensor> available;  // likewise, where a value decides a shape
};

struct ModelFile {
  std::optional<TempDir> folder;  // of the library made from an ONNX model
  artifact::LoadedModel model;
  std::vector<std::string> bound;  // inputs of the ONNX model that the library no longer has
  std::set<std::string> read;      // the files of the ONNX model
};

[[nodiscard]] Result<bool> is_artifact(const std::string& path);  // by its first bytes
[[nodiscard]] Result<ModelFile> open_model_file(const std::string& path,
                                                const ModelFileOptions& options);

// A model's inputs in its order: those given, checked, and random ones for the others.
[[nodiscard]] Result<std::vector<Tensor>> arrange_inputs(
    const std::vector<artifact::ModelTensor>& wanted, std::map<std::string, Tensor> given,
    uint64_t seed);

}  // namespace hone::tool
