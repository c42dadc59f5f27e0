#include "hone/analysis/gpu_body_measure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "hone/analysis/gpu_estimates.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/linear.h"
#include "hone/ir/visit.h"
#include "hone/schedule/lift_loops.h"

namespace hone::analysis {
namespace {

using ir::Expr;
using ir::Op;
using ir::StmtKind;
using ir::StmtNode;

constexpr double kUnknownLength = 32;  // iterations of a loop whose length depends on data
constexpr double kIntegerInstructions = 0.5;
constexpr double kSectorBytes = 32;
constexpr double kBanks = 32;
constexpr int64_t kMostVector = 8;  // elements of a vector of a body

// Counts what one thread does in a body.
class BodyMeter {
 public:
  BodyMeter(const target::Gpu& gpu, ir::VarPtr lane) : gpu_(gpu), lane_(std::move(lane)) {}

  void visit(const StmtNode& s, double times) {
    if (s.kind == StmtKind::kFor && ir::is_thread_loop(s.for_kind)) {
      visit_threads(s, times);
      return;
    }
    double inside = times;
    if (s.kind == StmtKind::kFor) {
      const double length =
          ir::is_const_int(s.extent) ? static_cast<double>(s.extent->int_value) : kUnknownLength;
      if (is_vector(s)) {
        vector_ = &s;
        count(*s.body[0], times);
        vector_ = nullptr;
        return;
      }
      inside *= length;
      arithmetic += 2 * inside;  // the loop itself
    }
    if (s.kind == StmtKind::kIf && ir::has_load(s.condition)) inside *= 0.5;
    count(s, times);
    for (const ir::Stmt& child : s.body) visit(*child, inside);
  }

  double arithmetic = 0, shared_requests = 0, shared_cycles = 0, local_requests = 0;
  double global_requests = 0, global_sectors = 0, far_sectors = 0, global_loads = 0;
  double turns = 0;  // nests of threads
  int64_t threads = 1;
  std::map<const ir::Buffer*, double> sectors;  // only summed up

 private:
  // The loops over threads of a block's body.
  void visit_threads(const StmtNode& s, double times) {
    const bool is_outermost = nest_ == 1;
    const ir::VarPtr outer = lane_;
    nest_ *= s.extent->int_value;
    threads = std::max(threads, nest_);
    lane_ = s.var;
    if (is_outermost) turns += times;
    for (const ir::Stmt& child : s.body) visit(*child, times);
    nest_ /= s.extent->int_value;
    lane_ = outer;
  }

  static bool is_vector(const StmtNode& s) {
    return s.for_kind == ir::ForKind::kVectorized && ir::is_const_int(s.extent) &&
           s.extent->int_value <= kMostVector && s.body.size() == 1 &&
           s.body[0]->kind == StmtKind::kStore;
  }

  void count(const StmtNode& s, double times) {
    ir::for_each_expr(s, [&](const Expr& e) { count(e, times); });
    if (s.kind == StmtKind::kStore) access(*s.buffer, s.indices, true, times);
  }

  void count(const Expr& whole, double times) {
    ir::visit(whole, [&](const Expr& e) {
      if (e->op == Op::kLoad) return access(*e->buffer, e->args, false, times);
      if (e->args.empty() || e->op == Op::kCast) return;
      double each = is_float(e->type) ? 1 : kIntegerInstructions;
      if (e->op == Op::kDiv && is_float(e->type)) each = kDivideInstructions;
      if (e->op == Op::kExp || e->op == Op::kLog || e->op == Op::kTanh || e->op == Op::kPow)
        each = kMathInstructions;
      arithmetic += each * times;
    });
  }

  // How far apart in memory the elements of neighbouring values of a variable are; infinity where
  // data decides it.
  static double stride(const ir::Buffer& buffer, const std::vector<Expr>& indices,
                       const ir::VarPtr& var) {
    double all = 0, elements = 1;
    for (size_t d = indices.size(); var && d-- > 0;) {
      const ir::Linear form = ir::linearize(indices[d]);
      all += static_cast<double>(form.coefficient(var)) * elements;
      if (ir::depends(ir::without(form, ir::variable(var)), var)) return INFINITY;
      elements *= static_cast<double>(buffer.shape[d]);
    }
    return std::abs(all);
  }

  void access(const ir::Buffer& buffer, const std::vector<Expr>& indices, bool write,
              double times) {
    const double apart = stride(buffer, indices, lane_), warp = gpu_.warp;
    double bytes = dtype_bytes(buffer.dtype);
    if (buffer.scope == ir::Scope::kShared) {
      const bool is_known = apart > 0 && apart < kBanks * kBanks;
      shared_requests += times;
      shared_cycles += times * (is_known ? std::gcd(static_cast<int64_t>(apart), 32) : 1);
      return;
    }
    if (buffer.scope == ir::Scope::kFragment || buffer.scope == ir::Scope::kRegister) return;
    if (buffer.scope != ir::Scope::kGlobal) {
      if (buffer.num_elements() == 1) return;
      local_requests += times;  // lies side by side for the threads of a warp
      global_sectors += times * warp * bytes / kSectorBytes;
      return;
    }
    if (vector_ != nullptr) {
      const double step = stride(buffer, indices, vector_->var);
      const auto length = static_cast<double>(vector_->extent->int_value);
      (step == 1 ? bytes : times) *= step > 0 ? length : 1;
    }
    const double lines =
        apart == 0 ? std::ceil(bytes / kSectorBytes)
                   : std::min(warp * std::ceil(bytes / kSectorBytes),
                              std::max(warp * bytes, warp * apart * dtype_bytes(buffer.dtype)) /
                                  kSectorBytes);
    global_requests += times;
    global_sectors += times * lines;
    if (!write) global_loads += times;
    if (apart > 0) far_sectors += times * lines;  // else a cache has it after the first time
    sectors[&buffer] += times * lines;
  }

