#include "hone/remote/model_host.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "hone/base/file.h"
#include "hone/remote/model_messages.h"

namespace hone::remote {
namespace {

ModelReply failure(const ModelCall& call, const Status& status) {
  return {.id = call.id, .code = status.code(), .problem = status.message()};
}

}  // namespace

Result<std::shared_ptr<WorkerChild>> ModelHost::child(const ModelCall& call, const Start& start) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return error(Code::kCancelled, "the connection ended");
    outputs_ = nullptr;  // they are those of the last run
    const bool goes_on = child_ != nullptr && child_->alive();
    if (call.function != ModelFunction::kLoad)
      return goes_on ? Result(child_) : error(Code::kInternal, "no model is loaded");
    child_ = nullptr;
  }
  if (start == nullptr) return error(Code::kUnsupported, "this server runs no models");
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<WorkerChild> started, start());
  const std::lock_guard lock(mutex_);
  if (is_stopped_) return error(Code::kCancelled, "the connection ended");
  child_ = started;
  return started;
}

ModelReply ModelHost::call(const ModelCall& call,
                           const std::shared_ptr<const measure::Operands>& data,
                           const Start& start) {
  const Result<std::shared_ptr<WorkerChild>> process = child(call, start);
  if (!process.ok()) return failure(call, process.status());
  if (call.function == ModelFunction::kLoad) library_ = data;
  Result<ModelReply> reply = exchange(**process, call, data == nullptr ? -1 : data->fd());
  if (reply.ok()) return *std::move(reply);
  const bool is_late = reply.status().code() == Code::kTimeout;
  const std::string death = (*process)->end(is_late);
  if (is_late)
    return failure(
        call, error(Code::kTimeout, "the model did not end within {} s", call.timeout_seconds));
  return failure(call, error(Code::kInternal, "the model crashed: {}", death));
}

Result<ModelReply> ModelHost::exchange(WorkerChild& child, const ModelCall& call, int fd) {
  HONE_RETURN_IF_ERROR(child.send(wire::MessageType::kModelCall, encode(call), fd));
  HONE_ASSIGN_OR_RETURN(wire::Message message, child.receive(call.timeout_seconds));
  auto attached = std::make_shared<const Descriptor>(message.fd);
  HONE_ASSIGN_OR_RETURN(ModelReply reply, decode<ModelReply>(message.body));
  if (message.type != wire::MessageType::kModelReply || reply.id != call.id)
    return invalid("an answer that does not belong to the call");
  const std::lock_guard lock(mutex_);
  if (attached->get() >= 0) outputs_ = std::move(attached);
  return reply;
}

ModelReply ModelHost::fetch(const ModelCall& call) const {
  std::shared_ptr<const Descriptor> outputs;
  {
    const std::lock_guard lock(mutex_);
    outputs = outputs_;
  }
  const Result<Part> part = from_body<Part>(call.body);
  if (!part.ok()) return failure(call, part.status());
  if (outputs == nullptr) return failure(call, invalid("the model has not run"));
  if (part->offset < 0 || part->bytes < 1 || part->bytes > kPieceBytes)
    return failure(call, invalid("a part of {} bytes at {}, expected {} bytes at most", part->bytes,
                                 part->offset, kPieceBytes));
  ModelReply reply{.id = call.id, .body = std::string(static_cast<size_t>(part->bytes), '\0')};
  const ssize_t read = ::pread(outputs->get(), reply.body.data(), reply.body.size(), part->offset);
  if (read < 0)
    return failure(call, error(Code::kIo, "cannot read outputs: {}", errno_text(errno)));
  reply.body.resize(static_cast<size_t>(read));
  return reply;
}

void ModelHost::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  if (child_ != nullptr) child_->interrupt();
  child_ = nullptr;
  outputs_ = nullptr;
}

}  // namespace hone::remote
