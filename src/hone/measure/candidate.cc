#include "hone/measure/candidate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hone/backend/registry.h"
#include "hone/measure/device_candidate.h"
#include "hone/measure/flush.h"

namespace hone::measure {
namespace {

constexpr double kCountSeconds = 1e-3;  // limit of counted runs, unless one takes longer

}  // namespace

Bench::Bench(const HardwareEvents* events) : events_(events) {}

Bench::Bench(std::unique_ptr<DeviceBench> device) : events_(nullptr), device_(std::move(device)) {}

Bench::~Bench() { runtime::pool_destroy(pool_); }

void Bench::forget(const WorkerOperands& operands) {
  if (device_ != nullptr) device_->forget(operands);
}

bool Bench::is_lost() const { return device_ != nullptr && device_->is_lost(); }

Status Bench::set_threads(int threads) {
  if (threads < 1 || threads > runtime::kMaxThreads) return invalid("{} threads", threads);
  if (threads == threads_) return ok_status();
  runtime::pool_destroy(pool_);
  pool_ = runtime::pool_create({.num_threads = threads});
  threads_ = pool_ == nullptr ? 0 : threads;
  return pool_ != nullptr ? ok_status() : error(Code::kIo, "cannot start {} threads", threads);
}

Result<LoadedCandidate> LoadedCandidate::load(const Job& job, int threads,
                                              const WorkerOperands* operands, Arena& memory,
                                              bool poison) {
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
      HONE_RETURN_IF_ERROR(check_operand(a, i, operands));
      c.args_.push_back(operands->data(a.operand));
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
  if (job.executable.kind == target::Kind::kGpu) {
    return device_ != nullptr ? device_->run(job, operands, pool_)
                              : no_load(invalid("the worker has no device for this code"));
  }
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
  const auto check = [&] { return check_outputs(job, memory.damaged() >= 0, operands, m.error); };
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
    keep_duel(m, duel(timed(*candidate), timed(*rival), job.duel, between));
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
