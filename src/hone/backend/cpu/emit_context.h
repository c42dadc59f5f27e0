// backend/cpu/emit_context.h - is shared by the parts of the emitter of a phase. Only their own
// files include it.
//
// Unrolled loops are expanded. A vectorized loop becomes chunks of native vectors, in which an
// expression is either uniform (a scalar) or varying (a vector with one lane per iteration). Each
// part has one job, takes the other parts that it needs by reference, and shares this context.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <string>

#include "hone/backend/cpu/compiler.h"
#include "hone/backend/cpu/index_form.h"
#include "hone/base/status.h"
#include "hone/target/cpu.h"

namespace hone::backend::cpu {

inline constexpr int64_t kBaseAlignment = 64;  // bytes

// The lanes of the loop that is being emitted.
struct Lanes {
  int width = 1;                 // lanes of the vectors; 1 if there are none
  int active = 1;                // number of the first lanes that are active
  llvm::Value* mask = nullptr;   // further condition per lane, or null
  llvm::Value* guard = nullptr;  // uniform condition under which memory may be read, or null
  float otherwise = 0;           // value of float32 loads where the guard is false
};

struct EmitContext {
  EmitContext(llvm::Module& module, const target::Cpu& target, int64_t max_statements);
  llvm::Module& module;
  const target::Cpu& target;
  const int64_t max_statements;
  const bool converts_half;  // the processor converts halves
  llvm::IRBuilder<> builder;
  llvm::Function* function = nullptr;
  IndexSpace space;
  Lanes lanes;
  Status status;  // the first error
  int64_t statements = 0;
  EmittedLoops loops;
};

class EmitterPart {
 protected:
  explicit EmitterPart(EmitContext& context);

  void fail(Status status);
  [[nodiscard]] bool failed() const { return !context_.status.ok(); }
  llvm::BasicBlock* new_block(const char* name);
  llvm::Value* entry_alloca(llvm::Type* type, int64_t count);
  llvm::Value* advance(llvm::Value* pointer, int64_t bytes);
  // Returns data of the module, which is made once.
  llvm::Value* named_constant(const std::string& name, llvm::function_ref<llvm::Constant*()> make);

  llvm::Type* type_of(DType type);  // type of a value, which is i1 for bool
  llvm::Type* with_lanes(llvm::Type* type);
  llvm::Constant* integer(llvm::Type* type, int64_t v);  // wraps modulo 2^bits
  llvm::Value* i64(int64_t v) { return builder_.getInt64(static_cast<uint64_t>(v)); }
  llvm::Value* splat(llvm::Value* v);
  void match(llvm::Value*& a, llvm::Value*& b);  // makes vectors of both if one is a vector
  llvm::Value* lane_numbers(llvm::Type* element);
  // Returns so many lanes of a vector from the first one on, as a vector of `size` lanes.
  llvm::Value* part_of(llvm::Value* vector, int first, int count, int size = 0);
  // Returns a vector in which lanes from the first one on are those of another one.
  llvm::Value* with_part(llvm::Value* vector, llvm::Value* part, int first);
  llvm::Value* tail_mask();
  llvm::Value* all_lanes_mask();  // null if every lane of the vector is active
  llvm::Value* any_lane();        // an i1 that is true if some lane is active, or null
  // Returns the condition, and the one that holds already unless that is null.
  llvm::Value* both(llvm::Value* outer, llvm::Value* condition);

  EmitContext& context_;
  llvm::IRBuilder<>& builder_;
  const target::Cpu& target_;
  IndexSpace& space_;
  Lanes& lanes_;
};

}  // namespace hone::backend::cpu
