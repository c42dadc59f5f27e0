#include "hone/measure/device_candidate.h"

#include <algorithm>
#include <limits>

#include "hone/measure/candidate.h"
#include "hone/measure/timing.h"

namespace hone::measure {
namespace {

using trial::Outcome;

constexpr int64_t kMostRecorded = 1000;  // runs of a graph
constexpr double kCoolSeconds = 2;  // most seconds to wait for a device that is slowed down by heat

std::optional<Trouble> trouble(Outcome outcome, const Status& status) {
  if (status.ok()) return std::nullopt;
  return Trouble{outcome, status.message()};
}

}  // namespace

DeviceCandidate::~DeviceCandidate() {
  runtime::device_release(device_, graph_);
  for (Kernel& kernel : kernels_) runtime::device_release(device_, kernel.function);
  runtime::device_unload(device_, module_);
}

std::optional<Trouble> DeviceCandidate::load_code(const backend::Executable& executable) {
  const std::string& code = executable.code.str();
  if (const char* problem = runtime::code_check(code.data(), code.size()))
    return Trouble{Outcome::kLoad, problem};
  runtime::CodeImage image;
  char message[runtime::kCodeMessageBytes];
  if (!runtime::code_choose(code.data(), runtime::device_properties(device_), image, message))
    return Trouble{Outcome::kLoad, message};
  if (!runtime::device_load_best(device_, code.data(), module_))
    return Trouble{Outcome::kCompile, runtime::device_error(device_)};
  for (const backend::EntryPoint& entry : executable.entries) {
    if (entry.prepare) continue;
    Kernel& kernel = kernels_.emplace_back();
    kernel.blocks = entry.num_tiles;
    if (!runtime::device_function(device_, module_, entry.symbol.c_str(), entry.threads,
                                  entry.shared_bytes, kernel.function))
      return Trouble{Outcome::kLoad, runtime::device_error(device_)};
  }
  return std::nullopt;
}

Status DeviceCandidate::bind(const Job& job, const WorkerOperands* operands,
                             const DeviceOperands* uploaded, DeviceMemory& memory, bool poison) {
  std::vector<int64_t> sizes;
  for (const Argument& a : job.arguments) {
    if (a.operand < 0) sizes.push_back(a.bytes);
  }
  HONE_RETURN_IF_ERROR(memory.reserve(sizes));
  for (size_t i = 0, own = 0; i < job.arguments.size(); ++i) {
    const Argument& a = job.arguments[i];
    if (a.operand < 0) {
      if (poison && a.role == ir::Role::kWorkspace) HONE_RETURN_IF_ERROR(memory.poison(own));
      args_.push_back(memory.piece(own++));
      continue;
    }
    HONE_RETURN_IF_ERROR(check_operand(a, i, operands));
    const DeviceMemory& pieces = a.role == ir::Role::kOutput ? uploaded->outputs : uploaded->inputs;
    args_.push_back(pieces.piece(uploaded->places[static_cast<size_t>(a.operand)]));
  }
  return ok_status();
}

// The code that prepares constants is for the host. Its arguments are as in a job for the host.
std::optional<Trouble> DeviceCandidate::prepare(const Job& job, const WorkerOperands* operands,
                                                DeviceMemory& memory, runtime::Pool* pool,
                                                Arena& host_memory) const {
  if (!job.executable.prepares_constants()) return std::nullopt;
  Job packing = job;
  packing.executable = prepare_part(job.executable);
  if (packing.executable.kind != target::Kind::kCpu)
    return Trouble{Outcome::kLoad, "there is no code for the host that prepares constants"};
  const auto host =
      LoadedCandidate::load(packing, runtime::pool_num_threads(pool), operands, host_memory, false);
  if (!host.ok()) return trouble(Outcome::kLoad, host.status());
  if (const int returned = host->prepare(pool); returned != 0)
    return Trouble{Outcome::kWrongAnswer, fmt::format("a prepare kernel returned {}", returned)};
  Status uploaded = ok_status();
  for (size_t i = 0, own = 0; i < job.arguments.size() && uploaded.ok(); ++i) {
    const Argument& a = job.arguments[i];
    if (a.operand >= 0) continue;
    const size_t piece = own++;
    if (a.role == ir::Role::kPacked) uploaded = memory.upload(piece, host->argument(i), a.bytes);
  }
  // The host's memory is the next candidate's, also after a failure.
  const Status done = device_status(device_, runtime::device_synchronize(device_));
  return trouble(Outcome::kLoad, uploaded.ok() ? done : uploaded);
}

std::optional<Trouble> DeviceCandidate::load(const Job& job, const WorkerOperands* operands,
                                             const DeviceOperands* uploaded, DeviceMemory& memory,
                                             runtime::Pool* pool, Arena& host_memory, bool poison) {
  if (auto bad = load_code(job.executable)) return bad;
  if (auto bad = trouble(Outcome::kLoad, bind(job, operands, uploaded, memory, poison))) return bad;
  return prepare(job, operands, memory, pool, host_memory);
}

Status DeviceCandidate::start() const {
  for (const Kernel& kernel : kernels_) {
    HONE_RETURN_IF_ERROR(device_status(
        device_, runtime::device_launch(device_, kernel.function, kernel.blocks, args_.data(),
                                        static_cast<int>(args_.size()))));
  }
  return ok_status();
}

Status DeviceCandidate::record(int64_t runs) {
  const bool is_cuda = runtime::device_properties(device_).kind == runtime::DeviceKind::kCuda;
  if (!is_cuda || runs < 2 || runs > kMostRecorded || runs == recorded_) return ok_status();
  runtime::device_release(device_, graph_);
  recorded_ = 0;
  HONE_RETURN_IF_ERROR(device_status(device_, runtime::device_begin_graph(device_)));
  Status launched = ok_status();
  for (int64_t i = 0; i < runs && launched.ok(); ++i) launched = start();
  const Status ended = device_status(device_, runtime::device_end_graph(device_, graph_));
  HONE_RETURN_IF_ERROR(launched);
  HONE_RETURN_IF_ERROR(ended);
  recorded_ = runs;
  // The first launch brings the graph to the device.
  return device_status(device_, runtime::device_launch_graph(device_, graph_));
}

Status DeviceCandidate::start(int64_t runs) const {
  if (runs == recorded_)
    return device_status(device_, runtime::device_launch_graph(device_, graph_));
  for (int64_t i = 0; i < runs; ++i) HONE_RETURN_IF_ERROR(start());
  return ok_status();
}

Result<std::unique_ptr<DeviceBench>> DeviceBench::open(runtime::DeviceKind kind,
                                                       const std::string& name) {
  std::string message(runtime::kDeviceErrorBytes, '\0');
  const int index = runtime::device_find(kind, name.c_str(), message.data());
  DevicePtr device(index < 0 ? nullptr : runtime::device_open(kind, index, message.data()));
  if (device == nullptr) return error(Code::kUnsupported, "{}", message.c_str());
  std::unique_ptr<DeviceBench> bench(new DeviceBench(std::move(device)));
  if (kind == runtime::DeviceKind::kCuda)
    bench->clocks_ = open_gpu_clocks(pci_address_of_cuda(index));
  return bench;
}

DeviceBench::DeviceBench(DevicePtr device)
    : device_(std::move(device)), memory_(*device_), rival_memory_(*device_) {}

DeviceBench::~DeviceBench() {
  runtime::device_release(*device_, begin_);
  runtime::device_release(*device_, end_);
  runtime::device_free(*device_, flush_);
}

Status DeviceBench::upload(const WorkerOperands& operands) {
  DeviceOperands& uploaded = uploaded_.try_emplace(&operands, *device_).first->second;
  std::vector<int64_t> inputs, outputs;
  for (int i = 0; i < operands.count(); ++i) {
    std::vector<int64_t>& sizes = operands.entry(i).role == ir::Role::kOutput ? outputs : inputs;
    uploaded.places.push_back(sizes.size());
    sizes.push_back(operands.entry(i).bytes);
  }
  HONE_RETURN_IF_ERROR(uploaded.inputs.reserve(inputs));
  HONE_RETURN_IF_ERROR(uploaded.outputs.reserve(outputs));
  for (int i = 0; i < operands.count(); ++i) {
    if (operands.entry(i).role == ir::Role::kOutput) continue;
    HONE_RETURN_IF_ERROR(uploaded.inputs.upload(uploaded.places[static_cast<size_t>(i)],
                                                operands.data(i), operands.entry(i).bytes));
  }
  return device_status(*device_, runtime::device_synchronize(*device_));
}

Status DeviceBench::reset_outputs(WorkerOperands& operands, DeviceOperands& uploaded, bool poison) {
  operands.reset_outputs(poison);
  HONE_RETURN_IF_ERROR(uploaded.outputs.restore_zones());
  for (int i = 0; poison && i < operands.count(); ++i) {
    if (operands.entry(i).role == ir::Role::kOutput)
      HONE_RETURN_IF_ERROR(uploaded.outputs.poison(uploaded.places[static_cast<size_t>(i)]));
  }
  return ok_status();
}

Status DeviceBench::reserve_flush(int64_t bytes) {
  if (flush_.handle != 0 && flush_.bytes >= bytes) return ok_status();
  runtime::device_free(*device_, flush_);
  return device_status(*device_, runtime::device_allocate(*device_, bytes, flush_));
}

// Also after timing: a kernel may go wrong only when it runs again.
std::optional<Measurement> DeviceBench::check(const Job& job, const DeviceMemory& memory,
                                              WorkerOperands* operands, double& error) {
  Result<bool> damaged = memory.is_damaged();
  const auto uploaded = uploaded_.find(operands);
  if (uploaded != uploaded_.end() && damaged.ok() && !*damaged) {
    const DeviceMemory& outputs = uploaded->second.outputs;
    damaged = outputs.is_damaged();
    for (int i = 0; i < operands->count() && damaged.ok(); ++i) {
      if (operands->entry(i).role != ir::Role::kOutput) continue;
      const Status read = outputs.download(uploaded->second.places[static_cast<size_t>(i)],
                                           operands->data(i), operands->entry(i).bytes);
      if (!read.ok()) damaged = read;
    }
    const Status done = device_status(*device_, runtime::device_synchronize(*device_));
    if (!done.ok()) damaged = done;
  }
  if (!damaged.ok()) return answer(job, {Outcome::kLoad, damaged.status().message()});
  return check_outputs(job, *damaged, operands, error);
}

Result<double> DeviceBench::timed(DeviceCandidate& candidate, int64_t runs, bool flush) {
  const auto record = [&](runtime::DeviceEvent& event) {
    return device_status(*device_, runtime::device_record(*device_, event));
  };
  if (flush)
    HONE_RETURN_IF_ERROR(
        device_status(*device_, runtime::device_zero(*device_, flush_, 0, flush_.bytes)));
  HONE_RETURN_IF_ERROR(candidate.record(runs));
  HONE_RETURN_IF_ERROR(record(begin_));
  HONE_RETURN_IF_ERROR(candidate.start(runs));
  HONE_RETURN_IF_ERROR(record(end_));
  double seconds = 0;
  HONE_RETURN_IF_ERROR(
      device_status(*device_, runtime::device_elapsed(*device_, begin_, end_, seconds)));
  return seconds;
}

double DeviceBench::time(DeviceCandidate& candidate, int64_t runs, Weights weights) {
  const bool flush = weights != Weights::kWarm;
  double seconds = 0;
  for (int64_t i = 0; i < (flush ? runs : 1) && failure_.ok(); ++i) {
    const Result<double> part = timed(candidate, flush ? 1 : runs, flush);
    if (part.ok()) seconds += *part;
    failure_ = part.status();
  }
  return failure_.ok() ? seconds : std::numeric_limits<double>::infinity();
}

double DeviceBench::seconds_to_flush() {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 2; ++i) {
    const int64_t start = runtime::clock_ns();
    if (!runtime::device_zero(*device_, flush_, 0, flush_.bytes) ||
        !runtime::device_synchronize(*device_))
      return 0;  // the runs will fail, too
    least = std::min(least, static_cast<double>(runtime::clock_ns() - start) * 1e-9);
  }
  return least;
}

