// cost/net/torch_library.h - loads libhone_torch.so (cost/torch) and hands nets over to it.
#pragma once

#include "hone/cost/net/train.h"
#include "hone/cost/torch/api.h"

namespace hone::cost::net {

struct TorchLibrary {
  HoneTorchTrain* train = nullptr;
  HoneTorchForward* forward = nullptr;
  HoneTorchGradients* gradients = nullptr;
};
// `file` empty: beside the program, or as installed. An error names what to install.
[[nodiscard]] Result<TorchLibrary> load_torch(const std::string& file);

// A net as plain structs; they point into the net and into this.
class PlainNet {
 public:
  // Parameters of other layers than `trained` are frozen; none: nothing is.
  PlainNet(Net& net, const std::vector<std::string>& trained);
  PlainNet(const PlainNet&) = delete;
  PlainNet& operator=(const PlainNet&) = delete;
  [[nodiscard]] const HoneTorchNet& get() const { return plain_; }

 private:
  std::vector<HoneTorchNode> nodes_;
  std::vector<std::vector<int>> tokens_;  // per node
  std::vector<HoneTorchTensor> inputs_, parameters_, constants_;
  HoneTorchNet plain_{};
};

}  // namespace hone::cost::net
