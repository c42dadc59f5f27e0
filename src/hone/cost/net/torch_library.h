// cost/net/torch_library.h - loads libhone_torch.so (learn/torch) and passes nets to it.
#pragma once

#include "hone/cost/net/torch_api.h"
#include "hone/cost/net/train.h"

namespace hone::cost::net {

struct TorchLibrary {
  HoneTorchTrain* train = nullptr;
  HoneTorchForward* forward = nullptr;
  HoneTorchGradients* gradients = nullptr;
  HoneTorchAdapt* adapt = nullptr;
};
// Loads the library. If `file` is empty, it is next to the program, or where Hone is installed. An
// error says what to install.
[[nodiscard]] Result<TorchLibrary> load_torch(const std::string& file);

// A net as plain structs, which point into the net and into this object.
class PlainNet {
 public:
  // Parameters of layers that are not in `trained` are frozen; if it is empty, none are. The same
  // for meta-learning.
  PlainNet(Net& net, const std::vector<std::string>& trained,
           const std::vector<std::string>& meta_trained = {});
  PlainNet(const PlainNet&) = delete;
  PlainNet& operator=(const PlainNet&) = delete;
  [[nodiscard]] const HoneTorchNet& get() const { return plain_; }

 private:
  std::vector<HoneTorchNode> nodes_;
  std::vector<std::vector<int>> tokens_;  // one list per node
  std::vector<HoneTorchTensor> inputs_, parameters_, constants_;
  HoneTorchNet plain_{};
};

}  // namespace hone::cost::net
