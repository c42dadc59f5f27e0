// remote/model_host.h - the server's end of the process of a model (model_process.h), and the
// outputs of its last run.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "hone/base/input_file.h"
#include "hone/base/worker_child.h"
#include "hone/measure/operands.h"
#include "hone/remote/protocol.h"

namespace hone::remote {

class ModelHost {
 public:
  // How a process is started.
  using Start = std::function<Result<std::unique_ptr<WorkerChild>>()>;

  // Does what is asked for, with `data`, the library or the inputs, which may be null. Every
  // failure is an answer; after a crash or a timeout, the model is to be loaded again. One thread
  // calls it.
  [[nodiscard]] ModelReply call(const ModelCall& call,
                                const std::shared_ptr<const measure::Operands>& data,
                                const Start& start);
  // Answers kFetch. Any thread may call it.
  [[nodiscard]] ModelReply fetch(const ModelCall& call) const;
  // Ends the process, also while it works. Any thread may call it.
  void stop();

 private:
  [[nodiscard]] Result<std::shared_ptr<WorkerChild>> child(const ModelCall& call,
                                                           const Start& start);
  [[nodiscard]] Result<ModelReply> exchange(WorkerChild& child, const ModelCall& call, int fd);

  mutable std::mutex mutex_;
  bool is_stopped_ = false;
  std::shared_ptr<WorkerChild> child_;
  std::shared_ptr<const measure::Operands> library_;  // the process has mapped it
  std::shared_ptr<const Descriptor> outputs_;
};

}  // namespace hone::remote
