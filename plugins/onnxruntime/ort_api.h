// ort_api.h - the part of ONNX Runtime's C interface that the provider uses. ONNX Runtime's headers
// come in no package of Debian or PyPI, so the layout is declared here in Hone's own words. Only
// its places are ONNX Runtime's: functions stand at fixed places of tables, to which releases only
// append, and a provider fills in structs of a version that it names.
//
// The places were learnt from the public headers of version 1.23 and 1.24
// (include/onnxruntime/core/session: onnxruntime_c_api.h and onnxruntime_ep_c_api.h).
// tests/onnxruntime_slots_test.py calls each function through its place in the library of the
// installed onnxruntime and compares what it answers with what is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hone::ort {

// The versions of the interface: the oldest that has all that a provider needs, and the one from
// which on a scalar can be told from a tensor of unknown rank.
inline constexpr uint32_t kOldestApi = 23, kShapeApi = 24;

// Objects of ONNX Runtime, which are known by their address only.
struct OrtAllocator;
struct OrtDataTransfer;
struct OrtEpDevice;
struct OrtGraph;
struct OrtGraphSupport;
struct OrtHardwareDevice;
struct OrtKernelContext;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtMemoryDevice;
struct OrtMemoryInfo;
struct OrtNode;
struct OrtNodeComputeContext;
struct OrtOpAttr;
struct OrtRunOptions;
struct OrtSessionOptions;
struct OrtStatus;  // null: success
struct OrtSyncStream;
struct OrtTensorInfo;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;

enum class OrtCode : int { kFail = 1, kInvalidArgument = 2, kNotImplemented = 9, kEpFail = 11 };
enum class OrtSeverity : int { kVerbose = 0, kInfo = 1, kWarning = 2, kError = 3 };
enum class OrtDeviceType : int { kCpu = 0, kGpu = 1, kNpu = 2 };
enum class OrtOnnxType : int { kUnknown = 0, kTensor = 1 };
enum class OrtAttrType : int {
  kUndefined = 0,
  kInt = 1,
  kInts = 2,
  kFloat = 3,
  kFloats = 4,
  kString = 5,
  kStrings = 6,
  kGraph = 7,
  kTensor = 8,
};

// A function at a place of a table. With a null table it is absent.
template <int kPlace, typename Function>
class Slot;
template <int kPlace, typename R, typename... Args>
class Slot<kPlace, R(Args...)> {
 public:
  explicit Slot(const void* const* table) {
    if (table != nullptr) std::memcpy(&call_, &table[kPlace], sizeof call_);
  }
  R operator()(Args... args) const { return call_(args...); }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  R (*call_)(Args...) = nullptr;
};

// The first table, which a library gets from ONNX Runtime.
struct OrtApiBase {
  const void* const* (*get_api)(uint32_t version);  // null: the version is not known
  const char* (*get_version)();                     // such as "1.24.1"
};

// The main table.
struct OrtApi {
  OrtApi(const void* const* places, uint32_t its_version)
      : version(its_version),
        table(places),
        since_24(its_version >= kShapeApi ? places : nullptr) {}
  uint32_t version;
  const void* const* table;
  const void* const* since_24;

  // Errors and messages.
  Slot<0, OrtStatus*(OrtCode, const char* message)> create_status{table};
  Slot<2, const char*(const OrtStatus*)> status_message{table};
  Slot<93, void(OrtStatus*)> release_status{table};
  Slot<247, OrtStatus*(const OrtLogger*, OrtSeverity, const char* message, const char* file,
                       int line, const char* function)>
      log_message{table};

  // Types and shapes. A type belongs to what it was asked of, unless it is released here.
  Slot<55, OrtStatus*(const OrtTypeInfo*, const OrtTensorInfo**)> as_tensor_info{table};
  Slot<56, OrtStatus*(const OrtTypeInfo*, OrtOnnxType*)> onnx_type{table};
  Slot<60, OrtStatus*(const OrtTensorInfo*, int* dtype)> element_type{table};
  Slot<61, OrtStatus*(const OrtTensorInfo*, size_t* rank)> rank{table};
  Slot<62, OrtStatus*(const OrtTensorInfo*, int64_t* dims, size_t rank)> dims{table};
  Slot<63, OrtStatus*(const OrtTensorInfo*, const char** symbols, size_t rank)> symbols{table};
  Slot<99, void(OrtTensorInfo*)> release_tensor_info{table};
  Slot<390, bool(const OrtTensorInfo*)> has_shape{since_24};