trial::Timing DeviceBench::time_unthrottled(const Job& job, DeviceCandidate& candidate,
                                            double between) {
  const auto timer = [&](int64_t runs) { return time(candidate, runs, job.weights); };
  if (clocks_ != nullptr) (void)clocks_->wait(kCoolSeconds);
  trial::Timing timing = time_adaptively(timer, job.timing, between);
  if (clocks_ != nullptr && clocks_->is_throttled() && clocks_->wait(kCoolSeconds))
    timing = time_adaptively(timer, job.timing, between);
  return timing;
}

Measurement DeviceBench::answer(const Job& job, Trouble trouble) const {
  return failed(job.id, is_lost() ? Outcome::kCrash : trouble.outcome, std::move(trouble.message));
}

Measurement DeviceBench::measure(const Job& job, const DeviceMemory& memory,
                                 WorkerOperands* operands, DeviceCandidate& candidate,
                                 DeviceCandidate* rival) {
  Measurement m{.id = job.id};
  const bool verify = job.tolerance > 0;
  Status first = candidate.start();
  if (first.ok()) first = device_status(*device_, runtime::device_synchronize(*device_));
  if (!first.ok()) return answer(job, {Outcome::kLoad, first.message()});
  if (verify) {
    if (auto bad = check(job, memory, operands, m.error)) return *bad;
  }
  const auto timer = [&](DeviceCandidate& which) {
    return [&](int64_t runs) { return time(which, runs, job.weights); };
  };
  const double between = job.weights == Weights::kWarm ? 0 : seconds_to_flush();
  failure_ = ok_status();
  if (rival != nullptr) {
    keep_duel(m, duel(timer(candidate), timer(*rival), job.duel, between));
    if (failure_.ok()) failure_ = candidate.start();  // the last to write the output
  } else {
    m.timing = time_unthrottled(job, candidate, between);
  }
  if (failure_.ok()) failure_ = device_status(*device_, runtime::device_synchronize(*device_));
  if (!failure_.ok()) return answer(job, {Outcome::kLoad, failure_.message()});
  if (verify) {
    if (auto bad = check(job, memory, operands, m.error)) return *bad;
    m.verified = true;
  }
  return m;
}

