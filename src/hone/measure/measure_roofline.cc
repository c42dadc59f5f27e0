#include "hone/measure/measure_roofline.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include "hone/backend/registry.h"
#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/measure/arena.h"
#include "hone/measure/roofline_programs.h"
#include "hone/runtime/pool.h"

namespace hone::measure {
namespace {

constexpr int64_t kBytesPerRun = int64_t{64} << 20;  // by each thread: 0.2 ms at 300 GB/s
constexpr int64_t kFmaIterations = 20'000;           // 0.3 ms at 2 FMA a cycle
constexpr int kMinRounds = 3, kMaxRounds = 60;       // that count
constexpr double kPatience = 5;                      // factor of the time for measuring
constexpr int kPhases = 100;                         // phases of a run that measures fork and join

struct PoolDeleter {
  void operator()(runtime::Pool* pool) const { runtime::pool_destroy(pool); }
};
using PoolPtr = std::unique_ptr<runtime::Pool, PoolDeleter>;

// A kernel of one of the programs, compiled.
struct Kernel {
  backend::LoadedPtr code;
  hone_kernel function = nullptr;
};

Result<Kernel> make_kernel(const ir::Program& program, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const backend::Executable executable, backend::compile(program, target));
  Kernel kernel;
  HONE_ASSIGN_OR_RETURN(kernel.code, backend::load(executable));
  kernel.function = kernel.code->function(executable.entries[0].symbol);
  if (kernel.function == nullptr)
    return error(Code::kUnsupported, "code for {} does not run in this process", target.name);
  return kernel;
}

// A kernel to be measured, on one core and on all, and where its best rates are stored in the end.
struct Probe {
  Kernel kernel;
  double work = 0;    // of one tile: operations or bytes
  int one_tiles = 1;  // tiles that one core alone runs
  trial::Rate* rate = nullptr;
};

// Tiles that wait for each other, so that every thread must take part: the whole way there and
// back. args: the count of arrivals, the number of tiles.
int meet(void* const* args, void*, int64_t, int64_t, int) {
  auto& arrived = *static_cast<std::atomic<int64_t>*>(args[0]);
  const int64_t tiles = *static_cast<const int64_t*>(args[1]);
  const int64_t target = arrived.fetch_add(1) / tiles * tiles + tiles;
  while (arrived.load(std::memory_order_relaxed) < target) {
  }
  return 0;
}

class Bench {
 public:
  Bench(const target::Target& target, int threads)
      : target_(target),
        cpu_(target.cpu()),
        threads_(threads),
        counts_(fork_join_threads(threads)) {}

  Status prepare(trial::Roofline& roofline, int64_t memory) {
    one_.reset(runtime::pool_create({.num_threads = 1}));
    all_.reset(runtime::pool_create({.num_threads = threads_}));
    if (!one_ || !all_) return error(Code::kIo, "cannot start {} threads", threads_);
    for (const int threads : counts_) {
      forks_.emplace_back(threads < threads_ ? runtime::pool_create({.num_threads = threads})
                                             : nullptr);
      if (threads < threads_ && !forks_.back())
        return error(Code::kIo, "cannot start {} threads", threads);
    }
    const std::vector<int64_t> sets = working_sets(cpu_, threads_, memory);
    const int64_t row = roofline_row(cpu_) * 4;
    const int64_t largest = (*std::max_element(sets.begin(), sets.end()) + row) * threads_;
    HONE_RETURN_IF_ERROR(
        arena_.reserve({roofline_vectors(cpu_) * cpu_.vector_bytes, threads_ * row, largest}));
    auto* given = static_cast<float*>(arena_.piece(0));
    const int64_t floats = roofline_vectors(cpu_) * cpu_.lanes(4);
    for (int64_t i = 0; i < floats; ++i) given[i] = 0.5F + 0.25F / static_cast<float>(i + 1);

    probes_.reserve(1 + 2 * roofline.levels.size());
    HONE_RETURN_IF_ERROR(add(fma_program(cpu_, threads_, kFmaIterations),
                             2.0 * static_cast<double>(kFmaIterations * kFmaUnroll) *
                                 static_cast<double>(roofline_row(cpu_)),
                             1, roofline.flops));
    for (size_t i = 0; i < sets.size(); ++i) {
      trial::RooflineLevel& level = roofline.levels[i];
      const bool is_memory = level.level == 0;
      const int64_t rows = std::max<int64_t>(1, sets[i] / row);
      const int64_t repeats = is_memory ? 1 : std::max<int64_t>(1, kBytesPerRun / (rows * row));
      const Stream stream = {threads_, rows, repeats};
      const auto bytes = static_cast<double>(rows * row * repeats);
      // One core alone goes through all of the memory, too, or it would live in a cache.
      const int one_tiles = is_memory ? threads_ : 1;
      // Writing comes first: a page that was never written has no memory of its own.
      HONE_RETURN_IF_ERROR(add(write_program(cpu_, stream), bytes, one_tiles, level.write));
      HONE_RETURN_IF_ERROR(add(read_program(cpu_, stream), bytes, one_tiles, level.read));
    }
    return ok_status();
  }

