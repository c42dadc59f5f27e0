#include "hone/remote/remote_model.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/base/wire.h"
#include "hone/measure/operands.h"
#include "hone/remote/give_operands.h"
#include "hone/remote/link.h"
#include "hone/remote/model_messages.h"
#include "hone/remote/names.h"
#include "hone/remote/operand_digest.h"

namespace hone::remote {
namespace {

constexpr double kCallSeconds = 600;  // for a run, the most that a server takes
constexpr double kRowSeconds = 1;     // of runs in a row, after which other tuners have their turn
constexpr int64_t kFetchAhead = 8;  // parts of outputs that are asked for before the first is there
constexpr int kMostLost = 10;       // connections, during one call
constexpr int kMostRestarts = 2;    // of the server, during one call

using Data = std::shared_ptr<const measure::Operands>;

// Memory with these contents, which the server knows by its hash.
Result<Data> make_data(std::span<const void* const> contents, const std::vector<int64_t>& bytes) {
  std::vector<measure::OperandSpec> specs;
  static constexpr char kNothing = 0;
  for (size_t i = 0; i < contents.size(); ++i)
    specs.push_back({ir::Role::kInput, bytes[i], bytes[i] == 0 ? &kNothing : contents[i]});
  return measure::Operands::create(specs);
}

// Returns whether the tensors are the same ones, whatever their memory is.
bool are_same(const std::vector<ModelTensor>& one, const std::vector<ModelTensor>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const ModelTensor& a, const ModelTensor& b) {
                      return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape &&
                             a.dims == b.dims;
                    });
}

// Returns whether this failure of a call may have ended the model there: it crashed, it took too
// long, or it is not loaded any more.
bool may_have_ended(const Status& failure) {
  return failure.code() == Code::kInternal || failure.code() == Code::kTimeout ||
         failure.code() == Code::kCancelled;
}

class RemoteModel final : public ModelBody {
 public:
  RemoteModel(MachineAddress address, std::string library, const LoadOptions& options,
              std::string name)
      : address_(std::move(address)),
        library_(std::move(library)),
        name_(std::move(name)),
        options_(options) {}

  [[nodiscard]] Status open() {
    HONE_ASSIGN_OR_RETURN(session_, random_name());
    {
      HONE_ASSIGN_OR_RETURN(const std::string bytes, read_file(library_));
      const void* const contents[] = {bytes.data()};
      HONE_ASSIGN_OR_RETURN(data_, make_data(contents, {std::ssize(bytes)}));
    }
    HONE_ASSIGN_OR_RETURN(digest_, digest_of(*data_));
    const Status status = connect();
    if (status.ok()) return failure_;
    // The first attempt to connect is the only one; what is lost after that is made again.
    link_ = nullptr;
    if (instance_.empty() || !is_passing(status)) return status;
    return perform([] { return ok_status(); });
  }

  [[nodiscard]] Status set_input_shape(int input, const Shape& shape) override {
    last_shapes_.clear();
    if (const auto set = shapes_.find(input); set != shapes_.end() && set->second == shape)
      return ok_status();
    next_shapes_.clear();
    const NamedShape order{.index = input, .shape = shape};
    HONE_RETURN_IF_ERROR(
        perform([&] { return call(ModelFunction::kSetShape, to_body(order)).status(); }));
    shapes_[input] = shape;
    return ok_status();
  }
  [[nodiscard]] Result<Shape> input_shape(int input) const override {
    const ModelTensor& tensor = inputs_[static_cast<size_t>(input)];
    return tensor.dims.empty() ? tensor.shape : shape_of({.index = input});
  }
  [[nodiscard]] Result<Shape> output_shape(int output) const override {
    const auto index = static_cast<size_t>(output);
    return index < last_shapes_.size() ? last_shapes_[index] : next_shape(output);
  }

