#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>

#include "hone/base/file.h"

#include "model_bytes.h"

namespace hone::fuzz {
namespace {

namespace fs = std::filesystem;

// Files in a folder or, with `below`, of that name in its folders; in order of their names.
std::vector<std::string> files_in(const fs::path& folder, const std::string& below = "") {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const fs::path file = below.empty() ? entry.path() : entry.path() / below;
    if (file.extension() == ".onnx" && fs::exists(file)) files.push_back(file.string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

template <typename Message>
bool read_message(const std::string& path, Message& message) {
  const Result<std::string> bytes = read_file(path);
  return bytes.ok() && message.ParseFromString(*bytes);
}

// Some inputs become constants with the values that ONNX gives for them; most of integers, which
// often decide shapes.
void bind_inputs(onnx::ModelProto& model, const fs::path& folder, Rng& rng) {
  for (int i = 0; i < model.graph().input_size(); ++i) {
    onnx::TensorProto tensor;
    const fs::path file = folder / "test_data_set_0" / fmt::format("input_{}.pb", i);
    if (!fs::exists(file) || !read_message(file.string(), tensor)) continue;
    if (rng.chance(tensor.data_type() == onnx::TensorProto::INT64 ? 0.1 : 0.7)) continue;
    tensor.set_name(model.graph().input(i).name());
    *model.mutable_graph()->add_initializer() = tensor;
  }
}

}  // namespace

onnx::ModelProto real_model(Rng& rng) {
  static const std::vector<std::string> models = files_in(HONE_MODELS),
                                        cases = files_in(HONE_ONNX_CASES, "model.onnx");
  onnx::ModelProto model;
  if (cases.empty() || rng.chance(0.01)) {  // these are large
    HONE_ASSERT(!models.empty(), "the shared models are there");
    HONE_ASSERT(read_message(rng.choice(models), model), "a shared model is a model");
    return model;
  }
  const fs::path path = rng.choice(cases);
  if (read_message(path.string(), model)) bind_inputs(model, path.parent_path(), rng);
  return model;
}

}  // namespace hone::fuzz