Measurement DeviceBench::run(const Job& job, WorkerOperands* operands, runtime::Pool* pool) {
  const bool verify = job.tolerance > 0;
  DeviceMemory& memory = job.swap_memory ? rival_memory_ : memory_;
  DeviceMemory& other_memory = job.swap_memory ? memory_ : rival_memory_;
  Status ready = ok_status();
  if (operands != nullptr && !uploaded_.contains(operands)) ready = upload(*operands);
  DeviceOperands* uploaded = operands == nullptr ? nullptr : &uploaded_.at(operands);
  if (ready.ok() && uploaded != nullptr) ready = reset_outputs(*operands, *uploaded, verify);
  if (ready.ok() && job.weights != Weights::kWarm) ready = reserve_flush(2 * job.own_cache_bytes);
  if (!ready.ok()) {
    if (operands != nullptr) forget(*operands);
    return answer(job, {Outcome::kLoad, ready.message()});
  }
  DeviceCandidate candidate(*device_), rival(*device_);
  if (auto bad = candidate.load(job, operands, uploaded, memory, pool, host_memory_, verify))
    return answer(job, *std::move(bad));
  if (job.rival != nullptr) {
    if (auto bad =
            rival.load(*job.rival, operands, uploaded, other_memory, pool, host_memory_, false))
      return answer(job, {Outcome::kLoad, std::move(bad->message)});
  }
  const Measurement m =
      measure(job, memory, operands, candidate, job.rival != nullptr ? &rival : nullptr);
  // It may have written to what it should only read.
  if (m.outcome != Outcome::kOk && operands != nullptr) forget(*operands);
  return m;
}

}  // namespace hone::measure
