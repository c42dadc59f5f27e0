#include "hone/cost/net/torch_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "hone/base/file.h"
#include "hone/base/installation.h"
#include "hone/cost/net/padding.h"

namespace hone::cost::net {
namespace {

// OpenBLAS and OpenMP read their environment when they are loaded. The threads of learn/torch have
// a part of the batch each: none needs others for a single product. Threads that spin while they
// wait take the cores from those that work.
void set_environment() {
  setenv("OMP_WAIT_POLICY", "passive", 0);
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
}

HoneTorchTensor plain(const Dims& dims, float* values) {
  return {static_cast<int32_t>(dims.size()), dims.data(), values, 0, 0, -1, 0};
}

bool is_frozen(const std::string& name, const std::vector<std::string>& trained) {
  return !trained.empty() &&
         std::none_of(trained.begin(), trained.end(),
                      [&](const std::string& layer) { return name.starts_with(layer + "."); });
}

}  // namespace

Result<TorchLibrary> load_torch(const std::string& file) {
  const std::vector<std::string> places =
      file.empty() ? installed_places("lib/hone/libhone_torch.so") : std::vector<std::string>{file};
  std::string path;
  for (const std::string& place : places) {
    if (path.empty() && file_exists(place)) path = place;
  }
  if (path.empty())
    return error(Code::kUnsupported,
                 "training a neural cost model needs {}, which is built where libtorch is: apt-get "
                 "install libtorch-dev and build Hone again",
                 places.back());
  set_environment();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return error(Code::kUnsupported, "cannot load {}: {}", path, dlerror());
  auto* version = reinterpret_cast<HoneTorchVersion*>(dlsym(handle, "hone_torch_version"));
  if (version == nullptr || version() != kHoneTorchVersion)
    return error(Code::kUnsupported, "{} is of another version of Hone", path);
  return TorchLibrary{reinterpret_cast<HoneTorchTrain*>(dlsym(handle, "hone_torch_train")),
                      reinterpret_cast<HoneTorchForward*>(dlsym(handle, "hone_torch_forward")),
                      reinterpret_cast<HoneTorchGradients*>(dlsym(handle, "hone_torch_gradients")),
                      reinterpret_cast<HoneTorchAdapt*>(dlsym(handle, "hone_torch_adapt"))};
}

PlainNet::PlainNet(Net& net, const std::vector<std::string>& trained,
                   const std::vector<std::string>& meta_trained) {
  if (std::optional<TokenAxes> axes = find_token_axes(net)) tokens_ = std::move(*axes);
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const Node& node = net.nodes[i];
    const bool resized = node.op == Op::kReshape && !tokens_.empty();
    nodes_.push_back({static_cast<int32_t>(node.op), node.source,
                      static_cast<int32_t>(node.inputs.size()), node.inputs.data(),
                      static_cast<int32_t>(node.integers.size()), node.integers.data(),
                      static_cast<int32_t>(node.numbers.size()), node.numbers.data(),
                      resized ? tokens_[i].data() : nullptr});
  }
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    inputs_.push_back(plain(net.inputs[i].dims, nullptr));
    if (tokens_.empty()) continue;
    inputs_.back().mask = mask_place(net, i);
    inputs_.back().square = is_square(net.inputs[i]) ? 1 : 0;
  }
  for (Parameter& parameter : net.parameters) {
    HONE_ASSERT(std::ssize(parameter.values) == element_count(parameter.dims),
                "a parameter without its values");
    parameters_.push_back(plain(parameter.dims, parameter.values.data()));
    parameters_.back().frozen = is_frozen(parameter.name, trained) ? 1 : 0;
    parameters_.back().meta_frozen = is_frozen(parameter.name, meta_trained) ? 1 : 0;
  }
  for (Constant& constant : net.constants)
    constants_.push_back(plain(constant.dims, constant.values.data()));
  const auto output = [&](std::string_view name) {
    const NetOutput* found = net.find_output(name);
    return found == nullptr ? -1 : found->node;
  };
  plain_ = {static_cast<int32_t>(nodes_.size()),
            nodes_.data(),
            static_cast<int32_t>(inputs_.size()),
            inputs_.data(),
            static_cast<int32_t>(parameters_.size()),
            parameters_.data(),
            static_cast<int32_t>(constants_.size()),
            constants_.data(),
            output("score"),
            output("time"),
            output("memory_bound"),
            output("core_bound")};
}

}  // namespace hone::cost::net