  // Tensors.
  Slot<51, OrtStatus*(OrtValue*, void** data)> mutable_data{table};
  Slot<65, OrtStatus*(const OrtValue*, OrtTensorInfo**)> tensor_info{table};
  Slot<96, void(OrtValue*)> release_value{table};
  Slot<318, OrtStatus*(const OrtValue*, size_t* bytes)> tensor_bytes{table};
  Slot<378, OrtStatus*(const OrtValue*, const void** data)> tensor_data{table};

  // One run of a node.
  Slot<88, OrtStatus*(const OrtKernelContext*, size_t* count)> num_kernel_inputs{table};
  Slot<89, OrtStatus*(const OrtKernelContext*, size_t* count)> num_kernel_outputs{table};
  Slot<90, OrtStatus*(const OrtKernelContext*, size_t index, const OrtValue**)> kernel_input{table};
  Slot<91,
       OrtStatus*(OrtKernelContext*, size_t index, const int64_t* dims, size_t rank, OrtValue**)>
      kernel_output{table};

  // The options of a session.
  Slot<298, void(const OrtKeyValuePairs*, const char* const** keys, const char* const** values,
                 size_t* count)>
      key_value_pairs{table};
  Slot<300, void(OrtKeyValuePairs*)> release_key_value_pairs{table};
  Slot<379, OrtStatus*(const OrtSessionOptions*, OrtKeyValuePairs**)> session_options{table};

  // Values of a graph.
  Slot<289, OrtStatus*(const OrtValueInfo*, const char**)> value_name{table};
  Slot<290, OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**)> value_type{table};
  Slot<326, OrtStatus*(const OrtValueInfo*, const OrtValue**)> value_initializer{table};
  Slot<331, OrtStatus*(const OrtValueInfo*, bool*)> value_is_constant{table};

  // Graphs. Objects that belong to a graph live as long as it does.
  Slot<334, OrtStatus*(const OrtGraph*, const char**)> graph_model_path{table};
  Slot<336, OrtStatus*(const OrtGraph*, size_t*)> graph_num_opsets{table};
  Slot<337, OrtStatus*(const OrtGraph*, const char** domains, int64_t* versions, size_t count)>
      graph_opsets{table};
  Slot<338, OrtStatus*(const OrtGraph*, size_t*)> graph_num_inputs{table};
  Slot<339, OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)> graph_inputs{table};
  Slot<340, OrtStatus*(const OrtGraph*, size_t*)> graph_num_outputs{table};
  Slot<341, OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)> graph_outputs{table};
  Slot<344, OrtStatus*(const OrtGraph*, size_t*)> graph_num_nodes{table};
  Slot<345, OrtStatus*(const OrtGraph*, const OrtNode**, size_t)> graph_nodes{table};
  Slot<346, OrtStatus*(const OrtGraph*, const OrtNode**)> graph_parent{table};

  // Nodes.
  Slot<349, OrtStatus*(const OrtNode*, const char**)> node_name{table};
  Slot<350, OrtStatus*(const OrtNode*, const char**)> node_type{table};
  Slot<351, OrtStatus*(const OrtNode*, const char**)> node_domain{table};
  Slot<353, OrtStatus*(const OrtNode*, size_t*)> node_num_inputs{table};
  Slot<354, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> node_inputs{table};
  Slot<355, OrtStatus*(const OrtNode*, size_t*)> node_num_outputs{table};
  Slot<356, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> node_outputs{table};
  Slot<357, OrtStatus*(const OrtNode*, size_t*)> node_num_implicit_inputs{table};
  Slot<358, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> node_implicit_inputs{table};
  Slot<359, OrtStatus*(const OrtNode*, size_t*)> node_num_attributes{table};
  Slot<360, OrtStatus*(const OrtNode*, const OrtOpAttr**, size_t)> node_attributes{table};
  Slot<365, OrtStatus*(const OrtNode*, size_t*)> node_num_subgraphs{table};
  Slot<368, OrtStatus*(const OrtNode*, const char**)> node_provider{table};

  // Attributes.
  Slot<211, OrtStatus*(const char* name, const void* data, int bytes, OrtAttrType, OrtOpAttr**)>
      create_attribute{table};
  Slot<212, void(OrtOpAttr*)> release_attribute{table};
  Slot<272, OrtStatus*(const OrtOpAttr*, OrtAttrType, void* data, size_t bytes, size_t* needed)>
      read_attribute{table};
  Slot<362, OrtStatus*(const OrtOpAttr*, OrtValue**)> attribute_tensor{table};
  Slot<363, OrtStatus*(const OrtOpAttr*, OrtAttrType*)> attribute_type{table};
  Slot<364, OrtStatus*(const OrtOpAttr*, const char**)> attribute_name{table};

  // The tables below, and devices.
  Slot<291, const void* const*()> model_editor_table{table};
  Slot<307, OrtDeviceType(const OrtHardwareDevice*)> device_type{table};
  Slot<317, const void* const*()> ep_table{table};
};

