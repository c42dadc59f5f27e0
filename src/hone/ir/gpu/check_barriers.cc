#include "hone/ir/gpu/check_barriers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "hone/ir/gpu/block_graph.h"
#include "hone/ir/gpu/element_map.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/printer.h"
#include "hone/ir/ranges.h"
#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

constexpr int kUnknown = -1;   // a loop's variable has another value that is not known
constexpr int kMaxOffset = 8;  // beyond this it counts as unknown
constexpr int kLeft = 100;     // added to the offset when the loop ends: from its last value
constexpr int kMaxCommits = 16;

// Where a path from an access has got to.
struct Place {
  int node;
  std::vector<int> offsets;  // by how much the variables of the loops around the access have grown
  // The iterations of loops that were entered since, as long as they are known.
  std::map<int, int> now = {};  // by the node that enters the loop
  int commits = 0;              // groups that were made since
  bool waited = true;           // an asynchronous access has taken place
  auto operator<=>(const Place&) const = default;
};

// An access whose paths are followed, with the loops around it and, where the conditions around it
// leave one, their iterations.
struct Start {
  const BlockAccess& access;
  const std::vector<const StmtNode*>& loops;
  std::vector<std::optional<int64_t>> iterations;
  Start(const BlockAccess& from, const BlockNode& node) : access(from), loops(node.loops) {
    Ranges ranges;
    for (const StmtNode* loop : loops) ranges.bind_loop(loop->var, loop->min, loop->extent);
    for (const Expr& condition : node.conditions) ranges.assume(condition);
    for (const StmtNode* loop : loops) {
      const Interval values = ranges.of(loop->var);
      const bool known = values.is_point() && is_const_int(loop->min);
      iterations.push_back(known ? std::optional(values.lo - loop->min->int_value) : std::nullopt);
    }
  }
};

std::string name_of(const BlockAccess& access) {
  std::vector<Expr> index;
  for (const Expr& e : access.index) index.push_back(e ? e : constant(0));
  return fmt::format("the {} of {}", access.stores ? "store" : "load",
                     print(load(access.buffer, index)));
}

class Checker {
 public:
  Checker(const std::vector<Stmt>& body, bool warp) : graph_(body, warp) {
    for (const BlockNode& node : graph_.nodes()) {
      const bool is_unit = node.kind == BlockNode::kUnit;
      accesses_.push_back(is_unit ? block_accesses(*node.statement, warp)
                                  : std::vector<BlockAccess>());
      for (const BlockAccess& access : accesses_.back()) {
        if (access.stores) stored_.insert(access.buffer.get());
      }
    }
  }

  Status check() {
    for (size_t n = 0; n < accesses_.size(); ++n) {
      for (const BlockAccess& access : accesses_[n]) {
        if (stored_.contains(access.buffer.get()))
          HONE_RETURN_IF_ERROR(follow(static_cast<int>(n), access));
      }
    }
    return ok_status();
  }

 private:
  // Follows all paths from an access to the barriers that end them.
  Status follow(int start, const BlockAccess& access) {
    const Start from(access, graph_.nodes()[start]);
    std::set<Place> seen;
    std::vector<Place> open;
    const auto go_on = [&](const Place& last) {
      for (const int next : graph_.nodes()[last.node].next) {
        Place place = last;
        place.node = next;
        if (seen.insert(place).second) open.push_back(std::move(place));
      }
    };
    go_on({start, std::vector<int>(from.loops.size(), 0), {}, 0, !access.async});
    while (!open.empty()) {
      Place place = std::move(open.back());
      open.pop_back();
      const BlockNode& node = graph_.nodes()[place.node];
      if (node.kind == BlockNode::kBarrier && place.waited) continue;
      if (node.kind == BlockNode::kUnit) HONE_RETURN_IF_ERROR(meets(from, place));
      if (pass(node, from, place)) go_on(place);
    }
    return ok_status();
  }