  const target::Gpu& gpu_;
  ir::VarPtr lane_;                   // what neighbouring threads differ by
  const StmtNode* vector_ = nullptr;  // the loop around, if it is one vector
  int64_t nest_ = 1;
};

// The axis whose neighbouring points neighbouring threads have.
ir::VarPtr lane_of(const compute::Stage& stage) {
  ir::VarPtr lane;
  int64_t least = 0;
  for (const compute::Axis& axis : stage.axes) {
    const int64_t stride = schedule::body_stride(stage, axis.var);
    if (lane && (stride == 0 || (least > 0 && stride > least))) continue;
    lane = axis.var;
    least = stride;
  }
  return lane;
}

GpuRootMeasure measure_body(const schedule::StageState& state, const schedule::StageBounds& bounds,
                            int stage, const target::Gpu& gpu) {
  GpuRootMeasure root{.stage = stage};
  double points = 1, own_threads = 1;
  for (const int leaf : state.order) {
    const auto extent = static_cast<double>(bounds.loops[static_cast<size_t>(leaf)].extent);
    const schedule::Annotation how = state.loops[static_cast<size_t>(leaf)].annotation;
    double& part = how == schedule::Annotation::kParallel ? root.blocks
                   : schedule::is_thread_loop(how)        ? own_threads
                                                          : points;
    part *= extent;
  }
  BodyMeter meter(gpu, lane_of(state.info->stage));
  for (const ir::Stmt& s : state.info->stage.body) meter.visit(*s, points);
  for (const ir::Stmt& s : state.info->stage.body) {
    ir::for_each_stmt(*s, [&](const StmtNode& alloc) {
      if (alloc.kind != StmtKind::kAlloc) return;
      const auto bytes = static_cast<double>(alloc.buffer->bytes());
      if (alloc.buffer->scope == ir::Scope::kShared) root.shared_bytes += bytes;
      if (alloc.buffer->scope == ir::Scope::kFragment)
        root.registers += bytes / 4 / static_cast<double>(alloc.buffer->shape[0]);
    });
  }
  root.threads = std::max(own_threads, static_cast<double>(meter.threads));
  const double warps = std::ceil(root.threads / gpu.warp);
  GpuStageMeasure out{.stage = stage, .threads = root.threads, .passes = points};
  out.turns = std::max(1.0, meter.turns);
  out.arithmetic = meter.arithmetic;
  out.global_requests = meter.global_requests + meter.local_requests;
  out.global_sectors = meter.global_sectors;
  out.shared_requests = meter.shared_requests;
  out.shared_cycles = meter.shared_cycles;
  out.l2_bytes = meter.far_sectors * kSectorBytes * warps;
  for (const auto& [buffer, sectors] : meter.sectors) {
    out.memory_bytes += std::min(sectors * kSectorBytes * warps * root.blocks,
                                 static_cast<double>(buffer->bytes()));
  }
  const double each = warps * gpu.warp / gpu.fma_per_cycle;
  const double requests = out.global_requests + out.shared_requests;
  out.unit_cycles = warps * (std::max(out.global_requests, out.global_sectors / kSectorsPerCycle) +
                             out.shared_cycles);
  out.compute_cycles =
      std::max(out.arithmetic * each, warps * (out.arithmetic + requests) / kSchedulers);
  out.busy_cycles =
      std::max({out.compute_cycles, out.unit_cycles, out.l2_bytes / gpu.l2_bytes_per_cycle});
  const double far = meter.far_sectors / std::max(1.0, meter.global_sectors);
  out.wait_cycles = (meter.global_loads * (kL1Latency + far * (kL2Latency - kL1Latency)) +
                     meter.local_requests * kL1Latency + meter.shared_requests * kSharedLatency) /
                    kPassesTogether;
  const double slot = std::max(1.0, kSchedulers * gpu.warp / gpu.fma_per_cycle);
  out.latency_cycles = requests + out.arithmetic * std::max(slot, kArithmeticLatency) +
                       out.turns * kBarrierCycles + kMemoryLatency;
  root.stages.push_back(out);
  return root;
}

}  // namespace

std::vector<GpuRootMeasure> measure_bodies(const schedule::State& state,
                                           const schedule::Bounds& bounds, const target::Gpu& gpu) {
  std::vector<GpuRootMeasure> roots;
  for (size_t s = 0; s < state.stages.size(); ++s) {
    if (!state.stages[s].info->stage.is_extern()) continue;
    roots.push_back(measure_body(state.stages[s], bounds.stages[s], static_cast<int>(s), gpu));
  }
  return roots;
}

}  // namespace hone::analysis
