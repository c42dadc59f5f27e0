// ir/stmt.h - statements of the loop program and the program itself.
//
// Loop kinds say how a loop is run, never what it computes: an interpreter may run all of them in
// order. The body of a vectorized loop must not carry values from one iteration to the next, with
// three exceptions: a reduction store x = x op y whose x does not depend on the loop; a scan, which
// also reads such an x beside its store (ir/scan_loop.h); and a filter, whose n counts the elements
// that passed: if c { B[n] = e  n = n + 1 }.
#pragma once

#include "hone/ir/expr.h"

namespace hone::ir {

// clang-format off
enum class StmtKind : uint8_t {
  kFor, kIf, kStore, kBlock, kAlloc, kPrefetch, kExtern,
  // Statements of GPUs (docs/formats/ir.md, "Programs of GPUs").
  kBarrier,   // the threads of a block, or of a warp, wait for each other
  kCommit,    // each thread makes a group of its asynchronous operations since the last group
  kWait,      // each thread waits until at most `count` of its groups are unfinished
  kMatrix,    // D += A * B on tiles, by one matrix instruction of a warp or of a group of warps
  kBoxCopy,   // one thread starts the copy of a box of elements, which arrives at a signal
  kArrive,    // one arrival at a signal
  kAwait,     // waits until a signal's phase is complete
  kRoles,     // groups of warps run one statement each, at the same time
};
// clang-format on
// A parallel loop is the grid of a GPU: each iteration is one block. The threads of a block run
// the statements between the loops over threads together, and share the iterations of these loops:
// the loops over threads that are nested in one another (`kThread`, or `kWarp` with `kLane` inside)
// give each thread of the block at most one iteration, in the order of their indices.
enum class ForKind : uint8_t {
  kSerial,
  kParallel,
  kVectorized,
  kUnrolled,
  kThread,  // iterations are threads of the block
  kWarp,    // iterations are warps of the block; what is inside may be done by a warp together
  kLane,    // iterations are threads of the warp; stands inside a loop over warps
};
inline constexpr int kNumForKinds = static_cast<int>(ForKind::kLane) + 1;
[[nodiscard]] constexpr bool is_thread_loop(ForKind kind) { return kind >= ForKind::kThread; }

// A box of a buffer: `extents` elements from `indices` on, in each dimension. As a matrix it has
// two extents above 1 at most, rows first; `transposed` says that columns come first.
struct Box {
  BufferPtr buffer;
  std::vector<Expr> indices;
  std::vector<int64_t> extents;
  bool transposed = false;
};

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;
struct StmtNode {
  StmtKind kind;
  // For kFor, the loop is: for var in min .. min+extent. The extent is a constant unless a guard
  // bounds the loop.
  ForKind for_kind = ForKind::kSerial;
  bool peel = false;  // kFor: partition_loops splits the loop where the guards inside become true
  VarPtr var;
  Expr min, extent;
  Expr condition;                  // kIf
  BufferPtr buffer;                // kStore, kAlloc, kPrefetch
  std::vector<Expr> indices;       // kStore, kPrefetch
  int cache = 1;                   // kPrefetch: the level of cache to fill, 1 or 2
  Expr value;                      // kStore; kAwait: the parity of the phase, 0 or 1
  std::string name;                // kExtern: the registered function
  std::vector<BufferPtr> buffers;  // kExtern: its arguments, outputs last
  std::vector<Stmt> body;  // kFor, kIf, kBlock, kAlloc: statements in order; kRoles: one per role
  // kStore: the copy of an element of global memory to shared memory, which need not be there
  // before the group that it belongs to was waited for. kMatrix: as if the store of D were so.
  bool async = false;
  bool warp = false;  // kBarrier: of a warp, not of the block
  // kWait: unfinished groups that are left. kAlloc of signals: arrivals that complete a phase.
  int64_t count = 0;
  std::vector<Box> boxes;  // kMatrix: D, A, B; kBoxCopy: destination, source
  std::vector<int> warps;  // kRoles: warps of each role, from warp 0 of the block on
};

[[nodiscard]] Stmt make_for(VarPtr var, Expr min, Expr extent, ForKind kind, std::vector<Stmt> body,
                            bool peel = false);
[[nodiscard]] Stmt make_if(Expr condition, std::vector<Stmt> body);
[[nodiscard]] Stmt make_store(BufferPtr buffer, std::vector<Expr> indices, Expr value);
// Makes a block. Nested blocks are flattened, and a single statement is returned as it is.
[[nodiscard]] Stmt make_block(std::vector<Stmt> body);
// Makes an allocation. The buffer lives while the body runs; its content is undefined at the start.
[[nodiscard]] Stmt make_alloc(BufferPtr buffer, std::vector<Stmt> body);
// Makes a hint that memory will be read. The place may lie outside the buffer, as nothing is
// accessed.
[[nodiscard]] Stmt make_prefetch(BufferPtr buffer, std::vector<Expr> indices, int cache = 1);
[[nodiscard]] Stmt make_extern(std::string name, std::vector<BufferPtr> buffers);
// Makes statements of GPUs, as described at StmtKind.
[[nodiscard]] Stmt make_async_store(BufferPtr buffer, std::vector<Expr> indices, Expr value);
[[nodiscard]] Stmt make_barrier(bool warp = false);
[[nodiscard]] Stmt make_commit();
[[nodiscard]] Stmt make_wait(int64_t count);
[[nodiscard]] Stmt make_matrix(Box d, Box a, Box b, bool async = false);
// `signal` and `indices` name the signal that the copy arrives at.
[[nodiscard]] Stmt make_box_copy(Box destination, Box source, BufferPtr signal,
                                 std::vector<Expr> indices);
[[nodiscard]] Stmt make_signals(BufferPtr buffer, int64_t arrivals, std::vector<Stmt> body);
[[nodiscard]] Stmt make_arrive(BufferPtr signal, std::vector<Expr> indices);
[[nodiscard]] Stmt make_await(BufferPtr signal, std::vector<Expr> indices, Expr parity);
[[nodiscard]] Stmt make_roles(std::vector<int> warps, std::vector<Stmt> bodies);
[[nodiscard]] std::string_view for_kind_name(ForKind kind);

// Returns the same statement with another body.
[[nodiscard]] Stmt with_body(const StmtNode& node, std::vector<Stmt> body);
[[nodiscard]] bool equal(const Stmt& a, const Stmt& b);
// Rewrites every expression in a statement and below.
template <typename F>
[[nodiscard]] Stmt rewrite_exprs(const Stmt& s, const F& f);
[[nodiscard]] Stmt substitute(const Stmt& s, const VarMap& map);

// Says how a buffer enters a program.
enum class Role : uint8_t {
  kInput,      // given at run time
  kConstant,   // known at compile time (a weight)
  kPacked,     // written by prepare phases from constants; then constant
  kWorkspace,  // memory that phases share during a run
  kOutput,     // written at run time
};
[[nodiscard]] std::string_view role_name(Role role);
struct Param {
  BufferPtr buffer;
  Role role;
  // For an input: how many elements at the low and high end of each dimension (low 0, low 1, ...,
  // high 0, ...) are known to be zero. The task's constants are then known to be finite, so
  // products of both may be left out. It is empty if nothing is known.
  std::vector<int64_t> zeros = {};
};

// Phases run one after the other. If the outermost statement of a phase is a kParallel loop from 0,
// its iterations are independent tiles that may run in any order on any thread; else the phase is
// one tile.
struct Phase {
  Stmt body;
  // A phase that prepares constants runs once, at compile time. It reads constants only and writes
  // kPacked only.
  bool prepare = false;
  [[nodiscard]] int64_t num_tiles() const;
};
struct Program {
  std::string name;
  std::vector<Param> params;  // params in the order of a kernel's arguments
  std::vector<Phase> phases;
};

// ---- template definitions ----
[[nodiscard]] Stmt with_exprs(const StmtNode& node, Expr min, Expr extent, Expr condition,
                              std::vector<Expr> indices, Expr value, std::vector<Stmt> body,
                              std::vector<Box> boxes);

template <typename F>
Stmt rewrite_exprs(const Stmt& s, const F& f) {
  const auto one = [&f](const Expr& e) { return e ? rewrite(e, f) : e; };
  std::vector<Expr> indices;
  for (const Expr& i : s->indices) indices.push_back(one(i));
  std::vector<Stmt> body;
  for (const Stmt& child : s->body) body.push_back(rewrite_exprs(child, f));
  std::vector<Box> boxes = s->boxes;
  for (Box& box : boxes) {
    for (Expr& i : box.indices) i = one(i);
  }
  return with_exprs(*s, one(s->min), one(s->extent), one(s->condition), std::move(indices),
                    one(s->value), std::move(body), std::move(boxes));
}

}  // namespace hone::ir
