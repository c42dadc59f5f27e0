// provider.h - the provider of one session: it claims parts of the session's graphs, compiles them,
// and makes the kernels that run them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hone/base/file.h"

#include "kernel.h"
#include "plan.h"

namespace hone::ort {

class Provider : public OrtEp {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Provider>> create(const OrtApi& api,
                                                                const OrtSessionOptions* options,
                                                                const OrtLogger* logger);

 private:
  Provider(const OrtApi& api, const OrtLogger* logger, Settings settings, TempDir folder);
  [[nodiscard]] Status claim(const OrtGraph* handle, OrtGraphSupport* support);
  // Claims the nodes that have libraries already, and returns how many there are.
  [[nodiscard]] Result<size_t> claim_contexts(const Graph& graph, OrtGraphSupport* support);
  [[nodiscard]] Status claim_nodes(const Graph& graph, const std::vector<size_t>& nodes,
                                   bool drop_constants, OrtGraphSupport* support);
  [[nodiscard]] Status make_kernel(const OrtGraph* handle, const OrtNode* fused_handle,
                                   OrtNodeComputeInfo** info, OrtNode** context_node);
  // Returns the library of a part that was claimed.
  [[nodiscard]] Result<std::string> library_of(const Graph& graph, const GraphNode& fused);

  const OrtApi& api_;
  const OrtLogger* logger_;
  const Settings settings_;
  const TempDir folder_;  // of libraries
  std::vector<Part> parts_;
  int files_ = 0;          // that were written into the folder
  int context_files_ = 0;  // that were written beside a model
};

}  // namespace hone::ort
