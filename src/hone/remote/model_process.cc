#include "hone/remote/model_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "hone/base/allocation.h"
#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/base/input_file.h"
#include "hone/base/worker_child.h"
#include "hone/remote/model_messages.h"
#include "hone/remote/operand_digest.h"

namespace hone::remote {
namespace {

constexpr int kMostRuns = 1000;  // of one call: the answer has the times of all their steps

// Memory that the server shares, which has the inputs.
class Inputs {
 public:
  Inputs() = default;
  ~Inputs() {
    if (memory_ != MAP_FAILED) munmap(memory_, bytes_);
  }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  [[nodiscard]] Status map(int fd) {
    struct stat found = {};
    if (fstat(fd, &found) != 0 || found.st_size == 0) return invalid("there are no inputs");
    bytes_ = static_cast<size_t>(found.st_size);
    memory_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd, 0);
    if (memory_ == MAP_FAILED)
      return error(Code::kIo, "cannot map {} bytes of inputs: {}", bytes_, errno_text(errno));
    return ok_status();
  }
  // Returns where a part is, which is an input of so many bytes.
  [[nodiscard]] Result<const void*> find(const Part& part, int64_t bytes) const {
    if (part.bytes != bytes || !lies_in(part, static_cast<int64_t>(bytes_)))
      return invalid("an input of {} bytes, expected {}", part.bytes, bytes);
    return static_cast<const char*>(memory_) + part.offset;
  }

 private:
  void* memory_ = MAP_FAILED;
  size_t bytes_ = 0;
};

class ModelProcess {
 public:
  explicit ModelProcess(int socket) : socket_(socket) {}

  int serve() {
    if (!wire::send_message(socket_, wire::MessageType::kHello, "").ok()) return 1;
    for (;;) {
      Result<wire::Message> message = wire::receive_message(socket_, -1);
      if (!message.ok()) return message.status().code() == Code::kIo ? 0 : 1;
      const Descriptor attached(message->fd);
      const Result<ModelCall> call = decode<ModelCall>(message->body);
      if (message->type != wire::MessageType::kModelCall || !call.ok()) return 1;
      outputs_ = nullptr;
      ModelReply reply{.id = call->id};
      Result<std::string> body = answer(*call, attached);
      if (body.ok()) {
        reply.body = *std::move(body);
      } else {
        reply.code = body.status().code(), reply.problem = text_of(body.status());
      }
      const int fd = outputs_ == nullptr ? -1 : outputs_->fd();
      if (!wire::send_message(socket_, wire::MessageType::kModelReply, encode(reply), fd).ok())
        return 1;
    }
  }

 private:
  [[nodiscard]] Result<std::string> answer(const ModelCall& call, const Descriptor& attached) {
    if (call.function == ModelFunction::kLoad) return load(call.body, attached);
    if (!model_) return invalid("no model is loaded");
    switch (call.function) {
      case ModelFunction::kSetShape: return set_shape(call.body);
      case ModelFunction::kShape: return shape(call.body);
      case ModelFunction::kRun: return run(call.body, attached);
      default: return invalid("a function that the process of a model does not have");
    }
  }

  // Messages about the library name the file by its descriptor here.
  [[nodiscard]] std::string text_of(const Status& status) const {
    std::string text = status.message();
    for (size_t at = 0; !file_.empty() && (at = text.find(file_, at)) != std::string::npos;)
      text.replace(at, file_.size(), name_), at += name_.size();
    return text;
  }

  [[nodiscard]] Result<std::string> load(std::string_view body, const Descriptor& library) {
    HONE_ASSIGN_OR_RETURN(const LoadModel order, from_body<LoadModel>(body));
    model_.reset();
    file_ = fmt::format("/proc/self/fd/{}", library.get()), name_ = order.name;
    HONE_ASSIGN_OR_RETURN(Model model,
                          Model::load(file_, LoadOptions{order.threads, order.time_limit}));
    const ModelFacts facts{model.inputs(), model.outputs(), model.device(), model.device_bytes()};
    model_ = std::move(model);
    return to_body(facts);
  }

  [[nodiscard]] Result<std::string> set_shape(std::string_view body) {
    HONE_ASSIGN_OR_RETURN(const NamedShape order, from_body<NamedShape>(body));
    HONE_RETURN_IF_ERROR(model_->set_input_shape(order.index, order.shape));
    return std::string();
  }

