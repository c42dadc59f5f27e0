#include "hone/backend/cpu/list_schedule.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

namespace hone::backend::cpu {
namespace {

constexpr int kWarmUp = 8, kCounted = 16;  // iterations
constexpr size_t kPorts = 16;
constexpr int kWideBits = 512;

// Ports over time: a port does one thing a cycle, and a later instruction may take a free cycle
// before an earlier one that waits. Of free ports, it takes that which the fewest units can use.
class Ports {
 public:
  explicit Ports(const CoreModel& model) {
    std::array<int, kPorts> users{};
    for (const CoreModel::Use& use : model.uses) {
      for (size_t p = 0; p < kPorts; ++p) users[p] += static_cast<int>(use.ports >> p & 1);
    }
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return users[a] < users[b]; });
  }
  // Returns the first cycle from `ready` on in which one of the ports is free, and takes it.
  int64_t take(uint32_t ports, int64_t ready, int cycles) {
    for (int64_t at = ready;; ++at) {
      for (const size_t p : order_) {
        if ((ports >> p & 1) == 0 || !free(p, at, cycles)) continue;
        std::vector<bool>& busy = busy_[p];
        if (busy.size() < static_cast<size_t>(at + cycles))
          busy.resize(static_cast<size_t>(at + cycles + 256), false);
        for (int c = 0; c < cycles; ++c) busy[static_cast<size_t>(at + c)] = true;
        return at;
      }
    }
  }

 private:
  [[nodiscard]] bool free(size_t port, int64_t at, int cycles) const {
    const std::vector<bool>& busy = busy_[port];
    for (int64_t c = at; c < at + cycles; ++c) {
      if (c < static_cast<int64_t>(busy.size()) && busy[static_cast<size_t>(c)]) return false;
    }
    return true;
  }
  std::array<size_t, kPorts> order_{};
  std::array<std::vector<bool>, kPorts> busy_;
};

// The core's state: when registers are known, and when instructions leave it, in order.
class Core {
 public:
  Core(const CoreModel& model, size_t registers)
      : model_(model), known_(registers, 0), ports_(model) {}

  void run(const CoreStep& step) {
    const int64_t entered = enter();
    const int64_t addresses = last_of(step.addresses, entered);
    int64_t loaded = entered;
    if (step.loads) loaded = take(Unit::kLoad, step.wide ? model_.wide_loads : 0, addresses, 1);
    int64_t done = std::max(loaded, last_of(step.reads, entered));
    if (step.unit != Unit::kNone)
      done = take(step.unit, 0, done, step.wide && model_.wide_bits < kWideBits ? 2 : 1);
    if (step.stores)
      done = take(Unit::kStore, step.wide ? model_.wide_stores : 0, std::max(done, addresses), 1);
    for (const size_t r : step.writes) known_[r] = done;
    for (const size_t r : step.advances) known_[r] = addresses + 1;
    left_.push_back(std::max(done, end()));
  }

  // The cycle in which the last instruction has left.
  [[nodiscard]] int64_t end() const { return left_.empty() ? 0 : left_.back(); }

 private:
  // The first cycle in which the next instruction is in the window.
  [[nodiscard]] int64_t enter() const {
    const auto n = static_cast<int64_t>(left_.size());
    const int64_t issued = n / model_.issue;
    if (n < model_.window) return issued;
    return std::max(issued, left_[static_cast<size_t>(n - model_.window)]);
  }
  [[nodiscard]] int64_t last_of(const std::vector<size_t>& registers, int64_t from) const {
    for (const size_t r : registers) from = std::max(from, known_[r]);
    return from;
  }
  // Takes a port of the unit, one of `only` if there are such; returns when the result is known.
  int64_t take(Unit unit, uint32_t only, int64_t ready, int cycles) {
    const CoreModel::Use& use = model_.uses[static_cast<size_t>(unit)];
    return ports_.take(only != 0 ? only : use.ports, ready, cycles) + use.latency;
  }

  const CoreModel& model_;
  std::vector<int64_t> known_, left_;
  Ports ports_;
};

size_t num_registers(std::span<const CoreStep> loop) {
  size_t most = 0;
  for (const CoreStep& step : loop) {
    for (const auto* list : {&step.addresses, &step.reads, &step.writes, &step.advances})
      for (const size_t r : *list) most = std::max(most, r + 1);
  }
  return most;
}

}  // namespace

double list_schedule(std::span<const CoreStep> loop, const CoreModel& core) {
  if (loop.empty()) return 0;
  Core state(core, num_registers(loop));
  int64_t warm = 0;
  for (int iteration = 0; iteration < kWarmUp + kCounted; ++iteration) {
    for (const CoreStep& step : loop) state.run(step);
    if (iteration == kWarmUp - 1) warm = state.end();
  }
  return static_cast<double>(state.end() - warm) / kCounted;
}

}  // namespace hone::backend::cpu
