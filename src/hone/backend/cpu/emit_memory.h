// backend/cpu/emit_memory.h - emits loads and stores, of one element or of the lanes of a loop, and
// knows where the buffers of a phase are.
#pragma once

#include <unordered_map>
#include <vector>

#include "hone/backend/cpu/conversions.h"
#include "hone/backend/cpu/emit_index.h"
#include "hone/ir/stmt.h"

namespace hone::backend::cpu {

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
// Returns the strides of a buffer without gaps, except that its rows have `row` elements.
[[nodiscard]] std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape, int64_t row);

// Elements of a buffer, at a place for each lane.
struct Access {
  const BufferInfo* buffer;
  const ir::Buffer* of;
  IndexForm form;
  llvm::Type* type;  // type in memory
  int64_t bytes;     // bytes of an element
};

class Memory : EmitterPart {
 public:
  Memory(EmitContext& context, Conversions& conversions, Indices& indices)
      : EmitterPart(context), conversions_(conversions), indices_(indices) {}

  // Names the pointer to memory that buffers are put into which are too large for the stack, and
  // the place where their addresses are computed.
  void begin_function(llvm::Value* scratch, llvm::Instruction* entry_end);
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_high_; }
  void add_buffer(const ir::Buffer* buffer, BufferInfo info);
  [[nodiscard]] bool has_buffer(const ir::Buffer* buffer) const;
  [[nodiscard]] llvm::Value* base_of(const ir::Buffer* buffer) const;
  // Returns whether the phase is given the buffer and does not write it.
  [[nodiscard]] bool is_read_only(const ir::Buffer* buffer) const;
  // Allocates a buffer with so many copies of each element until it is released. Returns the memory
  // that was in use before.
  int64_t allocate(const ir::Buffer& buffer, int64_t copies);
  void release(const ir::Buffer& buffer, int64_t outer_top);

  Access access(const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices);
  llvm::Value* load(const Access& access);
  void store(const Access& access, llvm::Value* value);
  void store_vector(const Access& access, llvm::Value* value);
  void prefetch(const ir::StmtNode& s);
  llvm::Value* address(const Access& access);
  [[nodiscard]] llvm::Align alignment(const Access& access, bool vector) const;
  llvm::Instruction* note(llvm::Instruction* memory_access, const Access& access);

 private:
  llvm::Constant* known_constant(const Access& access, double v);
  llvm::Value* known_value(const Access& access);  // value of a buffer with known values, or null
  llvm::Value* safe(llvm::Value* pointer, llvm::Value* condition, const Access& access);
  llvm::Value* load_vector(const Access& access);
  llvm::Value* load_pieces(const Access& access, llvm::Value* pointer, llvm::Align align);
  llvm::Value* load_gather(const Access& access);
  std::vector<llvm::Value*> lane_pointers(const Access& access);
  llvm::Value* lane_addresses(const Access& access);
  [[nodiscard]] bool is_reversed(const Access& access) const;
  // Returns whether all lanes lie in the buffer, whatever their mask is.
  [[nodiscard]] bool is_inside(const Access& access) const;
  Access ascending(const Access& access);
  llvm::Value* reversed(llvm::Value* lanes);
  [[nodiscard]] bool ends_row(const Access& access) const;
  void store_uniform(const Access& access, llvm::Value* value);
  void store_pieces(const Access& access, llvm::Value* value, llvm::Value* pointer,
                    llvm::Align align);
  void store_scatter(const Access& access, llvm::Value* value);

  Conversions& conversions_;
  Indices& indices_;
  std::unordered_map<const ir::Buffer*, BufferInfo> buffers_;
  int num_buffers_ = 0;
  llvm::Value* scratch_ = nullptr;
  llvm::Instruction* entry_end_ = nullptr;
  int64_t scratch_top_ = 0, scratch_high_ = 0;
};

}  // namespace hone::backend::cpu