  [[nodiscard]] Result<std::string> shape(std::string_view body) {
    HONE_ASSIGN_OR_RETURN(NamedShape asked, from_body<NamedShape>(body));
    if (asked.is_output && (asked.index < 0 || asked.index >= std::ssize(model_->outputs())))
      return invalid("there is no output {}, but {}", asked.index, model_->outputs().size());
    HONE_ASSIGN_OR_RETURN(asked.shape, asked.is_output ? model_->output_shape(asked.index)
                                                       : model_->input_shape(asked.index));
    return to_body(asked);
  }

  [[nodiscard]] Result<std::string> run(std::string_view body, const Descriptor& attached) {
    HONE_ASSIGN_OR_RETURN(const RunModel order, from_body<RunModel>(body));
    Inputs inputs;
    HONE_RETURN_IF_ERROR(inputs.map(attached.get()));
    HONE_ASSIGN_OR_RETURN(const std::vector<const void*> from, find(inputs, order.inputs));
    HONE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, make_outputs());
    std::vector<void*> to;
    for (Tensor& output : outputs) to.push_back(output.data());
    HONE_ASSIGN_OR_RETURN(RunReport report, time_runs(order, from, to));
    HONE_RETURN_IF_ERROR(keep(outputs, report));
    return to_body(report);
  }

  [[nodiscard]] Result<std::vector<const void*>> find(const Inputs& inputs,
                                                      const std::vector<Part>& parts) const {
    if (parts.size() != model_->inputs().size())
      return invalid("found {} inputs, expected {}", parts.size(), model_->inputs().size());
    std::vector<const void*> places;
    for (size_t i = 0; i < parts.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(const Shape shape, model_->input_shape(static_cast<int>(i)));
      const int64_t bytes = num_elements(shape) * dtype_bytes(model_->inputs()[i].dtype);
      HONE_ASSIGN_OR_RETURN(const void* const place, inputs.find(parts[i], bytes));
      places.push_back(place);
    }
    return places;
  }

  // Of the largest shapes that the next run may give them.
  [[nodiscard]] Result<std::vector<Tensor>> make_outputs() const {
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < model_->outputs().size(); ++i) {
      const ModelTensor& output = model_->outputs()[i];
      Shape shape = output.shape;
      if (!output.dims.empty()) {
        HONE_ASSIGN_OR_RETURN(shape, model_->output_shape(static_cast<int>(i)));
      }
      const AllocatesFor purpose(fmt::format("output '{}'", output.name));
      outputs.emplace_back(output.dtype, std::move(shape));
    }
    return outputs;
  }

  [[nodiscard]] Result<RunReport> time_runs(const RunModel& order,
                                            const std::vector<const void*>& from,
                                            const std::vector<void*>& to) {
    model_->profile(order.profile);
    const int most = std::clamp(order.most, 1, kMostRuns);
    const double end = real_clock().now_seconds() + order.seconds;
    std::vector<RunTime> times;
    do {
      HONE_RETURN_IF_ERROR(model_->run(from, to, 1, times));
    } while (std::ssize(times) < most && real_clock().now_seconds() < end);
    RunReport report;
    for (const RunTime& time : times) {
      report.seconds.push_back(time.seconds);
      for (const StepTime& step : time.steps) report.step_seconds.push_back(step.seconds);
    }
    report.steps = std::move(times.back().steps);
    report.device_bytes = model_->device_bytes();
    return report;
  }

  // Puts the outputs into memory that the server gets with the answer.
  [[nodiscard]] Status keep(const std::vector<Tensor>& outputs, RunReport& report) {
    std::vector<measure::OperandSpec> specs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(Shape shape, model_->output_shape(static_cast<int>(i)));
      const int64_t bytes = num_elements(shape) * dtype_bytes(outputs[i].dtype());
      if (bytes > outputs[i].bytes())
        return error(Code::kInternal, "output {} has shape {}, which exceeds {}",
                     model_->outputs()[i].name, to_string(shape), to_string(outputs[i].shape()));
      specs.push_back({ir::Role::kInput, bytes, outputs[i].data()});
      report.shapes.push_back(std::move(shape));
    }
    HONE_ASSIGN_OR_RETURN(outputs_, measure::Operands::create(specs));
    HONE_ASSIGN_OR_RETURN(report.digest, digest_of(*outputs_));
    for (const auto& entry : outputs_->layout().entries)
      report.outputs.push_back({entry.offset, entry.bytes});
    report.bytes = outputs_->layout().total_bytes;
    return ok_status();
  }

  int socket_;
  std::optional<Model> model_;
  std::string file_, name_;                           // of the library
  std::shared_ptr<const measure::Operands> outputs_;  // of the call that is answered
};

}  // namespace

int model_main(int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  isolate_worker(fd);
  return ModelProcess(fd).serve();
}

}  // namespace hone::remote