struct OrtEpFactory;

struct OrtFusionOptions {
  uint32_t version = kOldestApi;
  bool drop_constants = false;  // the fused node gets no constants as inputs
};

// The table for providers.
struct OrtEpApi {
  explicit OrtEpApi(const OrtApi& api) : table(api.ep_table()) {}
  const void* const* table;
  Slot<0, OrtStatus*(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs* metadata,
                     const OrtKeyValuePairs* options, OrtEpDevice**)>
      create_device{table};
  Slot<1, void(OrtEpDevice*)> release_device{table};
  Slot<2, OrtStatus*(OrtGraphSupport*, const OrtNode* const*, size_t, const OrtFusionOptions*)>
      fuse_nodes{table};
};

// The table that makes nodes.
struct OrtModelEditorApi {
  explicit OrtModelEditorApi(const OrtApi& api) : table(api.model_editor_table()) {}
  const void* const* table;
  // If it succeeds, it releases the attributes.
  Slot<6, OrtStatus*(const char* type, const char* domain, const char* name,
                     const char* const* inputs, size_t num_inputs, const char* const* outputs,
                     size_t num_outputs, OrtOpAttr** attributes, size_t num_attributes, OrtNode**)>
      create_node{table};
};

// The structs that a provider fills in, as of version 23. A null function is not implemented.

// How a fused node runs.
struct OrtNodeComputeInfo {
  uint32_t version = kOldestApi;
  OrtStatus* (*create_state)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) = nullptr;
  OrtStatus* (*compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*) = nullptr;
  void (*release_state)(OrtNodeComputeInfo*, void* state) = nullptr;
};

// A provider in a session.
struct OrtEp {
  uint32_t version = kOldestApi;
  const char* (*get_name)(const OrtEp*) = nullptr;
  OrtStatus* (*get_capability)(OrtEp*, const OrtGraph*, OrtGraphSupport*) = nullptr;
  OrtStatus* (*compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                        OrtNodeComputeInfo** infos, OrtNode** context_nodes) = nullptr;
  void (*release_compute_infos)(OrtEp*, OrtNodeComputeInfo**, size_t count) = nullptr;
  OrtStatus* (*get_data_layout)(OrtEp*, int* layout) = nullptr;
  OrtStatus* (*should_convert)(OrtEp*, const char* domain, const char* type, int layout,
                               int* result) = nullptr;
  OrtStatus* (*set_dynamic_options)(OrtEp*, const char* const* keys, const char* const* values,
                                    size_t count) = nullptr;
  OrtStatus* (*on_run_start)(OrtEp*, const OrtRunOptions*) = nullptr;
  OrtStatus* (*on_run_end)(OrtEp*, const OrtRunOptions*, bool synchronize) = nullptr;
  OrtStatus* (*create_allocator)(OrtEp*, const OrtMemoryInfo*, OrtAllocator**) = nullptr;
  OrtStatus* (*create_stream)(OrtEp*, const OrtMemoryDevice*, OrtSyncStream**) = nullptr;
  const char* (*get_compatibility)(OrtEp*, const OrtGraph*) = nullptr;
};

// The object that makes providers for sessions.
struct OrtEpFactory {
  uint32_t version = kOldestApi;
  const char* (*get_name)(const OrtEpFactory*) = nullptr;
  const char* (*get_vendor)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*get_devices)(OrtEpFactory*, const OrtHardwareDevice* const* devices, size_t count,
                            OrtEpDevice** found, size_t most, size_t* num_found) = nullptr;
  OrtStatus* (*create_ep)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                          const OrtKeyValuePairs* const* metadata, size_t count,
                          const OrtSessionOptions*, const OrtLogger*, OrtEp**) = nullptr;
  void (*release_ep)(OrtEpFactory*, OrtEp*) = nullptr;
  uint32_t (*get_vendor_id)(const OrtEpFactory*) = nullptr;
  const char* (*get_version)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*validate_compatibility)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                                       size_t count, const char* info, int* result) = nullptr;
  OrtStatus* (*create_allocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                                 OrtAllocator**) = nullptr;
  void (*release_allocator)(OrtEpFactory*, OrtAllocator*) = nullptr;
  OrtStatus* (*create_data_transfer)(OrtEpFactory*, OrtDataTransfer**) = nullptr;
  bool (*is_stream_aware)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*create_stream)(OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                              OrtSyncStream**) = nullptr;
};

}  // namespace hone::ort
