#include "hone/measure/worker.h"

#include <signal.h>
#include <sys/prctl.h>

#include <map>

#include "hone/base/worker_child.h"
#include "hone/measure/candidate.h"
#include "hone/measure/device_candidate.h"
#include "hone/measure/protocol.h"

namespace hone::measure {
namespace {

using wire::Message;
using wire::MessageType;
using wire::receive_message;
using wire::send_message;

class Worker {
 public:
  Worker(int socket, std::unique_ptr<DeviceBench> device)
      : socket_(socket), bench_(std::move(device)) {}

  int serve() {
    if (!send_message(socket_, MessageType::kHello, "").ok()) return 1;
    while (!bench_.is_lost()) {
      auto message = receive_message(socket_, -1);
      if (!message.ok()) return message.status().code() == Code::kIo ? 0 : 1;
      if (!handle(*message).ok()) return 1;
    }
    return 0;
  }

 private:
  [[nodiscard]] Status handle(const Message& message) {
    if (message.type == MessageType::kJob) return measure(message.body);
    if (message.type == MessageType::kOperands) return take_operands(message);
    if (message.type == MessageType::kForget) {
      const auto it = operands_.find(wire::Reader(message.body).get<uint64_t>());
      if (it == operands_.end()) return ok_status();
      bench_.forget(*it->second);
      operands_.erase(it);
      return ok_status();
    }
    return invalid("a message of type {}", static_cast<uint32_t>(message.type));
  }

  // Answers with what went wrong, or nothing.
  [[nodiscard]] Status take_operands(const Message& message) {
    HONE_ASSIGN_OR_RETURN(const OperandsMessage m, decode_operands(message.body));
    auto operands = WorkerOperands::map(m.layout, message.fd);
    if (operands.ok()) operands_[m.id] = *std::move(operands);
    return send_message(socket_, MessageType::kOperands, operands.status().message());
  }

  [[nodiscard]] Status measure(std::string_view body) {
    HONE_ASSIGN_OR_RETURN(const JobMessage m, decode_job(body));
    const auto it = operands_.find(m.operands);
    const Measurement result =
        bench_.run(m.job, it == operands_.end() ? nullptr : it->second.get());
    return send_message(socket_, MessageType::kResult, encode(result));
  }

  int socket_;
  std::map<uint64_t, std::unique_ptr<WorkerOperands>> operands_;
  Bench bench_;
};

}  // namespace

int worker_main(int fd, const WorkerDevice& device) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  isolate_worker(fd);
  std::unique_ptr<DeviceBench> bench;
  if (device.kind != runtime::DeviceKind::kNone) {
    Result<std::unique_ptr<DeviceBench>> opened = DeviceBench::open(device.kind, device.name);
    if (!opened.ok()) {
      (void)send_message(fd, MessageType::kHello, opened.status().message());
      return 1;
    }
    bench = *std::move(opened);
  }
  return Worker(fd, std::move(bench)).serve();
}

}  // namespace hone::measure
