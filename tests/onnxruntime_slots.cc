// onnxruntime_slots.cc - a provider for ONNX Runtime that calls each function of
// plugins/onnxruntime/ort_api.h through its place and writes what it answers to the file
// $HONE_SLOTS_OUTPUT, as lines "name: answer". tests/onnxruntime_slots_test.py knows the answers.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "ort_api.h"

namespace {

using namespace hone::ort;

constexpr const char* kName = "SlotsExecutionProvider";
constexpr int kRepeats = 50000;                   // of what is made and released
constexpr long kMostGrowth = long{kRepeats} * 8;  // bytes; less than any of these objects has

void say(const std::string& name, const std::string& answer) {
  std::ofstream(std::getenv("HONE_SLOTS_OUTPUT"), std::ios::app) << name << ": " << answer << "\n";
}
void say(const std::string& name, long answer) { say(name, std::to_string(answer)); }

long resident_bytes() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Says whether an object that is made and released again and again takes memory only once.
template <typename Work>
void say_released(const std::string& name, const Work& make_and_release) {
  for (int i = 0; i < kRepeats / 10; ++i) make_and_release();
  const long before = resident_bytes();
  for (int i = 0; i < kRepeats; ++i) make_and_release();
  const long growth = resident_bytes() - before;
  say(name, growth < kMostGrowth ? "released" : "grew by " + std::to_string(growth) + " bytes");
}

std::string join(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& item : list) text += (text.empty() ? "" : " ") + item;
  return text;
}

class Probe {
 public:
  explicit Probe(const void* const* table) : api_(table, kShapeApi) {}
  const OrtApi& api() const { return api_; }

  void errors() {
    OrtStatus* status = api_.create_status(OrtCode::kInvalidArgument, "a message of the test");
    say("create_status", status != nullptr ? "made" : "null");
    say("status_message", api_.status_message(status));
    api_.release_status(status);
    say_released("release_status", [&] {
      api_.release_status(api_.create_status(OrtCode::kFail, "some message that takes memory"));
    });
  }

  void devices(OrtEpFactory* factory, const OrtHardwareDevice* const* devices, size_t count,
               OrtEpDevice** found, size_t* num_found) {
    const OrtEpApi ep(api_);
    say("ep_table", ep.table != nullptr ? "there" : "null");
    for (size_t i = 0; i < count; ++i) {
      if (api_.device_type(devices[i]) != OrtDeviceType::kCpu) continue;
      say("device_type", "a CPU");
      check(ep.create_device(factory, devices[i], nullptr, nullptr, &found[0]));
      *num_found = 1;
      say("create_device", "made");
      say_released("release_device", [&] {
        OrtEpDevice* device = nullptr;
        check(ep.create_device(factory, devices[i], nullptr, nullptr, &device));
        ep.release_device(device);
      });
      return;
    }
  }

  void options(const OrtSessionOptions* options) {
    OrtKeyValuePairs* pairs = nullptr;
    check(api_.session_options(options, &pairs));
    const char *const *keys = nullptr, *const *values = nullptr;
    size_t count = 0;
    api_.key_value_pairs(pairs, &keys, &values, &count);
    for (size_t i = 0; i < count; ++i) {
      if (std::string(keys[i]) == "ep.slotsexecutionprovider.color") {
        say("session_options", values[i]);
        say("key_value_pairs", keys[i]);
      }
    }
    api_.release_key_value_pairs(pairs);
    say_released("release_key_value_pairs", [&] {
      check(api_.session_options(options, &pairs));
      api_.release_key_value_pairs(pairs);
    });
  }

  void graph(const OrtGraph* graph) {
    const char* path = nullptr;
    check(api_.graph_model_path(graph, &path));
    say("graph_model_path", path);
    const OrtNode* parent = nullptr;
    check(api_.graph_parent(graph, &parent));
    say("graph_parent", parent != nullptr ? "a node" : "none");
    size_t count = 0;
    check(api_.graph_num_opsets(graph, &count));
    std::vector<const char*> domains(count);
    std::vector<int64_t> versions(count);
    check(api_.graph_opsets(graph, domains.data(), versions.data(), count));
    for (size_t i = 0; i < count; ++i) {
      if (std::string(domains[i]).empty()) say("graph_opsets", versions[i]);
    }
    say("graph_num_opsets", count > 0 ? "some" : "none");
    say_values("graph_inputs", api_.graph_num_inputs, api_.graph_inputs, graph);
    say_values("graph_outputs", api_.graph_num_outputs, api_.graph_outputs, graph);
    check(api_.graph_num_nodes(graph, &count));
    say("graph_num_nodes", static_cast<long>(count));
    nodes_.resize(count);
    check(api_.graph_nodes(graph, nodes_.data(), count));
    std::vector<std::string> types;
    for (const OrtNode* each : nodes_) types.push_back(text(api_.node_type, each));
    say("graph_nodes", join(types));
  }

