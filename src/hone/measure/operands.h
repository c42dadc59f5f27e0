// measure/operands.h - the data on which all candidates of a task run. It is in shared memory, made
// once by the tuner, mapped once by a worker, and never written afterwards by either.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"
#include "hone/tensor/dtype.h"

namespace hone::measure {

struct OperandSpec {
  ir::Role role = ir::Role::kInput;  // kInput, kConstant or kOutput
  int64_t bytes = 0;
  const void* data = nullptr;  // copied; null for outputs
};

// The expected contents of an output: all elements, or those at the given places.
struct Expected {
  int operand = 0;
  DType dtype = DType::kF32;
  std::vector<int64_t> places;  // flat indices of elements; empty if `values` has all, in order
  std::vector<double> values;
};

// The positions of operands in the shared memory, which a worker needs in addition to the memory
// itself.
struct OperandLayout {
  struct Entry {
    ir::Role role;
    int64_t bytes, offset;
  };
  struct ExpectedEntry {
    int operand;
    DType dtype;
    int64_t num_places, places_offset, num_values, values_offset;
  };
  std::vector<Entry> entries;
  std::vector<ExpectedEntry> expected;
  int64_t total_bytes = 0;
};

class Operands {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const Operands>> create(
      std::span<const OperandSpec> specs, std::span<const Expected> expected = {});
  // Returns operands whose memory is still empty. Who has them from elsewhere writes it, by fd().
  [[nodiscard]] static Result<std::shared_ptr<const Operands>> reserve(OperandLayout layout);
  ~Operands();
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  [[nodiscard]] uint64_t id() const { return id_; }  // unique in this process
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const OperandLayout& layout() const { return layout_; }

 private:
  Operands() = default;
  uint64_t id_ = 0;
  int fd_ = -1;
  OperandLayout layout_;
};

}  // namespace hone::measure