  // What a node changes for those that pass it; returns whether they may.
  static bool pass(const BlockNode& node, const Start& start, Place& place) {
    if (node.kind == BlockNode::kCommit && !place.waited)
      place.commits = std::min(place.commits + 1, kMaxCommits);
    if (node.kind == BlockNode::kWait && place.commits > node.statement->count) {
      place.waited = true;
      place.commits = 0;
    }
    if (node.loop == nullptr) return true;
    const bool may_be_known = is_const_int(node.loop->min);
    const bool ends = may_be_known && is_const_int(node.loop->extent);
    if (node.kind == BlockNode::kEnter) {
      if (may_be_known) place.now[node.enter] = 0;
      return true;
    }
    if (node.kind == BlockNode::kLeave) {
      const auto now = place.now.find(node.enter);
      if (ends && now != place.now.end() && now->second + 1 != node.loop->extent->int_value)
        return false;
      place.now.erase(node.enter);
    }
    if (const auto it = place.now.find(node.enter); it != place.now.end()) {
      ++it->second;
      if (ends && it->second == node.loop->extent->int_value) return false;
      if (it->second > kMaxOffset) place.now.erase(it);
    }
    for (size_t i = 0; i < start.loops.size(); ++i) {
      if (start.loops[i] != node.loop) continue;
      int& offset = place.offsets[i];
      if (offset == kUnknown || offset >= kLeft) continue;
      if (node.kind == BlockNode::kNext) {
        const int64_t next = start.iterations[i].value_or(0) + offset + 1;
        if (is_const_int(node.loop->extent) && next >= node.loop->extent->int_value) return false;
        offset = offset < kMaxOffset ? offset + 1 : kUnknown;
      } else {
        offset = ends ? offset + kLeft : kUnknown;
      }
    }
    return true;
  }

  // The value of a loop's variable at the access, by its value now.
  static Expr earlier_value(const StmtNode& loop, int offset) {
    if (offset == kUnknown) return variable(make_var("earlier"));
    if (offset < kLeft) return variable(loop.var) - offset;
    return constant(loop.min->int_value + loop.extent->int_value - 1 - (offset - kLeft));
  }

  Status meets(const Start& start, const Place& place) const {
    const BlockAccess& access = start.access;
    SharedValues values, now;
    for (size_t i = 0; i < start.loops.size(); ++i) {
      const StmtNode& loop = *start.loops[i];
      const int offset = place.offsets[i];
      const std::optional<int64_t> at = start.iterations[i];
      if (!at) {
        values.emplace_back(loop.var, earlier_value(loop, offset));
        continue;
      }
      values.emplace_back(loop.var, constant(loop.min->int_value + *at));
      if (offset != kUnknown && offset < kLeft)
        now.emplace_back(loop.var, constant(loop.min->int_value + *at + offset));
    }
    for (const auto& [enter, iteration] : place.now) {
      const StmtNode& loop = *graph_.nodes()[enter].loop;
      now.emplace_back(loop.var, constant(loop.min->int_value + iteration));
    }
    for (const Expr& condition : graph_.nodes()[place.node].conditions) {
      if (is_false(simplify(substitute(condition, now), Ranges()))) return ok_status();
    }
    for (const BlockAccess& later : accesses_[place.node]) {
      if (later.buffer != access.buffer) continue;
      BlockAccess known = later;
      for (Expr& e : known.index) e = e ? substitute(e, now) : e;
      const Meeting met = meeting(access, values, known);
      if (met == Meeting::kNever) continue;
      if (!place.waited)
        return invalid("{} comes before {} was waited for", name_of(later), name_of(access));
      if (met == Meeting::kOtherThreads)
        return invalid("no barrier between {} and {} of another thread", name_of(access),
                       name_of(later));
    }
    return ok_status();
  }

  BlockGraph graph_;
  std::vector<std::vector<BlockAccess>> accesses_;  // of the nodes
  std::set<const Buffer*> stored_;                  // looked up only
};

// Checks the bodies of the loops over warps, each for one warp.
Status check_warps(const StmtNode& s) {
  if (s.kind == StmtKind::kRoles) return ok_status();
  const bool is_warp = s.kind == StmtKind::kFor && s.for_kind == ForKind::kWarp;
  const bool is_innermost = !any_stmt(s, [&](const StmtNode& node) {
    return &node != &s && node.kind == StmtKind::kFor && node.for_kind == ForKind::kWarp;
  });
  if (is_warp && is_innermost) return Checker(s.body, true).check();
  for (const Stmt& child : s.body) HONE_RETURN_IF_ERROR(check_warps(*child));
  return ok_status();
}

// The proof takes what a block does as done at once, but a copy ends by a signal.
Status check_copies(const StmtNode& s) {
  if (s.kind == StmtKind::kRoles) return ok_status();
  if (s.kind == StmtKind::kBoxCopy)
    return invalid("a copy to {} outside of roles", s.boxes[0].buffer->name);
  for (const Stmt& child : s.body) HONE_RETURN_IF_ERROR(check_copies(*child));
  return ok_status();
}

}  // namespace

Status check_barriers(const Program& program) {
  for (size_t i = 0; i < program.phases.size(); ++i) {
    const Stmt& body = program.phases[i].body;
    if (program.phases[i].prepare || !is_gpu_code(*body)) continue;
    Status status = check_copies(*body);
    if (status.ok()) status = Checker({body}, false).check();
    if (status.ok()) status = check_warps(*body);
    if (!status.ok()) return invalid("phase {}: {}", i, status.message());
  }
  return ok_status();
}

}  // namespace hone::ir
