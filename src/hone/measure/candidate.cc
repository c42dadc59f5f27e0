#include "hone/measure/candidate.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

#include "hone/backend/registry.h"
#include "hone/measure/flush.h"
#include "hone/measure/verify.h"

namespace hone::measure {
namespace {

constexpr double kCountSeconds = 1e-3;  // limit of counted runs, unless one takes longer

Result<void*> operand_of(const Argument& a, size_t index, const WorkerOperands* operands) {
  if (operands == nullptr || a.operand >= operands->count()) {
    return invalid("argument {} is operand {}, which there is not", index, a.operand);
  }
  const auto& entry = operands->entry(a.operand);
  const bool written = a.role == ir::Role::kOutput;
  if (written != (entry.role == ir::Role::kOutput) || a.bytes > entry.bytes) {
    return invalid("argument {} ({}, {} bytes) does not fit operand {} ({}, {} bytes)", index,
                   ir::role_name(a.role), a.bytes, a.operand, ir::role_name(entry.role),
                   entry.bytes);
  }
  return operands->data(a.operand);
}

Measurement wrong(const Job& job, double error, std::string message) {
  Measurement m = failed(job.id, trial::Outcome::kWrongAnswer, std::move(message));
  m.error = error;
  return m;
}

// Returns what is wrong with what a candidate wrote, and notes its largest error.
std::optional<Measurement> check_outputs(const Job& job, const Arena& memory,
                                         WorkerOperands* operands, double& largest) {
  if (memory.damaged() >= 0 || (operands != nullptr && operands->damaged()))
    return wrong(job, 0, "something was written outside a buffer");
  const auto error = operands == nullptr ? std::nullopt : operands->error();
  if (!error) {
    return failed(job.id, trial::Outcome::kLoad,
                  "the output is to be checked, but nothing is expected of it");
  }
  largest = std::max(largest, *error);
  if (*error <= job.tolerance) return std::nullopt;
  return wrong(job, *error,
               fmt::format("relative error {:.3g}, allowed {:.3g}", *error, job.tolerance));
}

}  // namespace

Result<std::unique_ptr<WorkerOperands>> WorkerOperands::map(const OperandLayout& layout, int fd) {
  std::unique_ptr<WorkerOperands> result(new WorkerOperands);
  result->layout_ = layout;
  void* memory =
      mmap(nullptr, static_cast<size_t>(layout.total_bytes), PROT_READ, MAP_SHARED, fd, 0);
  const int code = errno;
  close(fd);
  if (memory == MAP_FAILED)
    return hone::error(Code::kIo, "cannot map the operands: {}", std::strerror(code));
  result->shared_ = static_cast<char*>(memory);
  HONE_RETURN_IF_ERROR(result->fill());
  return result;
}

Status WorkerOperands::fill() {
  std::vector<int64_t> input_sizes, output_sizes;
  for (const auto& e : layout_.entries)
    (e.role == ir::Role::kOutput ? output_sizes : input_sizes).push_back(e.bytes);
  num_outputs_ = output_sizes.size();
  HONE_RETURN_IF_ERROR(inputs_.reserve(input_sizes));
  HONE_RETURN_IF_ERROR(outputs_.reserve(output_sizes));
  size_t input = 0, output = 0;
  for (const auto& e : layout_.entries) {
    if (e.role == ir::Role::kOutput) {
      data_.push_back(outputs_.piece(output++));
      continue;
    }
    data_.push_back(inputs_.piece(input++));
    std::memcpy(data_.back(), shared_ + e.offset, static_cast<size_t>(e.bytes));
  }
  return inputs_.make_read_only();
}

WorkerOperands::~WorkerOperands() {
  if (shared_ != nullptr) munmap(shared_, static_cast<size_t>(layout_.total_bytes));
}

void WorkerOperands::reset_outputs(bool poison) {
  outputs_.restore_zones();
  for (size_t i = 0; poison && i < num_outputs_; ++i) outputs_.poison(i);
}

std::optional<double> WorkerOperands::error() const {
  std::optional<double> worst;
  for (const auto& e : layout_.expected) {
    const auto* places = reinterpret_cast<const int64_t*>(shared_ + e.places_offset);
    const auto* values = reinterpret_cast<const double*>(shared_ + e.values_offset);
    const double error =
        relative_error(data(e.operand), e.dtype, {places, static_cast<size_t>(e.num_places)},
                       {values, static_cast<size_t>(e.num_values)});
    worst = std::max(worst.value_or(0), error);
  }
  return worst;
}

Status Bench::set_threads(int threads) {
  if (threads < 1 || threads > runtime::kMaxThreads) return invalid("{} threads", threads);
  if (threads == threads_) return ok_status();
  runtime::pool_destroy(pool_);
  pool_ = runtime::pool_create({.num_threads = threads});
  threads_ = pool_ == nullptr ? 0 : threads;
  return pool_ != nullptr ? ok_status() : error(Code::kIo, "cannot start {} threads", threads);
}

Result<LoadedCandidate> LoadedCandidate::load(const Job& job, int threads, WorkerOperands* operands,
                                              Arena& memory, bool poison) {
  LoadedCandidate c;
  const backend::Executable& executable = job.executable;
  HONE_ASSIGN_OR_RETURN(c.code_, backend::load(executable));
  std::vector<int64_t> sizes;
  for (const Argument& a : job.arguments) {
    if (a.operand < 0) sizes.push_back(a.bytes);
  }
  const size_t num_private = sizes.size();
  // Threads never share a line or its neighbour, which the prefetcher fetches too.
  c.scratch_stride_ = (executable.scratch_bytes + 127) / 128 * 128;
  sizes.push_back(c.scratch_stride_ * threads);
  HONE_RETURN_IF_ERROR(memory.reserve(sizes));
  c.scratch_ = memory.piece(num_private);
  for (size_t i = 0; poison && i < num_private; ++i) memory.poison(i);

  for (size_t i = 0, own = 0; i < job.arguments.size(); ++i) {
    const Argument& a = job.arguments[i];
    if (a.operand < 0) {
      c.args_.push_back(memory.piece(own++));
    } else {
      HONE_ASSIGN_OR_RETURN(void* data, operand_of(a, i, operands));
      c.args_.push_back(data);
    }
    const bool constant = a.role == ir::Role::kConstant || a.role == ir::Role::kPacked;
    (constant ? c.weights_ : c.others_)
        .emplace_back(static_cast<char*>(c.args_.back()), static_cast<size_t>(a.bytes));
  }
  for (const backend::EntryPoint& p : executable.entries) {
    const hone_kernel kernel = c.code_->function(p.symbol);
    if (kernel == nullptr) return invalid("the executable has no function {}", p.symbol);
    (p.prepare ? c.prepare_ : c.main_).push_back({kernel, c.args_.data(), p.num_tiles, 0});
  }
  return c;
}

int LoadedCandidate::run(runtime::Pool* pool, const std::vector<runtime::PhaseCall>& phases) const {
  return runtime::pool_run(pool, phases.data(), static_cast<int64_t>(phases.size()), scratch_,
                           scratch_stride_);
}

void LoadedCandidate::forget(runtime::Pool* pool, Weights weights, const Sweep& sweep) const {
  if (weights == Weights::kShared) {
    sweep.run(pool, others_);
  } else {
    flush_from_caches(pool, weights_);
  }
}

double LoadedCandidate::seconds_to_forget(runtime::Pool* pool, Weights weights,
                                          const Sweep& sweep) const {
  if (forgets_nothing(weights)) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 2; ++i) {
    const int64_t start = runtime::clock_ns();
    forget(pool, weights, sweep);
    least = std::min(least, static_cast<double>(runtime::clock_ns() - start) * 1e-9);
  }
  return least;
}

