#include "hone/backend/gpu/print_stmt.h"

#include <fmt/format.h>

#include "hone/ir/simplify.h"
#include "hone/ir/visit.h"

namespace hone::backend::gpu {
namespace {

using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;

constexpr int64_t kMostUnrolledLanes = 16;  // a longer loop on lanes stays a loop
constexpr int64_t kMostKnown = 64;          // iterations that are printed one by one

bool is_range(const StmtNode& loop) {
  return ir::is_const_int(loop.min) && ir::is_const_int(loop.extent);
}

}  // namespace

void StmtPrinter::all(const std::vector<Stmt>& body, bool last) {
  for (size_t i = 0; i < body.size(); ++i) statement(*body[i], last && i + 1 == body.size());
}

void StmtPrinter::statement(const StmtNode& s, bool last) {
  switch (s.kind) {
    case StmtKind::kBlock: return all(s.body, last);
    case StmtKind::kFor: return loop(s);
    case StmtKind::kIf: {
      out_.open(fmt::format("if ({})", exprs_.print(s.condition)));
      const ir::Ranges::Mark mark = context_.ranges.mark();
      context_.ranges.assume(s.condition);
      all(s.body);
      context_.ranges.reset(mark);
      out_.close();
      if (waits_inside(s)) separate();
      return;
    }
    case StmtKind::kStore: return vectors_.store(s);
    case StmtKind::kAlloc: return alloc(s, last);
    case StmtKind::kBarrier: return barrier(s);
    case StmtKind::kPrefetch: return;  // a hint
    case StmtKind::kCommit:
      if (context_.is_cuda())
        out_.line(fmt::format("{}();", context_.functions.use("commit_copies")));
      return;
    case StmtKind::kWait:
      if (context_.is_cuda())
        out_.line(fmt::format("{}<{}>();", context_.functions.use("wait_copies"), s.count));
      return;
    case StmtKind::kMatrix: return matrices_.print(s);
    case StmtKind::kExtern: {  // an exchange between lanes (warp_lanes.h)
      const std::string place = exprs_.element(s.buffers[0], {});
      return out_.line(fmt::format("{} = {}({});", place, context_.functions.use(s.name), place));
    }
    default: HONE_ASSERT(false, "a statement that check_statements() refuses");
  }
}

void StmtPrinter::barrier(const StmtNode& s) {
  if (s.warp) {
    if (context_.is_cuda()) return out_.line("__syncwarp();");
    // OpenCL has none: all warps of the block wait where all of them come by.
    if (!all_warps_)
      return context_.fail(error(Code::kUnsupported, "OpenCL has no barriers of warps"));
  }
  if (shape_.threads == 1) return;
  out_.line(context_.is_cuda() ? "__syncthreads();"
                               : "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
}

// PoCL's compiler cuts a kernel into parts at barriers. LLVM may thread a jump from a test of the
// thread's number at the end of a loop with barriers to the same test in the next iteration or
// behind the loop, and PoCL stops at such parts. A barrier in between keeps them apart.
void StmtPrinter::separate() {
  constexpr std::string_view kBarrier = "barrier(CLK_LOCAL_MEM_FENCE);";
  const bool there = out_.last_line().starts_with("barrier(");
  if (!there) out_.line(kBarrier);
}

bool StmtPrinter::waits_inside(const StmtNode& s) const {
  if (context_.is_cuda() || shape_.threads == 1 || span_ != 0) return false;
  return ir::any_stmt(s, [](const StmtNode& n) { return n.kind == StmtKind::kBarrier; });
}

// Shared memory is declared at the head of the kernel.
void StmtPrinter::alloc(const StmtNode& s, bool last) {
  if (s.buffer->scope == ir::Scope::kShared) return all(s.body, last);
  if (!last) out_.open("");
  const auto owned = shape_.owned.find(s.buffer.get());
  out_.line(memory_.declare_array(s.buffer, owned == shape_.owned.end() ? 0 : owned->second) + ";");
  all(s.body);
  memory_.release(*s.buffer);
  if (!last) out_.close();
}

void StmtPrinter::phase(const StmtNode& body) {
  if (shape_.threads > 1)
    out_.line(context_.is_cuda() ? "const int thread = (int)threadIdx.x;"
                                 : "const int thread = (int)get_local_id(0);");
  if (body.kind != StmtKind::kFor || body.for_kind != ForKind::kParallel)
    return statement(body, true);
  define(body, context_.is_cuda() ? "(int)(first_tile + blockIdx.x)"
                                  : "(int)(first_tile + get_group_id(0))");
  all(body.body);
}

void StmtPrinter::define(const StmtNode& loop, const std::string& value) {
  context_.ranges.bind_loop(loop.var, loop.min, loop.extent);
  const bool is_int = fits_int(context_.ranges.of(loop.var));
  out_.line(fmt::format("const {} {} = {};", is_int ? "int" : "long",
                        context_.names.declare(loop.var.get(), loop.var->name), value));
}

void StmtPrinter::loop(const StmtNode& s) {
  if (ir::is_const_int(s.extent) && s.extent->int_value <= 0) return;
  if (ir::is_thread_loop(s.for_kind)) return thread_loop(s);
  if (s.for_kind == ForKind::kVectorized && vectors_.loop(s)) return;
  if (s.for_kind == ForKind::kUnrolled && is_range(s) && s.extent->int_value <= kMostKnown &&
      chooses_known_values(s))
    return unroll_known(s);
  counted_loop(s);
}

void StmtPrinter::counted_loop(const StmtNode& s) {
  const ir::Expr end = s.min + s.extent;
  const bool once = ir::has_load(end);  // the loop may change what its end is computed from
  std::string first = exprs_.print(s.min), last = exprs_.print(end);
  const ir::Ranges::Mark mark = context_.ranges.mark();
  context_.ranges.bind_loop(s.var, s.min, s.extent);
  const ir::Interval values = context_.ranges.of(s.var);
  const char* type = fits_int(values) && fits_int(values + ir::Interval{1, 1}) ? "int" : "long";
  const std::string name = context_.names.declare(s.var.get(), s.var->name);
  if (once) {
    const std::string end_name = context_.names.fresh(name + "_end");
    out_.open("");
    out_.line(fmt::format("const {} {} = {};", type, end_name, last));
    last = end_name;
  }
  const bool lanes = s.for_kind == ForKind::kVectorized && ir::is_const_int(s.extent) &&
                     s.extent->int_value <= kMostUnrolledLanes;
  if (s.for_kind == ForKind::kUnrolled || lanes) out_.line("#pragma unroll");
  out_.open(fmt::format("for ({} {} = {}; {} < {}; ++{})", type, name, first, name, last, name));
  all(s.body);
  const bool waits = waits_inside(s);
  if (waits && s.body[0]->kind != StmtKind::kBarrier) separate();
  out_.close();
  if (waits) separate();
  if (once) out_.close();
  context_.names.release(s.var.get());
  context_.ranges.reset(mark);
}

// Loops over threads that are nested share one pair of braces where nothing stands between them.
void StmtPrinter::thread_loop(const StmtNode& s) {
  const int64_t inside = threads_of_iteration(s);
  const int64_t threads = s.extent->int_value * inside;
  const int64_t around = span_;
  // A warp may have threads that a loop over lanes leaves idle.
  const int64_t there = around == 0 ? shape_.threads : around;
  out_.open(threads == there ? ""
            : around == 0    ? fmt::format("if (thread < {})", threads)
                             : fmt::format("if (thread % {} < {})", around, threads));
  const ir::Ranges::Mark mark = context_.ranges.mark();
  std::vector<const StmtNode*> nest;
  int64_t span = around;
  for (const StmtNode* loop = &s;;) {
    nest.push_back(loop);
    std::string value =
        span == 0 || span == shape_.threads ? "thread" : fmt::format("thread % {}", span);
    span = threads_of_iteration(*loop);
    if (loop->extent->int_value == 1) {
      value = "0";
    } else if (span > 1) {
      value += fmt::format(" / {}", span);
    }
    if (!ir::is_const_int(loop->min, 0)) value = exprs_.print(loop->min) + " + " + value;
    define(*loop, value);
    const StmtNode* next = loop->body.size() == 1 ? loop->body[0].get() : nullptr;
    const bool nested = next != nullptr && next->kind == StmtKind::kFor &&
                        ir::is_thread_loop(next->for_kind) && threads_of(*next) == span;
    if (!nested) break;
    loop = next;
  }
  span_ = span;
  const bool warps = s.for_kind == ForKind::kWarp && threads == shape_.threads;
  const bool outer_warps = std::exchange(all_warps_, warps);
  all(nest.back()->body);
  all_warps_ = outer_warps;
  span_ = around;
  for (const StmtNode* loop : nest) context_.names.release(loop->var.get());
  context_.ranges.reset(mark);
  out_.close();
}

bool StmtPrinter::chooses_known_values(const StmtNode& loop) const {
  const auto chooses = [&](const ir::Expr& e) {
    bool found = false;
    ir::visit(e, [&](const ir::Expr& n) {
      if (n->op != ir::Op::kLoad || n->buffer->values.empty()) return;
      for (const ir::Expr& index : n->args) found = found || ir::uses(index, loop.var.get());
    });
    return found;
  };
  return ir::any_stmt(loop, [&](const StmtNode& s) { return ir::any_expr(s, chooses); });
}

// Each iteration by itself, with the values that it chooses in place: a product with zero is left
// out, as in code for CPUs.
void StmtPrinter::unroll_known(const StmtNode& s) {
  for (int64_t i = 0; i < s.extent->int_value; ++i) {
    const ir::Expr value = ir::constant(s.min->int_value + i);
    for (const Stmt& child : s.body) {
      const Stmt one = ir::simplify(ir::substitute(child, {{s.var, value}}), context_.ranges,
                                    {.finite_math = true});
      if (one) statement(*one, false);
    }
  }
}

}  // namespace hone::backend::gpu
