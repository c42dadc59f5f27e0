#include "hone/ir/passes/gpu/insert_barriers.h"

#include <algorithm>
#include <unordered_map>

#include "hone/ir/linear.h"
#include "hone/ir/passes/gpu/thread_conflict.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// An access that no barrier separates from what comes next.
struct Pending {
  ThreadAccess access;
  int commits = 0;      // of an asynchronous access: groups that were made since
  bool waited = false;  // of an asynchronous access: its group was waited for
  int carried = 0;      // iterations that have ended since, in the loops around
  // The iterations that loops entered since are in, as long as that is known.
  std::vector<std::pair<VarPtr, int64_t>> now = {};
  [[nodiscard]] bool unfinished() const { return access.async && !waited; }
};
bool equal(const Pending& a, const Pending& b) {
  return a.commits == b.commits && a.waited == b.waited && a.now == b.now &&
         equal(a.access, b.access);
}

// Beyond so many groups and iterations, all are taken for one. Only asynchronous accesses outlast
// the barriers of several iterations.
constexpr int kMaxCommits = 16;
constexpr int kMaxCarried = 2, kMaxCarriedAsync = 8;

using State = std::vector<Pending>;

void add(State& state, const State& more) {
  for (const Pending& p : more) {
    if (std::none_of(state.begin(), state.end(), [&](const Pending& q) { return equal(p, q); }))
      state.push_back(p);
  }
}

// The access with another value of a variable in its indices.
ThreadAccess with_value(ThreadAccess access, const VarPtr& var, const Expr& value) {
  for (Expr& e : access.index) {
    if (e && uses(e, var.get())) e = canonical_index(substitute(e, {{var, value}}));
  }
  return access;
}

bool may_conflict(const Pending& earlier, ThreadAccess later) {
  if (earlier.unfinished() || earlier.access.buffer != later.buffer) return false;
  for (const auto& [var, value] : earlier.now)
    later = with_value(std::move(later), var, constant(value));
  return may_conflict(earlier.access, later);
}

// The state in the first iteration of a loop.
State entered(State state, const StmtNode& loop) {
  if (!is_const_int(loop.min)) return state;
  for (Pending& p : state) p.now.emplace_back(loop.var, loop.min->int_value);
  return state;
}

// The state at the start of the next iteration, in which the loop's variable is one more;
// `unknown` stands for its values long ago.
State carried_over(const State& state, const StmtNode& loop, const VarPtr& unknown) {
  State made;
  for (Pending p : state) {
    const bool far = ++p.carried > (p.access.async ? kMaxCarriedAsync : kMaxCarried);
    const auto now = std::find_if(p.now.begin(), p.now.end(),
                                  [&](const auto& pair) { return pair.first == loop.var; });
    if (now != p.now.end()) {
      const bool ends = is_const_int(loop.extent) &&
                        ++now->second == loop.min->int_value + loop.extent->int_value;
      if (ends) continue;
      if (far || !is_const_int(loop.extent)) p.now.erase(now);
    }
    p.access =
        with_value(std::move(p.access), loop.var, far ? variable(unknown) : variable(loop.var) - 1);
    add(made, {std::move(p)});
  }
  return made;
}

// The state behind a loop, whose variable is free there.
State left(State state, const StmtNode& loop, const Expr& last) {
  State made;
  for (Pending& p : state) {
    std::erase_if(p.now, [&](const auto& pair) { return pair.first == loop.var; });
    p.access = with_value(std::move(p.access), loop.var, last);
    add(made, {std::move(p)});
  }
  return made;
}

class Inserter {
 public:
  // `warp`: the statements are those of one warp.
  Inserter(const SharedBuffers& buffers, bool warp) : buffers_(buffers), warp_(warp) {}

  // Returns the phase with barriers.
  Stmt phase(const Stmt& body) {
    Stmt made = once(body);
    // What an iteration needs for itself may stand where the next one needs it, too.
    for (const Stmt& barrier : std::vector<Stmt>(inserted_)) {
      const Stmt fewer = without(made, barrier);
      const int64_t before = changes_;
      if (fewer != made && once(fewer) && changes_ == before) made = fewer;
    }
    return made;
  }

