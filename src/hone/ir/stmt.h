// ir/stmt.h - statements of the loop program and the program itself.
//
// Loop kinds say how a loop is run, never what it computes: an interpreter may run all of them in
// order. A vectorized loop's body must not carry values from one iteration to the next except
// through a reduction store x = x op y whose x does not depend on the loop; or it is a scan, where
// such an x is read beside its store (ir/scan_loop.h), or a filter, if c { B[n] = e  n = n + 1 },
// whose n counts what passed.
#pragma once

#include "hone/ir/expr.h"

namespace hone::ir {

enum class StmtKind : uint8_t { kFor, kIf, kStore, kBlock, kAlloc, kPrefetch, kExtern };
enum class ForKind : uint8_t { kSerial, kParallel, kVectorized, kUnrolled };

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;
struct StmtNode {
  StmtKind kind;
  // kFor: for var in min .. min+extent. The extent is a constant unless a guard bounds the loop.
  ForKind for_kind = ForKind::kSerial;
  bool peel = false;  // kFor: partition_loops splits it where the guards inside become true
  VarPtr var;
  Expr min, extent;
  Expr condition;                  // kIf
  BufferPtr buffer;                // kStore, kAlloc, kPrefetch
  std::vector<Expr> indices;       // kStore, kPrefetch
  int cache = 1;                   // kPrefetch: the level of cache that it fills, 1 or 2
  Expr value;                      // kStore
  std::string name;                // kExtern: the registered function
  std::vector<BufferPtr> buffers;  // kExtern: its arguments, outputs last
  std::vector<Stmt> body;          // kFor, kIf, kBlock, kAlloc: in order
};

[[nodiscard]] Stmt make_for(VarPtr var, Expr min, Expr extent, ForKind kind, std::vector<Stmt> body,
                            bool peel = false);
[[nodiscard]] Stmt make_if(Expr condition, std::vector<Stmt> body);
[[nodiscard]] Stmt make_store(BufferPtr buffer, std::vector<Expr> indices, Expr value);
[[nodiscard]] Stmt make_block(std::vector<Stmt> body);  // flattens; a single statement is itself
// The buffer lives while the body runs; its content is undefined at the start.
[[nodiscard]] Stmt make_alloc(BufferPtr buffer, std::vector<Stmt> body);
// Hints that memory will be read. The place may lie outside the buffer; nothing is accessed.
[[nodiscard]] Stmt make_prefetch(BufferPtr buffer, std::vector<Expr> indices, int cache = 1);
[[nodiscard]] Stmt make_extern(std::string name, std::vector<BufferPtr> buffers);
[[nodiscard]] std::string_view for_kind_name(ForKind kind);

// Same statement, other body.
[[nodiscard]] Stmt with_body(const StmtNode& node, std::vector<Stmt> body);
[[nodiscard]] bool equal(const Stmt& a, const Stmt& b);
// Rewrites every expression in a statement and below.
template <typename F>
[[nodiscard]] Stmt rewrite_exprs(const Stmt& s, const F& f);
[[nodiscard]] Stmt substitute(const Stmt& s, const VarMap& map);

// How a buffer enters a program.
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
  // Of an input: how many elements before and after each dimension (low 0, low 1, ..., high 0, ...)
  // are known to be zero, where the task's constants are known to be finite, so that products of
  // both may be left out. Empty: nothing is known.
  std::vector<int64_t> zeros = {};
};

// Phases run one after the other. If the outermost statement of a phase is a kParallel loop from 0,
// its iterations are independent tiles that may run in any order on any thread; else it is 1 tile.
struct Phase {
  Stmt body;
  bool prepare = false;  // reads constants only, writes kPacked only: runs once, at compile time
  [[nodiscard]] int64_t num_tiles() const;
};
struct Program {
  std::string name;
  std::vector<Param> params;  // the order of a kernel's arguments
  std::vector<Phase> phases;
};

// ---- template definitions ----
[[nodiscard]] Stmt with_exprs(const StmtNode& node, Expr min, Expr extent, Expr condition,
                              std::vector<Expr> indices, Expr value, std::vector<Stmt> body);

template <typename F>
Stmt rewrite_exprs(const Stmt& s, const F& f) {
  const auto one = [&f](const Expr& e) { return e ? rewrite(e, f) : e; };
  std::vector<Expr> indices;
  for (const Expr& i : s->indices) indices.push_back(one(i));
  std::vector<Stmt> body;
  for (const Stmt& child : s->body) body.push_back(rewrite_exprs(child, f));
  return with_exprs(*s, one(s->min), one(s->extent), one(s->condition), std::move(indices),
                    one(s->value), std::move(body));
}

}  // namespace hone::ir