  [[nodiscard]] Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
                           int most, std::vector<RunTime>* times) override;

  [[nodiscard]] std::string device() const override { return device_; }
  [[nodiscard]] int64_t device_bytes() const override { return device_bytes_; }
  void profile(bool enable) override { profiles_ = enable; }
  [[nodiscard]] std::vector<StepTime> step_times() const override { return steps_; }
  [[nodiscard]] Status trace(bool enable) override {
    if (!enable) return ok_status();
    return error(Code::kUnsupported, "models on a machine elsewhere record no traces");
  }
  [[nodiscard]] std::vector<ThreadWork> thread_work() const override { return {}; }

 private:
  [[nodiscard]] Status connect();
  [[nodiscard]] Status load();
  // Does `work`, again after a lost connection. Its error is one of the connection; what the model
  // says is the error failure_.
  [[nodiscard]] Status perform(const std::function<Status()>& work);
  [[nodiscard]] Status give_data(const measure::Operands& data, const Digest& digest);
  // The answer's body; nothing if the answer is failure_.
  [[nodiscard]] Result<std::string> call(ModelFunction function, std::string body);
  [[nodiscard]] Result<ModelReply> receive(uint64_t id);
  [[nodiscard]] Result<Shape> shape_of(NamedShape asked) const;
  [[nodiscard]] Result<Shape> next_shape(int output) const;
  [[nodiscard]] Status run_there(const measure::Operands& data, const Digest& digest,
                                 const RunModel& order, RunReport& report);
  [[nodiscard]] Status check(const RunReport& report) const;
  [[nodiscard]] Status fetch(const RunReport& report);

  const MachineAddress address_;
  const std::string library_;  // its path
  const std::string name_;     // for errors
  const LoadOptions options_;
  std::string session_;
  Data data_;  // the library
  Digest digest_;
  std::unique_ptr<Link> link_;
  std::string instance_;
  int restarts_ = 0;  // of the server, during a call
  uint64_t last_call_ = 0;
  Status failure_;
  bool is_known_ = false;        // what the inputs and outputs are
  std::map<int, Shape> shapes_;  // that were set
  std::string device_;
  int64_t device_bytes_ = 0;
  bool profiles_ = false;
  std::vector<StepTime> steps_;
  std::vector<Shape> last_shapes_;            // of the outputs of the last run
  mutable std::map<int, Shape> next_shapes_;  // of outputs that vary, in the next run
  Digest fetched_;                            // of the memory of outputs that is here
  std::string memory_;
};

Status RemoteModel::connect() {
  const Hello hello{.job_version = wire::kProtocolVersion, .session = session_};
  HONE_ASSIGN_OR_RETURN(link_, Link::open(address_, hello));
  const std::string& instance = link_->welcome().instance;
  if (!instance_.empty() && instance != instance_) ++restarts_;
  instance_ = instance;
  return load();
}

Status RemoteModel::load() {
  HONE_RETURN_IF_ERROR(give_data(*data_, digest_));
  if (!failure_.ok()) return ok_status();
  const LoadModel order{name_, options_.num_threads, options_.time_limit};
  HONE_ASSIGN_OR_RETURN(const std::string body, call(ModelFunction::kLoad, to_body(order)));
  if (!failure_.ok()) return ok_status();
  HONE_ASSIGN_OR_RETURN(ModelFacts facts, from_body<ModelFacts>(body));
  if (!is_known_) {
    inputs_ = std::move(facts.inputs), outputs_ = std::move(facts.outputs);
    is_known_ = true;
  } else if (!are_same(inputs_, facts.inputs) || !are_same(outputs_, facts.outputs)) {
    // Callers hold references to the tensors, which never change.
    return error(Code::kInternal, "{}: {} has other inputs or outputs than before", address_.name,
                 name_);
  }
  device_ = std::move(facts.device), device_bytes_ = facts.device_bytes;
  for (const auto& [input, shape] : shapes_) {
    const NamedShape set{.index = input, .shape = shape};
    HONE_RETURN_IF_ERROR(call(ModelFunction::kSetShape, to_body(set)).status());
  }
  return ok_status();
}

