#include "hone/analysis/shared_traffic.h"

#include <algorithm>

#include "hone/analysis/cache_rates.h"
#include "hone/analysis/loop_body.h"

namespace hone::analysis {
namespace {

// A stage, and how many of its loops are looked into: a square that is turned in registers touches
// each of its lines once.
struct Part {
  const Nest* nest;
  size_t depth;
};
using Parts = std::vector<Part>;

// Walks the tree of the loops that stages have in common, for one cache.
class Walk {
 public:
  explicit Walk(double capacity) : capacity_(capacity) {}

  // Returns the bytes that come into the cache while the first k loops, which all the parts have in
  // common, stand still.
  [[nodiscard]] double movement(const Parts& parts, size_t k) const {
    const double once = footprint(parts, k);
    if (once <= capacity_) return once;
    double bytes = 0;
    for (Parts left = parts; !left.empty();) {
      Parts same, others;
      for (const Part& part : left)
        (same.empty() || shares_loop(same[0], part, k) ? same : others).push_back(part);
      bytes += has_loop(same[0], k) ? loop_movement(same, k) : footprint(same, k);
      left = std::move(others);
    }
    return bytes;
  }

  // Returns the bytes that the parts touch while the first k loops stand still. Accesses to one
  // buffer count once.
  [[nodiscard]] static double footprint(const Parts& parts, size_t k) {
    std::vector<std::pair<const ir::Buffer*, double>> buffers;
    for (const Part& part : parts) {
      for (const NestAccess& access : part.nest->accesses) {
        if (access.scope == ir::Scope::kRegister || access.scope == ir::Scope::kStack) continue;
        const double bytes =
            access.transfer_bytes(part.nest->loops, std::min(k, part.depth), kLineBytes);
        const auto known = std::find_if(buffers.begin(), buffers.end(), [&](const auto& other) {
          return other.first == access.buffer;
        });
        if (known == buffers.end())
          buffers.emplace_back(access.buffer, bytes);
        else
          known->second = std::max(known->second, bytes);
      }
    }
    double sum = 0;
    for (const auto& [buffer, bytes] : buffers) sum += bytes;
    return sum;
  }

 private:
  // Returns the bytes for all iterations of loop k. If the data of one stay in the cache, what does
  // not move with the loop comes once.
  [[nodiscard]] double loop_movement(const Parts& parts, size_t k) const {
    const bool innermost = std::none_of(parts.begin(), parts.end(),
                                        [&](const Part& part) { return has_loop(part, k + 1); });
    if (innermost || footprint(parts, k + 1) <= capacity_) return footprint(parts, k);
    return static_cast<double>(parts[0].nest->loops[k].extent) * movement(parts, k + 1);
  }
  static bool has_loop(const Part& part, size_t k) { return k < part.depth; }
  static bool shares_loop(const Part& a, const Part& b, size_t k) {
    if (!has_loop(a, k) || !has_loop(b, k)) return false;
    const NestLoop &x = a.nest->loops[k], &y = b.nest->loops[k];
    return x.stage == y.stage && x.loop == y.loop && x.extent == y.extent;
  }

  const double capacity_;
};

double movement_into(const Parts& parts, size_t level, double capacity) {
  const double all = Walk::footprint(parts, 0);
  if (all <= capacity) return level == 0 ? all : 0;  // warm: it is there already
  return Walk(capacity).movement(parts, 0);
}

}  // namespace

std::vector<RootTraffic> shared_traffic(std::span<const Nest> nests, const target::Cpu& target,
                                        int threads) {
  std::vector<RootTraffic> roots;
  std::vector<Parts> parts;  // of each root
  for (const Nest& nest : nests) {
    auto root = std::find_if(roots.begin(), roots.end(),
                             [&](const RootTraffic& r) { return r.root == nest.root; });
    if (root == roots.end()) {
      root = roots.insert(roots.end(), {nest.root, {}});
      parts.emplace_back();
    }
    const bool turned = find_body(nest, target).is_square();
    parts[static_cast<size_t>(root - roots.begin())].push_back(
        {&nest, nest.loops.size() - (turned ? 2 : 0)});
  }
  for (size_t level = 0; level < target.caches.size(); ++level) {
    const double capacity = usable_bytes(target.caches[level], threads);
    for (size_t r = 0; r < roots.size(); ++r)
      roots[r].bytes.push_back(movement_into(parts[r], level, capacity));
  }
  return roots;
}

}  // namespace hone::analysis