  void nodes() {
    for (const OrtNode* node : nodes_) {
      const std::string type = text(api_.node_type, node);
      if (type == "If") {
        say_values("node_implicit_inputs", api_.node_num_implicit_inputs, api_.node_implicit_inputs,
                   node);
        size_t subgraphs = 0;
        check(api_.node_num_subgraphs(node, &subgraphs));
        say("node_num_subgraphs", static_cast<long>(subgraphs));
      }
      if (type == "Add") add_node(node);
      if (type == "ConstantOfShape") filled_node(node);
      if (type == "Reshape") values(node);
      if (type == "Gelu") say("node_domain", text(api_.node_domain, node));
    }
  }

  void claim(OrtGraphSupport* support) {
    const OrtFusionOptions options{.drop_constants = true};
    for (const OrtNode* node : nodes_) {
      if (text(api_.node_type, node) != "Add") continue;
      check(OrtEpApi(api_).fuse_nodes(support, &node, 1, &options));
      say("fuse_nodes", "claimed");
    }
  }

  void message(const OrtLogger* logger) {
    check(api_.log_message(logger, OrtSeverity::kWarning, "a warning of the test", __FILE__,
                           __LINE__, "message"));
  }

  // Makes the node that stands for the fused one, by whose name ONNX Runtime finds it.
  OrtNode* context_node(const OrtNode* fused) {
    say_values("node_inputs", api_.node_num_inputs, api_.node_inputs, fused);
    OrtOpAttr* attributes[2] = {};
    check(api_.create_attribute("source", kName, static_cast<int>(std::strlen(kName)),
                                OrtAttrType::kString, &attributes[0]));
    check(
        api_.create_attribute("ep_cache_context", "a\0b", 3, OrtAttrType::kString, &attributes[1]));
    const OrtModelEditorApi editor(api_);
    say("model_editor_table", editor.table != nullptr ? "there" : "null");
    const char *in = "x", *out = "sum";
    OrtNode* node = nullptr;
    check(editor.create_node("EPContext", "com.microsoft", text(api_.node_name, fused).c_str(), &in,
                             1, &out, 1, attributes, 2, &node));
    say_released("release_attribute", [&] {
      OrtOpAttr* attribute = nullptr;
      const std::string long_text(100, 'x');
      check(api_.create_attribute("a", long_text.data(), 100, OrtAttrType::kString, &attribute));
      api_.release_attribute(attribute);
    });
    return node;
  }

  // Computes the sum of the first input and 1.
  void run(OrtKernelContext* context) {
    size_t inputs = 0, outputs = 0;
    check(api_.num_kernel_inputs(context, &inputs));
    check(api_.num_kernel_outputs(context, &outputs));
    say("num_kernel_inputs", static_cast<long>(inputs));
    say("num_kernel_outputs", static_cast<long>(outputs));
    const OrtValue* in = nullptr;
    check(api_.kernel_input(context, 0, &in));
    const std::vector<int64_t> shape = run_shape(in);
    const void* from = nullptr;
    check(api_.tensor_data(in, &from));
    OrtValue* out = nullptr;
    check(api_.kernel_output(context, 0, shape.data(), shape.size(), &out));
    void* to = nullptr;
    check(api_.mutable_data(out, &to));
    for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
      static_cast<float*>(to)[i] = static_cast<const float*>(from)[i] + 1;
  }

 private:
  void check(OrtStatus* status) const {
    if (status == nullptr) return;
    say("error", api_.status_message(status));
    api_.release_status(status);
  }

  template <typename Text, typename Object>
  std::string text(const Text& function, Object* object) const {
    const char* found = nullptr;
    check(function(object, &found));
    return found != nullptr ? found : "(null)";
  }

  template <typename Count, typename Fill, typename Object>
  std::vector<const OrtValueInfo*> values_of(const Count& number, const Fill& fill,
                                             Object* object) const {
    size_t count = 0;
    check(number(object, &count));
    std::vector<const OrtValueInfo*> list(count);
    check(fill(object, list.data(), count));
    return list;
  }