  // Everything once.
  RooflineRound round() {
    RooflineRound found;
    for (const Probe& probe : probes_) {
      // All cores first: each thread is then the first to touch its part of the memory.
      const double all = run(*all_, probe, threads_);
      found.rates.push_back({.one = run(*one_, probe, probe.one_tiles), .all = all});
    }
    for (size_t i = 0; i < forks_.size(); ++i)
      found.fork_join.push_back(fork_join(forks_[i] ? *forks_[i] : *all_, counts_[i]));
    return found;
  }

  void store(const RooflineRound& best, trial::Roofline& roofline) const {
    for (size_t i = 0; i < probes_.size(); ++i) *probes_[i].rate = best.rates[i];
    for (size_t i = 0; i < counts_.size(); ++i)
      roofline.fork_join.push_back({counts_[i], best.fork_join[i]});
  }

 private:
  Status add(const ir::Program& program, double work, int one_tiles, trial::Rate& rate) {
    HONE_ASSIGN_OR_RETURN(Kernel kernel, make_kernel(program, target_));
    probes_.push_back({std::move(kernel), work, one_tiles, &rate});
    return ok_status();
  }

  // Work a second.
  double run(runtime::Pool& pool, const Probe& probe, int tiles) {
    void* args[] = {arena_.piece(0), arena_.piece(1), arena_.piece(2)};
    const runtime::PhaseCall phase = {probe.kernel.function, args, tiles, 0};
    const int64_t start = runtime::clock_ns();
    runtime::pool_run(&pool, &phase, 1, nullptr, 0);
    const int64_t taken = std::max<int64_t>(1, runtime::clock_ns() - start);
    return probe.work * tiles / (static_cast<double>(taken) * 1e-9);
  }

  // Seconds of a phase. Workers of the pools that ran before sleep by then; this one's are woken
  // once for all phases.
  static double fork_join(runtime::Pool& pool, int threads) {
    std::atomic<int64_t> arrived{0};
    int64_t tiles = threads;
    void* args[] = {&arrived, &tiles};
    const std::vector<runtime::PhaseCall> phases(kPhases, {meet, args, tiles, 0});
    real_clock().sleep(2e-9 * runtime::kDefaultSpin);
    const int64_t start = runtime::clock_ns();
    runtime::pool_run(&pool, phases.data(), kPhases, nullptr, 0);
    return static_cast<double>(runtime::clock_ns() - start) * 1e-9 / kPhases;
  }