 private:
  Stmt once(const Stmt& phase) {
    State state;
    return make_block(sequence({phase}, state));
  }
  static Stmt without(const Stmt& s, const Stmt& gone) {
    return map_body(s, [&](const Stmt& child) {
      return child == gone ? make_block({}) : without(child, gone);
    });
  }

  std::vector<Stmt> sequence(const std::vector<Stmt>& body, State& state) {
    std::vector<Stmt> made;
    for (const Stmt& s : body) {
      if (depends(s, state)) {
        made.push_back(make_barrier(warp_));
        inserted_.push_back(made.back());
        meet(state);
        ++changes_;
      }
      Stmt next = statement(s, state);
      if (!made.empty() && made.back()->kind == StmtKind::kBarrier && begins_with_barrier(*next)) {
        made.pop_back();
        ++changes_;
      }
      made.push_back(std::move(next));
    }
    return made;
  }

  // The block meets before roles begin and after they have ended.
  [[nodiscard]] bool is_barrier(const StmtNode& s) const {
    return (s.kind == StmtKind::kBarrier && s.warp == warp_) || s.kind == StmtKind::kRoles;
  }
  bool begins_with_barrier(const StmtNode& s) const {
    if (is_barrier(s)) return true;
    const bool runs = s.kind == StmtKind::kAlloc || s.kind == StmtKind::kBlock || runs_always(s);
    return runs && !s.body.empty() && begins_with_barrier(*s.body[0]);
  }
  // Whether s is a loop of the block that has an iteration at least.
  bool runs_always(const StmtNode& s) const {
    return s.kind == StmtKind::kFor && !is_unit(s) && is_const_int(s.extent) &&
           s.extent->int_value > 0;
  }

  // Whether the threads share s among them, rather than run it together statement by statement.
  bool is_unit(const StmtNode& s) const {
    if (!warp_) return s.kind == StmtKind::kFor && is_thread_loop(s.for_kind);
    if (s.kind == StmtKind::kFor && s.for_kind == ForKind::kLane) return true;
    return (s.kind == StmtKind::kFor || s.kind == StmtKind::kIf) &&
           !any_stmt(s, [](const StmtNode& node) {
             return node.kind == StmtKind::kMatrix || node.kind == StmtKind::kBarrier ||
                    (node.kind == StmtKind::kFor && node.for_kind == ForKind::kLane);
           });
  }
  const std::vector<ThreadAccess>& accesses(const Stmt& s) {
    const auto [it, added] = accesses_.try_emplace(s);
    if (added) {
      const bool shared = s->kind == StmtKind::kFor && is_thread_loop(s->for_kind);
      add_accesses(*s, buffers_, !shared, it->second);
    }
    return it->second;
  }

  // Whether something that s does before its first barrier depends on what is pending.
  bool depends(const Stmt& s, const State& state) {
    if (state.empty()) return false;
    bool found = false;
    before_barrier(s, [&](const Stmt& unit) {
      for (const ThreadAccess& next : accesses(unit)) {
        found = found || std::any_of(state.begin(), state.end(),
                                     [&](const Pending& p) { return may_conflict(p, next); });
      }
    });
    return found;
  }
  // Calls f on what s does before its first barrier; returns whether there is one for sure.
  template <typename F>
  bool before_barrier(const Stmt& s, const F& f) const {
    if (is_barrier(*s)) return true;
    const bool is_scope = s->kind == StmtKind::kAlloc || s->kind == StmtKind::kBlock;
    const bool is_inner = is_scope || s->kind == StmtKind::kFor || s->kind == StmtKind::kIf;
    if (is_unit(*s) || !is_inner) {
      f(s);
      return false;
    }
    for (const Stmt& child : s->body) {
      if (before_barrier(child, f)) return is_scope || runs_always(*s);
    }
    return false;
  }

  // All threads have met: what is finished can disturb nothing any more.
  static void meet(State& state) {
    std::erase_if(state, [](const Pending& p) { return !p.unfinished(); });
  }

