#include "hone/measure/worker_process.h"

#include <algorithm>

#include "hone/base/memory_bound.h"
#include "hone/base/worker_program.h"
#include "hone/measure/protocol.h"

namespace hone::measure {
namespace {

// Tasks whose operands a worker keeps: the scheduler goes back and forth between a few.
constexpr size_t kMaxHeldOperands = 4;

std::vector<std::string> words(const WorkerOptions& options) {
  std::vector<std::string> words = options.arguments;
  if (options.device.kind == runtime::DeviceKind::kNone) return words;
  words.emplace_back(options.device.kind == runtime::DeviceKind::kCuda ? "--cuda" : "--opencl");
  words.push_back(options.device.name);
  return words;
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const WorkerOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string program, find_worker_program(options.executable));
  Result<std::unique_ptr<WorkerChild>> child =
      WorkerChild::start(program, words(options), options.start_seconds);
  if (child.status().code() == Code::kUnsupported)
    return error(Code::kUnsupported, "no worker can measure: {}", child.status().message());
  HONE_RETURN_IF_ERROR(child.status());
  const int64_t most = options.memory_bytes > 0 ? options.memory_bytes : memory_here().main / 4 * 3;
  if (most > 0) (*child)->limit_memory(most);
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(options, *std::move(child)));
}

// Forgets operands until there is room for others of so many bytes.
Status WorkerProcess::make_room(int64_t bytes) {
  int64_t all = bytes;
  for (const auto& operands : held_) all += operands->layout().total_bytes;
  while (!held_.empty() && (held_.size() >= kMaxHeldOperands ||
                            (options_.held_bytes > 0 && all > options_.held_bytes))) {
    HONE_RETURN_IF_ERROR(
        child_->send(wire::MessageType::kForget, wire::Writer().put(held_.front()->id()).bytes()));
    all -= held_.front()->layout().total_bytes;
    held_.pop_front();
  }
  return ok_status();
}

Status WorkerProcess::give_operands(const std::shared_ptr<const Operands>& operands) {
  if (std::find(held_.begin(), held_.end(), operands) != held_.end()) return ok_status();
  HONE_RETURN_IF_ERROR(make_room(operands->layout().total_bytes));
  HONE_RETURN_IF_ERROR(child_->send(wire::MessageType::kOperands,
                                    encode(OperandsMessage{operands->id(), operands->layout()}),
                                    operands->fd()));
  HONE_ASSIGN_OR_RETURN(const wire::Message answer, child_->receive(options_.operands_seconds));
  // The socket has not failed: the worker is alive and says what is wrong.
  if (!answer.body.empty()) return error(Code::kUnsupported, "{}", answer.body);
  held_.push_back(operands);
  return ok_status();
}

Measurement WorkerProcess::run(const Job& job) {
  HONE_ASSERT(alive(), "a dead worker runs nothing");
  Status status = job.operands ? give_operands(job.operands) : ok_status();
  if (status.code() == Code::kUnsupported)
    return failed(job.id, trial::Outcome::kLoad, status.message());
  if (status.ok()) status = child_->send(wire::MessageType::kJob, encode_job(job));
  if (status.ok()) {
    const auto answer = child_->receive(job.timeout_seconds);
    if (answer.ok()) {
      const auto measurement = decode_measurement(answer->body);
      if (answer->type == wire::MessageType::kResult && measurement.ok() &&
          measurement->id == job.id) {
        if (measurement->outcome == trial::Outcome::kCrash) child_->end(true);
        return *measurement;
      }
      status = invalid("an answer that does not belong to the job");
    } else {
      status = answer.status();
    }
  }
  if (status.code() == Code::kTimeout) {
    child_->end(true);
    return failed(job.id, trial::Outcome::kTimeout,
                  fmt::format("not done after {} s", job.timeout_seconds));
  }
  return failed(job.id, trial::Outcome::kCrash, child_->end(status.code() == Code::kInvalid));
}

}  // namespace hone::measure
