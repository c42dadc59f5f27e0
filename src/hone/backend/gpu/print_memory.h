// backend/gpu/print_memory.h - where the buffers of a kernel lie and how C names their elements.
// Parameters are pointers and have one flat index; what a block or a thread owns are arrays of C.
// A fragment is an array of each thread: its leading indices, which say whose it is, are left out.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "hone/backend/gpu/print_context.h"
#include "hone/ir/stmt.h"

namespace hone::backend::gpu {

class Memory {
 public:
  explicit Memory(PrintContext& context) : context_(context) {}

  void add_param(const ir::BufferPtr& buffer, std::string name, bool holds_values);
  // Gives an array a name; the first `owned` dimensions of a fragment are left out. Returns its
  // declaration without what says where it lies: float acc[4][4].
  std::string declare_array(const ir::BufferPtr& buffer, size_t owned);
  void release(const ir::Buffer& buffer);
  // Makes a buffer whose elements are those of a variable that is a vector.
  ir::BufferPtr add_vector(std::string name, DType type, int lanes);

  [[nodiscard]] const std::string& name(const ir::Buffer& buffer) const;
  // Returns whether the elements are values, not what memory holds: 16-bit floats are float.
  [[nodiscard]] bool holds_values(const ir::Buffer& buffer) const;
  [[nodiscard]] bool is_vector(const ir::Buffer& buffer) const;
  [[nodiscard]] bool is_param(const ir::Buffer& buffer) const;
  [[nodiscard]] std::string component(const ir::Buffer& buffer,
                                      const std::vector<ir::Expr>& indices) const;
  // Returns the indices that C's array or pointer has.
  [[nodiscard]] std::vector<ir::Expr> subscripts(const ir::BufferPtr& buffer,
                                                 const std::vector<ir::Expr>& indices) const;
  // Returns the place of an element in the whole buffer.
  [[nodiscard]] ir::Expr flat_index(const ir::Buffer& buffer,
                                    const std::vector<ir::Expr>& indices) const;

 private:
  enum class Place : uint8_t { kParam, kValues, kArray, kVector };
  struct Slot {
    Place place;
    std::string name;
    size_t owned = 0;
    ir::BufferPtr buffer = nullptr;  // keeps it alive
  };
  const Slot& slot(const ir::Buffer& buffer) const;

  PrintContext& context_;
  std::unordered_map<const ir::Buffer*, Slot> slots_;  // looked up only
};

}  // namespace hone::backend::gpu
