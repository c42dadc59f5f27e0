#include "context.h"

#include <algorithm>
#include <filesystem>

#include "hone/base/file.h"
#include "hone/version.h"

namespace hone::ort {
namespace {

namespace fs = std::filesystem;

constexpr const char* kType = "EPContext";
constexpr const char* kDomain = "com.microsoft";
// The names of its attributes, which ONNX Runtime's schema fixes.
constexpr const char* kSource = "source";
constexpr const char* kContext = "ep_cache_context";
constexpr const char* kEmbedMode = "embed_mode";
constexpr const char* kMainContext = "main_context";
constexpr const char* kSdkVersion = "ep_sdk_version";
constexpr const char* kPartition = "partition_name";

constexpr size_t kMostEmbeddedBytes = size_t{1}
                                      << 30;  // a model is a file of protobuf, below 2 GiB

// The attributes of a node that is being made.
class Attributes {
 public:
  explicit Attributes(const OrtApi& api) : api_(api) {}
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() {
    for (OrtOpAttr* attribute : list) {
      if (attribute != nullptr) api_.release_attribute(attribute);
    }
  }
  Status add(const char* name, const std::string& text) {
    return add(name, text.data(), text.size(), OrtAttrType::kString);
  }
  Status add(const char* name, int64_t number) { return add(name, &number, 1, OrtAttrType::kInt); }
  std::vector<OrtOpAttr*> list;

 private:
  Status add(const char* name, const void* data, size_t size, OrtAttrType type) {
    OrtOpAttr* attribute = nullptr;
    HONE_ORT_RETURN_IF_ERROR(
        api_, api_.create_attribute(name, data, static_cast<int>(size), type, &attribute));
    list.push_back(attribute);
    return ok_status();
  }
  const OrtApi& api_;
};

// Returns the path of the model that is written: the one that was given, or ONNX Runtime's default.
Result<fs::path> context_model(const Settings& settings, const std::string& model_path) {
  if (!settings.context_path.empty()) return fs::path(settings.context_path);
  if (!model_path.empty()) {
    const fs::path original(model_path);
    return original.parent_path() / (original.stem().string() + "_ctx.onnx");
  }
  return invalid(
      "no folder is known for the library of a model that is no file: set ep.context_file_path, "
      "or ep.context_embed_mode to 1");
}

// Returns what the attribute of the node says: the library itself, or the name of its file.
Result<std::string> store_library(const Settings& settings, const std::string& library,
                                  const std::string& model_path, int number) {
  HONE_ASSIGN_OR_RETURN(std::string bytes, read_file(library));
  if (settings.embed_context) {
    if (bytes.size() <= kMostEmbeddedBytes) return bytes;
    return invalid("a library of {} bytes is too large for a model: set ep.context_embed_mode to 0",
                   bytes.size());
  }
  HONE_ASSIGN_OR_RETURN(const fs::path model, context_model(settings, model_path));
  const std::string name = fmt::format("{}_hone_{}.so", model.stem().string(), number);
  HONE_RETURN_IF_ERROR(write_file_atomic((model.parent_path() / name).string(), bytes));
  return name;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& names) {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

Result<const NodeAttribute*> find(const std::vector<NodeAttribute>& attributes,
                                  const GraphNode& node, const char* name) {
  for (const NodeAttribute& attribute : attributes) {
    if (attribute.name == name) return &attribute;
  }
  return invalid("the node '{}' ({}) has no attribute '{}'", node.name, kType, name);
}

}  // namespace

Result<bool> is_own_context(const OrtApi& api, const GraphNode& node) {
  if (node.type != kType || node.domain != kDomain) return false;
  HONE_ASSIGN_OR_RETURN(const auto attributes, read_attributes(api, node.handle));
  return std::any_of(attributes.begin(), attributes.end(), [](const NodeAttribute& attribute) {
    return attribute.name == kSource &&
           attribute.strings == std::vector<std::string>{std::string(kProviderName)};
  });
}

Result<OrtNode*> make_context_node(const OrtApi& api, const Settings& settings,
                                   const GraphNode& fused, const std::string& library,
                                   const std::string& model_path, int number) {
  HONE_ASSIGN_OR_RETURN(const std::string context,
                        store_library(settings, library, model_path, number));
  Attributes attributes(api);
  HONE_RETURN_IF_ERROR(attributes.add(kMainContext, 1));
  HONE_RETURN_IF_ERROR(attributes.add(kEmbedMode, settings.embed_context ? 1 : 0));
  HONE_RETURN_IF_ERROR(attributes.add(kContext, context));
  HONE_RETURN_IF_ERROR(attributes.add(kSource, std::string(kProviderName)));
  HONE_RETURN_IF_ERROR(attributes.add(kSdkVersion, std::string(version())));
  HONE_RETURN_IF_ERROR(attributes.add(kPartition, fused.name));
  const std::vector<const char*> inputs = pointers_to(fused.inputs);
  const std::vector<const char*> outputs = pointers_to(fused.outputs);
  OrtNode* node = nullptr;
  HONE_ORT_RETURN_IF_ERROR(
      api, OrtModelEditorApi(api).create_node(
               kType, kDomain, fused.name.c_str(), inputs.data(), inputs.size(), outputs.data(),
               outputs.size(), attributes.list.data(), attributes.list.size(), &node));
  attributes.list.clear();
  return node;
}

Result<std::string> find_context_library(const OrtApi& api, const GraphNode& node,
                                         const std::string& model_path, const std::string& file) {
  HONE_ASSIGN_OR_RETURN(const auto attributes, read_attributes(api, node.handle));
  HONE_ASSIGN_OR_RETURN(const NodeAttribute* context, find(attributes, node, kContext));
  HONE_ASSIGN_OR_RETURN(const NodeAttribute* mode, find(attributes, node, kEmbedMode));
  if (context->strings.size() != 1 || mode->ints.size() != 1)
    return invalid("the node '{}' ({}) has no library", node.name, kType);
  if (mode->ints[0] == 1) {
    HONE_RETURN_IF_ERROR(write_file_atomic(file, context->strings[0]));
    return file;
  }
  // As with ONNX's external data, a model from elsewhere must not name files outside of its folder.
  const fs::path name(context->strings[0]);
  const bool leaves = name.is_absolute() || std::find(name.begin(), name.end(), "..") != name.end();
  if (leaves || name.empty())
    return invalid("the node '{}' ({}) names the file '{}', expected one in the model's folder",
                   node.name, kType, name.string());
  if (model_path.empty())
    return invalid(
        "the node '{}' ({}) names the file '{}' in the folder of the model, which is no file: "
        "make the model with ep.context_embed_mode of 1",
        node.name, kType, name.string());
  return (fs::path(model_path).parent_path() / name).string();
}

}  // namespace hone::ort
