// backend/cpu/statements.h - emits statements. Loops on lanes are in emit_lanes.h.
#pragma once

#include <vector>

#include "hone/backend/cpu/emit_lanes.h"
#include "hone/backend/cpu/emit_transposed.h"

namespace hone::backend::cpu {

class Statements : EmitterPart {
 public:
  Statements(EmitContext& context, Indices& indices, Memory& memory, Scans& scans, Values& values,
             Squares& squares, VectorLoops& vector_loops)
      : EmitterPart(context),
        indices_(indices),
        memory_(memory),
        scans_(scans),
        values_(values),
        squares_(squares),
        vector_loops_(vector_loops) {}

  void emit(const ir::StmtNode& s);
  void emit_all(const std::vector<ir::Stmt>& body);
  // Emits the statements in a loop as chunks of vectors do: `copies` of each element that is
  // allocated in it.
  void emit_copies(const std::vector<ir::Stmt>& body, int copies);

 private:
  void emit_if(const ir::StmtNode& s);
  void emit_alloc(const ir::StmtNode& s);
  void emit_extern(const ir::StmtNode& s);
  void emit_store(const ir::StmtNode& s);
  void emit_for(const ir::StmtNode& s);
  void emit_unrolled(const ir::StmtNode& s);
  void emit_serial(const ir::StmtNode& s);
  bool emit_accumulated(const ir::StmtNode& s);  // false for any other kind of loop

  Indices& indices_;
  Memory& memory_;
  Scans& scans_;
  Values& values_;
  Squares& squares_;
  VectorLoops& vector_loops_;
  int copies_ = 1;                             // copies of a buffer that is allocated here
  const ir::StmtNode* accumulated_ = nullptr;  // the store whose element is accumulated
  llvm::Value* accumulator_ = nullptr;         // memory of that accumulator while its loops run
};

}  // namespace hone::backend::cpu
