// backend/cpu/emit_scan.h - emits scans (ir/scan_loop.h) on lanes: sums of the lanes up to each
// one, to which the total of the vectors before is added.
#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hone/backend/cpu/emit_value.h"
#include "hone/ir/scan_loop.h"

namespace hone::backend::cpu {

class Scans : EmitterPart {
 public:
  Scans(EmitContext& context, Operators& operators, Memory& memory, Values& values)
      : EmitterPart(context), operators_(operators), memory_(memory), values_(values) {}

  // Finds the elements that the loop carries. Returns false if one has no place that is known here.
  bool find_places(const ir::StmtNode& loop, const ir::Scan& scan);
  // Loads each of them into a vector of so many lanes, which are all the same.
  void begin(int native);
  void end();
  void begin_chunk();
  // Emits the steps of the scans whose elements a store reads, ahead of the store. Returns false if
  // the store itself is no such step, so that it is still to be emitted.
  bool emit(const ir::StmtNode& store);
  // Returns the values of an element that a scan carries; null for any other.
  [[nodiscard]] llvm::Value* value_of(const Access& access) const;

 private:
  // An element that is carried from vector to vector.
  struct Carried {
    Access at;
    llvm::Value* slot;  // a vector of `native` equal lanes
    int native;
    llvm::Value* neutral;           // the operator's neutral element in each lane
    llvm::Value* last;              // number of the last lane in each lane, or null
    llvm::Value* before = nullptr;  // values in the active lanes before their own terms are added
    llvm::Value* after = nullptr;   // values after that
    bool updated = false;           // reads give `after` from now on
  };
  bool find_places_in(const std::vector<ir::Stmt>& body);
  Carried* step(const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices);
  void emit_step(const ir::StmtNode& update, Carried& carried);
  // Returns the vector as a value that the optimizer cannot see through.
  llvm::Value* opaque(llvm::Value* vector);
  llvm::Value* permuted(llvm::Value* lanes, llvm::Value* from);

  Operators& operators_;
  Memory& memory_;
  Values& values_;
  std::unordered_map<const ir::Buffer*, const ir::StmtNode*> updates_;
  std::vector<Access> places_;
  std::map<std::pair<const ir::Buffer*, int64_t>, Carried> carried_;  // by buffer and element
  std::map<llvm::Value*, llvm::Value*> opaque_;
};

}  // namespace hone::backend::cpu