  template <typename Count, typename Fill, typename Object>
  void say_values(const std::string& name, const Count& number, const Fill& fill,
                  Object* object) const {
    std::vector<std::string> names;
    for (const OrtValueInfo* info : values_of(number, fill, object))
      names.push_back(text(api_.value_name, info));
    say(name, join(names));
  }

  void add_node(const OrtNode* node) {
    say("node_name", text(api_.node_name, node));
    say("node_type", text(api_.node_type, node));
    say("node_provider", "'" + text(api_.node_provider, node) + "'");
    say_values("node_outputs", api_.node_num_outputs, api_.node_outputs, node);
    const auto inputs = values_of(api_.node_num_inputs, api_.node_inputs, node);
    say("value_name", text(api_.value_name, inputs.at(0)) + " " + text(api_.value_name, inputs[1]));
    bool first = true, second = false;
    check(api_.value_is_constant(inputs[0], &first));
    check(api_.value_is_constant(inputs[1], &second));
    say("value_is_constant", std::to_string(first) + " " + std::to_string(second));
    const OrtValue* one = nullptr;
    check(api_.value_initializer(inputs[1], &one));
    const void* data = nullptr;
    check(api_.tensor_data(one, &data));
    say("value_initializer", static_cast<long>(*static_cast<const float*>(data)));
    say_type("value_type", inputs[0]);
  }

  // The type of a value as "kind element_type rank dims symbols".
  void say_type(const std::string& name, const OrtValueInfo* value) const {
    const OrtTypeInfo* type = nullptr;
    check(api_.value_type(value, &type));
    OrtOnnxType kind = OrtOnnxType::kUnknown;
    check(api_.onnx_type(type, &kind));
    const OrtTensorInfo* info = nullptr;
    check(api_.as_tensor_info(type, &info));
    int dtype = 0;
    size_t rank = 0;
    check(api_.element_type(info, &dtype));
    check(api_.rank(info, &rank));
    std::vector<int64_t> dims(rank);
    std::vector<const char*> symbols(rank);
    check(api_.dims(info, dims.data(), rank));
    check(api_.symbols(info, symbols.data(), rank));
    std::vector<std::string> words = {std::to_string(static_cast<int>(kind)), std::to_string(dtype),
                                      std::to_string(rank)};
    for (const int64_t dim : dims) words.push_back(std::to_string(dim));
    for (const char* symbol : symbols) words.push_back(std::string("'") + symbol + "'");
    say(name, join(words));
  }

  bool has_shape(const OrtValueInfo* value) const {
    const OrtTypeInfo* type = nullptr;
    check(api_.value_type(value, &type));
    const OrtTensorInfo* info = nullptr;
    check(api_.as_tensor_info(type, &info));
    return api_.has_shape(info);
  }

  void values(const OrtNode* reshape) const {
    const auto inputs = values_of(api_.node_num_inputs, api_.node_inputs, reshape);
    const auto outputs = values_of(api_.node_num_outputs, api_.node_outputs, reshape);
    say("has_shape",
        std::to_string(has_shape(inputs[0])) + " " + std::to_string(has_shape(outputs[0])));
  }

  // ConstantOfShape, whose attribute is a tensor.
  void filled_node(const OrtNode* node) {
    size_t count = 0;
    check(api_.node_num_attributes(node, &count));
    say("node_num_attributes", static_cast<long>(count));
    std::vector<const OrtOpAttr*> attributes(count);
    check(api_.node_attributes(node, attributes.data(), count));
    say("attribute_name", text(api_.attribute_name, attributes.at(0)));
    OrtAttrType type = OrtAttrType::kUndefined;
    check(api_.attribute_type(attributes[0], &type));
    say("attribute_type", static_cast<long>(type));
    OrtValue* value = nullptr;
    check(api_.attribute_tensor(attributes[0], &value));
    void* data = nullptr;
    check(api_.mutable_data(value, &data));
    say("attribute_tensor", static_cast<long>(*static_cast<float*>(data)));
    api_.release_value(value);
    say_released("release_value", [&] {
      check(api_.attribute_tensor(attributes[0], &value));
      api_.release_value(value);
    });
    OrtOpAttr* made = nullptr;
    const int64_t numbers[] = {4, 5, 6};
    check(api_.create_attribute("axes", numbers, 3, OrtAttrType::kInts, &made));
    size_t needed = 0;
    int64_t read[3] = {};
    check(api_.read_attribute(made, OrtAttrType::kInts, read, sizeof read, &needed));
    say("read_attribute", std::to_string(needed) + " " + std::to_string(read[2]));
    say("create_attribute", text(api_.attribute_name, made));
    api_.release_attribute(made);
  }

