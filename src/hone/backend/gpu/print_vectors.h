// backend/gpu/print_vectors.h - prints stores, and loops on lanes as loads and stores of vectors of
// 2 to 16 bytes where these are contiguous and provably aligned. What is computed in between is
// printed for each lane.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hone/backend/gpu/code_writer.h"
#include "hone/backend/gpu/print_expr.h"

namespace hone::backend::gpu {

class VectorPrinter {
 public:
  VectorPrinter(PrintContext& context, Memory& memory, ExprPrinter& exprs, CodeWriter& out)
      : context_(context), memory_(memory), exprs_(exprs), out_(out) {}
  void store(const ir::StmtNode& s);
  // Prints a loop on lanes. Returns false, and prints nothing, if no access of it is a vector.
  bool loop(const ir::StmtNode& s);

 private:
  // A load of the loop's body: it reads a vector when `guard` holds, which is so wherever the body
  // has the load; null: always.
  struct VectorLoad {
    ir::Expr load;
    ir::Expr guard;
    ir::BufferPtr vector;  // what it is read to
  };
  struct Lanes {
    const ir::StmtNode* loop;
    const ir::StmtNode* store;
    int count;  // lanes of a vector
    std::vector<VectorLoad> loads;
    // Loads that one lane may need while another does not: no vector under a guard replaces them.
    std::vector<ir::Expr> by_lane = {};
    bool stores_vector = false;
  };

  [[nodiscard]] bool plan(Lanes& lanes) const;
  void find_loads(const ir::Expr& e, const ir::Expr& guard, bool may_load, Lanes& lanes) const;
  // Returns whether `count` lanes of an access are one aligned vector.
  [[nodiscard]] bool is_vector(const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices,
                               const Lanes& lanes) const;
  // Returns whether the copy of this many bytes that a store makes is an asynchronous one.
  [[nodiscard]] bool is_async(const ir::StmtNode& s, int64_t bytes) const;
  void async_copy(const ir::StmtNode& s, int64_t bytes);
  bool async_chunks(const Lanes& lanes);
  void chunk(Lanes& lanes, const ir::Expr& first);
  bool copy(const Lanes& lanes);
  // Returns whether all elements of memory that the lanes touch are 16-bit floats, of which a
  // vector has eight.
  [[nodiscard]] bool is_half_precision(const Lanes& lanes) const;
  // Returns the text of the vector that the lanes store.
  std::string stored_vector(const Lanes& lanes, const ir::Expr& first, const std::string& type);
  void chunks(const Lanes& lanes, const auto& print_chunk);
  // Returns the vector that begins at an element, as C may read and write it.
  [[nodiscard]] std::string vector_at(const ir::BufferPtr& buffer,
                                      const std::vector<ir::Expr>& indices, const std::string& type,
                                      bool is_read);
  [[nodiscard]] ir::Expr lane(const ir::Expr& e, const Lanes& lanes, const ir::Expr& first,
                              int64_t number) const;

  PrintContext& context_;
  Memory& memory_;
  ExprPrinter& exprs_;
  CodeWriter& out_;
};

}  // namespace hone::backend::gpu
