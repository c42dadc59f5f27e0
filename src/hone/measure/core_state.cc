#include "hone/measure/core_state.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "hone/target/topology.h"

namespace hone::measure {
namespace {

// A core for two threads: 1.9 to 2.1; cores of their own: 1.0 to 1.2 (D,
// docs/studies/measuring.md).
constexpr double kSlower = 1.5;
constexpr double kFarther = 2;  // one cache: 77 to 117 ns; cores of two: 381 ns (D)
constexpr double kPause = 0.05;
constexpr int kAttempts = 5;  // number of attempts, of which the best counts
constexpr int kRoots = 300, kExchanges = 200;
constexpr double kLongest = 2e-3;  // seconds, of all exchanges of two threads

// Binds this thread to a CPU; returns false if that fails.
bool move_to(int cpu) {
  cpu_set_t* set = CPU_ALLOC(cpu + 1);
  if (set == nullptr) return false;
  const size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(cpu, bytes, set);
  const bool moved = pthread_setaffinity_np(pthread_self(), bytes, set) == 0;
  CPU_FREE(set);
  return moved;
}

// Square roots, for which a core has one unit: the least seconds of some attempts.
double seconds_of_roots() {
  std::array<float, 256> values;
  values.fill(2);
  volatile float sink = 0;
  double best = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double start = real_clock().now_seconds();
    for (int i = 0; i < kRoots; ++i) {
      for (float& value : values) value = std::sqrt(value + 1);
      sink = values[static_cast<size_t>(i) % values.size()];
    }
    best = std::min(best, real_clock().now_seconds() - start);
  }
  (void)sink;
  return best;
}

// Threads that wait for each other without sleeping. On a busy machine others must get on, too.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads) {}
  void wait() {
    const int turn = turn_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      turn_.fetch_add(1);
      return;
    }
    while (turn_.load() == turn) std::this_thread::yield();
  }

 private:
  int threads_;
  std::atomic<int> arrived_ = 0, turn_ = 0;
};

// One line between two threads: each answers what the other one wrote, until the first has asked
// often enough or for so long that the machine must be busy with something else.
class Line {
 public:
  double ask() {
    double best = std::numeric_limits<double>::infinity();
    const double end = real_clock().now_seconds() + kLongest;
    int attempt = 0, next = 1;
    do {
      const double start = real_clock().now_seconds();
      int exchanges = 0;
      bool yields = false;
      for (; exchanges < kExchanges && !(yields && real_clock().now_seconds() >= end);
           ++exchanges) {
        value_.store(next, std::memory_order_release);
        (void)await([next](int value) { return value == next + 1; }, yields);
        next += 2;
      }
      best = std::min(best, (real_clock().now_seconds() - start) / exchanges);
    } while (++attempt < kAttempts && real_clock().now_seconds() < end);
    value_.store(kEnd, std::memory_order_release);
    return best;
  }
  void answer() {
    bool yields = false;
    for (int asked = 0; asked != kEnd;) {
      asked = await([](int value) { return value % 2 != 0; }, yields);
      if (asked != kEnd) value_.store(asked + 1, std::memory_order_release);
    }
  }

 private:
  static constexpr int kEnd = -1;
  // Whoever else wants this CPU must get it: the other side may be what is waited for.
  template <typename F>
  int await(const F& arrived, bool& yields) {
    for (int spins = 0;; ++spins) {
      if (const int value = value_.load(std::memory_order_acquire); arrived(value)) return value;
      if (spins < 10000) continue;
      yields = true;
      std::this_thread::yield();
    }
  }
  alignas(64) std::atomic<int> value_ = 0;
};

}  // namespace

CoreState look_at_cores(std::span<const int> cpus) {
  const auto count = static_cast<int>(cpus.size());
  if (count < 2) return {};
  std::vector<double> alone(cpus.size()), together(cpus.size()), exchanges(cpus.size());
  std::atomic<bool> moved = true;
  for (size_t i = 0; i < cpus.size(); ++i) {
    std::thread([&] {
      if (!move_to(cpus[i])) moved = false;
      alone[i] = seconds_of_roots();
    }).join();
  }
  Meeting meeting(count);
  std::vector<Line> lines(cpus.size());
  const auto take_part = [&](size_t i) {
    if (!move_to(cpus[i])) moved = false;
    meeting.wait();
    together[i] = seconds_of_roots();
    for (size_t other = 1; other < cpus.size(); ++other) {  // others wait for their turn
      meeting.wait();
      if (i == 0) exchanges[other] = lines[other].ask();
      if (i == other) lines[other].answer();
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cpus.size(); ++i) threads.emplace_back(take_part, i);
  for (std::thread& thread : threads) thread.join();
  if (!moved) return {};
  CoreState state{.slowdown = 0};
  for (size_t i = 0; i < cpus.size(); ++i)
    state.slowdown = std::max(state.slowdown, together[i] / alone[i]);
  state.exchange = *std::max_element(exchanges.begin(), exchanges.end());
  return state;
}

bool have_cores(const CoreState& state) { return state.slowdown < kSlower; }

bool are_good(const CoreState& state, double& nearest) {
  if (!have_cores(state)) return false;
  if (state.exchange == 0) return true;  // nothing is said of the distance
  nearest = nearest > 0 ? std::min(nearest, state.exchange) : state.exchange;
  return state.exchange <= kFarther * nearest;
}

CoreWatch::Look look_at_threads(int threads) {
  if (threads < 2) return {};
  std::vector<int> cpus = target::cpus_of_cores();
  if (threads > std::ssize(cpus)) return {};
  cpus.resize(static_cast<size_t>(threads));
  return [cpus = std::move(cpus)] { return look_at_cores(cpus); };
}

CoreWatch::CoreWatch(int threads, const Options& options)
    : CoreWatch(look_at_threads(threads), real_clock(), options) {}

CoreWatch::CoreWatch(Look look, Clock& clock, const Options& options)
    : look_(std::move(look)), clock_(clock), options_(options) {}

CoreChange CoreWatch::look() {
  if (!look_) return CoreChange::kNone;
  const double before = nearest_;
  const CoreState state = look_();
  if (!are_good(state, nearest_)) return CoreChange::kWorse;
  const bool nearer = state.exchange > 0 && state.exchange * kFarther < before;
  return nearer ? CoreChange::kNearer : CoreChange::kNone;
}

double CoreWatch::wait(double deadline) {
  if (!look_) return 0;
  const double start = clock_.now_seconds();
  const double end = std::min(deadline, start + options_.patience - waited_);
  double waited = 0;
  while (clock_.now_seconds() < end && look() == CoreChange::kWorse) {
    if (options_.interrupted && options_.interrupted->load()) break;
    clock_.sleep(std::min(kPause, end - clock_.now_seconds()));
    waited = clock_.now_seconds() - start;
  }
  waited_ += waited;
  return waited;
}

}  // namespace hone::measure
