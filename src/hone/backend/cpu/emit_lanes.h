// backend/cpu/emit_lanes.h - emits vectorized loops as chunks of whole vectors and a tail, and
// reductions over their lanes.
#pragma once

#include <unordered_map>
#include <vector>

#include "hone/backend/cpu/emit_filter.h"
#include "hone/backend/cpu/emit_scan.h"
#include "hone/backend/cpu/lane_analysis.h"

namespace hone::backend::cpu {

class Statements;

class VectorLoops : EmitterPart {
 public:
  VectorLoops(EmitContext& context, Operators& operators, Indices& indices, Memory& memory,
              Scans& scans, Values& values, Filters& filters, Statements& statements)
      : EmitterPart(context),
        operators_(operators),
        indices_(indices),
        memory_(memory),
        scans_(scans),
        values_(values),
        filters_(filters),
        statements_(statements) {}

  // Emits a loop as target::plan_loop() says. Returns false if it is to run serially.
  bool emit(const ir::StmtNode& s);
  // Emits a store x = x op e(lane) inside a loop.
  void emit_reduction(const ir::StmtNode& s, const Access& access);

 private:
  // Partial results in the lanes of vectors.
  struct Partial {
    std::vector<llvm::Value*> slots;  // vectors of native width
    Combining by;
    int width;
  };
  void emit_chunks(const ir::StmtNode& s, int64_t extent, const IndexForm& min,
                   const target::LoopPlan& plan);
  // Emits a loop of `count` iterations, each of which takes as many whole vectors as the plan says.
  void emit_loop(const ir::StmtNode& s, const IndexForm& count, bool may_be_empty,
                 const target::LoopPlan& plan);
  void emit_chunk(const ir::StmtNode& s, const IndexForm& first, int64_t active,
                  const target::LoopPlan& plan);
  void begin_partials(const LaneUse& use, const target::LoopPlan& plan);
  void end_partials(const LaneUse& use);

  Operators& operators_;
  Indices& indices_;
  Memory& memory_;
  Scans& scans_;
  Values& values_;
  Filters& filters_;
  Statements& statements_;
  std::unordered_map<const ir::StmtNode*, Partial> partials_;
  int64_t partial_slot_ = 0;
};

}  // namespace hone::backend::cpu