  Stmt statement(const Stmt& s, State& state) {
    if (is_unit(*s)) {
      for (const ThreadAccess& access : accesses(s)) add(state, {{.access = access}});
      return s->kind == StmtKind::kFor && s->for_kind == ForKind::kWarp ? warps(s) : s;
    }
    switch (s->kind) {
      case StmtKind::kFor: return loop(*s, state);
      case StmtKind::kIf: {
        State inside = state;
        Stmt made = with_body(*s, sequence(s->body, inside));
        add(state, inside);
        return made;
      }
      case StmtKind::kBlock:
      case StmtKind::kAlloc: return with_body(*s, sequence(s->body, state));
      case StmtKind::kBarrier:
      case StmtKind::kRoles:
        if (is_barrier(*s)) meet(state);
        return s;
      case StmtKind::kCommit:
        for (Pending& p : state) {
          if (p.unfinished()) p.commits = std::min(p.commits + 1, kMaxCommits);
        }
        return s;
      case StmtKind::kWait:
        for (Pending& p : state) p.waited = p.waited || p.commits > s->count;
        return s;
      default:
        for (const ThreadAccess& access : accesses(s)) add(state, {{.access = access}});
        return s;
    }
  }

  // Inside of loops over warps, each warp is on its own.
  Stmt warps(const Stmt& s) {
    const std::vector<ThreadAccess>& all = accesses(s);
    if (std::none_of(all.begin(), all.end(), [](const ThreadAccess& a) { return a.stores; }))
      return s;
    return innermost_warps(s);
  }
  Stmt innermost_warps(const Stmt& s) const {
    const StmtNode& inner = *s->body[0];
    const bool continues =
        s->body.size() == 1 && (inner.kind == StmtKind::kIf ||
                                (inner.kind == StmtKind::kFor && inner.for_kind == ForKind::kWarp));
    if (continues) return map_body(s, [this](const Stmt& child) { return innermost_warps(child); });
    State state;
    Inserter one(buffers_, true);
    std::vector<Stmt> body = one.sequence(s->body, state);
    return one.changes_ == 0 ? s : with_body(*s, std::move(body));
  }

  Stmt loop(const StmtNode& s, State& state) {
    std::vector<Stmt> body = s.body;
    const bool carries = s.for_kind != ForKind::kParallel && !is_const_int(s.extent, 1);
    VarPtr& unknown = unknown_[s.var.get()];
    if (!unknown) unknown = make_var("earlier");
    State end;
    for (int64_t changes = changes_ - 1; changes != changes_;) {
      changes = changes_;
      end = entered(state, s);
      body = sequence(body, end);
      // What an iteration leaves pending meets the next one, until nothing new is left.
      for (size_t known = 0; carries && end.size() != known;) {
        known = end.size();
        State next = carried_over(end, s, unknown);
        body = sequence(body, next);
        add(end, next);
      }
    }
    const bool runs = is_const_int(s.extent) && s.extent->int_value > 0;
    const bool last_known = runs && is_const_int(s.min);
    end =
        left(std::move(end), s,
             last_known ? constant(s.min->int_value + s.extent->int_value - 1) : variable(unknown));
    if (!runs) add(end, state);
    state = std::move(end);
    return with_body(s, std::move(body));
  }

  const SharedBuffers& buffers_;
  bool warp_;
  std::vector<Stmt> inserted_;
  int64_t changes_ = 0;  // barriers that were inserted or removed
  std::unordered_map<Stmt, std::vector<ThreadAccess>> accesses_;  // looked up only
  std::unordered_map<const Var*, VarPtr> unknown_;  // a value of a loop's variable; looked up only
};

Stmt with_barriers(const Stmt& phase) {
  if (!is_gpu_code(*phase)) return phase;
  const SharedBuffers buffers(*phase);
  return Inserter(buffers, false).phase(phase);
}

}  // namespace

Program insert_barriers(Program program) {
  return map_run_phases(std::move(program), with_barriers);
}

}  // namespace hone::ir
