#include "hone/ir/passes/prefetch_next.h"

#include <algorithm>
#include <optional>

#include "hone/ir/loads.h"
#include "hone/ir/passes/tile_loops.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr int64_t kGap = 8;  // a region may skip a part of so many

using Loops = std::vector<const StmtNode*>;  // the outermost first

// Elements of a buffer that an iteration reads, relative to `base`, which moves from one to the
// next.
struct Region {
  BufferPtr buffer;
  Linear base;
  int64_t first = 0, last = 0;
};

// Steps of the loops, in each of which hints can be put.
struct Steps {
  Loops loops;
  int64_t count = 1;
};

int64_t extent_of(const StmtNode& loop) { return loop.extent->int_value; }

// The region of a load inside the given loops; nothing if it is not one range, or nearly so.
std::optional<Region> region_of(const Expr& load, const Loops& inside) {
  if (std::any_of(load->args.begin(), load->args.end(), has_load)) return std::nullopt;
  Region region{load->buffer, flat_index(load), 0, 0};
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, count
  for (const StmtNode* loop : inside) {
    const int64_t stride = region.base.coefficient(loop->var);
    region.base = without(region.base, variable(loop->var));
    if (stride < 0 || !counts_from_zero(*loop) || depends(region.base, loop->var))
      return std::nullopt;
    if (stride > 0) steps.emplace_back(stride, extent_of(*loop));
  }
  std::sort(steps.begin(), steps.end());
  int64_t size = 1;
  for (const auto& [stride, count] : steps) {
    if (stride > size + size / kGap) return std::nullopt;
    size += stride * (count - 1);
  }
  region.last = size - 1;
  return region;
}

class Pass {
 public:
  Pass(std::vector<BufferPtr> buffers, const PrefetchNextOptions& options)
      : buffers_(std::move(buffers)), options_(options) {}

  Stmt run(const Stmt& s) const {
    if (s->body.empty()) return s;
    if (s->kind == StmtKind::kFor && !is_unit(*s) && counts_from_zero(*s) && extent_of(*s) > 1)
      return in_loop(s);
    return rebuilt(s);
  }

 private:
  Stmt rebuilt(const Stmt& s) const {
    return map_body(s, [&](const Stmt& child) { return run(child); });
  }

  // The nests that an iteration runs one after the other, inside what is allocated for it.
  Stmt in_loop(const Stmt& loop) const {
    std::vector<Stmt> around;
    const StmtNode* inner = loop.get();
    while (inner->body.size() == 1 && inner->body[0]->kind == StmtKind::kAlloc &&
           inner->body[0]->buffer->scope == Scope::kThread) {
      around.push_back(inner->body[0]);
      inner = inner->body[0].get();
    }
    std::vector<Stmt> nests = inner->body;
    if (nests.size() < 2 || !std::all_of(nests.begin(), nests.end(), has_serial_loop))
      return rebuilt(loop);
    const Steps steps = steps_of(nests.back());
    std::vector<Stmt> hints;
    if (steps.count > 1) hints = hints_for(*loop, nests, steps);
    if (hints.empty()) return rebuilt(loop);
    nests.back() = with_hints(nests.back(), steps.loops.back(), hints);
    for (size_t i = around.size(); i-- > 0;) nests = {with_body(*around[i], std::move(nests))};
    return with_body(*loop, std::move(nests));
  }

  // The loops around the nest's deepest loop that runs step by step, itself included.
  static Steps steps_of(const Stmt& nest) {
    Steps best, here;
    collect_steps(nest, here, best);
    return best;
  }
  static void collect_steps(const Stmt& s, Steps& here, Steps& best) {
    const bool counts = s->kind == StmtKind::kFor && !is_unit(*s);
    if (counts && !counts_from_zero(*s)) return;
    if (counts) {
      here.loops.push_back(s.get());
      here.count *= extent_of(*s);
      if (here.count > best.count) best = here;
    }
    for (const Stmt& child : s->body) collect_steps(child, here, best);
    if (!counts) return;
    here.count /= std::max<int64_t>(extent_of(*s), 1);
    here.loops.pop_back();
  }

