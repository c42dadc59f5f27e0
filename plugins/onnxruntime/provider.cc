#include "provider.h"

#include <algorithm>

#include "context.h"

namespace hone::ort {
namespace {

Provider& provider_of(OrtEp* self) { return *static_cast<Provider*>(self); }

}  // namespace

Provider::Provider(const OrtApi& api, const OrtLogger* logger, Settings settings, TempDir folder)
    : api_(api), logger_(logger), settings_(std::move(settings)), folder_(std::move(folder)) {
  get_name = [](const OrtEp*) { return kProviderName.data(); };
  get_capability = [](OrtEp* self, const OrtGraph* graph, OrtGraphSupport* support) {
    Provider& provider = provider_of(self);
    return guarded(provider.api_, [&] { return provider.claim(graph, support); });
  };
  OrtEp::compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                      OrtNodeComputeInfo** infos, OrtNode** context_nodes) {
    Provider& provider = provider_of(self);
    return guarded(provider.api_, [&] {
      for (size_t i = 0; i < count; ++i)
        HONE_RETURN_IF_ERROR(
            provider.make_kernel(graphs[i], fused[i], &infos[i], &context_nodes[i]));
      return ok_status();
    });
  };
  release_compute_infos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<Kernel*>(infos[i]);
  };
}

Result<std::unique_ptr<Provider>> Provider::create(const OrtApi& api,
                                                   const OrtSessionOptions* options,
                                                   const OrtLogger* logger) {
  HONE_ASSIGN_OR_RETURN(Settings settings, read_settings(api, options));
  HONE_ASSIGN_OR_RETURN(TempDir folder, TempDir::create("hone-onnxruntime"));
  return std::unique_ptr<Provider>(
      new Provider(api, logger, std::move(settings), std::move(folder)));
}

Status Provider::claim_nodes(const Graph& graph, const std::vector<size_t>& nodes,
                             bool drop_constants, OrtGraphSupport* support) {
  std::vector<const OrtNode*> handles;
  for (const size_t i : nodes) handles.push_back(graph.nodes[i].handle);
  const OrtFusionOptions options{.drop_constants = drop_constants};
  HONE_ORT_RETURN_IF_ERROR(
      api_, OrtEpApi(api_).fuse_nodes(support, handles.data(), handles.size(), &options));
  return ok_status();
}

Result<size_t> Provider::claim_contexts(const Graph& graph, OrtGraphSupport* support) {
  size_t count = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const bool own, is_own_context(api_, graph.nodes[i]));
    if (!own || graph.nodes[i].taken) continue;
    HONE_RETURN_IF_ERROR(claim_nodes(graph, {i}, false, support));
    ++count;
  }
  return count;
}

// Errors of this function would only be logged, and the session would go on without the provider.
// Therefore a part that cannot be compiled is claimed, so that make_kernel() can tell.
Status Provider::claim(const OrtGraph* handle, OrtGraphSupport* support) {
  HONE_ASSIGN_OR_RETURN(const Graph graph, read_graph(api_, handle));
  // Branches and bodies of loops belong to the provider that runs the node around them.
  if (graph.nested) return ok_status();
  HONE_ASSIGN_OR_RETURN(const size_t contexts, claim_contexts(graph, support));
  if (contexts > 0) return ok_status();
  Planner planner(api_, logger_, settings_, folder_, files_);
  const std::vector<Part> parts = planner.plan(graph);
  size_t nodes = 0;
  for (const Part& part : parts) {
    HONE_RETURN_IF_ERROR(claim_nodes(graph, part.group.nodes, true, support));
    nodes += part.group.nodes.size();
    parts_.push_back(part);
  }
  log(api_, logger_, OrtSeverity::kInfo,
      fmt::format("{} of {} nodes in {} parts", nodes, graph.nodes.size(), parts.size()));
  return ok_status();
}

Result<std::string> Provider::library_of(const Graph& graph, const GraphNode& fused) {
  if (graph.nodes.size() == 1) {
    HONE_ASSIGN_OR_RETURN(const bool own, is_own_context(api_, graph.nodes[0]));
    if (own)
      return find_context_library(api_, graph.nodes[0], graph.model_path,
                                  folder_.file(fmt::format("context_{}.so", files_++)));
  }
  for (const Part& part : parts_) {
    const std::vector<std::string>& names = part.group.outputs;
    if (std::find(names.begin(), names.end(), fused.outputs.at(0)) == names.end()) continue;
    HONE_RETURN_IF_ERROR(part.failure);
    return part.library;
  }
  return error(Code::kInternal, "the node '{}' is no part that was claimed", fused.name);
}

Status Provider::make_kernel(const OrtGraph* handle, const OrtNode* fused_handle,
                             OrtNodeComputeInfo** info, OrtNode** context_node) {
  HONE_ASSIGN_OR_RETURN(const Graph graph, read_graph(api_, handle));
  HONE_ASSIGN_OR_RETURN(const GraphNode fused, read_node(api_, fused_handle));
  HONE_ASSIGN_OR_RETURN(const std::string library, library_of(graph, fused));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                        Kernel::create(api_, library, settings_.threads, fused, graph));
  if (settings_.write_context) {
    HONE_ASSIGN_OR_RETURN(*context_node, make_context_node(api_, settings_, fused, library,
                                                           graph.model_path, context_files_++));
  }
  *info = kernel.release();
  return ok_status();
}

}  // namespace hone::ort