double LoadedCandidate::time(runtime::Pool* pool, int64_t runs, Weights weights, const Sweep& sweep,
                             int& returned, const Counters* counters) const {
  int64_t ns = 0;
  const auto run_in_a_row = [&](int64_t count) {
    if (counters != nullptr) counters->start();
    const int64_t start = runtime::clock_ns();
    for (int64_t i = 0; i < count; ++i) returned |= run(pool);
    ns += runtime::clock_ns() - start;
    if (counters != nullptr) counters->stop();
  };
  if (forgets_nothing(weights)) {
    run_in_a_row(runs);
  } else {
    for (int64_t i = 0; i < runs; ++i) {
      forget(pool, weights, sweep);
      run_in_a_row(1);
    }
  }
  return static_cast<double>(ns) * 1e-9;
}

std::optional<trial::CountedBounds> Bench::count(const LoadedCandidate& candidate, Weights weights,
                                                 double seconds, int& returned) {
  if (events_ == nullptr && !machine_events().ok()) return std::nullopt;
  const HardwareEvents& events = events_ != nullptr ? *events_ : *machine_events();
  const auto runs = std::max<int64_t>(1, std::llround(kCountSeconds / seconds));
  Result<trial::CountedBounds> counted = count_bounds(events, [&](const Counters& counters) {
    (void)candidate.time(pool_, 1, weights, sweep_, returned);  // threads may have gone to sleep
    (void)candidate.time(pool_, runs, weights, sweep_, returned, &counters);
  });
  return counted.ok() ? std::optional(*std::move(counted)) : std::nullopt;
}