Status RemoteModel::perform(const std::function<Status()>& work) {
  restarts_ = 0;
  for (int lost = 0;; ++lost) {
    failure_ = ok_status();
    Status status =
        link_ != nullptr ? work() : error(Code::kIo, "{}: no connection", address_.name);
    if (status.ok()) {
      // The next call connects again, which loads the model.
      if (may_have_ended(failure_)) link_ = nullptr;
      return failure_;
    }
    link_ = nullptr;
    if (!is_passing(status)) return status;
    if (lost >= kMostLost || restarts_ >= kMostRestarts)
      return error(Code::kInternal,
                   "{}; {} was given up after {} lost connections and {} restarts "
                   "of the server",
                   status.message(), name_, lost, restarts_);
    log_warning("{}; connecting again", status.message());
    status = try_again(
        address_, [this] { return connect(); },
        [](double seconds) {
          std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
          return true;
        });
    if (status.ok() && failure_.ok()) continue;
    link_ = nullptr;  // the model is not loaded there
    return status.ok() ? failure_ : status;
  }
}

Status RemoteModel::give_data(const measure::Operands& data, const Digest& digest) {
  const Result<std::string> problem =
      give(*link_, data, digest, [](const std::string&) { return ok_status(); });
  // As in receive(), another attempt would only take as long again.
  if (problem.status().code() == Code::kTimeout)
    return error(Code::kInternal, "{} has not answered in time whether it has the data",
                 address_.name);
  HONE_RETURN_IF_ERROR(problem.status());
  if (!problem->empty()) failure_ = error(Code::kUnsupported, "{}: {}", address_.name, *problem);
  return ok_status();
}

Result<std::string> RemoteModel::call(ModelFunction function, std::string body) {
  const ModelCall call{++last_call_, function, kCallSeconds, std::move(body)};
  HONE_RETURN_IF_ERROR(link_->send(encode(call)));
  HONE_ASSIGN_OR_RETURN(ModelReply reply, receive(call.id));
  if (reply.code != Code::kOk) failure_ = error(reply.code, "{}: {}", address_.name, reply.problem);
  return std::move(reply.body);
}

Result<ModelReply> RemoteModel::receive(uint64_t id) {
  for (;;) {
    const double seconds = kCallSeconds + address_.queue_seconds;
    const Result<std::string> message = link_->receive(seconds);
    // The connection is there, so that doing it again would only take as long again.
    if (message.status().code() == Code::kTimeout)
      return error(Code::kInternal, "{} has not answered for {} s", address_.name, seconds);
    HONE_RETURN_IF_ERROR(message.status());
    HONE_ASSIGN_OR_RETURN(const Kind kind, kind_of(*message));
    if (kind != Kind::kModelReply) continue;
    HONE_ASSIGN_OR_RETURN(ModelReply reply, decode<ModelReply>(*message));
    if (reply.id == id) return reply;
  }
}

Result<Shape> RemoteModel::shape_of(NamedShape asked) const {
  auto& self = const_cast<RemoteModel&>(*this);  // the connection is not what the model is
  HONE_RETURN_IF_ERROR(self.perform([&] {
    HONE_ASSIGN_OR_RETURN(const std::string body, self.call(ModelFunction::kShape, to_body(asked)));
    if (!failure_.ok()) return ok_status();
    HONE_ASSIGN_OR_RETURN(asked, from_body<NamedShape>(body));
    return ok_status();
  }));
  return std::move(asked.shape);
}

// The largest that the next run may give the output: what callers have room for.
Result<Shape> RemoteModel::next_shape(int output) const {
  const ModelTensor& tensor = outputs_[static_cast<size_t>(output)];
  if (tensor.dims.empty()) return tensor.shape;
  const auto known = next_shapes_.find(output);
  if (known != next_shapes_.end()) return known->second;
  HONE_ASSIGN_OR_RETURN(next_shapes_[output], shape_of({.is_output = true, .index = output}));
  return next_shapes_[output];
}