  std::vector<Stmt> hints_for(const StmtNode& loop, const std::vector<Stmt>& nests,
                              const Steps& steps) const {
    std::vector<Stmt> hints;
    for (const BufferPtr& buffer : buffers_) {
      if (buffer->bytes() < options_.min_bytes) continue;
      std::optional<Region> region;
      bool simple = !touches(nests.back(), buffer);
      for (size_t i = 0; i + 1 < nests.size() && simple; ++i) {
        Loops inside;
        simple = add_regions(nests[i], buffer, inside, region);
      }
      if (!simple || !region) continue;
      for (Stmt& hint : ahead(loop, *region, steps)) hints.push_back(std::move(hint));
    }
    return hints;
  }

  static bool touches(const Stmt& s, const BufferPtr& buffer) {
    return any_stmt(*s, [&](const StmtNode& node) {
      return (node.buffer == buffer && node.kind != StmtKind::kPrefetch) ||
             loads_from(node, buffer.get());
    });
  }

  // Adds what a nest reads of the buffer; false: not ranges that move alike.
  static bool add_regions(const Stmt& s, const BufferPtr& buffer, Loops& inside,
                          std::optional<Region>& region) {
    if (s->buffer == buffer && s->kind != StmtKind::kPrefetch) return false;
    if (s->kind == StmtKind::kFor) inside.push_back(s.get());
    bool simple = true;
    if (s->value) {
      visit(s->value, [&](const Expr& e) {
        if (e->op != Op::kLoad || e->buffer != buffer) return;
        std::optional<Region> more = region_of(e, inside);
        simple = simple && more && (!region || merge(*more, *region));
        if (more && !region) region = std::move(more);
      });
    }
    for (const Stmt& child : s->body) simple = simple && add_regions(child, buffer, inside, region);
    if (s->kind == StmtKind::kFor) inside.pop_back();
    return simple;
  }

  static bool merge(const Region& more, Region& region) {
    const std::optional<Linear> apart = add(more.base, region.base, -1);
    if (!apart || !apart->is_constant()) return false;
    region.first = std::min(region.first, more.first + apart->constant);
    region.last = std::max(region.last, more.last + apart->constant);
    return true;
  }

  // In each step its part of what the next iteration has beyond this one.
  [[nodiscard]] std::vector<Stmt> ahead(const StmtNode& loop, const Region& region,
                                        Steps steps) const {
    const int64_t element = dtype_bytes(region.buffer->dtype);
    const int64_t move = region.base.coefficient(loop.var);
    if (move <= 0 || depends(without(region.base, variable(loop.var)), loop.var)) return {};
    const int64_t first = std::max(region.last + 1, region.first + move);
    const int64_t count = region.last + move + 1 - first;
    const int64_t lines = (count * element + kLineBytes - 1) / kLineBytes;
    if (count * element > options_.max_bytes || lines < steps.count) return {};
    const int64_t each = (lines + steps.count - 1) / steps.count;
    if (each > options_.max_lines) return {};
    Expr step = constant(0);
    for (const StmtNode* digit : steps.loops)
      step = step * extent_of(*digit) + variable(digit->var);
    const int64_t part = each * (kLineBytes / element);
    return prefetch_lines(region.buffer, to_expr(region.base) + step * part + first, part, 2);
  }

  static Stmt with_hints(const Stmt& s, const StmtNode* at, const std::vector<Stmt>& hints) {
    if (s.get() != at)
      return map_body(s, [&](const Stmt& child) { return with_hints(child, at, hints); });
    std::vector<Stmt> body = hints;
    body.insert(body.end(), s->body.begin(), s->body.end());
    return with_body(*s, std::move(body));
  }

  std::vector<BufferPtr> buffers_;  // whose loads count
  PrefetchNextOptions options_;
};

}  // namespace

Program prefetch_next(Program program, const PrefetchNextOptions& options) {
  std::vector<BufferPtr> buffers;
  for (const Param& param : program.params) {
    const bool moves = param.role == Role::kInput || param.role == Role::kWorkspace;
    if (moves && !param.buffer->shape.empty()) buffers.push_back(param.buffer);
  }
  return map_run_phases(std::move(program),
                        [&](const Stmt& s) { return Pass(buffers, options).run(s); });
}

}  // namespace hone::ir
