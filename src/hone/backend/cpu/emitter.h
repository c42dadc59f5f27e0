// backend/cpu/emitter.h - emits one phase of a program as LLVM IR. Only the .cc files here include
// this.
//
// Unrolled loops are expanded. A vectorized loop becomes chunks of native vectors, in which an
// expression is either uniform (a scalar) or varying (a vector with one lane per iteration). The
// part of an address that depends on a loop is computed in that loop's header, as a pointer that
// the loop advances, so only a constant displacement is left at the access.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hone/backend/cpu/compiler.h"
#include "hone/backend/cpu/index_form.h"
#include "hone/backend/cpu/lane_analysis.h"
#include "hone/base/status.h"
#include "hone/ir/in_place.h"
#include "hone/ir/stmt.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {

struct EmitLimits {
  int64_t max_statements = 8'000;
  int64_t argument_alignment = 64;
};

class PhaseEmitter {
 public:
  // The pairs of params that may share their memory are ir::in_place_pairs(program).
  PhaseEmitter(llvm::Module& module, const ir::Program& program,
               std::span<const ir::InPlacePair> in_place, const target::Target& target,
               const EmitLimits& limits);
  // Adds the function `symbol` to the module.
  [[nodiscard]] Status emit(const ir::Phase& phase, const std::string& symbol);
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_high_; }
  [[nodiscard]] const EmittedLoops& loops() const { return loops_; }

 private:
  // A loop at run time, or the function itself.
  struct Scope {
    llvm::BasicBlock* preheader = nullptr;  // ends in a jump to the header
    llvm::BasicBlock* header = nullptr;  // holds values that the loop computes once per iteration
    llvm::BasicBlock* exit = nullptr;
    int atom = -1;
    llvm::Value* min = nullptr;
    llvm::PHINode* counter = nullptr;
    // Each with the bytes by which it advances.
    std::vector<std::pair<llvm::PHINode*, int64_t>> pointers;
    // Multiples of the counter in all lanes, by number of lanes and factor.
    std::map<std::pair<int, int64_t>, llvm::PHINode*> counts;
    std::map<std::vector<int64_t>, llvm::Value*> known;  // values by buffer and terms
  };
  struct BufferInfo {
    int id = 0;
    llvm::Value* base = nullptr;
    std::vector<int64_t> strides;  // in elements
    int64_t padded_row = 0;        // length in memory of a row that is padded to whole vectors
    int64_t alignment = 64;        // alignment of the base in bytes
    int lane_copies = 1;     // copies of each element, as it is allocated inside a vectorized loop
    bool local = false;      // on the stack, so any address in it is safe to read
    bool read_only = false;  // not written in this phase
  };
  struct Lanes {
    int width = 1;                 // lanes of the vectors; 1 if there are none
    int active = 1;                // number of the first lanes that are active
    llvm::Value* mask = nullptr;   // further condition per lane, or null
    llvm::Value* guard = nullptr;  // uniform condition under which memory may be read, or null
    float otherwise = 0;           // value of float32 loads where the guard is false
  };
  struct Access {
    const BufferInfo* buffer;
    const ir::Buffer* of;
    IndexForm form;
    llvm::Type* type;  // type in memory
    int64_t bytes;     // bytes of an element
  };
  // An element that a scan carries from vector to vector.
  struct Scan {
    Access at;
    llvm::Value* slot;  // a vector of `native` equal lanes
    int native;
    llvm::Value* neutral;           // the operator's neutral element in each lane
    llvm::Value* last;              // number of the last lane in each lane, or null
    llvm::Value* before = nullptr;  // values in the active lanes before their own terms are added
    llvm::Value* after = nullptr;   // values after that
    bool updated = false;           // reads give `after` from now on
  };
  struct Partial {
    std::vector<llvm::Value*> slots;  // vectors of native width
    ir::Op op;
    int width;
  };

  // These are in emit_phase.cc: the function, statements and scalar loops.
  void emit_all(const std::vector<ir::Stmt>& body);
  void emit_stmt(const ir::StmtNode& s);
  void emit_if(const ir::StmtNode& s);
  void emit_alloc(const ir::StmtNode& s);
  void emit_extern(const ir::StmtNode& s);
  void emit_for(const ir::StmtNode& s);
  void emit_unrolled(const ir::StmtNode& s);
  void emit_serial(const ir::StmtNode& s);
  bool emit_accumulated(const ir::StmtNode& s);  // false for any other kind of loop
  void begin_loop(llvm::Value* min, llvm::Value* end, bool may_be_empty, Range range);
  [[nodiscard]] IndexForm loop_index() const { return IndexSpace::of_atom(scopes_.back().atom); }
  void end_loop(llvm::Value* end);
  llvm::BasicBlock* new_block(const char* name);
  llvm::Value* entry_alloca(llvm::Type* type, int64_t count);
  void fail(Status status);
  void collect_buffers(const ir::Phase& phase, const std::string& symbol);
  void add_buffer(const ir::Buffer* buffer, BufferInfo info);
  [[nodiscard]] bool failed() const { return !status_.ok(); }

  // These are in emit_lanes.cc: vectorized loops and reductions over lanes.
  void emit_vectorized(const ir::StmtNode& s);
  void emit_vector_loop(const ir::StmtNode& s, const IndexForm& count, bool may_be_empty,
                        const target::LoopPlan& plan);
  void emit_chunk(const ir::StmtNode& s, const IndexForm& first, int64_t active, int native);
  void emit_reduction(const ir::StmtNode& s, const Access& access, ir::Op op);
  void begin_partials(const LaneUse& use, const target::LoopPlan& plan);
  void end_partials(const LaneUse& use);
  llvm::Value* reduce_lanes(llvm::Value* vector, ir::Op op, DType type);
  llvm::Value* identity(ir::Op op, DType type);
  llvm::Value* count_in_lanes(const ir::ExprNode& e);  // null if it is no loop's number
  llvm::Value* all_lanes_mask();                       // null if every lane of the vector is active
  llvm::Value* tail_mask();
  llvm::Value* any_lane();  // an i1 that is true if some lane is active, or null

  // These are in emit_scan.cc: running sums.
  bool find_scan_places(const ir::StmtNode& loop, const ir::Scan& scan);
  bool find_scan_places_in(const std::vector<ir::Stmt>& body);
  void begin_scans(int native);
  void end_scans();
  void begin_scan_chunk();
  // Returns the vector as a value that the optimizer cannot see through.
  llvm::Value* opaque(llvm::Value* vector);
  Scan* find_scan(const Access& access);  // null if no scan carries it
  llvm::Value* permuted(llvm::Value* lanes, llvm::Value* from);
  void emit_scan_step(const ir::StmtNode& update, Scan& scan);
  bool emit_scanned(const ir::StmtNode& s);

  // These are in emit_filter.cc: lanes that pass a test are packed.
  void emit_filter(const ir::StmtNode& s);
  llvm::Value* pack_lanes(llvm::Value* all, llvm::Value* passes);
  llvm::Value* pack_by_table(llvm::Value* all, llvm::Value* passes);

  // These are in emit_permuted.cc: loads from any place of a row that fits into a few registers.
  llvm::Value* load_permuted(const Access& access);   // null if the row is not like that
  llvm::Value* load_of_vector(const Access& access);  // null if the elements are not in one vector

  // These are in emit_transposed.cc: square blocks whose store is contiguous across the lanes.
  bool emit_transposed(const ir::StmtNode& s);  // false for any other kind of loop
  std::vector<llvm::Value*> transposed(std::vector<llvm::Value*> rows);

  // These are in emit_memory.cc: addresses, loads, stores.
  Access access(const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices);
  llvm::Value* address(const Access& access);
  llvm::Value* advance(llvm::Value* pointer, int64_t bytes);
  // Returns data of the module, which is made once.
  llvm::Value* named_constant(const std::string& name, llvm::function_ref<llvm::Constant*()> make);
  llvm::Value* safe(llvm::Value* pointer, llvm::Value* condition, const Access& access);
  llvm::Align alignment(const Access& access, bool vector) const;
  std::vector<llvm::Value*> lane_pointers(const Access& access);
  llvm::Value* lane_addresses(const Access& access);
  [[nodiscard]] bool is_strided(const IndexForm& form) const;
  [[nodiscard]] bool ends_row(const Access& access) const;
  llvm::Value* load(const Access& access);
  llvm::Value* load_vector(const Access& access);
  llvm::Value* load_gather(const Access& access);
  [[nodiscard]] bool is_reversed(const Access& access) const;
  Access ascending(const Access& access);
  llvm::Value* reversed(llvm::Value* lanes);
  void store(const Access& access, llvm::Value* value);
  void store_vector(const Access& access, llvm::Value* value);
  void store_scatter(const Access& access, llvm::Value* value);
  void store_uniform(const Access& access, llvm::Value* value);
  llvm::Instruction* note(llvm::Instruction* memory_access, const Access& access);
  llvm::Constant* known_constant(const Access& access, double v);
  llvm::Value* known_value(const Access& access);  // value of a buffer with known values, or null
  void emit_store(const ir::StmtNode& s);
  void emit_prefetch(const ir::StmtNode& s);

  // These are in emit_value.cc: expressions.
  llvm::Value* value(const ir::Expr& e);
  llvm::Value* condition(const ir::Expr& e);  // i1 or a vector of i1
  llvm::Value* compare(const ir::ExprNode& e);
  llvm::Value* compare_forms(ir::Op op, const IndexForm& difference);
  llvm::Value* arithmetic(const ir::ExprNode& e);
  // In emit_activation.cc; null if it is none.
  llvm::Value* activation(const ir::ExprNode& product);
  llvm::Value* float_binary(ir::Op op, llvm::Value* a, llvm::Value* b, DType type);
  llvm::Value* shift(ir::Op op, llvm::Value* a, llvm::Value* by, bool no_sign);
  llvm::Value* int_binary(ir::Op op, llvm::Value* a, llvm::Value* b, DType type);
  llvm::Value* unary(const ir::ExprNode& e);
  llvm::Value* function(ir::Op op, llvm::Value* x, DType type);
  llvm::Value* library_call(const char* name, llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* select(const ir::ExprNode& e);
  // Returns null if it is no such select.
  llvm::Value* load_or_constant(const ir::ExprNode& select, llvm::Value* test);
  llvm::Value* branch_select(const ir::ExprNode& e, llvm::Value* condition);
  llvm::Value* convert(llvm::Value* v, DType from, DType to);
  llvm::Value* reinterpret(llvm::Value* v, DType from, DType to);

  // These are in emit_float_cast.cc: conversions between float types.
  llvm::Value* cast_float(llvm::Value* v, llvm::Type* type);
  llvm::Value* narrow_to_odd(llvm::Value* v);
  llvm::Value* float_of_half(llvm::Value* bits);
  llvm::Value* half_of_float(llvm::Value* v);

  // These are in emit_index.cc: linear forms as values.
  IndexForm index(const ir::Expr& e);
  llvm::Value* form_value(const IndexForm& form);  // i64 or a vector of i64
  llvm::Value* uniform_value(const IndexForm& form);
  llvm::Value* atom_value(int atom);
  llvm::Value* compound_value(const Atom& atom);
  llvm::Value* splat(llvm::Value* v);
  void match(llvm::Value*& a, llvm::Value*& b);  // makes vectors of both if one is a vector
  llvm::Value* lane_numbers(llvm::Type* element);
  llvm::Type* type_of(DType type);  // type of a value, which is i1 for bool
  llvm::Type* memory_type(DType type);
  llvm::Value* from_memory(llvm::Value* v, DType type);
  llvm::Value* to_memory(llvm::Value* v, DType type);
  llvm::Type* with_lanes(llvm::Type* type);
  llvm::Constant* integer(llvm::Type* type, int64_t v);  // wraps modulo 2^bits
  llvm::Value* i64(int64_t v) { return builder_.getInt64(static_cast<uint64_t>(v)); }

  llvm::Module& module_;
  const ir::Program& program_;
  std::span<const ir::InPlacePair> in_place_;
  const target::Target& target_;
  const bool converts_half_;  // the processor converts halves
  EmitLimits limits_;
  llvm::IRBuilder<> builder_;
  llvm::Function* function_ = nullptr;
  llvm::Value* scratch_ = nullptr;
  llvm::Instruction* entry_end_ = nullptr;
  Status status_;
  IndexSpace space_;
  std::vector<Scope> scopes_;
  std::vector<llvm::Value*> atom_values_;
  std::unordered_map<const ir::Buffer*, BufferInfo> buffers_;
  int num_buffers_ = 0;
  std::unordered_map<const ir::StmtNode*, Partial> partials_;
  int partial_slot_ = 0;
  // Scans of the vectorized loop that is being emitted, by buffer and element, and those of a
  // buffer.
  std::map<std::pair<const ir::Buffer*, int64_t>, Scan> scans_;
  std::unordered_map<const ir::Buffer*, const ir::StmtNode*> scan_updates_;
  std::vector<Access> scan_places_;
  std::map<llvm::Value*, llvm::Value*> opaque_;
  const ir::StmtNode* accumulated_ = nullptr;  // the store whose element is accumulated
  llvm::Value* accumulator_ = nullptr;         // memory of that accumulator while its loops run
  // The store whose own element is replaced by reduced_value_.
  const ir::StmtNode* reduced_ = nullptr;
  llvm::Value* reduced_value_ = nullptr;  // value of that element
  // Values that were computed before their loop.
  std::unordered_map<const ir::ExprNode*, llvm::Value*> hoisted_;
  Lanes lanes_;
  // Filter of the vectorized loop that is being emitted, or null.
  const ir::StmtNode* filter_ = nullptr;
  int alloc_copies_ = 1;  // copies of a buffer that is allocated here, for the native width
  int64_t scratch_top_ = 0;
  int64_t scratch_high_ = 0;
  int64_t statements_ = 0;
  EmittedLoops loops_;
};

}  // namespace hone::backend::cpu