Measurement Bench::run(const Job& job, WorkerOperands* operands) {
  const auto no_load = [&](const Status& s) {
    return failed(job.id, trial::Outcome::kLoad, s.message());
  };
  if (const Status s = set_threads(job.threads); !s.ok()) return no_load(s);
  if (job.weights == Weights::kShared) {
    if (const Status s = sweep_.prepare(2 * job.own_cache_bytes, job.threads); !s.ok())
      return no_load(s);
  }
  const bool verify = job.tolerance > 0;
  Arena& memory = job.swap_memory ? rival_memory_ : memory_;
  Arena& rival_memory = job.swap_memory ? memory_ : rival_memory_;
  const auto candidate = LoadedCandidate::load(job, job.threads, operands, memory, verify);
  if (!candidate.ok()) return no_load(candidate.status());
  if (operands != nullptr) operands->reset_outputs(verify);
  if (const int returned = candidate->prepare(pool_); returned != 0) {
    return wrong(job, 0, fmt::format("a prepare kernel returned {}", returned));
  }
  Measurement m{.id = job.id};
  // Also after timing: a kernel may go wrong only when it runs again, or on some other thread.
  const auto check = [&] { return check_outputs(job, memory, operands, m.error); };
  int returned = 0;
  if (verify) {
    returned = candidate->run(pool_);
    if (returned != 0) return wrong(job, 0, fmt::format("a kernel returned {}", returned));
    if (auto bad = check()) return *bad;
  }

  const auto timed = [&](const LoadedCandidate& which) {
    return [&](int64_t runs) { return which.time(pool_, runs, job.weights, sweep_, returned); };
  };
  const double between = candidate->seconds_to_forget(pool_, job.weights, sweep_);
  if (job.rival != nullptr) {
    const auto rival =
        LoadedCandidate::load(*job.rival, job.threads, operands, rival_memory, false);
    if (!rival.ok()) return no_load(rival.status());
    returned |= rival->prepare(pool_);
    m.duel = duel(timed(*candidate), timed(*rival), job.duel, between);
    m.timing.samples = m.duel.challenger;
    m.timing.runs = static_cast<int64_t>(m.duel.pairs());
    summarise(m.timing);
    returned |= candidate->run(pool_);  // the last to write the output
  } else {
    m.timing = time_adaptively(timed(*candidate), job.timing, between);
  }
  if (job.count_bounds && returned == 0)
    m.bounds = count(*candidate, job.weights, m.timing.centre + between, returned);
  if (returned != 0) return wrong(job, 0, fmt::format("a kernel returned {}", returned));
  if (verify) {
    if (auto bad = check()) return *bad;
    m.verified = true;
  }
  return m;
}

}  // namespace hone::measure