  const target::Target& target_;
  const target::Cpu& cpu_;  // of target_
  int threads_;
  std::vector<int> counts_;     // numbers of threads whose fork and join is measured
  std::vector<PoolPtr> forks_;  // ... by these; null: all_
  PoolPtr one_, all_;
  Arena arena_;
  std::vector<Probe> probes_;
};

// Returns the memory that this process may still use, of the machine and of its cgroup.
int64_t available_memory() {
  int64_t bytes = int64_t{1} << 40;
  if (const Result<std::string> text = read_file("/proc/meminfo"); text.ok()) {
    const size_t at = text->find("MemAvailable:");
    if (at != std::string::npos) bytes = std::atoll(text->c_str() + at + 13) * 1024;
  }
  const Result<std::string> limit = read_file("/sys/fs/cgroup/memory.max");
  const Result<std::string> used = read_file("/sys/fs/cgroup/memory.current");
  if (limit.ok() && used.ok() && limit->find("max") != 0)
    bytes = std::min<int64_t>(bytes, std::atoll(limit->c_str()) - std::atoll(used->c_str()));
  return bytes;
}

// Beyond all caches, as far as there is memory.
int64_t memory_set(const target::Cpu& target, int64_t most) {
  int64_t bytes = int64_t{256} << 20;
  for (const target::Cache& cache : target.caches) {
    const int64_t caches = (target.cores + cache.shared_by - 1) / cache.shared_by;
    bytes = std::max(bytes, 4 * cache.bytes * caches);
  }
  return std::max<int64_t>(int64_t{1} << 20, std::min({bytes, most, available_memory() / 4}));
}

void keep_best(const RooflineRound& found, RooflineRound& best) {
  if (best.rates.empty()) {
    best = found;
    return;
  }
  for (size_t i = 0; i < best.rates.size(); ++i) {
    best.rates[i].one = std::max(best.rates[i].one, found.rates[i].one);
    best.rates[i].all = std::max(best.rates[i].all, found.rates[i].all);
  }
  for (size_t i = 0; i < best.fork_join.size(); ++i)
    best.fork_join[i] = std::min(best.fork_join[i], found.fork_join[i]);
}

}  // namespace

void BestOfRounds::add(const RooflineRound& round, CoreChange before, CoreChange after) {
  keep_best(round, any_);
  if (before == CoreChange::kNearer || after == CoreChange::kNearer) {
    near_ = {};
    rounds_ = 0;
  }
  // Cores that came nearer in the round were far in a part of it.
  if (before == CoreChange::kWorse || after != CoreChange::kNone) return;
  keep_best(round, near_);
  ++rounds_;
}

const RooflineRound& BestOfRounds::best(int enough) const {
  return rounds_ >= enough ? near_ : any_;
}

std::vector<int64_t> working_sets(const target::Cpu& target, int threads, int64_t memory) {
  std::vector<int64_t> sets;
  int64_t closer = 0;  // what one thread has in the level before
  for (const target::Cache& cache : target.caches) {
    const int64_t share = cache.bytes / std::clamp(cache.shared_by, 1, std::max(threads, 1));
    // A shared cache may be large, and what others leave of it is not known: no more of it than is
    // needed so that the closer cache serves but a small part.
    const bool is_private = cache.shared_by == 1 || closer == 0;
    sets.push_back(is_private ? share / 2 : std::min(4 * closer, (closer + share) * 3 / 4));
    closer = share;
  }
  sets.push_back(memory / threads);
  return sets;
}

std::vector<int> fork_join_threads(int cores) {
  std::vector<int> counts;
  for (int threads = 2; threads < cores; threads *= 2) counts.push_back(threads);
  if (cores > 1) counts.push_back(cores);
  return counts;
}

Result<trial::Roofline> measure_roofline(const target::Target& host,
                                         const RooflineOptions& options) {
  const target::Cpu& cpu = host.cpu();
  trial::Roofline roofline;
  roofline.cores = cpu.cores;
  for (const target::Cache& cache : cpu.caches)
    roofline.levels.push_back(
        {.level = cache.level, .bytes = cache.bytes, .shared_by = cache.shared_by});
  roofline.levels.push_back({.level = 0, .bytes = 0, .shared_by = cpu.cores});
  roofline.unix_time = static_cast<int64_t>(std::time(nullptr));
  if (double load = 0; getloadavg(&load, 1) == 1) roofline.host_load = load;

  const double start = real_clock().now_seconds();
  Bench bench(host, cpu.cores);
  HONE_RETURN_IF_ERROR(bench.prepare(roofline, memory_set(cpu, options.max_memory)));
  HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
  (void)bench.round();  // only warms up
  CoreWatch watch(cpu.cores, {});
  BestOfRounds best;
  CoreChange before = watch.look();
  for (int round = 1;; ++round) {
    HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
    const RooflineRound found = bench.round();
    const CoreChange after = watch.look();
    best.add(found, before, after);
    before = after;
    const double taken = real_clock().now_seconds() - start;
    const bool counts = best.rounds() >= kMinRounds || taken >= kPatience * options.seconds;
    if (best.rounds() >= kMaxRounds || (round >= kMinRounds && counts && taken >= options.seconds))
      break;
  }
  bench.store(best.best(kMinRounds), roofline);
  HONE_RETURN_IF_ERROR(trial::check(roofline));
  return roofline;
}

}  // namespace hone::measure