Status RemoteModel::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                        int most, std::vector<RunTime>* times) {
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const Shape shape, input_shape(static_cast<int>(i)));
    bytes.push_back(num_elements(shape) * dtype_bytes(inputs_[i].dtype));
  }
  HONE_ASSIGN_OR_RETURN(const Data data, make_data(inputs, bytes));
  HONE_ASSIGN_OR_RETURN(const Digest digest, digest_of(*data));
  RunModel order{.most = most, .seconds = kRowSeconds, .profile = profiles_};
  for (const auto& entry : data->layout().entries)
    order.inputs.push_back({entry.offset, entry.bytes});
  RunReport report;
  HONE_RETURN_IF_ERROR(perform([&] { return run_there(*data, digest, order, report); }));
  HONE_RETURN_IF_ERROR(check(report));
  for (size_t i = 0; i < outputs.size(); ++i)
    std::memcpy(outputs[i], memory_.data() + report.outputs[i].offset,
                static_cast<size_t>(report.outputs[i].bytes));
  last_shapes_ = std::move(report.shapes);
  device_bytes_ = report.device_bytes;
  steps_ = std::move(report.steps);
  auto step_seconds = report.step_seconds.begin();
  for (const double seconds : report.seconds) {
    if (times == nullptr) break;
    times->push_back({seconds, steps_});
    for (StepTime& step : times->back().steps) step.seconds = *step_seconds++;
  }
  return ok_status();
}

Status RemoteModel::run_there(const measure::Operands& data, const Digest& digest,
                              const RunModel& order, RunReport& report) {
  HONE_RETURN_IF_ERROR(give_data(data, digest));
  if (!failure_.ok()) return ok_status();
  HONE_ASSIGN_OR_RETURN(const std::string body, call(ModelFunction::kRun, to_body(order)));
  if (!failure_.ok()) return ok_status();
  HONE_ASSIGN_OR_RETURN(report, from_body<RunReport>(body));
  // The digest of memory that is not here, such as {}, may be what a server claims.
  if (report.digest == fetched_ && std::ssize(memory_) == report.bytes) return ok_status();
  return fetch(report);
}

Status RemoteModel::check(const RunReport& report) const {
  if (report.outputs.size() != outputs_.size())
    return invalid("{}: {} outputs, expected {}", address_.name, report.outputs.size(),
                   outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const Shape most, next_shape(static_cast<int>(i)));
    const int64_t elements = num_elements(report.shapes[i]);
    if (elements * dtype_bytes(outputs_[i].dtype) != report.outputs[i].bytes ||
        elements > num_elements(most))
      return invalid("{}: output {} has {} bytes and the shape {}, expected {}", address_.name,
                     outputs_[i].name, report.outputs[i].bytes, to_string(report.shapes[i]),
                     to_string(most));
  }
  return ok_status();
}

Status RemoteModel::fetch(const RunReport& report) {
  fetched_ = {};
  memory_.clear();
  int64_t asked = 0;
  const uint64_t first = last_call_ + 1;
  const auto ask = [&] {
    const Part part{asked, std::min(kPieceBytes, report.bytes - asked)};
    asked += part.bytes;
    return link_->send(
        encode(ModelCall{++last_call_, ModelFunction::kFetch, kCallSeconds, to_body(part)}));
  };
  for (int64_t i = 0; i < kFetchAhead && asked < report.bytes; ++i) HONE_RETURN_IF_ERROR(ask());
  for (uint64_t id = first; std::ssize(memory_) < report.bytes; ++id) {
    HONE_ASSIGN_OR_RETURN(const ModelReply reply, receive(id));
    if (reply.code != Code::kOk || reply.body.empty())
      return error(Code::kIo, "{}: the outputs are not there any more: {}", address_.name,
                   reply.problem);
    memory_ += reply.body;
    if (asked < report.bytes) HONE_RETURN_IF_ERROR(ask());
  }
  if (std::ssize(memory_) != report.bytes)
    return invalid("{}: {} bytes of outputs, expected {}", address_.name, memory_.size(),
                   report.bytes);
  fetched_ = report.digest;
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<ModelBody>> load_model(MachineAddress address, const std::string& library,
                                              const LoadOptions& options, const std::string& name) {
  auto model = std::make_unique<RemoteModel>(std::move(address), library, options, name);
  HONE_RETURN_IF_ERROR(model->open());
  return std::unique_ptr<ModelBody>(std::move(model));
}

}  // namespace hone::remote