  std::vector<int64_t> run_shape(const OrtValue* value) {
    OrtTensorInfo* info = nullptr;
    check(api_.tensor_info(value, &info));
    size_t rank = 0;
    check(api_.rank(info, &rank));
    std::vector<int64_t> dims(rank);
    check(api_.dims(info, dims.data(), rank));
    api_.release_tensor_info(info);
    say("tensor_info", std::to_string(dims.at(0)) + " " + std::to_string(dims.at(1)));
    size_t bytes = 0;
    check(api_.tensor_bytes(value, &bytes));
    say("tensor_bytes", static_cast<long>(bytes));
    say_released("release_tensor_info", [&] {
      check(api_.tensor_info(value, &info));
      api_.release_tensor_info(info);
    });
    return dims;
  }

  OrtApi api_;
  std::vector<const OrtNode*> nodes_;
};

Probe* probe = nullptr;

struct Sum : OrtNodeComputeInfo {
  Sum() {
    create_state = [](OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) {
      *state = probe;
      return static_cast<OrtStatus*>(nullptr);
    };
    compute = [](OrtNodeComputeInfo*, void* state, OrtKernelContext* context) {
      say("create_state", state == probe ? "the same" : "another");
      static_cast<Probe*>(state)->run(context);
      return static_cast<OrtStatus*>(nullptr);
    };
    release_state = [](OrtNodeComputeInfo*, void* state) {
      say("release_state", state == probe ? "the same" : "another");
    };
  }
};

struct Ep : OrtEp {
  explicit Ep(const OrtLogger* its_logger) : logger(its_logger) {
    get_name = [](const OrtEp*) { return kName; };
    get_capability = [](OrtEp* self, const OrtGraph* graph, OrtGraphSupport* support) {
      const OrtNode* parent = nullptr;
      (void)probe->api().graph_parent(graph, &parent);
      if (parent != nullptr) {
        say("nested graph", "given");
        return static_cast<OrtStatus*>(nullptr);
      }
      probe->message(static_cast<Ep*>(self)->logger);
      probe->graph(graph);
      probe->nodes();
      probe->claim(support);
      return static_cast<OrtStatus*>(nullptr);
    };
    OrtEp::compile = [](OrtEp*, const OrtGraph**, const OrtNode** fused, size_t,
                        OrtNodeComputeInfo** infos, OrtNode** context_nodes) {
      infos[0] = new Sum;
      context_nodes[0] = probe->context_node(fused[0]);
      return static_cast<OrtStatus*>(nullptr);
    };
    release_compute_infos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
      say("release_compute_infos", static_cast<long>(count));
      delete static_cast<Sum*>(infos[0]);
    };
  }
  const OrtLogger* logger;
};

struct Factory : OrtEpFactory {
  Factory() {
    get_name = [](const OrtEpFactory*) { return kName; };
    get_vendor = [](const OrtEpFactory*) { return "a vendor of the test"; };
    get_vendor_id = [](const OrtEpFactory*) { return uint32_t{0}; };
    OrtEpFactory::get_version = [](const OrtEpFactory*) { return "7.8.9"; };
    get_devices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                     OrtEpDevice** found, size_t, size_t* num_found) {
      probe->errors();
      probe->devices(self, devices, count, found, num_found);
      return static_cast<OrtStatus*>(nullptr);
    };
    create_ep = [](OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*,
                   size_t, const OrtSessionOptions* options, const OrtLogger* logger, OrtEp** ep) {
      probe->options(options);
      *ep = new Ep(logger);
      return static_cast<OrtStatus*>(nullptr);
    };
    release_ep = [](OrtEpFactory*, OrtEp* ep) {
      say("release_ep", "called");
      delete static_cast<Ep*>(ep);
    };
    create_data_transfer = [](OrtEpFactory*, OrtDataTransfer** transfer) {
      *transfer = nullptr;
      return static_cast<OrtStatus*>(nullptr);
    };
    is_stream_aware = [](const OrtEpFactory*) { return false; };
  }
};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) OrtStatus* CreateEpFactories(const char*,
                                                                    const OrtApiBase* base,
                                                                    const OrtLogger*,
                                                                    OrtEpFactory** factories,
                                                                    size_t, size_t* count) {
  say("get_version", base->get_version());
  say("get_api", base->get_api(kShapeApi) != nullptr ? "there" : "null");
  probe = new Probe(base->get_api(kShapeApi));
  factories[0] = new Factory;
  *count = 1;
  return nullptr;
}

__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  delete probe;
  return nullptr;
}

}  // extern "C"
